"""The explorer of a run on cars: real bodies, an analytic pressure, simulated errors and radii."""

from functools import cache

import numpy as np

from tests.experiments.simulated import CURVES, DELTA, profiles
from uqno.experiments import cars, measuring
from uqno.experiments.explorer import FORMAT, VERSION, Explorer, Scored, Shown, View
from uqno.experiments.exploring import alpha_stops, chosen, delta_stops, ranks_of
from uqno.experiments.methods import METHODS as RECORDS
from uqno.experiments.packing import Shelf, packed

VERTICES = 3586
CALIBRATION, HELD = 60, 100
METHODS = ("uqno", "mc-dropout", "constant")


@cache
def body(held):
    return cars.surface(cars.draw(0, held))


def difficulty(points):
    """How large errors are: large at the nose and around the windscreen and the tail."""
    x, _, z = points.T / np.ptp(points[:, 0])
    return 5 + 40 * np.exp(-((x / 0.08) ** 2)) + 25 * np.exp(-(((x - 0.85) / 0.1) ** 2)) + 60 * z**2


def truth(held):
    """Pascal: full at the nose, suction where the surface turns along the flow."""
    x, y, z = body(held).normals.T
    return 245 * np.where(x < 0, 1 - 2 * (y**2 + z**2), -0.35 - 0.65 * (y**2 + z**2))


@cache
def fields(method):
    """Signed error and uncertainty of a method, (HELD, VERTICES) each."""
    rng = np.random.default_rng([3, METHODS.index(method)])
    size = np.stack([difficulty(body(i % 8).points) for i in range(HELD)])  # eight bodies suffice
    size *= np.exp(0.3 * rng.normal(size=(HELD, 1)))
    error = 0.5 * size * rng.normal(size=(HELD, VERTICES))
    guess = {"uqno": size, "mc-dropout": 3 * np.sqrt(size), "constant": np.full_like(size, 20.0)}
    return error, guess[method]


def simulated_profile(method):
    ranks = measuring.ranks_needed(VERTICES, CALIBRATION, [(a, DELTA) for a in CURVES])
    return profiles(*fields(method), ranks)


@cache
def cars_explorer(shown=5, methods=METHODS) -> Explorer:
    """As a run would write it; shared by the tests, so never changed."""
    held = {name: simulated_profile(name) for name in methods}
    lead = held[methods[0]]
    alphas = alpha_stops((0.1, *CURVES))
    ranks, exact = ranks_of(VERTICES, lead.ranks, alphas)
    deltas, delta = delta_stops(DELTA)
    scores = lead.scores(ranks[alphas.index(0.1)])
    scale = float(np.sort(scores[:CALIBRATION])[-1])
    test = slice(CALIBRATION, None)
    picks = chosen(lead.coverage(scale)[test, 0], scores[test], shown)
    shelf = Shelf()
    return Explorer(
        format=FORMAT,
        format_version=VERSION,
        task="cars",
        domain={"kind": "surface", "nodes": [VERTICES], "unit": "Pa"},
        points=VERTICES,
        rungs=lead.ranks.tolist(),
        alphas=alphas,
        ranks=ranks,
        exact=exact,
        deltas=deltas,
        alpha=0.1,
        delta=delta,
        calibration=CALIBRATION,
        test=HELD - CALIBRATION,
        methods=[
            Scored(
                method=name,
                label=RECORDS[name].label,
                scores=packed(np.stack([one.scores(k) for k in ranks], axis=1)),
                mean_uncertainty=packed(one.mean_uncertainty),
            )
            for name, one in held.items()
        ],
        functions=[shown_car(CALIBRATION + i, place, held, shelf) for i, place in picks],
        fields=shelf.fields,
    )


def shown_car(held, place, methods, shelf):
    def view(name, one):
        error, uncertainty = (f[held] for f in fields(name))
        return View(
            residual=shelf.put(error),
            uncertainty=shelf.put(uncertainty),
            magnitude=None,
            ratios=packed(one.ratios[held]),
        )

    return Shown(
        held=held,
        place=place,
        input=None,
        truth=shelf.put(truth(held)),
        points=shelf.put(body(held).points),
        triangles=shelf.put(body(held).triangles, "index16"),
        views={name: view(name, one) for name, one in methods.items()},
    )
