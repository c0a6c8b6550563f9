"""All of a model follows its base to another device; tested on `meta`, which needs no hardware.

Geometry is prepared on the CPU. Then every operator and every estimator runs forward on torch's
meta device, while each operation whose tensors lie on two devices is refused.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.uncertainty import problems
from uqno import UQNO
from uqno.operators import FNO, GINO, Operator, reflection, square, translations
from uqno.uncertainty import (
    ESTIMATORS,
    Base,
    Components,
    Conformal,
    Constant,
    Disagreement,
    Dropout,
    Ensemble,
    Laplace,
    MeanField,
    Offset,
    PerturbedPair,
    Quantile,
    Uncertainty,
)

MAKE: dict[str, Callable[[], Uncertainty]] = {
    "conformal": lambda: Conformal((0.2,)),
    "constant": Constant,
    "laplace": Laplace,
    "ensemble": lambda: Ensemble(members=2),
    "mc-dropout": lambda: Dropout(passes=3),
    "mean-field": MeanField,
    "nppc": lambda: Components(components=2),
    "offset": lambda: Offset(Ensemble(members=2)),
    "perturbed-pair": PerturbedPair,
    "quantile": Quantile,
}
# What sees Ĝ(a) as features of the points of a surface has no value elsewhere.
ON_POINTS = {"conformal", "mean-field", "nppc", "quantile"}


class OneDevice(TorchDispatchMode):
    """Refuses operations between devices; numbers in zero-dimensional tensors may lie anywhere."""

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        tensors = [x for x in tree_leaves((arguments, named or {})) if isinstance(x, Tensor)]
        devices = {x.device.type for x in tensors if x.ndim}
        if len(devices) > 1 and function is not torch.ops.aten.copy_.default:
            raise AssertionError(f"{function} with tensors on {sorted(devices)}")
        return function(*arguments, **(named or {}))


def test_the_mode_refuses_what_it_should() -> None:
    here, there = torch.ones(3), torch.ones(3, device="meta")
    with OneDevice():
        assert (there * torch.tensor(2.0)).device.type == "meta"
        assert here.to(there).device.type == "meta"
        with pytest.raises(AssertionError, match=r"index.*\['cpu', 'meta'\]"):
            here[there.long()]


def on_meta(base: Base, samples: list[dict[str, Tensor]], **more: Tensor) -> dict[str, Tensor]:
    """The base moved to meta, and a batch that was prepared on the CPU and followed it."""
    base.operator.to("meta")
    base.ready()
    batch = base.batch([{n: f for n, f in s.items() if n != "u"} for s in samples])
    batch |= {name: field.to("meta") for name, field in more.items()}
    assert {field.device.type for field in batch.values()} == {"meta"}
    return batch


def check_on_meta(
    uncertainty: Uncertainty, base: Base, batch: dict[str, Tensor], points: tuple[int, ...]
) -> None:
    uncertainty.to("meta").eval()
    with torch.no_grad(), OneDevice():
        prediction = uncertainty.predict(base, batch)
    assert prediction.center.device.type == prediction.uncertainty.device.type == "meta"
    assert prediction.uncertainty.shape == points
    assert prediction.center.shape == (points[0], prediction.center.shape[1], *points[1:])


@pytest.mark.parametrize("features", [False, True])
def test_operators(features: bool) -> None:
    fno, gino = problems.fno(channel_mlp=0.5), problems.gino()
    queries = torch.rand(5, 2)
    cases: list[tuple[nn.Module, Any, dict[str, Tensor], tuple[int, ...]]] = [
        (fno, problems.functions(2), {}, (9, 9)),
        (fno, problems.functions(2), {"queries": queries}, (5,)),
        (fno, problems.functions(2), {"queries": queries, "a_queries": torch.rand(2, 1, 5)}, (5,)),
        (gino, problems.bodies(gino, 2), {}, (31,)),
        (gino, with_queries(gino, problems.bodies(gino, 2)), {}, (7,)),
    ]
    for module, samples, more, points in cases:
        operator = Operator(module)
        batch = on_meta(Base(operator), samples, **more)
        with OneDevice():
            answer = operator.features(batch) if features else operator(batch)
        assert answer.device.type == "meta"
        assert (answer.shape[0], *answer.shape[2:]) == (2, *points)
        with torch.no_grad(), OneDevice():
            assert operator(batch).shape == (2, 1, *points)
        module.to_empty(device="cpu")


def with_queries(gino: GINO, bodies: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
    added = []
    for body in bodies:
        surface = {n: body[n] for n in ("points", "normals")}
        queries = {"queries": 0.9 * body["points"][:7], "surface_weights": body["weights"]}
        added.append(gino.prepare({**surface, **queries, "weights": torch.ones(7)}))
    return added


@pytest.fixture(scope="module")
def on_grids() -> tuple[Any, Any]:
    torch.set_num_threads(1)
    base = problems.trained(problems.fno(channels=2), problems.functions(6, channels=2), square())
    return base, problems.residuals(base, problems.functions(6, channels=2, seed=1))


@pytest.fixture(scope="module")
def on_bodies() -> tuple[Any, Any]:
    torch.set_num_threads(1)
    gino = problems.gino()
    symmetries = (*translations(gino.latent, 0, (0, 0.5)), reflection(gino.latent)[1])
    base = problems.trained(gino, problems.bodies(gino, 6, points=30), symmetries)
    return base, problems.residuals(base, problems.bodies(gino, 6, seed=1, points=30))


@pytest.fixture
def moved(request: pytest.FixtureRequest) -> tuple[Base, Any]:
    """A copy of the base to be moved."""
    base, residuals = request.getfixturevalue(request.param)
    return copy.deepcopy(base), residuals


def test_every_estimator_is_tested() -> None:
    own = {name for name, kind in ESTIMATORS.items() if kind.__module__.startswith("uqno.")}
    assert set(MAKE) == own


@pytest.mark.parametrize("moved", ["on_grids"], indirect=True)
@pytest.mark.parametrize("name", MAKE)
def test_estimators_on_grids(name: str, moved: tuple[Base, Any]) -> None:
    base, residuals = moved
    uncertainty = MAKE[name]()
    uncertainty.fit(base, residuals, problems.OPTIONS)
    samples = problems.functions(2, channels=2, seed=2)
    check_on_meta(uncertainty, base, on_meta(base, samples), (2, 9, 9))
    finer = problems.functions(2, 13, channels=2, seed=2)
    check_on_meta(uncertainty, base, on_meta(base, finer), (2, 13, 13))
    for queries in (torch.rand(5, 2), torch.rand(2, 5, 2)):
        check_on_meta(uncertainty, base, on_meta(base, samples, queries=queries), (2, 5))


@pytest.mark.parametrize("moved", ["on_bodies"], indirect=True)
@pytest.mark.parametrize("name", MAKE)
def test_estimators_on_geometries(name: str, moved: tuple[Base, Any]) -> None:
    base, residuals = moved
    gino: Any = base.operator.module
    uncertainty = MAKE[name]()
    uncertainty.fit(base, residuals, problems.OPTIONS)
    bodies = problems.bodies(gino, 2, seed=2, points=30 if name == "mean-field" else None)
    size = max(len(body["points"]) for body in bodies)
    check_on_meta(uncertainty, base, on_meta(base, bodies), (2, size))
    if name not in ON_POINTS:
        queries = with_queries(gino, bodies)
        check_on_meta(uncertainty, base, on_meta(base, queries), (2, 7))


def test_a_model_follows_its_base() -> None:
    """Operators beside the first, features that are modules, and the uncertainty's network."""
    made = [Operator(problems.fno(dropout=0.0)) for _ in range(3)]
    base = problems.trained(problems.fno(dropout=0.0), problems.functions(6))
    model = UQNO(base.operator, Quantile(), symmetries=square(), features=[Disagreement(made[0])])
    model.fit(problems.functions(6, seed=1), **problems.QUICK)
    model.base = Base(model.base.operator, square(), model.base.features, others=(made[1],))
    model.uncertainty = Constant()  # the members add no features that its network was trained on
    model.uncertainty.fit(
        model.base, problems.residuals(base, problems.functions(6, seed=1)), problems.OPTIONS
    )
    model.base.operator.to("meta")
    prediction = model.uncalibrated({"a": torch.rand(1, 9, 9)})
    assert prediction.uncertainty.device.type == "meta"
    for module in (*model.base.operators, *made[:2], model.uncertainty):
        assert {x.device.type for x in module.state_dict().values()} == {"meta"}


def test_networks_of_an_uncertainty_end_where_the_base_is() -> None:
    base = problems.trained(FNO(1, 1, modes=(4, 4), width=4, layers=1), problems.functions(6))
    residuals = problems.residuals(base, problems.functions(6, seed=1))
    base.operator.to("meta")
    for uncertainty in (Quantile(), Components(2)):
        uncertainty.fit(base, residuals, problems.OPTIONS)
        assert {p.device.type for p in uncertainty.parameters()} == {"meta"}
