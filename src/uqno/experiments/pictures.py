"""One held-out function as a method sees it: its band, from the model's public answer.

Truth and prediction of a vector-valued function are shown by their magnitude: by the triangle
inequality, ‖u(x)‖ lies within the radius of ‖Ĝ(a)(x)‖ wherever u(x) lies in the band.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqno.band import Band
from uqno.conformal import Calibration, InfeasibleError, Profile, calibrate
from uqno.conformal.guarantees import Nothing
from uqno.experiments.methods import METHODS
from uqno.experiments.results import Panel, PanelMethod, Section
from uqno.experiments.runs import Run
from uqno.experiments.scene import Scene
from uqno.model import UQNO
from uqno.types import Array, Reals, Sample

PANEL_NODES = 90  # at most so many nodes a side in the figures' fields


@dataclass(frozen=True, eq=False)
class Picture:
    """A held-out function and a method's band around its prediction.

    Args:
        truth: u, (channel, *points).
        band: of one function.
        scene: how it is shown.
    """

    truth: Reals
    band: Band
    scene: Scene

    @property
    def residual(self) -> Reals:
        """u − Ĝ(a), signed, of a scalar function; its norm of a vector-valued one, (*points)."""
        difference = self.truth - self.band.center
        is_scalar = self.band.channels == 1
        return np.asarray(difference[0] if is_scalar else np.linalg.norm(difference, axis=0))

    @property
    def error(self) -> Reals:
        """‖u − Ĝ(a)‖, (*points)."""
        return np.abs(self.residual)

    @property
    def coverage(self) -> float:
        """The share of the points that lie in the band."""
        return float((self.error <= self.band.radius).mean())


def picture(model: UQNO, sample: Sample, scene: Scene, calibration: Calibration) -> Picture:
    """A function under a fitted model.

    Args:
        model: of the method.
        sample: the function, as the method sees it.
        scene: how it is shown.
        calibration: of the method.
    """
    answer = model.uncalibrated(sample)
    band = Band(
        answer.center[0].double().numpy(),
        answer.uncertainty[0].double().numpy(),
        calibration,
        scene.coordinates,
        scene.triangles,
    )
    return Picture(sample["u"].double().numpy(), band, scene)


def shown(values: Array) -> Reals:
    """A function (channel, *points) as one field (*points): itself, or its magnitude."""
    return np.asarray(values[0] if len(values) == 1 else np.linalg.norm(values, axis=0))


def recorded_calibration(run: Run, profile: Profile) -> Calibration:
    """The calibration by the recorded split, at the first level of a run.

    Its first functions calibrate. Where they cannot, the band is shown as the method gives it, and
    nothing is promised.
    """
    s = run.settings
    try:
        return calibrate(profile[: s.calibration], alpha=s.alphas[0], delta=s.delta)
    except InfeasibleError:
        return Calibration(1.0, Nothing(), s.calibration, profile.points, profile.points)


def panel_and_section(
    run: Run, profiles: Mapping[str, Profile], which: int
) -> tuple[Panel, Section]:
    """One held-out function under every method of a run, and a cut through the band of the first.

    Args:
        run: with its models.
        profiles: of each method; the cut is through the recipe `uqno`, if it is among them.
        which: the place of the function among the held-out ones.
    """
    s, alpha = run.settings, run.settings.alphas[0]
    scene = run.task.scene(which, PANEL_NODES)
    pictures, methods = {}, []
    for name, profile in profiles.items():
        calibration = recorded_calibration(run, profile)
        pictures[name] = picture(run.model(name), run.held(name)[which], scene, calibration)
        methods.append(_of_method(name, pictures[name]))
    first = pictures.get("uqno", next(iter(pictures.values())))
    panel = Panel(
        alpha=alpha,
        delta=s.delta,
        input=_listed(scene.input),
        truth=scene.thin(shown(first.truth)).tolist(),
        prediction=scene.thin(shown(first.band.center)).tolist(),
        points=_listed(scene.points),
        triangles=_listed(scene.triangles),
        methods=methods,
    )
    return panel, _section(first)


def _of_method(name: str, one: Picture) -> PanelMethod:
    return PanelMethod(
        method=name,
        label=METHODS[name].label,
        calibrated=not isinstance(one.band.calibration.rule, Nothing),
        error=one.scene.thin(one.error).tolist(),
        radius=one.scene.thin(one.band.radius).tolist(),
        coverage=one.coverage,
    )


def _section(one: Picture) -> Section:
    """A cut through a band."""
    cut = one.scene.cut
    center, radius = cut(shown(one.band.center)), cut(one.band.radius)
    return Section(
        x=one.scene.cut_at.tolist(),
        truth=cut(shown(one.truth)).tolist(),
        center=center.tolist(),
        lower=(center - radius).tolist(),
        upper=(center + radius).tolist(),
    )


def _listed(values: Array | None) -> list[Any] | None:
    return None if values is None else values.tolist()
