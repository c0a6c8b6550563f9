"""A model as a folder: weights in safetensors, the rest in JSON; no pickle, whole or absent.

model.json                 what the model is
base.safetensors           weights of the base; base-2, base-3, … of other members
uncertainty.safetensors    weights of the uncertainty
seen.safetensors           a short description of every function that it was trained on
probe.safetensors          two functions and the answers to them, for models with code of the user
memory.safetensors         where training and calibration inputs lie, how training residuals vary
calibration-1.json, …      a calibration each, and beside it its scores where they are many
SHA256SUMS                 the checksum of every other file, as `sha256sum -c` reads them

The checksums stop damage, not forgery: whoever can write the folder can write them too. What was
saved is read back before it takes the place of an older model, and while it does there is no moment
without one (see `uqno.storage`).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from uqno.conformal import Calibration
from uqno.data.calibrations import read_calibration, write_calibration
from uqno.model.history import history_of
from uqno.model.memory import Memory
from uqno.model.parts import ModelParts
from uqno.model.rehearsal import check_sizes
from uqno.model.seen import Seen
from uqno.model.tie import Probe
from uqno.operators import OPERATORS, Operator
from uqno.operators.symmetry import Symmetry, by_name
from uqno.storage import (
    DamagedError,
    recover_folder,
    sha256_of,
    write_folder,
    write_json,
    write_text,
)
from uqno.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from uqno.uncertainty import ESTIMATORS, Uncertainty

FORMAT = "uqno.model"
VERSION = 2
SUMS = "SHA256SUMS"
PROBE = "probe.safetensors"
SEEN = "seen.safetensors"
MEMORY = "memory.safetensors"
# How often a model is read again that another process is replacing meanwhile.
ATTEMPTS = 5


def save(folder: Path, saved: ModelParts) -> None:
    """Write a model into a folder, whole or not at all; an older model there is replaced.

    Args:
        folder: is created, with the folders above it; saved: the model.

    Raises:
        ValueError: the folder holds something else, or what was written does not read back.
        OSError: the folder could not be written; the old one is untouched.
    """
    recover_folder(folder)
    if folder.exists() and not (folder / "model.json").exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} holds something else than a model: choose another folder")
    foreign = [f.name for f in folder.iterdir() if not _is_ours(f)] if folder.exists() else []
    if foreign:
        raise ValueError(
            f"{folder} also holds {', '.join(sorted(foreign)[:3])}, which saving would remove: "
            "move that, or choose another folder"
        )

    def write(aside: Path) -> None:
        _write(aside, saved)
        _read_back(aside, saved)

    write_folder(folder, write)


def _is_ours(file: Path) -> bool:
    own = ("model.json", "README.txt", SUMS)
    return file.name in own or file.suffix == ".safetensors" or file.match("calibration-*.*")


def _write(folder: Path, saved: ModelParts) -> None:
    tensors = {"base": saved.base.state_dict(), "uncertainty": saved.uncertainty.state_dict()}
    tensors |= {_other(k): operator.state_dict() for k, operator in enumerate(saved.others)}
    for name, state in tensors.items():
        write_checkpoint(folder / f"{name}.safetensors", Checkpoint(state, {"part": name}))
    if saved.probe is not None:
        saved.probe.write(folder / PROBE)
    saved.seen.write(folder / SEEN)
    saved.memory.write(folder / MEMORY)
    for k, calibration in enumerate(saved.calibrations):
        write_calibration(folder / _calibration(k), calibration)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "base": saved.base.describe(),
        "others": len(saved.others),
        "uncertainty": {"name": saved.uncertainty.name, **saved.uncertainty.saved()},
        "symmetries": [g.name for g in saved.symmetries],
        "features": saved.features,
        "deviation": saved.deviation,
        "dimensions": saved.dimensions,
        "surfaces": saved.surfaces,
        "calibrations": len(saved.calibrations),
        "seen": sorted(saved.seen.functions),
        "quantities": dict(saved.quantities),
        "history": [past.to_json() for past in saved.history],
    }
    write_json(folder / "model.json", content, indent=1)
    write_text(
        folder / "README.txt",
        "A calibrated neural operator of uqno. Load it with uqno.UQNO.load(this folder).\n",
    )
    lines = (f"{sha256_of(file)}  {file.name}\n" for file in sorted(folder.iterdir()))
    write_text(folder / SUMS, "".join(lines))


def _read_back(folder: Path, saved: ModelParts) -> None:
    """Refuse to let a model take its place that could not be read again."""
    content = _content(folder)
    for name in ("base", *map(_other, range(len(saved.others))), "uncertainty"):
        _tensors(folder, name)
    if saved.probe is not None:
        Probe.read(folder / PROBE)
    Seen.read(folder / SEEN, content["seen"])
    Memory.read(folder / MEMORY)
    read = tuple(_read_calibration(folder, k) for k in range(content["calibrations"]))
    if read != saved.calibrations:
        raise ValueError(
            f"the calibrations read back as {read}, not as {saved.calibrations}: nothing was saved"
        )


def load(
    folder: Path,
    module: Callable[..., Tensor] | None,
    uncertainty: Uncertainty | None,
    symmetries: Sequence[Symmetry] | None,
) -> ModelParts:
    """The parts of the model in a folder.

    Args:
        folder: what `save` wrote.
        module: the base, where it is not one of uqno's operators.
        uncertainty: the estimator, where it is not one of uqno's.
        symmetries: where they are not uqno's own.

    Raises:
        DamagedError: a file is missing or is not what was saved.
        ValueError: something must be passed in, or does not fit.
    """
    recover_folder(folder)
    for _ in range(ATTEMPTS):
        before = _bytes(folder / SUMS)
        try:
            return _loaded(folder, module, uncertainty, symmetries)
        except ValueError as why:
            error = why
            if _bytes(folder / SUMS) == before:
                break  # nobody replaced the model meanwhile
    raise error


def check_features(folder: str | Path, saved: ModelParts, count: int) -> None:
    """Refuse another number of features than the model was saved with."""
    if count != saved.features:
        raise ValueError(
            f"{folder} was saved with {saved.features} features, got {count}: pass the same "
            "callables with features="
        )


def _loaded(
    folder: Path,
    module: Callable[..., Tensor] | None,
    uncertainty: Uncertainty | None,
    symmetries: Sequence[Symmetry] | None,
) -> ModelParts:
    content = _content(folder)
    try:
        return _rebuilt(folder, content, module, uncertainty, symmetries)
    except (KeyError, TypeError, AttributeError, RuntimeError) as why:
        reason = " ".join(str(why).split())
        raise ValueError(
            f"{folder} cannot be rebuilt ({type(why).__name__}: {reason:.300}): model.json is "
            "damaged, or the modules passed to load are others than those that were saved"
        ) from why


def check(folder: Path) -> None:
    """Compare every file of a model with its checksum.

    Raises:
        DamagedError: a file is missing or is not what was saved.
        ValueError: it is not a model, or one of another version.
    """
    recover_folder(folder)
    _content(folder)


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def _rebuilt(
    folder: Path,
    content: Mapping[str, Any],
    module: Callable[..., Tensor] | None,
    uncertainty: Uncertainty | None,
    symmetries: Sequence[Symmetry] | None,
) -> ModelParts:
    weights, state = _tensors(folder, "base"), _tensors(folder, "uncertainty")
    base = _base(folder, content["base"], module, weights)
    estimator = uncertainty
    if estimator is None:
        estimator = _uncertainty(folder, content["uncertainty"], base, state)
    base.load_state_dict(weights)
    others = []
    for k in range(content["others"]):
        others.append(copy.deepcopy(base))
        others[k].load_state_dict(_tensors(folder, _other(k)))
    estimator.restore(base, content["uncertainty"], state)
    names = content["symmetries"]
    chosen = by_name(names, base.latent) if symmetries is None else tuple(symmetries)
    if [g.name for g in chosen] != names:
        raise ValueError(
            f"{folder} was saved with the symmetries {names}, got {[g.name for g in chosen]}"
        )
    return ModelParts(
        base.eval(),
        tuple(operator.eval() for operator in others),
        estimator.eval(),
        chosen,
        tuple(_read_calibration(folder, k) for k in range(content["calibrations"])),
        Seen.read(folder / SEEN, content["seen"]),
        content["dimensions"],
        content["features"],
        content["deviation"],
        content["surfaces"],
        Probe.read(folder / PROBE) if (folder / PROBE).is_file() else None,
        history_of(content.get("history", [])),
        content.get("quantities", {}),
        Memory.read(folder / MEMORY) if (folder / MEMORY).is_file() else Memory(),
    )


def _calibration(k: int) -> str:
    """The file of the k-th calibration, from 0."""
    return f"calibration-{k + 1}.json"


def _other(k: int) -> str:
    """The file of the k-th operator beside the base, from 0."""
    return f"base-{k + 2}"


def _content(folder: Path) -> dict[str, Any]:
    """What model.json says, once every file has the checksum that was saved."""
    file = folder / "model.json"
    if not file.is_file():
        kind = DamagedError if folder.is_dir() else ValueError
        raise kind(f"{folder} is not a model: it has no model.json")
    if (folder / SUMS).is_file():
        _check_sums(folder, _sums(folder))
    try:
        content = json.loads(file.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as why:
        raise DamagedError(f"{file} is damaged: not JSON ({why})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{file} is not a model of uqno: expected format = {FORMAT!r}")
    if content.get("version") == 1 and isinstance(content.get("sha256"), dict):
        _check_sums(folder, content["sha256"])  # as uqno 0.1 stored them, without model.json
    elif content.get("version") != VERSION:
        raise ValueError(
            f"{folder} has format version {content.get('version')!r}, this uqno reads {VERSION}: "
            "use the uqno that wrote it, or a newer one"
        )
    elif not (folder / SUMS).is_file():
        raise DamagedError(f"{folder} is not whole: {SUMS} is missing")
    needed = ("base", "others", "uncertainty", "symmetries", "features", "deviation", "dimensions",
              "surfaces", "calibrations", "seen")  # fmt: skip
    missing = [name for name in needed if name not in content]
    if missing:
        raise ValueError(f"{file} lacks {', '.join(missing)}: it is not a whole model")
    return content


def _sums(folder: Path) -> dict[str, str]:
    """{file: checksum} of SHA256SUMS."""
    text = (folder / SUMS).read_bytes().decode("utf8", "replace")
    lines = [re.fullmatch(r"([0-9a-f]{64})  ([^/\n]+)\n", x) for x in text.splitlines(True)]
    sums = {parts[2]: parts[1] for parts in lines if parts is not None}
    if None in lines or "model.json" not in sums:
        raise DamagedError(f"{folder / SUMS} is damaged: expected a checksum and a name a line")
    return sums


def _check_sums(folder: Path, sums: Mapping[str, str]) -> None:
    for name, expected in sums.items():
        if not (folder / name).is_file():
            raise DamagedError(f"{folder} is not whole: {name} is missing")
        if sha256_of(folder / name) != expected:
            raise DamagedError(f"{folder / name} is damaged or foreign: its checksum is wrong")
    known = {*sums, SUMS, "model.json", "README.txt"}
    foreign = sorted(f.name for f in folder.iterdir() if _is_ours(f) and f.name not in known)
    if foreign:
        raise DamagedError(f"{folder / foreign[0]} is foreign: it has no checksum")


def _base(
    folder: Path,
    saved: Mapping[str, Any],
    module: Callable[..., Tensor] | None,
    tensors: Mapping[str, Tensor],
) -> Operator:
    if isinstance(module, Operator):
        return module
    if module is None and (saved["config"] is None or saved["class"] not in OPERATORS):
        raise ValueError(
            f"the base of {folder} is a {saved['class']}, not one of the operators that are "
            f"registered: import {saved['defined_in']} first if it is a NeuralOperator, else pass "
            f"an instance of it with UQNO.load(folder, base={saved['class']}(...))"
        )
    if module is None:
        foreign = _is_foreign(OPERATORS[saved["class"]])
        what = f"{folder / 'model.json'}: the base"
        check_sizes(lambda _: Operator.rebuilt(saved), tensors, what, foreign)
    return Operator.rebuilt(saved, module)


def _is_foreign(kind: type) -> bool:
    """Whether a class is the user's own."""
    return not kind.__module__.startswith("uqno.")


def _uncertainty(
    folder: Path, saved: Mapping[str, Any], base: Operator, tensors: Mapping[str, Tensor]
) -> Uncertainty:
    if saved["name"] not in ESTIMATORS:
        raise ValueError(
            f"the uncertainty of {folder} is {saved['name']!r}: pass it with uncertainty="
        )
    kind = ESTIMATORS[saved["name"]]

    def restored(shapes: Mapping[str, Tensor]) -> Uncertainty:
        estimator = kind(**saved["config"])
        estimator.restore(base, saved, shapes)
        return estimator

    foreign = _is_foreign(kind) or _is_foreign(type(base.module))
    check_sizes(restored, tensors, f"{folder / 'model.json'}: the uncertainty", foreign)
    return kind(**saved["config"])


def _tensors(folder: Path, name: str) -> Mapping[str, Tensor]:
    return read_checkpoint(folder / f"{name}.safetensors").tensors


def _read_calibration(folder: Path, k: int) -> Calibration:
    return read_calibration(folder / _calibration(k))
