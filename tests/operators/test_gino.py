import pytest
import torch
from torch import Tensor

from uqno.operators import GINO, Operator, gino, neighbours, pointwise
from uqno.operators.latent import MOVED
from uqno.operators.padding import unpad, unpadded
from uqno.operators.symmetry import by_name, translations

DOMAIN = ((-1.0, 1.0), (-0.5, 0.5), (-0.5, 0.5))


def make(**options: object) -> GINO:
    torch.manual_seed(0)
    sizes = {"latent": (9, 7, 6), "modes": (4, 4, 2), "width": 8, "layers": 2}
    return GINO(1, DOMAIN, **{**sizes, **options})  # type: ignore[arg-type]


def ellipsoid(n: int, seed: int = 0) -> dict[str, Tensor]:
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))
    x = x / x.norm(dim=1, keepdim=True)
    points = x * torch.tensor([0.9, 0.4, 0.4])
    normals = x / torch.tensor([0.9, 0.4, 0.4])
    normals = normals / normals.norm(dim=1, keepdim=True)
    weights = 0.5 + torch.rand(n, generator=torch.Generator().manual_seed(seed))
    return {"points": points, "normals": normals, "weights": weights, "u": x[:, :1].T}


def test_neighbours_equal_brute_force() -> None:
    points, queries = torch.rand(40, 3), torch.rand(30, 3)
    index = neighbours.nearest(points, queries, 5)
    where = torch.cdist(queries, points).topk(5, largest=False).indices
    assert torch.equal(index.long(), where)


def test_signed_distance_of_a_sphere() -> None:
    x = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0))
    x = x / x.norm(dim=1, keepdim=True)
    nodes = torch.rand(200, 3, generator=torch.Generator().manual_seed(1)) * 4 - 2
    near = neighbours.nearest(x, nodes, 2)
    distance = neighbours.distance_to_points(x, x, nodes, near)
    foot = nodes / nodes.norm(dim=1, keepdim=True)
    gap = torch.cdist(foot, x).min(dim=1).values  # vertices stand for the surface up to this
    assert ((distance - (nodes.norm(dim=1) - 1)).abs() <= gap + 1e-5).all()
    assert gap.max() < 0.1


def test_equals_a_dense_reference() -> None:
    """The two graph layers written as sums over explicit edges, one node at a time."""
    model = make(features=2).double()
    sample = {k: v.double() for k, v in ellipsoid(50).items()}
    sample["features"] = torch.randn(50, 2).double()
    sample = model.prepare(sample)
    answer = model(**_batched(model, sample))
    carried = torch.cat((sample["normals"], sample["features"]), 1)
    mesh, k = model.mesh, model.latent.neighbours
    encoded = []
    for y in mesh:
        near = (sample["points"] - y).norm(dim=1).topk(k[0], largest=False).indices
        share = sample["weights"][near] / sample["weights"][near].sum()
        offset = (sample["points"][near] - y) / model.size
        edge = torch.cat((offset, offset.norm(dim=1, keepdim=True), carried[near]), 1)
        encoded.append(share @ model.encoder(edge))
    v = model._on_grid(torch.stack(encoded).unsqueeze(0), sample["sdf"].unsqueeze(0))[0]
    values = []
    for x, c in zip(sample["points"], carried, strict=True):
        near = ((x - mesh) / model.spacing).norm(dim=1).topk(k[1], largest=False).indices
        offset = (x - mesh[near]) / model.spacing
        edge = torch.cat((offset, offset.norm(dim=1, keepdim=True), c.expand(k[1], -1)), 1)
        decoded = (model.decoder(edge) * v[near]).mean(0)
        values.append(model.projection(torch.cat((decoded, c))))
    assert torch.allclose(answer[0], torch.stack(values).T, atol=1e-10)


def _batched(model: GINO, *samples: dict[str, Tensor]) -> dict[str, Tensor]:
    batch = model.collate(samples)
    return {k: v for k, v in batch.items() if k in Operator(model).names}


def test_padding_changes_nothing() -> None:
    model = make()
    operator = Operator(model)
    small, large = (model.prepare(ellipsoid(n, seed=n)) for n in (40, 60))
    batch = operator.collate([small, large])
    assert batch["points"].shape == (2, 60, 3)
    assert batch["u"].shape == (2, 1, 60)
    assert not batch["weights"][0, 40:].any()
    both = operator(batch)
    assert torch.allclose(both[:1, :, :40], operator(operator.collate([small])), atol=1e-6)
    assert torch.allclose(both[1:], operator(operator.collate([large])), atol=1e-6)


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make().double()
    sample = {k: v.double() for k, v in ellipsoid(100).items()}
    fields = _batched(model, model.prepare(sample))
    g = torch.randn(1, 1, 100).double()
    whole = model(**fields)
    expected = torch.autograd.grad(whole, list(model.parameters()), g)
    monkeypatch.setattr(gino, "EDGES", 64)
    pieces = model(**fields)
    assert torch.allclose(pieces, whole)
    for x, y in zip(
        torch.autograd.grad(pieces, list(model.parameters()), g), expected, strict=True
    ):
        assert torch.allclose(x, y)
    with torch.no_grad():
        assert torch.allclose(model(**fields), whole)
    monkeypatch.setitem(pointwise.PIECE, "cpu", 256)  # numbers, so a few edges
    small = torch.autograd.grad(model(**fields), list(model.parameters()), g)
    model.fused = False
    plain = model(**fields)
    assert torch.allclose(plain, whole)
    by_torch = torch.autograd.grad(plain, list(model.parameters()), g)
    for x, y, z in zip(small, by_torch, expected, strict=True):
        assert torch.allclose(x, y)
        assert torch.allclose(z, y)


def test_the_mean_before_the_last_layer_has_the_gradients_of_torch() -> None:
    layers = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)
    ).double()
    x = torch.randn(2, 6, 4, 5).double().requires_grad_()
    shares = torch.rand(2, 6, 4).double()
    shares = shares / shares.sum(-1, keepdim=True)
    ours = pointwise.mean_mlp(x, shares, layers)
    theirs = (shares.unsqueeze(-1) * layers(x)).sum(-2)
    assert torch.allclose(ours, theirs)
    assert torch.allclose(ours, pointwise.mean_mlp(x, shares, layers, fused=False))
    g = torch.randn(2, 6, 3).double()
    inputs = [x, *layers.parameters()]
    for a, b in zip(
        torch.autograd.grad(ours, inputs, g), torch.autograd.grad(theirs, inputs, g), strict=True
    ):
        assert torch.allclose(a, b)


def test_any_queries() -> None:
    model = make()
    sample = ellipsoid(80)
    surface = model(**_batched(model, model.prepare(sample)))
    some = {
        **sample,
        "surface_weights": sample["weights"],
        "queries": sample["points"][:10],
        "weights": torch.ones(10),
    }
    answer = model(**_batched(model, model.prepare(some)))
    assert torch.allclose(answer, surface[..., :10], atol=1e-6)
    free = {**some, "queries": torch.rand(17, 3) - 0.5, "weights": torch.ones(17)}
    assert model(**_batched(model, model.prepare(free))).shape == (1, 1, 17)


def test_reflection_equals_preparing_the_mirror_image() -> None:
    model = make()
    sample = ellipsoid(70)
    mirrored = {k: v.clone() for k, v in sample.items()}
    for field in ("points", "normals"):
        mirrored[field][:, 1] *= -1
    ours = model.latent.reflect(model.prepare(sample))
    theirs = model.prepare(mirrored)
    assert ours.keys() == theirs.keys()
    assert torch.allclose(ours["sdf"], theirs["sdf"], atol=1e-6)
    answer = model(**_batched(model, ours))
    assert torch.allclose(answer, model(**_batched(model, theirs)), atol=1e-5)
    twice = model.latent.reflect(ours)
    assert torch.equal(twice["query_neighbours"], model.prepare(sample)["query_neighbours"])


def moved_by_hand(sample: dict[str, Tensor], way: float) -> dict[str, Tensor]:
    return {
        name: field + torch.tensor([way, 0.0, 0.0]) if name in ("points", "queries") else field
        for name, field in sample.items()
    }


def test_translation_equals_preparing_what_was_moved() -> None:
    model = make()
    sample = {k: v * 0.7 if k == "points" else v for k, v in ellipsoid(70).items()}
    sample["queries"] = sample["points"][:20] * 1.1
    prepared = model.prepare(sample)
    ours = model.latent.translate(prepared, 1.25)
    theirs = model.prepare(moved_by_hand(sample, 1.25 * 2 / 8))  # 9 nodes in [-1, 1]
    assert ours.keys() == theirs.keys()
    for name, field in theirs.items():
        assert torch.equal(ours[name], field), name
    assert not torch.equal(ours["grid_neighbours"], prepared["grid_neighbours"])
    back = model.latent.translate(ours, -1.25)
    assert torch.allclose(back["points"], prepared["points"], atol=1e-6)
    assert torch.equal(back["grid_neighbours"], prepared["grid_neighbours"])


def test_neighbours_of_moved_geometries_are_found_once_and_live_as_long() -> None:
    model, finer = make(), make(latent=(11, 5, 5))
    before = len(MOVED)
    prepared = model.prepare(ellipsoid(70))
    first, again = (model.latent.translate(prepared, 0.5) for _ in range(2))
    assert first["query_neighbours"] is again["query_neighbours"]
    assert len(MOVED) == before + 1
    # Of another place, another axis, another grid and another precision there are others.
    for other in (
        model.latent.translate(prepared, 0.25),
        model.latent.translate(prepared, 0.5, axis=1),
    ):
        assert not torch.equal(other["grid_shares"], first["grid_shares"])
    assert len(finer.latent.translate(prepared, 0.5)["grid_neighbours"]) == 11 * 5 * 5
    exact = {k: v.double() if v.is_floating_point() else v for k, v in prepared.items()}
    moved = model.latent.translate(exact, 0.5)
    assert {moved[name].dtype for name in ("sdf", "grid_shares")} == {torch.float64}
    del prepared, exact
    assert len(MOVED) == before


def test_a_geometry_may_be_moved_out_of_its_domain() -> None:
    model = make()
    prepared = model.prepare(ellipsoid(70))  # it reaches from -0.9 to 0.9 of -1 to 1
    moved = model.latent.translate(prepared, 1.25)
    assert moved["points"][:, 0].max() > 1
    assert model(**_batched(model, moved)).isfinite().all()


@pytest.mark.parametrize("with_queries", [False, True])
def test_translations_of_a_padded_batch_are_those_of_each(with_queries: bool) -> None:
    model = make()
    samples = [ellipsoid(n, seed=n) for n in (70, 45)]
    for sample in samples:
        if with_queries:
            sample["queries"] = sample["points"][: len(sample["points"]) // 2] * 0.9
            sample["surface_weights"] = sample["weights"]
            sample["weights"] = sample["weights"][: len(sample["queries"])]
            sample["u"] = sample["u"][:, : len(sample["queries"])]
    prepared = [model.prepare(sample) for sample in samples]
    batch = model.collate(prepared)
    for g in translations(model.latent):
        together = g.apply(batch)
        assert together.keys() == batch.keys()
        for sample, moved in zip(prepared, unpad(together), strict=True):
            alone = g.apply(sample)
            assert moved.keys() == alone.keys()
            for name, field in moved.items():
                assert torch.equal(field, alone[name]), (g.name, name)
    assert torch.equal(translations(model.latent)[0].apply(batch)["points"], batch["points"])


@pytest.mark.parametrize("with_queries", [False, True])
def test_what_translations_prepare_is_what_they_would_look_for(with_queries: bool) -> None:
    operator = Operator(make())
    samples = [operator.prepare(ellipsoid(n, seed=n)) for n in (70, 45)]
    if with_queries:
        samples = [{**s, "queries": s["points"] * 0.9} for s in samples]
    symmetries = translations(operator.latent)
    plain, carrying = operator.batch(samples), operator.batch(samples, symmetries)
    assert carrying.keys() > plain.keys()
    for g in symmetries[1:]:
        looked_for, carried = g.apply(plain), g.apply(carrying)
        assert looked_for.keys() == carried.keys()
        for one, other in zip(unpad(looked_for), unpad(carried), strict=True):
            assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("sizes", [(30, 45, 30), (20, 20)])
def test_unpad_is_the_inverse_of_pad_whatever_the_values(sizes: tuple[int, ...]) -> None:
    """A point at 0 without a normal, at the end, is a point: nothing is guessed."""
    model = make()
    samples = [ellipsoid(n, seed=n) for n in sizes]
    for sample in samples:
        sample["points"][-1], sample["normals"][-1] = 0.0, 0.0
        sample["queries"] = sample["points"][-5:]
        sample["surface_weights"] = sample["weights"]
        sample["weights"], sample["u"] = sample["weights"][:5], sample["u"][:, :5]
    prepared = [model.prepare(sample) for sample in samples]
    batch = model.collate(prepared)
    assert batch["point_count"].tolist() == list(sizes)
    assert batch["query_count"].tolist() == [5] * len(sizes)
    for sample, again in zip(prepared, unpad(batch), strict=True):
        assert sample.keys() == again.keys()
        assert all(torch.equal(sample[name], again[name]) for name in sample)
    for sample, u in zip(prepared, unpadded(batch["u"], batch), strict=True):
        assert torch.equal(sample["u"], u)
    on_a_grid = torch.rand(3, 1, 4, 4)
    assert torch.equal(torch.stack(unpadded(on_a_grid, {"a": on_a_grid})), on_a_grid)


def test_translations_are_found_by_name() -> None:
    model = make()
    some = translations(model.latent, axis=2, nodes=(0, 0.1, -1e-7))
    assert by_name([g.name for g in some], model.latent) == some
    for value in ("3:1.0", "0:nan", "0:1e999", "0:1.0.0", "0:"):
        with pytest.raises(ValueError, match="not uqno's own"):
            by_name([f"translation-{value}"], model.latent)
    with pytest.raises(ValueError, match="must begin with 0"):
        translations(model.latent, nodes=(0.5,))
    with pytest.raises(ValueError, match="each must be another"):
        translations(model.latent, nodes=(0, 1, 1))
    with pytest.raises(ValueError, match="must be finite"):
        translations(model.latent, nodes=(0, float("nan")))


def test_features_times_last_layer_is_the_answer() -> None:
    operator = Operator(make())
    batch = operator.collate([operator.prepare(ellipsoid(30))])
    features = operator.features(batch)
    answer = operator.module.last(features.movedim(1, -1)).movedim(-1, 1)  # type: ignore[operator,union-attr]
    assert torch.allclose(answer, operator(batch), atol=1e-6)


def test_trains_and_reloads() -> None:
    model = make()
    operator = Operator(model)
    data = [model.prepare(ellipsoid(n, seed=n)) for n in (40, 50)]
    operator.fit_normalisers(data)
    batch = operator.collate(data)
    optimiser = torch.optim.AdamW(operator.parameters(), 1e-2)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        error = (operator(batch) - batch["u"]).square() * batch["weights"].unsqueeze(1)
        error.mean().backward()
        optimiser.step()
        losses.append(float(error.detach().mean()))
    assert losses[-1] < 0.2 * losses[0]
    other = Operator(make())
    other.load_state_dict(operator.state_dict())
    assert torch.equal(other(batch), operator(batch))


def test_autocast_is_close() -> None:
    model = make()
    fields = _batched(model, model.prepare(ellipsoid(60)))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        mixed = model(**fields).float()
    full = model(**fields).detach()
    assert float((mixed - full).norm() / full.norm()) < 0.05


def test_errors_state_value_bound_and_remedy() -> None:
    model = make()
    sample = ellipsoid(20)
    outside = {**sample, "points": sample["points"] * 2}
    with pytest.raises(ValueError, match=r"points reach from .* in dimension 0, outside.*domain="):
        model.prepare(outside)
    with pytest.raises(ValueError, match=r"lack .*grid_neighbours.*prepare\(sample\)"):
        Operator(model).collate([sample])
    prepared = model.prepare(sample)
    with pytest.raises(ValueError, match=r"0 features a point.*and 2; make the operator"):
        model(**_batched(model, {**prepared, "features": torch.zeros(20, 2)}))
    other = model.prepare(ellipsoid(25))
    unweighted = [{k: v for k, v in s.items() if k != "weights"} for s in (prepared, other)]
    with pytest.raises(ValueError, match=r"\[20, 25\] points need the field 'weights'"):
        model.collate(unweighted)
    with pytest.raises(ValueError, match=r"'sdf' is \(9, 7, 6\) in sample 0 and \(5, 5, 5\)"):
        model.collate([prepared, {**prepared, "sdf": torch.zeros(5, 5, 5)}])
    with pytest.raises(ValueError, match="not symmetric"):
        GINO(1, ((0.0, 1.0),) * 3, latent=(9, 9, 9), modes=(4, 4, 4)).latent.reflect(prepared)
    with pytest.raises(ValueError, match="5 points in dimension 2"):
        make(latent=(9, 7, 5), modes=(4, 4, 6))
