"""The training loop: steps, epochs, validation, and when to write what."""

import logging
import math
import time
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from uqno.stopping import Interrupt
from uqno.training import progress
from uqno.training.devices import CalledUnrounded, UnroundedBatch, seed_global
from uqno.training.folder import (
    Best,
    FitFolder,
    Position,
    Resumable,
    load_optimizer,
    optimizer_tensors,
    weights_of,
)
from uqno.training.record import Epoch
from uqno.training.samples import (
    batches_per_epoch,
    derived_seed,
    epoch_batches,
    generator,
    index_batches,
    share,
)
from uqno.training.schedule import learning_rate
from uqno.training.settings import FitSettings
from uqno.types import Samples

logger = logging.getLogger(__name__)


class Loop:
    """One run of `fit` on one process of it.

    Args:
        operator: is trained in place; it has `collate` and its final normalisers.
        data: the samples, of which each is read when a batch needs it.
        settings: the arguments of `fit` that decide the weights.
        training: indices of the samples to train on.
        validation: indices of the samples held out, which may be none.
        fabric: running, with the device, the precision and the processes.
        store: where checkpoints and the log are written; None writes nothing.
        saved: what an earlier run left to go on from, if anything.
        checkpoint_every: seconds between checkpoints within an epoch.
    """

    def __init__(
        self,
        operator: Any,
        data: Samples,
        settings: FitSettings,
        training: list[int],
        validation: list[int],
        fabric: Fabric,
        store: FitFolder | None,
        saved: Resumable | None,
        checkpoint_every: float,
    ) -> None:
        self.operator, self.data, self.settings = operator, data, settings
        self.training, self.validation = training, validation
        self.fabric, self.store, self.checkpoint_every = fabric, store, checkpoint_every
        self.position = saved.position if saved else Position()
        self.best = saved.best if saved else None
        self.per_epoch = batches_per_epoch(len(training), settings.batch_size)
        self.steps = settings.epochs * self.per_epoch
        self.is_mixed = settings.precision.endswith("-mixed")
        self._optimizer = _adamw(operator, settings, fabric)
        module = CalledUnrounded(operator) if self.is_mixed else operator
        self.module, self.optimizer = fabric.setup(module, self._optimizer)
        self.precision = fabric.strategy.precision
        if saved:
            load_optimizer(self._optimizer, saved.optimizer)
            self.precision.load_state_dict(dict(saved.scaler))
        self.interrupt = Interrupt(
            "interrupted after the last step; with a folder, resume=True returns the finished run"
        )
        self.written = time.monotonic()

    def run(self, shown: bool) -> None:
        """Train from where the run stands to the last epoch.

        Args:
            shown: whether there is a progress bar.

        Raises:
            FloatingPointError: a loss or a gradient is not finite.
            KeyboardInterrupt: Ctrl-C, after a checkpoint has been written.
        """
        done = self.position.epoch * self.per_epoch + self.position.batch
        shown = shown and self.fabric.is_global_zero
        self.bar = progress.Bar(shown, self.steps, done, self.settings.epochs)
        with self.interrupt, self.bar:
            while self.position.epoch < self.settings.epochs:
                self._train_epoch()
                self._close_epoch(self._validate())

    def _train_epoch(self) -> None:
        position, seed = self.position, self.settings.seed
        self.started = time.perf_counter() - position.seconds
        self.module.train()
        todo = epoch_batches(self.training, self.settings.batch_size, seed, position.epoch)
        for indices in todo[position.batch :]:
            loss, stop = self._step(indices)
            position.batch += 1
            position.samples += len(indices)
            position.loss_sum += loss * len(indices)
            self.bar.advance(position.epoch + 1, position.loss_sum / position.samples)
            if stop:
                self._stop()
            if time.monotonic() - self.written >= self.checkpoint_every:
                self._save()

    def _step(self, indices: list[int]) -> tuple[float, bool]:
        """One step of AdamW on the mean loss of a batch, shared between the processes."""
        settings, fabric = self.settings, self.fabric
        step = self.position.epoch * self.per_epoch + self.position.batch
        rate = self._rate(step)
        mine, count = share(indices, fabric.global_rank, fabric.world_size)
        batch = self._batch(mine, augmented=True)
        # Seeded at each step, dropout depends on the step alone: a resumed run draws the same.
        seed_global(derived_seed(settings.seed, "step", step, fabric.global_rank), fabric.device)
        loss = self._loss(batch)
        self.optimizer.zero_grad()
        # Processes average their gradients; with parts of unequal size that is the gradient of
        # the mean over the whole batch only if each part has the weight of its size.
        part = count * fabric.world_size / len(indices)
        fabric.backward(loss if part == 1 else loss * part)
        mean, stop = self._agree(loss, count, len(indices))
        self._check_finite("loss", mean, step, rate)
        if settings.clip is not None:
            norm = fabric.clip_gradients(
                self.module, self.optimizer, max_norm=settings.clip, error_if_nonfinite=False
            )
            if norm is not None and settings.precision != "16-mixed":  # whose scaler skips them
                self._check_finite("norm of the gradient", norm.item(), step, rate)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        return mean, stop

    def _rate(self, step: int) -> float:
        return learning_rate(step, self.steps, self.settings.learning_rate, self.settings.warmup)

    def _batch(self, indices: list[int], augmented: bool = False) -> dict[str, Tensor]:
        samples = [self.data[i] for i in indices]
        if augmented and self.settings.augment is not None:
            key = (self.settings.seed, "augment", self.position.epoch)
            pairs = zip(samples, indices, strict=True)
            samples = [self.settings.augment(s, generator(*key, i)) for s, i in pairs]
        batch: dict[str, Tensor] = self.fabric.to_device(self.operator.collate(samples))
        return batch

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        output = self.module(UnroundedBatch(batch) if self.is_mixed else batch)
        loss = self.settings.loss(output, batch)
        if loss.ndim:
            raise ValueError(
                f"the loss has shape {tuple(loss.shape)}, expected a scalar: take the mean over "
                "the batch"
            )
        return loss

    def _agree(self, loss: Tensor, count: int, samples: int) -> tuple[float, bool]:
        """The mean loss over all processes, and whether one of them was asked to stop."""
        if self.fabric.world_size == 1:
            return loss.item(), self.interrupt.requested
        mine = torch.stack([loss.detach() * count, loss.new_tensor(self.interrupt.requested)])
        total = self.fabric.all_reduce(mine, reduce_op="sum")
        return float(total[0]) / samples, bool(total[1])

    def _check_finite(self, what: str, value: float, step: int, rate: float) -> None:
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the {what} is {value} at step {step + 1} of {self.steps} (epoch "
                f"{self.position.epoch + 1}) with learning rate {rate:.3g}: try a learning_rate "
                f"of {self.settings.learning_rate / 10:.3g}, a longer warmup, a smaller clip, or "
                "precision='32-true'"
            )

    def _validate(self) -> float | None:
        if not self.validation:
            return None
        self.module.eval()
        total = 0.0
        with torch.no_grad():
            for indices in index_batches(self.validation, self.settings.batch_size):
                mine, count = share(indices, self.fabric.global_rank, self.fabric.world_size)
                loss = self._loss(self._batch(mine))
                total += self._agree(loss, count, len(indices))[0] * len(indices)
        step = (self.position.epoch + 1) * self.per_epoch - 1
        self._check_finite("validation loss", total, step, self._rate(step))
        return total / len(self.validation)

    def _close_epoch(self, validation: float | None) -> None:
        """Enter the epoch in the history, then write best, log and last, in this order.

        A run killed in between repeats the epoch and writes the same again.
        """
        done, epoch = self.position, self.position.epoch + 1
        step = epoch * self.per_epoch
        rate = self._rate(step - 1)
        seconds = time.perf_counter() - self.started
        row = Epoch(epoch, step, rate, done.loss_sum / done.samples, validation, seconds)
        self.position = Position(epoch=epoch, history=[*done.history, row])
        logger.info(
            "epoch %d: training loss %.4g, validation loss %s", epoch, row.training_loss, validation
        )
        better = validation is not None and validation < (self.best.loss if self.best else math.inf)
        if better and validation is not None:
            self.best = Best(epoch, validation, weights_of(self.operator))
        if self.store and self.fabric.is_global_zero:
            if better and self.best:
                self.store.save_best(self.best)
            self.store.save_log(self.position.history)
        self.started = time.perf_counter()
        self._save()

    def _save(self) -> None:
        self.written = time.monotonic()
        if not self.store or not self.fabric.is_global_zero:
            return
        self.position.seconds = time.perf_counter() - self.started
        self.store.save_last(
            self.position,
            weights_of(self.operator),
            optimizer_tensors(self._optimizer),
            self.precision.state_dict(),
            has_best=self.best is not None,
        )

    def _stop(self) -> None:
        where = f"interrupted in epoch {self.position.epoch + 1}, batch {self.position.batch}"
        if not self.store:
            raise KeyboardInterrupt(f"{where}; nothing was saved, because no folder was given")
        try:
            self._save()
        except OSError as error:
            where += f"; the last steps were not saved ({error})"
        raise KeyboardInterrupt(
            f"{where}; the checkpoint is in {self.store.folder}, go on with resume=True"
        )


def _adamw(operator: Any, settings: FitSettings, fabric: Fabric) -> torch.optim.AdamW:
    parameters = [p for p in operator.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("the operator has no parameter to train: set requires_grad on some")
    # The fused kernel is the fastest, but unscales 16-bit gradients where clipping cannot.
    fused = settings.precision != "16-mixed" and fabric.device.type in ("cpu", "cuda")
    fused = fused and all(p.is_floating_point() for p in parameters)
    return torch.optim.AdamW(
        parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=fused
    )
