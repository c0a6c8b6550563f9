"""`fit`: train an operator on data, repeatably, and so that it can be stopped at any instant."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import Subset

from uqno.training import progress as bar
from uqno.training import samples
from uqno.training.devices import launch, preserved_random_state
from uqno.training.folder import Best, FitFolder, Position, load_weights
from uqno.training.loop import Loop
from uqno.training.record import Fit
from uqno.training.samples import Augment
from uqno.training.settings import FitSettings, Keep, Loss
from uqno.types import Samples


def fit(
    operator: Any,
    data: Samples,
    *,
    loss: Loss,
    epochs: int,
    batch_size: int = 16,
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-4,
    warmup: float = 0.05,
    clip: float | None = 1.0,
    validation: float = 0.1,
    keep: Keep = "best",
    seed: int = 0,
    augment: Augment | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    checkpoint_every: float = 60.0,
    devices: int | str | list[int] = "auto",
    accelerator: str = "auto",
    precision: str = "32-true",
    strategy: Any = "auto",
    progress: bool | None = None,
    check_data: bool = True,
) -> Fit:
    """Minimise the mean of `loss(operator(batch), batch)` by AdamW, in place; return how it went.

    The operator ends in evaluation mode, on the device it came from, with the weights of the
    epoch of lowest validation loss (keep="best", the default) or of the last one (keep="last",
    and always without validation). The same seed gives the same weights on one machine.

    Args:
        operator: an `uqno.operators.Operator` (collate, fit_normalisers, and called with a batch).
        data: a sized sequence of samples; a sample is a dict of tensors with the truth in "u",
            (channel, *points).
        loss: (output, batch) -> scalar, a mean over the batch.
        epochs: how often all training samples are seen, at least 1.
        batch_size: samples a step, over all processes together.
        learning_rate: the peak, after rising linearly over the share `warmup` of all steps; from
            there half a cosine to 0.
        weight_decay: the one of AdamW, at least 0.
        warmup: the share of all steps in which the learning rate rises.
        clip: the largest norm of the gradient, or None for no bound.
        validation: the share of `data` held out to choose the epoch; 0 holds out nothing.
        keep: "best" or "last", the epoch whose weights the operator ends with.
        seed: decides the samples held out, the order of the others, augmentation and dropout.
        augment: (sample, generator) -> sample, applied to each training sample in each epoch.
        folder: where checkpoints and log.csv are written; None writes nothing.
        resume: go on from the checkpoint in `folder`, if there is one. A run that was stopped,
            even by kill -9, then ends in the weights it would have had; a finished one returns at
            once.
        checkpoint_every: seconds between checkpoints within an epoch; there is one after each.
        devices: as in lightning-fabric; "auto" is the processes that torchrun started, otherwise
            one.
        accelerator: as in lightning-fabric.
        precision: as in lightning-fabric.
        strategy: as in lightning-fabric, with "ddp" for several processes.
        progress: a bar on the terminal; None shows it if there is one.
        check_data: look for NaN in all the data first.

    Returns:
        The losses of every epoch, and which samples were trained on.

    Raises:
        ValueError: an argument is out of its bounds, the data are refused by `check_data`, or
            the folder holds another run.
        FloatingPointError: the loss or its gradient became infinite or NaN.
        KeyboardInterrupt: Ctrl-C, after a checkpoint has been written.
    """
    settings = FitSettings(
        loss=loss,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        warmup=warmup,
        clip=clip,
        validation=validation,
        keep=keep,
        seed=seed,
        precision=str(precision),
        augment=augment,
    )
    _check_call(operator, data, resume, folder, checkpoint_every)
    training, held_out = samples.split(len(data), validation, seed)
    settings.check_size(len(training), len(data))
    store = FitFolder(Path(folder), settings.identity(len(data), operator)) if folder else None
    saved = store.open(resume) if store else None
    if saved:
        load_weights(operator, saved.weights)
    if saved and saved.position.epoch >= epochs:
        position, best = saved.position, saved.best
    else:
        if check_data:
            samples.check_data(data)
        home = next(operator.parameters(), torch.empty(0)).device
        fabric = launch(devices, accelerator, precision, strategy)
        with preserved_random_state(fabric.device):
            if not saved:
                operator.fit_normalisers(Subset(data, training))  # type: ignore[arg-type]
            split = (training, held_out)
            loop = Loop(operator, data, settings, *split, fabric, store, saved, checkpoint_every)
            loop.run(bar.wanted(progress))
        operator.to(home)
        position, best = loop.position, loop.best
    epoch = _keep(operator, settings, position, best)
    parts = (tuple(training), tuple(held_out))
    return Fit(tuple(position.history), epoch, *parts, store.folder if store else None)


def _check_call(
    operator: Any, data: Samples, resume: bool, folder: str | Path | None, checkpoint_every: float
) -> None:
    callables = (getattr(operator, name, None) for name in ("collate", "fit_normalisers"))
    if not isinstance(operator, nn.Module) or not all(map(callable, callables)):
        raise ValueError(
            f"{type(operator).__name__} is not an operator, it has no collate and fit_normalisers: "
            "wrap it with uqno.operators.as_operator"
        )
    if len(data) == 0:
        raise ValueError("the data are empty: give at least 2 samples, or 1 with validation=0")
    if resume and folder is None:
        raise ValueError("resume=True needs the folder of the run to go on with: give folder=")
    if not checkpoint_every >= 0:
        raise ValueError(
            f"checkpoint_every = {checkpoint_every} must be at least 0 seconds, such as 60"
        )


def _keep(operator: nn.Module, settings: FitSettings, position: Position, best: Best | None) -> int:
    """Give the operator the weights it ends with; the epoch they are of."""
    operator.eval()
    if settings.keep == "best" and best is not None:
        load_weights(operator, best.weights)
        return best.epoch
    return position.epoch
