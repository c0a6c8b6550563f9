"""A network is registered by being defined, and built again from the arguments it recorded."""

import copy
import json

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.uncertainty import problems
from uqno import UQNO
from uqno.operators import FNO, GINO, OPERATORS, NeuralOperator, Operator


class Bent(NeuralOperator):
    """Pointwise, on a grid of its own: the interval [0, 2] by the square of what is equal."""

    def __init__(self, in_channels: int, out_channels: int, sizes=(8,), dropout: float = 0.0):
        super().__init__()
        self.hidden = nn.Linear(in_channels, sizes[0])
        self.last = nn.Linear(sizes[0], out_channels)
        self.dropout = nn.Dropout(dropout)

    def axes(self, shape):
        return tuple(2 * np.linspace(0, 1, n) ** 2 for n in shape)

    def forward(self, a: Tensor) -> Tensor:
        hidden = self.dropout(torch.tanh(self.hidden(a.movedim(1, -1))))
        return self.last(hidden).movedim(-1, 1)


class Renamed(FNO):
    """Inherits its constructor."""


def test_registered_by_being_defined() -> None:
    assert {"FNO", "GINO", "Bent", "Renamed"} <= OPERATORS.keys()
    assert OPERATORS["FNO"] is FNO
    with pytest.raises(ValueError, match=r"'FNO' is the name of uqno.operators.fno.FNO, so tests"):
        type("FNO", (NeuralOperator,), {"__module__": "tests"})
    assert OPERATORS["FNO"] is FNO
    again = type("Bent", (NeuralOperator,), {"__module__": Bent.__module__})
    assert OPERATORS["Bent"] is again  # the same qualified name: defined anew
    OPERATORS["Bent"] = Bent


@pytest.mark.parametrize(
    ("network", "config"),
    [
        (Bent(1, 2), {"in_channels": 1, "out_channels": 2, "sizes": [8], "dropout": 0.0}),
        (
            Bent(np.int64(1), out_channels=2, sizes=np.array([3, 4])),
            {"in_channels": 1, "out_channels": 2, "sizes": [3, 4], "dropout": 0.0},
        ),
    ],
)
def test_arguments_are_recorded_as_json(network: NeuralOperator, config: dict[str, object]) -> None:
    assert network.config == config
    assert json.loads(json.dumps(network.config)) == config
    assert copy.deepcopy(network).config == config
    assert type(network)(**network.config).config == config


@pytest.mark.parametrize(
    "network",
    [
        FNO(1, 2, (4, 4), 8, 2, domain=[(0, 2), (0, 1)], dropout=0.1),
        GINO(1, latent=(6, 6, 6), modes=(4, 4, 4), width=4, features=2, neighbours=(4, 3)),
        Renamed(2, 1, modes=(4,), width=4),
    ],
)
def test_built_again_from_its_config(network: NeuralOperator) -> None:
    config = json.loads(json.dumps(network.config))
    again = OPERATORS[type(network).__name__](**config)
    assert type(again) is type(network)
    again.load_state_dict(network.state_dict())
    assert again.config == config
    assert again.latent == network.latent
    other = network.like(3, 5)
    assert type(other) is type(network)
    assert other.config["dropout"] == 0
    assert other.config["out_channels"] == 5
    assert other.config["features" if "features" in config else "in_channels"] == 3


def test_what_cannot_be_recorded_is_refused() -> None:
    class Odd(NeuralOperator):
        def __init__(self, activation: object = None, *sizes: int, **more: int) -> None:
            super().__init__()

    assert Odd(width=3).config == {"activation": None, "width": 3}
    with pytest.raises(TypeError, match="argument activation of Odd is a GELU, which JSON"):
        Odd(nn.GELU())
    with pytest.raises(TypeError, match=r"Odd\(\*sizes\) has arguments without a name"):
        Odd(None, 1, 2)
    with pytest.raises(ValueError, match=r"no in_channels and out_channels.*its method like"):
        Odd().like(1, 1)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Bent(1)  # type: ignore[call-arg]


def test_a_network_of_the_users_is_trained_saved_and_the_default_uncertainty(tmp_path) -> None:
    torch.manual_seed(0)
    model = UQNO(Bent(1, 1, dropout=0.1), members=2)
    model.fit(problems.functions(8), **problems.QUICK)
    network = model.uncertainty.operator.module
    assert type(network) is Bent
    assert network.config == {"in_channels": 2 + 1, "out_channels": 1, "sizes": [8], "dropout": 0}
    model.calibrate(problems.functions(20, seed=1), 0.2, 0.2)
    a = problems.functions(1, seed=2)[0]["a"]
    band = model.predict(a)
    np.testing.assert_array_equal(band.coordinates[0], Bent(1, 1).axes((9,))[0])
    model.save(tmp_path / "model")
    again = UQNO.load(tmp_path / "model").predict(a)
    np.testing.assert_array_equal(again.center, band.center)
    np.testing.assert_array_equal(again.uncertainty, band.uncertainty)
    with pytest.raises(ValueError, match=r"Bent answers on the grid of a only"):
        model.predict(a, at=5)
    del OPERATORS["Bent"]
    try:
        with pytest.raises(ValueError, match=rf"is a Bent, not .* import {Bent.__module__} first"):
            UQNO.load(tmp_path / "model")
    finally:
        OPERATORS["Bent"] = Bent


def test_other_modules_have_the_defaults() -> None:
    foreign = Operator(nn.Linear(3, 3))
    sample = {"a": torch.rand(1, 3)}
    assert foreign.prepare(sample) == sample
    assert foreign.latent is None
    assert not foreign.takes_queries
    assert not foreign.is_registered
    np.testing.assert_array_equal(foreign.axes((3, 2))[0], [0, 0.5, 1])
    assert isinstance(foreign.network_like(4, 1, (17, 17)), FNO)
    with pytest.raises(ValueError, match="no network is known for Linear on geometries"):
        foreign.network_like(4, 1, None)
    with pytest.raises(ValueError, match=r"not a uqno.operators.NeuralOperator.*: do this"):
        foreign.another("do this")
    with pytest.raises(ValueError, match=r"Linear is not one of .*FNO, GINO.*pass an instance"):
        Operator.rebuilt(foreign.describe())
    assert Operator.rebuilt(foreign.describe(), nn.Linear(3, 3))(foreign.batch([sample])).ndim == 3
    assert Operator(FNO(1, 1)).takes_queries
    assert Operator(lambda x, at: x, fields={"x": "a", "at": "queries"}).takes_queries


def test_whose_answer_at_a_point_depends_on_the_other_points() -> None:
    """A network says so itself; of others those do that take the points of a geometry."""
    assert Operator(problems.gino()).answers_depend_on_points
    assert not Operator(FNO(1, 1)).answers_depend_on_points
    assert not Operator(nn.Linear(3, 3)).answers_depend_on_points
    assert Operator(lambda points, normals: points).answers_depend_on_points
    assert Operator(lambda x: x, fields={"x": "points"}).answers_depend_on_points
    assert not Operator(lambda points: points, fields={"points": "a"}).answers_depend_on_points
    point_by_point = nn.Identity()
    point_by_point.answers_depend_on_points = False  # type: ignore[assignment]
    assert not Operator(point_by_point, fields={"input": "points"}).answers_depend_on_points


def test_answers_at_queries_do_not_depend_on_each_other() -> None:
    """Which is why queries may be random points that a promise is about; the points may not."""
    operator = Operator(problems.gino(dropout=0.0))
    (body,) = problems.bodies(operator.module, 1)
    bare = {name: body[name] for name in ("points", "normals")}
    queries = body["points"] * 0.9
    with torch.no_grad():
        every = operator(operator.batch([{**bare, "queries": queries}]))
        some = operator(operator.batch([{**bare, "queries": queries[5:12]}]))
        torch.testing.assert_close(every[..., 5:12], some, rtol=1e-5, atol=1e-6)
        whole = operator(operator.batch([bare]))
        part = operator(operator.batch([{name: x[5:] for name, x in bare.items()}]))
    assert not torch.allclose(whole[..., 5:], part, rtol=1e-3)


def test_a_batch_is_prepared_where_it_is_not() -> None:
    gino = problems.gino()
    operator = Operator(gino)
    (body,) = problems.bodies(gino, 1)
    bare = {name: body[name] for name in ("points", "normals", "weights", "u")}
    one, other = operator.batch([bare]), operator.batch([body])
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    # At queries that were added later, other nodes are near.
    later = operator.batch([{**body, "queries": body["points"][:4], "weights": torch.ones(4)}])
    assert later["query_neighbours"].shape[1] == 4
    coarse = GINO(1, latent=(5, 5, 5), modes=(2, 2, 2), width=2, layers=1)
    with pytest.raises(ValueError, match=r"prepared for a grid of 216 nodes.*is \(5, 5, 5\)"):
        coarse.prepare(body)
