"""Table 1 of the paper: bandwidth and calibration percentage, target 98 % (δ = 0.02).

UQNO in it is the paper's recipe, so its rows carry the name `uqno-paper`. The baselines were not
calibrated. Neural posterior principal components have no bandwidth there: a subspace is no band.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DELTA: Final = 0.02


@dataclass(frozen=True)
class PaperRow:
    """One cell pair of the table; the percentage as a share."""

    task: str
    method: str
    alpha: float
    bandwidth: float | None
    calibration_percentage: float


PAPER: Final = (
    PaperRow("darcy", "mc-dropout", 0.02, 0.00069, 0.994),
    PaperRow("darcy", "mc-dropout", 0.1, 0.00069, 1.0),
    PaperRow("darcy", "laplace", 0.02, 0.03453, 1.0),
    PaperRow("darcy", "laplace", 0.1, 0.03453, 1.0),
    PaperRow("darcy", "nppc", 0.02, None, 0.0),
    PaperRow("darcy", "nppc", 0.1, None, 0.151),
    PaperRow("darcy", "uqno-paper", 0.02, 0.00062, 0.986),
    PaperRow("darcy", "uqno-paper", 0.1, 0.00045, 0.998),
    PaperRow("cars", "mc-dropout", 0.04, 0.12332, 0.189),
    PaperRow("cars", "mc-dropout", 0.12, 0.12332, 0.667),
    PaperRow("cars", "laplace", 0.04, 1.94708, 0.946),
    PaperRow("cars", "laplace", 0.12, 1.94708, 0.946),
    PaperRow("cars", "nppc", 0.04, None, 0.0),
    PaperRow("cars", "nppc", 0.12, None, 0.0),
    PaperRow("cars", "uqno-paper", 0.04, 0.55077, 0.982),
    PaperRow("cars", "uqno-paper", 0.12, 0.40018, 1.0),
)


def paper_rows(task: str) -> list[PaperRow]:
    """The paper's rows for "darcy" or "cars"."""
    found = [row for row in PAPER if row.task == task]
    if not found:
        raise ValueError(f"task = {task!r} must be darcy or cars, the paper's two")
    return found
