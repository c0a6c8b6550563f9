"""A model as a folder: weights in safetensors, the rest in JSON; no pickle, whole or absent.

model.json                 what the model is, and the checksums of all other files
base.safetensors           weights of the base; base-2, base-3, … of other members
uncertainty.safetensors    weights of the uncertainty
calibration-1.json, …      a calibration each, and beside it its scores where they are many
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from uqno.conformal import Calibration
from uqno.data.calibrations import read_calibration, scores_file, write_calibration
from uqno.operators import OPERATORS, Operator
from uqno.operators.symmetry import Symmetry, by_name
from uqno.storage import sha256_of, write_folder, write_json, write_text
from uqno.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from uqno.uncertainty import ESTIMATORS, Uncertainty

FORMAT = "uqno.model"
VERSION = 1


@dataclass(frozen=True)
class ModelParts:
    """What a model is made of.

    Args:
        base: the operator.
        others: further members of a committee.
        uncertainty: the fitted estimator of E.
        symmetries: of the problem.
        calibrations: in the order in which they were made.
        seen: the fingerprints of the training functions.
        dimensions: of the grids that it was fitted on; None for geometries.
        features: how many callables E sees the answers of; they are not saved.
        deviation: whether E sees the deviation over symmetries and members.
        surfaces: whether the geometries had the signed distance of a surface.
    """

    base: Operator
    others: tuple[Operator, ...]
    uncertainty: Uncertainty
    symmetries: tuple[Symmetry, ...]
    calibrations: tuple[Calibration, ...]
    seen: frozenset[str]
    dimensions: int | None
    features: int
    deviation: bool
    surfaces: bool


def save(folder: Path, saved: ModelParts) -> None:
    """Write a model into a folder, whole or not at all; an older model there is replaced.

    Args:
        folder: is created, with the folders above it.
        saved: the model.

    Raises:
        ValueError: the folder holds something else, or the model cannot be saved.
        OSError: the folder could not be written; the old one is untouched.
    """
    if folder.exists() and not (folder / "model.json").exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} holds something else than a model: choose another folder")
    foreign = [f.name for f in folder.iterdir() if not _is_ours(f)] if folder.exists() else []
    if foreign:
        raise ValueError(
            f"{folder} also holds {', '.join(sorted(foreign)[:3])}, which saving would remove: "
            "move that, or choose another folder"
        )
    write_folder(folder, lambda aside: _write(aside, saved))


def _is_ours(file: Path) -> bool:
    own = ("model.json", "README.txt")
    return file.name in own or file.suffix == ".safetensors" or file.match("calibration-*.*")


def _write(folder: Path, saved: ModelParts) -> None:
    tensors = {"base": saved.base.state_dict(), "uncertainty": saved.uncertainty.state_dict()}
    tensors |= {_other(k): operator.state_dict() for k, operator in enumerate(saved.others)}
    for name, state in tensors.items():
        write_checkpoint(folder / f"{name}.safetensors", Checkpoint(state, {"part": name}))
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
        "seen": sorted(saved.seen),
        "sha256": {file.name: sha256_of(file) for file in sorted(folder.iterdir())},
    }
    write_json(folder / "model.json", content, indent=1)
    write_text(
        folder / "README.txt",
        "A calibrated neural operator of uqno. Load it with uqno.UQNO.load(this folder).\n",
    )


def load(
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


def _rebuilt(
    folder: Path,
    content: Mapping[str, Any],
    module: Callable[..., Tensor] | None,
    uncertainty: Uncertainty | None,
    symmetries: Sequence[Symmetry] | None,
) -> ModelParts:
    base = _base(folder, content["base"], module)
    estimator = (
        uncertainty if uncertainty is not None else _uncertainty(folder, content["uncertainty"])
    )
    base.load_state_dict(_tensors(folder, "base", content))
    others = []
    for k in range(content["others"]):
        others.append(copy.deepcopy(base))
        others[k].load_state_dict(_tensors(folder, _other(k), content))
    state = _tensors(folder, "uncertainty", content)
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
        tuple(_read_calibration(folder, k, content) for k in range(content["calibrations"])),
        frozenset(content["seen"]),
        content["dimensions"],
        content["features"],
        content["deviation"],
        content["surfaces"],
    )


def _calibration(k: int) -> str:
    """The file of the k-th calibration, from 0."""
    return f"calibration-{k + 1}.json"


def _other(k: int) -> str:
    """The file of the k-th operator beside the base, from 0."""
    return f"base-{k + 2}"


def _content(folder: Path) -> dict[str, Any]:
    file = folder / "model.json"
    if not file.is_file():
        raise ValueError(f"{folder} is not a model: it has no model.json")
    try:
        content = json.loads(file.read_text(encoding="utf8"))
    except ValueError as why:
        raise ValueError(f"{file} is damaged: not JSON ({why})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{file} is not a model of uqno: expected format = {FORMAT!r}")
    if content.get("version") != VERSION:
        raise ValueError(
            f"{folder} has format version {content.get('version')!r}, this uqno reads {VERSION}: "
            "use the uqno that wrote it, or a newer one"
        )
    needed = ("base", "others", "uncertainty", "symmetries", "features", "deviation", "dimensions",
              "surfaces", "calibrations", "seen", "sha256")  # fmt: skip
    missing = [name for name in needed if name not in content]
    if missing:
        raise ValueError(f"{file} lacks {', '.join(missing)}: it is not a whole model")
    return content


def _base(folder: Path, saved: Mapping[str, Any], module: Callable[..., Tensor] | None) -> Operator:
    if isinstance(module, Operator):
        return module
    if module is None and (saved["config"] is None or saved["class"] not in OPERATORS):
        raise ValueError(
            f"the base of {folder} is a {saved['class']}, not one of the operators that are "
            f"registered: import {saved['defined_in']} first if it is a NeuralOperator, else pass "
            f"an instance of it with UQNO.load(folder, base={saved['class']}(...))"
        )
    return Operator.rebuilt(saved, module)


def _uncertainty(folder: Path, saved: Mapping[str, Any]) -> Uncertainty:
    if saved["name"] not in ESTIMATORS:
        raise ValueError(
            f"the uncertainty of {folder} is {saved['name']!r}: pass it with uncertainty="
        )
    return ESTIMATORS[saved["name"]](**saved["config"])


def _tensors(folder: Path, name: str, content: Mapping[str, Any]) -> Mapping[str, Tensor]:
    return read_checkpoint(_whole(folder / f"{name}.safetensors", content)).tensors


def _read_calibration(folder: Path, k: int, content: Mapping[str, Any]) -> Calibration:
    file = folder / _calibration(k)
    for part in (file, scores_file(file)):
        if part == file or part.name in content["sha256"] or part.exists():
            _whole(part, content)
    return read_calibration(file)


def _whole(file: Path, content: Mapping[str, Any]) -> Path:
    """The file, if it is there and has the checksum that model.json says."""
    if not file.is_file():
        raise ValueError(f"{file.parent} is not whole: {file.name} is missing")
    if sha256_of(file) != content["sha256"].get(file.name):
        raise ValueError(f"{file} is damaged or foreign: its checksum is wrong")
    return file


def refuse_other_functions(file: Path, seen: Sequence[str], resume: bool) -> None:
    """A fit goes on with its own functions, for these are the ones refused in calibration.

    Args:
        file: in the folder of the fit; it names the functions, and is written where a fit begins.
        seen: the fingerprints of the training functions, in order.
        resume: whether an earlier fit in the folder is to go on.

    Raises:
        ValueError: the fit in the folder was begun with other functions.
    """
    wanted = json.dumps({"sha256": hashlib.sha256("".join(seen).encode()).hexdigest()})
    begun = any(file.parent.rglob("last.safetensors"))
    if begun and file.is_file() and file.read_text(encoding="utf8") != wanted:
        raise ValueError(
            f"{file.parent} was trained on other functions: go on with the same ones, or give "
            "another folder"
        )
    if not begun or (resume and not file.is_file()):
        write_text(file, wanted)
