"""The functions that a model has seen, and what its calibration is watched for.

A promise is about functions that took no part in training, each a draw of its own. So the model
keeps what it was trained on, as a hash and a short description of each function, and every
calibration is compared with that, and its functions with each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from uqno.conformal import Calibration
from uqno.conformal.circumstances import Circumstances
from uqno.conformal.repeats import refusal
from uqno.model.copies import Description, Pair, alike, copies
from uqno.model.description import SUMS, VALUES, Channel, describe, images
from uqno.model.history import Past, counted
from uqno.model.inputs import fingerprint
from uqno.model.scoring import Scored
from uqno.storage import DamagedError
from uqno.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from uqno.types import Array, Sample, Samples
from uqno.uncertainty.contract import Base

NAMED: Final = 10


def described(sample: Sample, base: Base) -> Description:
    """The description of a function as a model of this base tells inputs apart."""
    return describe(sample, base.symmetries, _taken(base))


def _taken(base: Base) -> list[str]:
    return [name for o in base.operators for name in (*o.names, *(o.fields or {}).values())]


@dataclass(frozen=True)
class Seen:
    """Functions, by their fingerprints; without a description where an older uqno saved them."""

    functions: Mapping[str, Description] = field(default_factory=dict)

    @classmethod
    def of(cls, train: Samples, base: Base) -> tuple[list[str], Seen]:
        """The fingerprints of functions in their order, and all that is kept of them."""
        prints: list[str] = []
        functions: dict[str, Description] = {}
        for i in range(len(train)):
            sample = train[i]
            prints.append(fingerprint(sample))
            if prints[-1] not in functions:
                functions[prints[-1]] = described(sample, base)
        return prints, cls(functions)

    def __or__(self, other: Seen) -> Seen:
        return Seen({**self.functions, **other.functions})

    def write(self, file: Path) -> None:
        """The descriptions, in the order of the sorted fingerprints, as safetensors."""
        rows = [(i, c) for i, name in enumerate(sorted(self.functions)) for c in self._of(name)]
        names = sorted({c.field for _, c in rows})
        tensors = {
            "function": torch.tensor([i for i, _ in rows], dtype=torch.int64),
            "field": torch.tensor([names.index(c.field) for _, c in rows], dtype=torch.int64),
            "plain": torch.tensor([c.plain for _, c in rows], dtype=torch.uint8),
            "values": _stacked([c.values for _, c in rows], VALUES),
            "sums": _stacked([c.sums for _, c in rows], SUMS),
        }
        write_checkpoint(file, Checkpoint(tensors, {"fields": names}))

    def _of(self, name: str) -> Description:
        return self.functions[name]

    @classmethod
    def read(cls, file: Path, fingerprints: Sequence[str]) -> Seen:
        """What `write` wrote; of a model without such a file, the fingerprints alone.

        Raises:
            DamagedError: the descriptions do not fit each other or the fingerprints.
        """
        names = sorted(set(fingerprints))
        functions: dict[str, list[Channel]] = {name: [] for name in names}
        if file.is_file():
            checkpoint = read_checkpoint(file)
            fields = checkpoint.state.get("fields")
            _check(file, checkpoint.tensors, fields, len(names))
            tensors = {name: x.numpy() for name, x in checkpoint.tensors.items()}
            for k, i in enumerate(tensors["function"].tolist()):
                name = fields[int(tensors["field"][k])]  # type: ignore[index]
                own = Channel(
                    name, tensors["values"][k], tensors["sums"][k], bool(tensors["plain"][k])
                )
                functions[names[i]].append(own)
        return cls(functions)


def _stacked(rows: Sequence[Any], width: int) -> Tensor:
    return torch.stack([torch.from_numpy(x) for x in rows]) if rows else torch.zeros(0, width)


def _check(file: Path, tensors: Mapping[str, Tensor], fields: Any, functions: int) -> None:
    """Refuse descriptions of other sizes than they declare."""
    rows = len(tensors["function"]) if "function" in tensors else 0
    wanted = {
        "function": ((rows,), torch.int64),
        "field": ((rows,), torch.int64),
        "plain": ((rows,), torch.uint8),
        "values": ((rows, VALUES), torch.float32),
        "sums": ((rows, SUMS), torch.float32),
    }
    found = {name: (tuple(x.shape), x.dtype) for name, x in tensors.items()}
    named = isinstance(fields, list) and all(isinstance(name, str) for name in fields)
    fits = found == wanted and named
    if fits and rows:
        bounds = (("function", functions), ("field", len(fields)))
        fits = all(0 <= int(tensors[n].min()) <= int(tensors[n].max()) < m for n, m in bounds)
    if not fits:
        raise DamagedError(
            f"{file} does not fit the {functions} functions that the model was trained on: it has "
            f"{ {n: shape for n, (shape, _) in found.items()} }, expected one row a channel of "
            f"{VALUES} values and {SUMS} sums: take the model from where it was saved"
        )


class Watch:
    """Looks at the functions of a calibration while they pass by.

    Args:
        seen: what the model was trained on.
        base: Ĝ.
        data: where the functions come from; a sequence is read again where two are alike.
        repeated: "refuse" or "allow" functions whose inputs repeat another's.
    """

    def __init__(self, seen: Seen, base: Base, data: Any, repeated: str) -> None:
        self.seen, self.base, self.data, self.repeated = seen, base, data, repeated
        self._prints: list[str] = []
        self._functions: list[Description] = []
        self._repeats: list[Pair] = []

    def over(self, functions: Iterable[Scored]) -> Iterator[tuple[Array, Array, Array | None]]:
        """(error, uncertainty, weights) of each function, as calibration takes them.

        Raises:
            ValueError: at the end, if functions were used in training or repeat others; it names
                them.
        """
        for one in functions:
            self._prints.append(fingerprint(one.sample))
            self._functions.append(described(one.sample, self.base))
            yield one.error, one.uncertainty, one.weights
        self._refuse_seen()
        self._repeats = copies([], self._functions, self._confirm)
        if self._repeats and self.repeated == "refuse":
            raise ValueError(
                refusal(
                    self._repeats,
                    "their inputs are equal, but for precision, one change of units, the model's "
                    "symmetries, further channels, weights or the truth",
                )
            )

    def _refuse_seen(self) -> None:
        exact = {i for i, name in enumerate(self._prints) if name in self.seen.functions}
        known = [description for description in self.seen.functions.values() if description]
        similar = {pair.later for pair in copies(known, self._functions)} if known else set()
        if leaked := sorted(exact | similar):
            also = len(similar - exact)
            how = (
                f"; {also} of them with another truth, precision, unit, orientation, weights or "
                "further channels"
            )
            raise ValueError(
                f"{len(leaked)} of {len(self._prints)} calibration functions were used in training "
                f"(indices {leaked[:NAMED]}{' …' if len(leaked) > NAMED else ''}"
                f"{how if also else ''}): the guarantee needs functions that the model has not "
                "seen; leave these out"
            )

    def _confirm(self, pair: Pair) -> bool:
        """Whether two functions are alike as a whole, where they can be read again."""
        if not (hasattr(self.data, "__getitem__") and hasattr(self.data, "__len__")):
            return True  # a stream: the sums over all points were compared
        taken, symmetries = _taken(self.base), self.base.symmetries
        earlier, later = (self.data[i] for i in pair)
        (other, *_) = images(later, symmetries, taken)
        moved = images(earlier, symmetries, taken)
        return any(alike(image, other, rescaled=True) for image in moved)

    def told(
        self, calibrations: Sequence[Calibration], history: Sequence[Past], model: str
    ) -> tuple[tuple[Calibration, ...], tuple[Past, ...]]:
        """The calibrations with what is to be said of them, and the history with this one.

        Args:
            calibrations: that were made from the functions.
            history: the calibrations of the model before.
            model: its digest.
        """
        own = hashlib.blake2b("".join(sorted(self._prints)).encode(), digest_size=16).hexdigest()
        here, elsewhere = counted(history, own)
        made = []
        for one in calibrations:
            repeated = one.circumstances.repeated
            if repeated is not None:
                repeated = max(repeated, len(self._repeats))
            told = Circumstances(repeated, len(calibrations), here, elsewhere)
            made.append(replace(one, model=model, circumstances=told))
        levels = tuple({"name": one.rule.name, **one.levels} for one in made)
        past = Past(made[0].created, own, made[0].functions, levels)
        return tuple(made), (*history, past)
