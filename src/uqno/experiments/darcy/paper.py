"""Table 1 of the paper on Darcy flow: bandwidth and calibration percentage, δ = 0.02.

UQNO in it is the paper's recipe, so its rows carry the name `uqno-paper`. The baselines were not
calibrated. Neural posterior principal components have no bandwidth there: a subspace is no band.
"""

from uqno.experiments.results import quoted

PAPER = (
    quoted("mc-dropout", 0.02, 0.00069, 0.994),
    quoted("mc-dropout", 0.1, 0.00069, 1.0),
    quoted("laplace", 0.02, 0.03453, 1.0),
    quoted("laplace", 0.1, 0.03453, 1.0),
    quoted("nppc", 0.02, None, 0.0),
    quoted("nppc", 0.1, None, 0.151),
    quoted("uqno-paper", 0.02, 0.00062, 0.986, "hoeffding"),
    quoted("uqno-paper", 0.1, 0.00045, 0.998, "hoeffding"),
)
