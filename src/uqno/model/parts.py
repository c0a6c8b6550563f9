"""Everything that a saved model consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from uqno.conformal import Calibration
from uqno.model.history import Past
from uqno.model.memory import Memory
from uqno.model.seen import Seen
from uqno.model.tie import Probe
from uqno.operators import Operator
from uqno.operators.symmetry import Symmetry
from uqno.uncertainty import Uncertainty


@dataclass(frozen=True)
class ModelParts:
    """What a model is made of.

    Args:
        base: the operator; others: further members of a committee.
        uncertainty: the fitted estimator of E; symmetries: of the problem.
        calibrations: in the order in which they were made.
        seen: the training functions, by their fingerprints and descriptions.
        dimensions: of the grids that it was fitted on; None for geometries.
        features: how many callables E sees the answers of; they are not saved.
        deviation: whether E sees the deviation over symmetries and members.
        surfaces: whether the geometries had the signed distance of a surface.
        probe: answers by which code of the user's is known again.
        history: every calibration so far, those before the last fit too.
        quantities: of interest, as JSON holds them.
        memory: of inputs and of residuals.
    """

    base: Operator
    others: tuple[Operator, ...]
    uncertainty: Uncertainty
    symmetries: tuple[Symmetry, ...]
    calibrations: tuple[Calibration, ...]
    seen: Seen
    dimensions: int | None
    features: int
    deviation: bool
    surfaces: bool
    probe: Probe | None = None
    history: tuple[Past, ...] = ()
    quantities: Mapping[str, Any] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
