"""The folder of a fit: `last.safetensors` to go on from, `best.safetensors`, `log.csv`."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from uqno.storage import make_folders, set_aside
from uqno.training.checkpoint import (
    Checkpoint,
    CheckpointError,
    DamagedCheckpointError,
    differences,
    read_checkpoint,
    write_checkpoint,
)
from uqno.training.record import Epoch, log_text, write_log

Weights = dict[str, Tensor]


@dataclass
class Position:
    """Where a run stands.

    Args:
        epoch: how many epochs are complete.
        batch: how many batches of the next epoch are done.
        loss_sum: the sum of the loss over the samples of these batches.
        samples: how many samples these batches have.
        seconds: how long these batches took.
        history: one row for each complete epoch.
    """

    epoch: int = 0
    batch: int = 0
    loss_sum: float = 0.0
    samples: int = 0
    seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)


@dataclass(frozen=True)
class Best:
    """The epoch with the lowest validation loss so far.

    Args:
        epoch: its number, counted from 1.
        loss: its validation loss.
        weights: the state of the operator at its end, by name.
    """

    epoch: int
    loss: float
    weights: Weights


@dataclass(frozen=True)
class Resumable:
    """All that a run needs to go on.

    Args:
        position: where it stands.
        weights: the state of the operator, by name.
        optimizer: the moments of the optimiser, as `optimizer_tensors` names them.
        scaler: the state of the loss scaling of mixed precision.
        best: the best epoch so far, if there is one.
    """

    position: Position
    weights: Weights
    optimizer: Weights
    scaler: Mapping[str, Any]
    best: Best | None


@dataclass(frozen=True)
class FitFolder:
    """Reads and writes the folder of one run.

    Args:
        folder: is created by `open`.
        identity: what must be equal for a run to be continued (`FitSettings.identity`).
    """

    folder: Path
    identity: Mapping[str, Any]

    @property
    def last(self) -> Path:
        """The checkpoint that a run goes on from."""
        return self.folder / "last.safetensors"

    @property
    def best(self) -> Path:
        """The weights of the best epoch."""
        return self.folder / "best.safetensors"

    @property
    def log(self) -> Path:
        """One row for each epoch."""
        return self.folder / "log.csv"

    def open(self, resume: bool) -> Resumable | None:
        """Create the folder, and read what an earlier run left to go on from, if anything.

        Checkpoints that came back damaged are set aside by name; the run then begins again.

        Args:
            resume: whether to go on with an earlier run; if not, there must be none.

        Raises:
            ValueError: there is an earlier run, and `resume` is False.
            CheckpointError: a checkpoint is of another run.
        """
        make_folders(self.folder)
        if not resume:
            for path in (self.last, self.best):
                if path.exists():
                    raise ValueError(
                        f"{path} holds an earlier run: go on with resume=True, give another "
                        "folder, or remove it"
                    )
        if not self.last.exists():
            return None
        try:
            saved = self._resumable()
            self._restore_log(saved.position.history)
            return saved
        except DamagedCheckpointError:
            for path in (self.last, self.best):
                with suppress(FileNotFoundError):  # another process of this run was faster
                    set_aside(path)
            return None

    def _resumable(self) -> Resumable:
        last = self._read(self.last)
        state = dict(last.state["position"])
        state["history"] = [Epoch(**row) for row in state["history"]]
        return Resumable(
            position=Position(**state),
            weights=_part(last.tensors, "weights."),
            optimizer=_part(last.tensors, "optimizer."),
            scaler=last.state["scaler"],
            best=self._read_best() if last.state["has_best"] else None,
        )

    def save_last(
        self, position: Position, weights: Weights, optimizer: Weights, scaler: Any, has_best: bool
    ) -> None:
        """Write the checkpoint to go on from; see `Resumable`.

        Args:
            position: where the run stands.
            weights: the state of the operator.
            optimizer: the moments of the optimiser.
            scaler: the state of the loss scaling.
            has_best: whether a best epoch has been written.
        """
        state = {
            "identity": dict(self.identity),
            "position": asdict(position),
            "scaler": dict(scaler),
            "has_best": has_best,
        }
        tensors = _prefixed("weights.", weights) | _prefixed("optimizer.", optimizer)
        write_checkpoint(self.last, Checkpoint(tensors, state))

    def save_best(self, best: Best) -> None:
        """Write the weights of the best epoch so far."""
        state = {"identity": dict(self.identity), "epoch": best.epoch, "loss": best.loss}
        write_checkpoint(self.best, Checkpoint(_prefixed("weights.", best.weights), state))

    def save_log(self, history: list[Epoch]) -> None:
        """Write `log.csv`."""
        write_log(self.log, history)

    def _restore_log(self, history: list[Epoch]) -> None:
        """Write `log.csv` again where it has not all the epochs that the checkpoint has."""
        text = log_text(history)
        there = self.log.read_bytes() if self.log.is_file() else b""
        if not there.startswith(text.encode()):  # it is written before the checkpoint
            self.save_log(history)

    def _read_best(self) -> Best:
        if not self.best.exists():
            raise CheckpointError(f"{self.best} is missing: put it back, or start again")
        # Its own header, not last's, says which epoch it is of: a run killed between writing
        # the two is then still consistent.
        best = self._read(self.best)
        return Best(best.state["epoch"], best.state["loss"], _part(best.tensors, "weights."))

    def _read(self, path: Path) -> Checkpoint:
        checkpoint = read_checkpoint(path)
        changed = differences(checkpoint.state["identity"], self.identity)
        if changed:
            raise CheckpointError(
                f"{path} is of another run: {'; '.join(changed)}. "
                "Resume with the same arguments, or give another folder"
            )
        return checkpoint


def weights_of(operator: nn.Module) -> Weights:
    """A copy of an operator's state on the CPU, by name. What is no tensor is left out."""
    state = operator.state_dict()
    return {
        name: value.detach().to("cpu", copy=True)
        for name, value in state.items()
        if isinstance(value, Tensor)
    }


@torch.no_grad()
def load_weights(operator: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into an operator; buffers take the shape that they had when saved.

    Args:
        operator: is changed in place.
        weights: by name, as `weights_of` returns them.

    Raises:
        CheckpointError: the names are not those of this operator.
    """
    own = {n: v for n, v in operator.state_dict().items() if isinstance(v, Tensor)}
    missing, foreign = sorted(own.keys() - weights.keys()), sorted(weights.keys() - own.keys())
    if missing or foreign:
        raise CheckpointError(
            f"the checkpoint is of another operator: it lacks {missing}, and has {foreign} too"
        )
    for name, value in weights.items():
        if own[name].shape == value.shape:
            own[name].copy_(value)
        else:  # parameters were compared before: a normaliser that was sized by its data
            owner, _, leaf = name.rpartition(".")
            operator.get_submodule(owner).register_buffer(leaf, value.to(own[name]))


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> Weights:
    """The optimiser's moments, one entry a parameter and quantity: "3.exp_avg"."""
    return {
        f"{index}.{name}": value
        for index, entry in optimizer.state_dict()["state"].items()
        for name, value in entry.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimiser the moments that `optimizer_tensors` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".")
        state.setdefault(int(index), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _prefixed(prefix: str, tensors: Weights) -> Weights:
    return {prefix + name: value for name, value in tensors.items()}


def _part(tensors: Mapping[str, Tensor], prefix: str) -> Weights:
    return {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
