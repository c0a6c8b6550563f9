"""Likelihood ratios dQ/dP of inputs, estimated by a classifier: which law is an input of?

A logistic regression tells inputs of the calibration law P from those of the deployment law Q by a
few features of an input. Where p(x) is its probability of Q, with n_P and n_Q inputs to learn from,

    dQ/dP (x) ≈ n_P / n_Q · p(x) / (1 − p(x)).

With ratios that are estimated there is no promise for a finite number of functions: they must be
close to the true ones. The inputs that it learns from are others than those of the calibration and
than those that are predicted; the first of these is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from uqno.conformal import told
from uqno.types import Reals

LARGEST_LOG_RATIO: Final = 50.0


@dataclass(frozen=True)
class EstimatedShift:
    """dQ/dP as a logistic regression has learned it.

    Args:
        mean, deviation: of the features, (f,), by which they are brought to one size.
        coefficients: (f,) of the features so scaled; intercept: beside them.
        seen: the inputs that it learned from, as bytes, to be recognised again.
        features: gives the features (f,) of a sample, for `UQNO.calibrate(shift=…)`.
    """

    mean: Reals
    deviation: Reals
    coefficients: Reals
    intercept: float
    seen: frozenset[bytes] = field(default=frozenset(), repr=False)
    features: Callable[[Mapping[str, Any]], Any] | None = None

    def __call__(self, sample: Mapping[str, Any]) -> float:
        """dQ/dP at the input of a sample, by its `features`."""
        if self.features is None:
            raise ValueError(
                "the features of a sample are not known: estimate_shift(…, features=f), f giving "
                "those of a sample"
            )
        return float(self.ratios([self.features(sample)])[0])

    def ratios(self, features: Any) -> Reals:
        """dQ/dP at inputs with these features, (n, f) → (n,).

        Raises:
            ValueError: the shape is another, or the classifier has learned from one of the inputs.
        """
        x = told.features("features", features, len(self.mean))
        known = sum(row.tobytes() in self.seen for row in x)
        if known:
            raise ValueError(
                f"{known} of {len(x)} inputs are among those that the classifier has learned from: "
                "it must learn from other inputs than those of the calibration"
            )
        log = (x - self.mean) / self.deviation @ self.coefficients + self.intercept
        return np.exp(np.clip(log, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO))


def estimate_shift(
    calibration: Any,
    deployment: Any,
    penalty: float = 1.0,
    features: Callable[[Mapping[str, Any]], Any] | None = None,
) -> EstimatedShift:
    """Learn dQ/dP from features of inputs of both laws.

    Args:
        calibration: (n_P, f), features of inputs of the calibration law, such as the mean and the
            deviation of a coefficient, or the parameters of a shape; of functions that are not in
            the calibration set itself.
        deployment: (n_Q, f), the same of the deployment.
        penalty: on the squares of the coefficients (of features with deviation 1).
        features: gives the features of a sample, where samples will be asked for.

    Returns:
        The ratio as a function of features. Into a calibration of arrays it goes as
        `guarantee=guarantees.Shifted(Fraction(…), shift.ratios(features), estimated=True)`.

    >>> rng = np.random.default_rng(0)
    >>> shift = estimate_shift(rng.normal(size=(500, 1)), rng.normal(size=(500, 1)) + 1)
    >>> shift.ratios([[-1.0], [0.5], [2.0]]).round(1)
    array([0.2, 1. , 4.7])
    """
    p = told.features("calibration", calibration)
    q = told.features("deployment", deployment, p.shape[1])
    if not np.isfinite(penalty) or penalty <= 0:
        raise ValueError(f"penalty = {penalty!r} must be a positive number, such as 1.0")
    x = np.concatenate([p, q])
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    deviation[deviation == 0] = 1
    z = np.column_stack([(x - mean) / deviation, np.ones(len(x))])
    sign = np.repeat([-1.0, 1.0], [len(p), len(q)])
    ridge = np.append(np.full(x.shape[1], penalty), 0)

    def loss(b: Reals) -> tuple[float, Reals]:
        margin = sign * (z @ b)
        gradient = -(sign * expit(-margin)) @ z + ridge * b
        return float(np.logaddexp(0, -margin).sum() + 0.5 * (ridge * b * b).sum()), gradient

    b = minimize(loss, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B").x
    seen = frozenset(row.tobytes() for row in p)
    intercept = float(b[-1] + np.log(len(p) / len(q)))
    return EstimatedShift(mean, deviation, b[:-1], intercept, seen, features)
