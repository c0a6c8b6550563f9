"""Errors and uncertainties of nine methods on simulated functions, and a record made of them."""

from functools import cache

import numpy as np

from uqno.conformal.profile import Profile, concatenate, profile, profile_ranks
from uqno.experiments import measuring, results, rows
from uqno.experiments.conclusions import looks
from uqno.experiments.darcy.paper import PAPER
from uqno.experiments.methods import METHODS as RECORDS

ALPHAS = (0.1, 0.02)
CURVES = (0.02, 0.05, 0.1, 0.2)
DELTA, CALIBRATION, HELD = 0.02, 120, 220
SIDE = 22
RMS = 0.01
# How well the uncertainty knows the error (within and between functions), its size, and its bias.
METHODS = {
    "uqno": (0.9, 0.9, 1.0, 1.0),
    "uqno-paper": (0.8, 0.6, 2.0, 1.0),
    "mc-dropout": (0.4, 0.4, 2.5, 0.4),
    "laplace": (0.2, 0.2, 2.5, 40.0),
    "nppc": (0.5, 0.3, 2.0, 0.1),
    "ensemble": (0.6, 0.7, 1.5, 0.6),
    "perturbed-pair": (0.3, 0.4, 2.2, 0.8),
    "constant": (0.0, 0.0, 2.0, 1.2),
    "mean-field": (0.5, 0.0, 2.0, 1.1),
}


def smooth(rng, side, count):
    """Random smooth fields of unit variance, (count, side, side)."""
    x = np.linspace(0, 1, side)
    waves = np.cos(np.pi * np.outer(np.arange(5), x))
    weights = rng.normal(size=(count, 5, 5)) / (1 + np.add.outer(np.arange(5), np.arange(5)))
    fields = np.einsum("nij,ix,jy->nxy", weights, waves, waves)
    return fields / fields.std(axis=(1, 2), keepdims=True)


def simulated(method, count=HELD, side=SIDE, seed=0):
    """Error and uncertainty, (count, side, side): lognormal errors, of which E knows some."""
    inside, between, size, bias = METHODS[method]
    rng = np.random.default_rng([seed, len(method)])
    scale = np.exp(0.5 * rng.normal(size=(count, 1, 1)))
    shape = np.exp(0.6 * smooth(rng, side, count))
    guess = np.exp(inside * np.log(shape) + between * np.log(scale))
    error = 1e-4 * size * scale * shape * np.abs(rng.normal(size=(count, side, side)))
    return error, 1.5e-4 * size * bias * guess


def profiles(error, uncertainty, ranks) -> Profile:
    stored = profile_ranks(uncertainty[0].size, ranks)
    return concatenate([profile(e, r, stored) for e, r in zip(error, uncertainty, strict=True)])


@cache
def record(methods=tuple(METHODS)):
    """A whole `results.json`, as a run would write it; shared by the tests, so never changed."""
    levels = [(alpha, DELTA) for alpha in CURVES]
    ranks = measuring.ranks_needed(SIDE**2, CALIBRATION, levels)
    held = {m: profiles(*simulated(m), ranks) for m in methods}
    made = {
        "format": results.FORMAT,
        "format_version": results.VERSION,
        "task": "darcy",
        "title": "Darcy flow on the unit square: from the permeability a to the pressure u.",
        "preset": "test",
        "command": "uqno run darcy --preset test",
        "started": "2025-01-01T00:00:00+00:00",
        "finished": "2025-01-01T00:01:00+00:00",
        "settings": {"seed": 0, "splits": measuring.SPLITS},
        "aids": "symmetries",
        "versions": {"uqno": "0.1.0"},
        "machine": "a test",
        "split": {"train": 400, "calibration": CALIBRATION, "test": HELD - CALIBRATION},
        "points": SIDE**2,
        "unit": None,
        "rms": RMS,
        "domain": {"kind": "grid", "nodes": [SIDE, SIDE], "unit": None},
        "methods": looks((*methods, *(quoted["method"] for quoted in PAPER))),
        "rows": [r for m in methods for r in method_rows(m, held[m])],
        "ablation": [r for alpha in ALPHAS for r in ablation(held, alpha)],
        "curves": [],
        "targets": [],
        "panel": panel(methods),
        "section": section(),
        "paper": list(PAPER),
    }
    for method in [m for m in ("uqno", "uqno-paper") if m in methods]:
        for alpha in CURVES:
            swept = measuring.sweep(
                held[method],
                alpha,
                [0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3],
                calibration=CALIBRATION,
                splits=50,
            )
            made["curves"].append(rows.curve(method, swept))
            made["targets"].append(rows.targets(method, swept))
    return made


def method_rows(method, held):
    for alpha in ALPHAS:
        if not method.startswith("uqno"):
            raw = measuring.raw(held, alpha, DELTA)
            more = {"rms": RMS, "relative_error": 0.01, "train_seconds": 12.0}
            unscaled = rows.row(method, raw, RECORDS[method].label, **more)
            if method == "nppc":
                unscaled |= {"bandwidth": None, "bandwidth_sd": None, "share_of_variance": 0.15}
            yield unscaled
        designs = ("hoeffding", "grid") if method == "uqno-paper" else ("grid",)
        for sampling in designs:
            found = measuring.calibrated(held, alpha, DELTA, sampling, calibration=CALIBRATION)
            seconds = dict(train_seconds=34.5, calibrate_seconds=0.25, predict_seconds=0.01)
            more = {"rms": RMS, "relative_error": 0.01, **seconds}
            yield rows.row(method, found, RECORDS[method].label, **more)


def ablation(held, alpha):
    if not {"uqno", "uqno-paper"} <= set(held):
        return []
    found = {
        name: (
            label,
            m,
            measuring.calibrated(held[m], alpha, DELTA, design, calibration=CALIBRATION),
        )
        for name, label, m, design in [
            ("paper", "the paper's recipe", "uqno-paper", "hoeffding"),
            ("best-t", "… at the best t", "uqno-paper", measuring.BEST_T),
            ("grid", "… with grid ranks", "uqno-paper", "grid"),
            ("iid", "… out-of-fold residuals", "uqno", "iid"),
            ("uqno", "… symmetries and features: ours", "uqno", "grid"),
        ]
    }
    return rows.ablated(found)


def panel(methods, side=43):
    rng = np.random.default_rng(3)
    shape = np.exp(0.6 * smooth(rng, side, 1)[0])
    error = 1e-4 * shape * np.abs(smooth(rng, side, 1)[0])
    shown = []
    for method in methods:
        inside, _, size, bias = METHODS[method]
        uncertainty = 2e-4 * size * np.maximum(bias, 0.5) * shape**inside
        e = error * size
        shown.append(
            {
                "method": method,
                "label": RECORDS[method].label,
                "calibrated": method != "laplace",
                "error": e,
                "radius": uncertainty,
                "coverage": float((e <= uncertainty).mean()),
            }
        )
    field = smooth(rng, side, 2)
    return {
        "alpha": 0.1,
        "delta": DELTA,
        "input": np.where(field[0] > 0, 12.0, 3.0),
        "truth": 0.01 * field[1],
        "prediction": 0.01 * field[1] + error,
        "points": None,
        "triangles": None,
        "methods": shown,
    }


def section():
    x = np.linspace(0, 1, 43)
    center = 0.01 * np.sin(np.pi * x) * (1 + 0.3 * np.sin(7 * x))
    uncertainty = 2e-3 * (0.4 + np.sin(np.pi * x) ** 2 * (1 + 0.5 * np.cos(9 * x)))
    truth = center + uncertainty * 1.1 * np.sin(11 * x + 1) * np.sin(np.pi * x)
    return {
        "x": x,
        "truth": truth,
        "center": center,
        "lower": center - uncertainty,
        "upper": center + uncertainty,
    }
