"""Quantities of interest of a model's functions: what they are, R as `fit` learned it, intervals.

A functional is called as f(field, sample), `field` being the values (channel, *points) of the truth
or of a prediction and `sample` the other fields of the function, all of them NumPy arrays. It gives
a number or (d,) numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import torch

from uqno.conformal.functionals import learn_uncertainty, uncertainty_of
from uqno.conformal.guarantees.contract import Evidence
from uqno.conformal.joint import usual_size
from uqno.conformal.scores import ratios
from uqno.model.scoring import Scored, predicted
from uqno.model.tie import TOLERANCE, Probe
from uqno.types import Array, Reals, Sample
from uqno.uncertainty.contract import Base, Residuals, Uncertainty

BAND: Final = "the band"
"""What the band is called among the parts of a joint promise."""
SHARES: Final = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
"""Shares of the points at which the band's usual scores are kept."""


@dataclass(frozen=True)
class Functional:
    """A quantity of interest of a function.

    Args:
        function: f(field, sample) → a number or (d,) numbers.
        truth: the field of the samples that holds the true value, such as the drag that a solver
            reports, which is not the sum over the pressures; None where f of the true field is it.
    """

    function: Callable[[Array, Mapping[str, Array]], Any]
    truth: str | None = None


@dataclass(frozen=True)
class Learned:
    """What `fit` learned of a quantity of d numbers.

    offset: (d,), the median of truth − q(Ĝ(a)), where the truth is given; else 0.
    coefficients: (d, features + 1), of R.
    size: what its score usually stays below.
    """

    offset: Reals
    coefficients: Reals
    size: float = 1.0


@dataclass(frozen=True)
class Quantities:
    """All quantities of a model.

    functionals: by name; empty for a loaded model until they are passed again.
    learned: by name. known: values at the functions of the probe, by name.
    band: the usual scores of the band at `SHARES`.
    """

    functionals: Mapping[str, Functional] = field(default_factory=dict)
    learned: Mapping[str, Learned] = field(default_factory=dict)
    known: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    band: tuple[float, ...] = (1.0,) * len(SHARES)

    def asked(self, given: Mapping[str, Any] | None) -> Quantities:
        """These quantities, or those that are given; one that is new has a constant R."""
        if given is None:
            return self
        functionals = {name: as_functional(name, f) for name, f in given.items()}
        learned = {name: self.learned[name] for name in functionals if name in self.learned}
        return replace(self, functionals=functionals, learned=learned, known={})

    def shown(self, sample: Sample) -> dict[str, Array]:
        """What the user's own callables see of a function: NumPy arrays, without any truth."""
        truths = {"u", *(f.truth for f in self.functionals.values())}
        return {name: np.asarray(x) for name, x in sample.items() if name not in truths}

    def size_of_band(self, alpha: float | None) -> float:
        """The usual score of the band at 1 − α; of all points for a guarantee without α."""
        return float(np.interp(1.0 if alpha is None else 1 - alpha, SHARES, self.band))

    def with_probe(self, probe: Probe) -> Quantities:
        """The same, with the values by which a functional is recognised when it is passed again."""
        known = {
            name: [
                _value(name, f, center.double().numpy(), self.shown(sample)).tolist()
                for sample, center in zip(probe.inputs, probe.centers, strict=True)
            ]
            for name, f in self.functionals.items()
        }
        return replace(self, known=known)

    def passed_again(self, given: Mapping[str, Any], probe: Probe | None) -> Quantities:
        """A loaded model's quantities with their callables.

        Raises:
            ValueError: one is not known, or gives other values than it did at calibration.
        """
        unknown = sorted(set(given) - set(self.known))
        if unknown:
            raise ValueError(
                f"functionals {', '.join(unknown)} were not calibrated, there are "
                f"{', '.join(sorted(self.known)) or 'none'}: pass those, or calibrate again"
            )
        functionals = {name: as_functional(name, f) for name, f in given.items()}
        again = replace(self, functionals=functionals)
        now = again.with_probe(probe or Probe()).known
        for name, values in now.items():
            before, after = np.array(self.known[name]), np.array(values)
            size = np.abs(before).max(initial=0)
            if before.shape != after.shape or (np.abs(after - before) > TOLERANCE * size).any():
                raise ValueError(
                    f"functional {name!r} gives {values} for the stored functions, and gave "
                    f"{before.tolist()} at calibration: pass the same callable, or calibrate again"
                )
        return again

    # --- files --------------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        """All but the callables, as JSON holds it."""
        learned = {
            name: {"offset": x.offset.tolist(), "coefficients": x.coefficients.tolist(),
                   "size": x.size}
            for name, x in self.learned.items()
        }  # fmt: skip
        return {"learned": learned, "known": dict(self.known), "band": list(self.band)}

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> Quantities:
        """What `saved` said."""
        learned = {
            name: Learned(np.array(x["offset"]), np.array(x["coefficients"]), float(x["size"]))
            for name, x in saved.get("learned", {}).items()
        }
        band = tuple(float(x) for x in saved.get("band", cls().band))
        return cls({}, learned, saved.get("known", {}), band)


def as_functional(name: Any, given: Any) -> Functional:
    """A callable or `Functional` as the latter, under a name."""
    if not isinstance(name, str) or not name or name == BAND:
        raise ValueError(f"functional {name!r} must have a text as its name, and not {BAND!r}")
    one = given if isinstance(given, Functional) else Functional(given)
    if not callable(one.function):
        raise ValueError(
            f"functional {name!r} is a {type(given).__name__}, expected a callable f(field, sample)"
        )
    return one


def _value(name: str, functional: Functional, values: Array, sample: Mapping[str, Array]) -> Reals:
    """q of a field, (d,).

    Raises:
        ValueError: it is no number or row of numbers, or not finite.
    """
    q = _numbers(name, functional.function(values, sample))
    if not np.isfinite(q).all():
        raise ValueError(
            f"functional {name!r} gives {q.tolist()}, expected finite numbers: leave out functions "
            "for which it is not defined, or define it for them"
        )
    return q


def _numbers(name: str, given: Any) -> Reals:
    try:
        q = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as why:
        raise ValueError(f"functional {name!r} gives no numbers: {why}") from None
    if q.ndim > 1 or not q.size:
        raise ValueError(
            f"functional {name!r} gives an array of shape {q.shape}, expected one number or (d,)"
        )
    return q.reshape(-1)


# --- q, its truth, and what R is made of ---------------------------------------------------------


def predicted_value(
    name: str, f: Functional, center: Array, uncertainty: Array, sample: Mapping[str, Array]
) -> tuple[Reals, Reals]:
    """q(Ĝ(a)), (d,), and features of its error, (d, 3).

    The features are how far q moves when the whole field moves by E up and down, the mean of E, and
    |q| itself.

    Args:
        center: Ĝ(a), (channel, *points); uncertainty: E(a), (*points); both float64.
    """
    q = _value(name, f, center, sample)
    up, down = (_numbers(name, f.function(center + s * uncertainty, sample)) for s in (1, -1))
    if up.shape != q.shape or down.shape != q.shape:
        raise ValueError(
            f"functional {name!r} gives {q.size} numbers for one field and {up.size} or "
            f"{down.size} for another: expected as many for all"
        )
    moved = np.nan_to_num(np.abs(up - down) / 2, nan=0.0, posinf=0.0)
    return q, np.stack([moved, np.full_like(q, uncertainty.mean()), np.abs(q)], axis=1)


def true_value(name: str, f: Functional, sample: Sample, seen: Mapping[str, Array]) -> Reals:
    """q of a function, computed from its truth or given in its sample, (d,)."""
    if f.truth is None:
        return _value(name, f, np.asarray(sample["u"], dtype=np.float64), seen)
    if f.truth not in sample:
        raise ValueError(
            f"the truth of functional {name!r} is the field {f.truth!r}, and a sample has only "
            f"{', '.join(sorted(sample))}: add it, or leave truth out to compute it from u"
        )
    return _value(name, Functional(lambda *_: sample[str(f.truth)]), np.empty(0), seen)


@torch.no_grad()
def learn(
    functionals: Mapping[str, Any], residuals: Residuals, base: Base, uncertainty: Uncertainty
) -> Quantities:
    """Quantities with R learned from residuals of functions that Ĝ has not seen.

    Args:
        functionals: callables or `Functional`s by name.
        residuals: what E was trained on; base: Ĝ; uncertainty: E.
    """
    quantities = Quantities().asked(functionals)
    if not functionals:
        return quantities
    asked = quantities.functionals
    rows: dict[str, list[tuple[Reals, Reals]]] = {name: [] for name in asked}
    scores = []
    for i in range(len(residuals)):
        sample, center = residuals.data[i], residuals.centers[i].double().numpy()
        answer = predicted(base, uncertainty, base.batch([sample]))
        E, seen = answer.uncertainty[0].cpu().double().numpy(), quantities.shown(sample)
        error = np.linalg.norm(np.asarray(sample["u"], dtype=np.float64) - center, axis=0)
        scores.append(np.quantile(ratios(error.ravel(), E.ravel()), SHARES, method="higher"))
        for name, f in asked.items():
            q, features = predicted_value(name, f, center, E, seen)
            rows[name].append((_difference(name, true_value(name, f, sample, seen), q), features))
    learned = {name: _learned(f, rows[name]) for name, f in asked.items()}
    band = tuple(usual_size(column) for column in np.transpose(scores))
    return Quantities(asked, learned, band=band)


def _learned(f: Functional, rows: Sequence[tuple[Reals, Reals]]) -> Learned:
    differences = np.array([difference for difference, _ in rows])
    features = np.array([phi for _, phi in rows])
    middle = np.median(differences, axis=0)
    offset = middle if f.truth is not None else np.zeros_like(middle)
    residuals = np.abs(differences - offset)
    coefficients = np.array(
        [learn_uncertainty(residuals[:, d], features[:, d]) for d in range(residuals.shape[1])]
    )
    R = np.stack([uncertainty_of(c, features[:, d]) for d, c in enumerate(coefficients)], axis=1)
    return Learned(offset, coefficients, usual_size((residuals / R).max(axis=1)))


def _difference(name: str, truth: Reals, q: Reals) -> Reals:
    if truth.shape != q.shape:
        raise ValueError(
            f"functional {name!r} gives {q.size} numbers and its truth has {truth.size}: expected "
            "as many"
        )
    return truth - q


def center_and_uncertainty(
    name: str, quantities: Quantities, center: Array, E: Array, sample: Mapping[str, Array]
) -> tuple[Reals, Reals]:
    """The center of the interval and R, each (d,), of one function."""
    q, features = predicted_value(name, quantities.functionals[name], center, E, sample)
    learned = quantities.learned.get(name)
    if learned is None:
        return q, np.ones_like(q)
    if learned.offset.shape != q.shape:
        raise ValueError(
            f"functional {name!r} gives {q.size} numbers, and gave {learned.offset.size} in fit: "
            "expected as many"
        )
    pairs = zip(learned.coefficients, features, strict=True)
    R = np.array([uncertainty_of(c, phi) for c, phi in pairs])
    return q + learned.offset, R


def score_of(name: str, quantities: Quantities, one: Scored) -> tuple[float, int]:
    """max |q(u) − center| / R of a function, and its number of numbers."""
    seen = quantities.shown(one.sample)
    E = one.uncertainty.reshape(one.center.shape[1:]).astype(np.float64)
    middle, R = center_and_uncertainty(name, quantities, one.center, E, seen)
    f = quantities.functionals[name]
    distance = np.abs(_difference(name, true_value(name, f, one.sample, seen), middle))
    return float((distance / R).max()), middle.size


def evidence_of(scores: Sequence[tuple[float, int]]) -> Evidence:
    """The scores of calibration functions as a guarantee takes them."""
    values, sizes = zip(*scores, strict=True)
    return Evidence(np.array(sizes), np.array(values))
