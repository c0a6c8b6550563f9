"""What a finished run says: the table's rows, the ablation, all that figures are drawn from."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqno.conformal.profile import Profile
from uqno.experiments import measuring, results
from uqno.experiments.ablation import ladder
from uqno.experiments.darcy.generation import cores
from uqno.experiments.methods import METHODS, train_seconds, trained
from uqno.experiments.results import Results
from uqno.experiments.runs import DELTAS, Run, loaded, now
from uqno.types import Reals

PANEL_NODES = 90  # at most so many nodes a side in the figures' fields
VERSIONS = ("uqno", "torch", "numpy", "scipy", "zarr")


def conclude(made: Run, preset: str, command: str) -> Results:
    """All numbers and all that figures are drawn from."""
    s = made.settings
    unit = made.task.unit
    size = 1.0 if unit is None else unit["size"]
    profiles = {name: made.profile(name).divided(size) for name in trained(s)}
    shown = {name: profiles[name] for name in s.methods}
    started = json.loads((made.folder / "settings.json").read_text(encoding="utf8"))["started"]
    swept = {
        (name, alpha): measuring.sweep(
            shown[name], alpha, DELTAS, calibration=s.calibration, splits=s.splits, seed=s.seed
        )
        for name in s.methods
        for alpha in s.curve_alphas
    }
    panel, section = pictures(made, shown, s.calibration)  # the first test function
    return Results(
        format=results.FORMAT,
        format_version=results.VERSION,
        task=made.task.name,
        preset=preset,
        command=command,
        started=started,
        finished=now(),
        settings=s.record(),
        versions={"python": platform.python_version(), **{v: version(v) for v in VERSIONS}},
        machine=f"{platform.machine()}, {cores()} cores",
        split={"train": s.train, "calibration": s.calibration, "test": s.test},
        points=made.task.points,
        unit=unit,
        rows=rows(made, shown),
        ablation=ablation(made, profiles) if s.ablation else [],
        curves=[results.curve(name, some) for (name, _), some in swept.items()],
        targets=[results.targets(name, some) for (name, _), some in swept.items()],
        panel=panel,
        section=section,
        paper=results.quoted(made.task.name),
    )


def rows(made: Run, profiles: dict[str, Profile]) -> list[results.Row]:
    """Each method raw, where anyone would use it so, and calibrated, at every α."""
    s, found = made.settings, []
    for name, held in profiles.items():
        told = made.told(name)
        explained = np.array([share for part in told for share in part.get("explained", ())])
        misses = [miss for part in told for miss in part.get("relative_error", ())]
        more: dict[str, Any] = {
            "unit": made.task.unit,
            "relative_error": float(np.mean(misses)) if misses else None,
            "train_seconds": train_seconds(made.folder, name, s),
            "calibrate_seconds": sum(p["all"] for p in told) / s.held_out * s.calibration,
            "predict_seconds": sum(p["predict"] for p in told) / s.held_out,
            "share_of_variance": float(explained.mean()) if explained.size else None,
        }
        for alpha in s.alphas:
            if METHODS[name].raw:
                measured = measuring.raw(held, alpha, s.delta)
                if explained.size:
                    measured = _subspace(measured, explained)
                found.append(results.row(name, measured, **more))
            for sampling in ("hoeffding", "grid") if name == "uqno-paper" else ("grid",):
                measured = _calibrated(made, held, alpha, sampling)
                found.append(results.row(name, measured, **more))
    return found


def _subspace(measured: measuring.Measured, explained: Reals) -> measuring.Measured:
    """A subspace has no width; the paper calls a function covered by the share of its error
    energy inside."""
    share = float((explained >= 1 - measured.alpha).mean())
    return measuring.Measured(
        alpha=measured.alpha,
        delta=measured.delta,
        sampling=measured.sampling,
        calibrated=False,
        feasible=True,
        calibration_percentage=share,
        interval=measuring.exact_interval(share, explained.size),
        coverage=float(explained.mean()),
    )


def _calibrated(made: Run, held: Profile, alpha: float, sampling: str) -> measuring.Measured:
    s = made.settings
    return measuring.calibrated(
        held, alpha, s.delta, sampling, calibration=s.calibration, splits=s.splits, seed=s.seed
    )


def ablation(made: Run, profiles: dict[str, Profile]) -> list[results.Ablated]:
    """What each ingredient contributes, at every α; the ratio is to the paper's recipe.

    Where its ranks are infeasible, to the same with ranks for the grid.
    """
    found = []
    for alpha in made.settings.alphas:
        recipes = {
            name: (label, _calibrated(made, profiles[model], alpha, sampling))
            for name, label, model, sampling in ladder(made.settings)
        }
        found += results.ablated(recipes, "paper" if recipes["paper"][1].feasible else "grid")
    return found


def pictures(
    made: Run, profiles: dict[str, Profile], which: int
) -> tuple[results.Panel, results.Section]:
    """One test function, chosen by its place alone, under every method; and a cut through ours."""
    s, alpha = made.settings, made.settings.alphas[0]
    scene = made.task.scene(which, PANEL_NODES)
    methods, cut, prediction = [], None, None
    for name, held in profiles.items():
        measured = _calibrated(made, held, alpha, "grid")
        raw = not measured.feasible or measured.scale is None
        scale = 1.0 if measured.scale is None else measured.scale
        sample = made.held(name)[which]
        found = loaded(made, name).uncalibrated(sample)
        center = found.center[0, 0].double().numpy()
        radius = scale * found.uncertainty[0].double().numpy()
        truth = sample["u"][0].double().numpy()
        error = np.abs(truth - center)
        methods.append(
            results.PanelMethod(
                method=name,
                label=results.LABELS[name],
                calibrated=not raw,
                error=scene.thin(error).tolist(),
                radius=scene.thin(radius).tolist(),
                coverage=float((error <= radius).mean()),
            )
        )
        if prediction is None or name == "uqno":
            prediction, cut = center, (scene.cut(center), scene.cut(radius))
    if prediction is None or cut is None:
        raise ValueError("no methods to show: settings.methods is empty")
    panel = results.Panel(
        alpha=alpha,
        delta=s.delta,
        input=_listed(scene.input),
        truth=scene.thin(truth).tolist(),
        prediction=scene.thin(prediction).tolist(),
        points=_listed(scene.points),
        triangles=_listed(scene.triangles),
        methods=methods,
    )
    middle, half = cut
    section = results.Section(
        x=scene.cut_at.tolist(),
        truth=scene.cut(truth).tolist(),
        center=middle.tolist(),
        lower=(middle - half).tolist(),
        upper=(middle + half).tolist(),
    )
    return panel, section


def _listed(values: NDArray[Any] | None) -> list[Any] | None:
    return None if values is None else values.tolist()
