"""What a finished run says: the table's rows, the ablation, all that figures are drawn from."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any, cast

import numpy as np

from uqno.conformal.profile import Profile
from uqno.experiments import measuring, results, rows
from uqno.experiments.ablation import methods_of, steps
from uqno.experiments.evidence import in_single_precision, write_scores
from uqno.experiments.jobs import cores
from uqno.experiments.methods import METHODS
from uqno.experiments.pictures import panel_and_section
from uqno.experiments.results import Ablated, Look, Results, Row, Unit
from uqno.experiments.runs import DELTAS, Run, now
from uqno.experiments.workshop import train_seconds
from uqno.storage import read_json
from uqno.types import Reals

VERSIONS = ("uqno", "torch", "numpy", "scipy", "zarr")


def conclude(run: Run, preset: str, command: str) -> Results:
    """All numbers and all that figures are drawn from, of a run whose functions are scored."""
    s, task = run.settings, run.task
    # Rounded as the record has them, so that its numbers follow from the scores beside it.
    unit: Unit | None = results.rounded(task.unit, results.DIGITS)
    rms = None if unit is not None else float(results.rounded(task.rms(), results.DIGITS))
    size = 1.0 if unit is None else unit["size"]
    profiles = {
        name: in_single_precision(run.profile(name).divided(size)) for name in methods_of(s)
    }
    shown = {name: profiles[name] for name in s.methods}
    drawn = [name for name in s.methods if not METHODS[name].aided] or list(s.methods)
    write_scores(run.scores_file, profiles, s)
    started = read_json(run.settings_file, f"remove {run.folder}, and run again")["started"]
    swept = {
        (name, alpha): measuring.sweep(
            shown[name], alpha, DELTAS, calibration=s.calibration, splits=s.splits, seed=s.seed
        )
        for name in drawn
        for alpha in s.curve_alphas
    }
    pictured = {name: shown[name] for name in drawn}
    panel, section = panel_and_section(run, pictured, s.calibration)  # the first test function
    return Results(
        format=results.FORMAT,
        format_version=results.VERSION,
        task=task.name,
        title=task.title,
        preset=preset,
        command=command,
        started=started,
        finished=now(),
        settings=s.record(),
        aids=s.aids,
        versions={"python": platform.python_version(), **{v: version(v) for v in VERSIONS}},
        machine=f"{platform.machine()}, {cores()} cores",
        split={"train": s.train, "calibration": s.calibration, "test": s.test},
        points=task.points,
        unit=unit,
        rms=rms,
        domain=task.domain,
        methods=looks((*s.methods, *(quoted["method"] for quoted in task.quoted))),
        rows=method_rows(run, shown, unit, rms),
        ablation=ablation_rows(run, profiles) if s.ablation else [],
        curves=[rows.curve(name, some) for (name, _), some in swept.items()],
        targets=[rows.targets(name, some) for (name, _), some in swept.items()],
        panel=panel,
        section=section,
        paper=list(task.quoted),
    )


def looks(names: Iterable[str]) -> list[Look]:
    """How methods are called and drawn, each once."""
    return [cast(Look, METHODS[name].look()) for name in dict.fromkeys(names)]


def method_rows(
    run: Run, profiles: Mapping[str, Profile], unit: Unit | None, rms: float | None
) -> list[Row]:
    """Each method raw, where anyone would use it so, and calibrated, at every α."""
    s, content = run.settings, []
    for name, profile in profiles.items():
        method, notes = METHODS[name], run.notes(name)
        explained = np.array([share for note in notes for share in note.explained or ()])
        relative = [error for note in notes for error in note.relative_error]
        more: dict[str, Any] = {
            "unit": unit,
            "rms": rms,
            "relative_error": float(np.mean(relative)),
            "train_seconds": train_seconds(run.folder, name, s),
            "calibrate_seconds": sum(n.all_seconds for n in notes) / s.held_out * s.calibration,
            "predict_seconds": sum(n.predict_seconds for n in notes) / s.held_out,
            "share_of_variance": float(explained.mean()) if explained.size else None,
        }
        for alpha in s.alphas:
            if method.raw:
                measured = measuring.raw(profile, alpha, s.delta)
                if explained.size:
                    measured = _subspace(measured, explained)
                content.append(rows.row(name, measured, method.label, **more))
            for sampling in method.samplings:
                measured = _calibrated(run, profile, alpha, sampling)
                content.append(rows.row(name, measured, method.label, **more))
    return content


def _subspace(measured: measuring.Measured, explained: Reals) -> measuring.Measured:
    """A subspace has no width; the paper's percentage is the share of the error's variance in
    it, and so is this one."""
    share = float(explained.mean())
    return measuring.Measured(
        alpha=measured.alpha,
        delta=measured.delta,
        sampling=measured.sampling,
        calibrated=False,
        feasible=True,
        calibration_percentage=share,
    )


def _calibrated(run: Run, profile: Profile, alpha: float, sampling: str) -> measuring.Measured:
    s = run.settings
    return measuring.calibrated(
        profile, alpha, s.delta, sampling, calibration=s.calibration, splits=s.splits, seed=s.seed
    )


def ablation_rows(run: Run, profiles: Mapping[str, Profile]) -> list[Ablated]:
    """What each ingredient contributes, at every α; ratios are to the paper's recipe."""
    content = []
    for alpha in run.settings.alphas:
        recipes = {
            step.name: (
                step.label,
                step.method,
                _calibrated(run, profiles[step.method], alpha, step.sampling),
            )
            for step in steps(run.settings)
        }
        content += rows.ablated(recipes)
    return content
