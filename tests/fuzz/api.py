"""Cases of the Python interface: calibrations against the definitions, all with bad values."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import uqno
from tests.fuzz import naive
from tests.fuzz.harness import Case
from tests.fuzz.values import spoiled

Rng = np.random.Generator
SHARES = (0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 0.8, Fraction(1, 3), Fraction(2, 7))
SAMPLINGS = ("grid", "iid", "hoeffding")


def one_of(rng: Rng, values: Any) -> Any:
    return values[rng.integers(len(values))]


# --- calibrations against the definitions -----------------------------------------------------


def calibration(rng: Rng) -> Case:
    """A lawful calibration, in any of the forms in which functions may come."""
    sampling = one_of(rng, SAMPLINGS)
    weighted = sampling == "grid" and rng.random() < 0.3
    mixed = rng.random() < 0.3
    vector = rng.random() < 0.2
    n = int(rng.integers(2, 60))
    sizes = rng.integers(1, 25, n) if mixed else np.full(n, rng.integers(1, 40))
    if sampling == "hoeffding":
        sizes = sizes + 60
    functions = [_function(rng, int(m), vector, weighted) for m in sizes]
    asked = {
        "alpha": one_of(rng, SHARES),
        "delta": one_of(rng, SHARES),
        "sampling": sampling,
        "confidence": one_of(rng, (None, None, 0.5, 0.9)),
    }
    # An iterator tells its sizes last, which the paper's rule must know first.
    forms = ["lists"] if mixed else ["lists", "arrays", "arrays"]
    forms += [] if mixed and sampling == "hoeffding" else ["iterators", "stream"]
    form = one_of(rng, forms)

    def call() -> object:
        try:
            found = uqno.calibrate(**_given(functions, form, weighted), **asked)
        except uqno.InfeasibleError:
            found = None
        exact = {
            name: None if x is None else Fraction(str(x))
            for name, x in asked.items()
            if name != "sampling"
        }
        naive.check(found, functions, {**exact, "sampling": sampling})
        if found is not None and uqno.Calibration.from_json(found.to_json()) != found:
            raise AssertionError(f"{found} reads back as another")
        return found

    return f"calibrate {sampling}{' weighted' * weighted}{' mixed' * mixed}: {form}", call


def _function(rng: Rng, m: int, vector: bool, weighted: bool) -> tuple[Any, Any, Any]:
    dtype = one_of(rng, (np.float64, np.float32, np.float16))
    error = rng.normal(size=(m, 2) if vector else m).astype(dtype)
    uncertainty = rng.lognormal(size=m).astype(one_of(rng, (np.float64, np.float32)))
    if rng.random() < 0.2:  # ties and zeros
        error, uncertainty = np.round(error), np.round(uncertainty)
    weights = None
    if weighted:
        weights = rng.integers(0, 4, m).astype(np.float64)
        weights[0] += 1
    return error, uncertainty, weights


def _given(functions: list[Any], form: str, weighted: bool) -> dict[str, Any]:
    """error, uncertainty and weights in one of their forms."""
    if form == "stream":
        return {"error": uqno.conformal.FunctionStream(iter(functions), weighted)}
    error, uncertainty, weights = ([f[i] for f in functions] for i in range(3))
    given = {"error": error, "uncertainty": uncertainty}
    given |= {"weights": weights} if weighted else {}
    make = {"arrays": np.array, "iterators": iter, "lists": list}[form]
    return {name: make(values) for name, values in given.items()}


# --- everything, with values that nobody meant ------------------------------------------------


def abused(rng: Rng) -> Case:
    """A call of the interface in which some arguments are replaced."""
    name = one_of(rng, sorted(TARGETS))
    function, arguments = TARGETS[name]()
    changed = spoiled(rng, arguments)
    return name, lambda: function(**changed)


def functions_40() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"error": rng.normal(size=(40, 12)), "uncertainty": rng.uniform(0.5, 1, (40, 12))}


@cache
def a_calibration() -> Any:
    return uqno.calibrate(**functions_40(), alpha=0.2, delta=0.1)


def _levels() -> dict[str, Any]:
    return {"alpha": 0.2, "delta": 0.1, "sampling": "grid", "confidence": None}


def _calibrate() -> Any:
    return uqno.calibrate, {
        **functions_40(), **_levels(), "weights": None, "guarantee": None, "ranks": None,
        "mixed": "own", "misses": None, "seed": 0,
    }  # fmt: skip


def _calibrate_iid() -> Any:
    return uqno.calibrate, {**_calibrate()[1], "sampling": "iid", "alpha": 0.4}


def _calibrate_hoeffding() -> Any:
    return uqno.calibrate, {**_calibrate()[1], "sampling": "hoeffding", "alpha": 0.8}


def _plan() -> Any:
    return uqno.plan, {**_levels(), "functions": 40, "points": 12}


def _plan_large() -> Any:
    return uqno.plan, {**_levels(), "functions": 10**12, "points": 10**12, "sampling": "iid"}


def _fraction() -> Any:
    return uqno.guarantees.Fraction, {
        **_levels(), "mixed": "own", "ranks": None, "seed": 0, "misses": None
    }  # fmt: skip


def _splits() -> Any:
    def call(alpha: Any, delta: Any, sampling: Any, **more: Any) -> Any:
        rule = uqno.guarantees.Fraction(alpha, delta, sampling)
        return uqno.conformal.calibrate_splits(guarantee=rule, **more)

    splits = [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]]
    levels = {"alpha": 0.2, "delta": 0.2, "sampling": "grid"}
    return call, {**functions_40(), **levels, "splits": splits, "weights": None}


def _calibrate_all() -> Any:
    rules = [uqno.guarantees.Fraction(0.2, 0.1), uqno.guarantees.Fraction(0.3, 0.2, "iid")]
    return uqno.conformal.calibrate_all, {**functions_40(), "guarantees": rules, "weights": None}


def _coverage() -> Any:
    return uqno.conformal.coverage, {**functions_40(), "scale": 1.0, "weights": None}


def _coverage_of_calibration() -> Any:
    return a_calibration().coverage, {**functions_40(), "weights": None}


def _function_scores() -> Any:
    return uqno.conformal.function_scores, {**functions_40(), "point_rank": 3}


def _weighted_scores() -> Any:
    given = {**functions_40(), "weights": np.ones(12), "alpha": 0.2}
    return uqno.conformal.weighted_scores, given


def _ratios() -> Any:
    return uqno.conformal.ratios, {"error": np.ones(5), "uncertainty": np.ones(5)}


def _frontier() -> Any:
    levels = {**_levels(), "sampling": "iid"}
    return uqno.conformal.frontier, {**levels, "functions": 40, "points": 12}


def _tightest() -> Any:
    pairs = uqno.conformal.frontier(40, 12, 0.4, 0.2)
    training = [np.ones(5)] * 3
    return uqno.conformal.tightest, {"pairs": pairs, "points": 12, "training": training, "n": 40}


def _agreement() -> Any:
    from uqno.conformal.agreement import agreement

    return agreement, {"failures": 3, "functions": 50, "calibration": 40, "rank": 38}


def _stream() -> Any:
    def call(functions: Any, weighted: Any, **levels: Any) -> Any:
        stream = uqno.conformal.FunctionStream(functions, weighted)
        return uqno.calibrate(stream, **levels)

    some = [(np.ones(3), np.ones(3), None)] * 30
    return call, {"functions": some, "weighted": False, "alpha": 0.3, "delta": 0.2}


def _from_json() -> Any:
    given = {"text": a_calibration().to_json(), "scores": None}
    return uqno.Calibration.from_json, given


def _split() -> Any:
    from uqno.data import split_functions

    sizes = {"base": 3, "residual": 3, "calibration": 4, "test": 4}
    return split_functions, {"functions": 20, **sizes, "seed": 0}


def _split_record() -> Any:
    from uqno.data import Split, split_functions

    def call(**record: Any) -> Any:
        return Split.from_record(record)

    return call, split_functions(20, base=3, residual=3, calibration=4, test=4).record()


def _as_samples() -> Any:
    from uqno.data import as_samples

    def call(**more: Any) -> Any:
        return [one["a"].shape for one in as_samples(**more)]

    return call, {
        "data": (np.ones((5, 1, 6)), np.ones((5, 1, 6))), "inputs": None, "outputs": None,
        "functions": None, "channels": "first",
    }  # fmt: skip


def _sample_dicts() -> Any:
    from uqno.data import as_samples

    def call(**fields: Any) -> Any:
        return as_samples([fields, fields])[1]

    return call, {"a": np.ones((1, 6)), "u": np.ones((1, 6)), "weights": np.ones(6)}


def _grid_sample() -> Any:
    from uqno.data import GridSample

    return GridSample, {"a": np.ones((1, 6)), "u": np.ones((1, 6))}


def _band() -> Any:
    return uqno.Band, {
        "center": np.zeros((1, 3, 4)), "uncertainty": np.ones((3, 4)),
        "calibration": a_calibration(), "coordinates": (np.arange(3.0), np.arange(4.0)),
        "triangles": None, "weights": None, "name": "u", "units": "", "component_names": None,
        "scale": None, "labels": None,
    }  # fmt: skip


def _surface_band() -> Any:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    return uqno.Band, {
        **_band()[1], "center": np.zeros((1, 4)), "uncertainty": np.ones(4),
        "coordinates": points, "triangles": np.array([[0, 2, 1], [0, 1, 3]]),
    }  # fmt: skip


def _band_contains() -> Any:
    return uqno.Band(**_band()[1]).contains, {"u": np.zeros((1, 3, 4))}


def _settings(task: str) -> Any:
    from uqno.experiments.description import known_tasks

    kind = known_tasks()[task]
    settings = kind.preset("quick", [])

    def call(**changes: Any) -> Any:
        return kind.settings_type.from_record({**settings.record(), **changes})

    return call, settings.record()


def _surface() -> Any:
    from uqno.geometry import Surface

    def call(**given: Any) -> Any:
        surface = Surface(**given)
        return surface.areas, surface.normals

    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    return call, {"points": points, "triangles": faces}


@cache
def a_model() -> Any:
    """A model whose base is a function and whose uncertainty is a number: nothing to train."""
    import torch

    from uqno.operators import Operator
    from uqno.uncertainty import Constant

    base = Operator(lambda a: 2 * a, normalise=(), output=None)
    model = uqno.UQNO(base, Constant(), trained=True)
    rng = torch.Generator().manual_seed(0)
    a = torch.randn(60, 1, 8, generator=rng)
    u = 2 * a + torch.randn(60, 1, 8, generator=rng)
    model.fit((a[:20], u[:20]), epochs=1, progress=False)
    model.calibrate((a[20:], u[20:]), 0.2, 0.1)
    return model


def _fit() -> Any:
    from uqno.operators import Operator
    from uqno.uncertainty import Constant

    def call(**given: Any) -> Any:
        base = Operator(lambda a: 2 * a, normalise=(), output=None)
        return uqno.UQNO(base, Constant(), trained=True).fit(**given)

    rng = np.random.default_rng(0)
    train = (rng.normal(size=(8, 1, 8)), rng.normal(size=(8, 1, 8)))
    return call, {
        "train": train, "inputs": None, "outputs": None, "crossfit": 2, "epochs": 1,
        "uncertainty_epochs": None, "seed": 0, "batch_size": 4,
    }  # fmt: skip


def _model_calibrate() -> Any:
    rng = np.random.default_rng(1)
    data = (rng.normal(size=(40, 1, 8)), rng.normal(size=(40, 1, 8)))
    return a_copy().calibrate, {
        "data": data, **_levels(), "weights": False, "guarantee": None, "batch_size": 16,
        "inputs": None, "outputs": None,
    }  # fmt: skip


def a_copy() -> Any:
    from copy import copy

    return copy(a_model())


def _model_samples() -> Any:
    rng = np.random.default_rng(1)
    samples = [{"a": rng.normal(size=(1, 8)), "u": rng.normal(size=(1, 8))} for _ in range(40)]

    def call(a: Any, u: Any, more: Any) -> Any:
        changed = [*samples[:5], {"a": a, "u": u, "weights": more}, *samples[5:]]
        return a_copy().calibrate(changed, 0.2, 0.1)

    return call, {**samples[0], "more": None}


def _predict() -> Any:
    return a_model().predict, {
        "a": np.ones((1, 8)), "at": None, "inputs": None, "outputs": None, "alpha": None,
        "delta": None, "batch_size": 16,
    }  # fmt: skip


def _predict_sample() -> Any:
    def call(**fields: Any) -> Any:
        return a_model().predict(fields)

    return call, {"a": np.ones((1, 8)), "weights": np.ones(8), "points": None}


def _uqno() -> Any:
    from uqno.operators import Operator

    base = Operator(lambda a: 2 * a, normalise=(), output=None)
    return uqno.UQNO, {
        "base": base, "uncertainty": None, "symmetries": (), "features": (), "deviation": True,
        "trained": None, "members": 1,
    }  # fmt: skip


def _open() -> Any:
    from uqno.data import open as open_data

    return open_data, {
        "path": "nothing.npz", "inputs": None, "outputs": None, "functions": None,
        "dimensions": None,
    }  # fmt: skip


def _load() -> Any:
    return uqno.UQNO.load, {"folder": "nothing"}


TARGETS: dict[str, Callable[[], tuple[Callable[..., Any], dict[str, Any]]]] = {
    "calibrate": _calibrate, "calibrate iid": _calibrate_iid,
    "calibrate hoeffding": _calibrate_hoeffding, "plan": _plan, "plan large": _plan_large,
    "Fraction": _fraction, "calibrate_splits": _splits, "calibrate_all": _calibrate_all,
    "coverage": _coverage, "Calibration.coverage": _coverage_of_calibration,
    "function_scores": _function_scores, "weighted_scores": _weighted_scores, "ratios": _ratios,
    "frontier": _frontier, "tightest": _tightest, "agreement": _agreement, "stream": _stream,
    "Calibration.from_json": _from_json, "split_functions": _split, "Split": _split_record,
    "as_samples": _as_samples, "sample dict": _sample_dicts, "GridSample": _grid_sample,
    "Band": _band, "Band of a surface": _surface_band, "Band.contains": _band_contains,
    "settings darcy": lambda: _settings("darcy"), "settings cars": lambda: _settings("cars"),
    "Surface": _surface, "UQNO": _uqno, "UQNO.fit": _fit, "UQNO.calibrate": _model_calibrate,
    "UQNO.calibrate sample": _model_samples, "UQNO.predict": _predict,
    "UQNO.predict sample": _predict_sample, "data.open": _open, "UQNO.load": _load,
}  # fmt: skip


def prepare() -> None:
    """Import what the cases need, before memory is counted; without abuse every call is lawful."""
    for name, make in TARGETS.items():
        function, arguments = make()
        if name not in ("data.open", "UQNO.load"):
            function(**arguments)
