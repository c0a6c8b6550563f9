"""Table 1 of the paper on cars: bandwidth and calibration percentage, δ = 0.02.

UQNO in it is the paper's recipe, so its rows carry the name `uqno-paper`. The baselines were not
calibrated. Neural posterior principal components have no bandwidth there: a subspace is no band.
"""

from uqno.experiments.results import quoted

PAPER = (
    quoted("mc-dropout", 0.04, 0.12332, 0.189),
    quoted("mc-dropout", 0.12, 0.12332, 0.667),
    quoted("laplace", 0.04, 1.94708, 0.946),
    quoted("laplace", 0.12, 1.94708, 0.946),
    quoted("nppc", 0.04, None, 0.0),
    quoted("nppc", 0.12, None, 0.0),
    quoted("uqno-paper", 0.04, 0.55077, 0.982, "hoeffding"),
    quoted("uqno-paper", 0.12, 0.40018, 1.0, "hoeffding"),
)
