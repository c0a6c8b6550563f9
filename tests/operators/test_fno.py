import pytest
import torch
from torch import Tensor

from uqno.operators import FNO, pointwise

CASES = [
    {"modes": (6,), "grid": (31,)},
    {"modes": (6, 4), "grid": (21, 17)},
    {"modes": (4, 4, 2), "grid": (7, 9, 6)},
]


def make(modes: tuple[int, ...], **options: object) -> FNO:
    torch.manual_seed(0)
    return FNO(2, 3, modes=modes, width=8, layers=3, **options)  # type: ignore[arg-type]


def mesh(axes: tuple[Tensor, ...]) -> Tensor:
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))


def plain(fno: FNO) -> FNO:
    fno.fused = False
    return fno


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("channel_mlp", [0.0, 0.5])
@pytest.mark.parametrize("piece", [64, 1 << 18])
def test_pieces_change_nothing(
    case: dict[str, tuple[int, ...]],
    channel_mlp: float,
    piece: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(pointwise.PIECE, "cpu", piece)
    fused = make(case["modes"], channel_mlp=channel_mlp).double()
    reference = plain(make(case["modes"], channel_mlp=channel_mlp).double())
    a = torch.randn(3, 2, *case["grid"]).double().requires_grad_()
    g = torch.randn(3, 3, *case["grid"]).double()
    ours, theirs = fused(a), reference(a)
    assert torch.allclose(ours, theirs, atol=1e-13)
    for x, y in zip(
        torch.autograd.grad(ours, [a, *fused.parameters()], g),
        torch.autograd.grad(theirs, [a, *reference.parameters()], g),
        strict=True,
    ):
        assert torch.allclose(x, y, rtol=1e-9, atol=1e-12)
    before = a.detach().clone()
    with torch.no_grad():
        assert torch.allclose(fused(a), theirs, atol=1e-13)
    assert torch.equal(a.detach(), before)


def test_gradients_agree_with_finite_differences() -> None:
    fno = make((4, 4)).double()
    a = torch.randn(1, 2, 6, 5).double().requires_grad_()
    assert torch.autograd.gradcheck(fno, (a,))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("options", [{}, {"periodic": True}, {"channel_mlp": 1.0}])
def test_grid_points_reproduce_the_grid(
    case: dict[str, tuple[int, ...]], options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pointwise.PIECE, "cpu", 5000)
    fno = make(case["modes"], **options)
    a = torch.randn(2, 2, *case["grid"])
    x = mesh(fno.fourier.grid(case["grid"], a))
    expected = fno(a).flatten(2)
    assert torch.allclose(fno(a, queries=x), expected, atol=1e-5)
    assert torch.allclose(fno(a, queries=x, a_queries=a.flatten(2)), expected, atol=1e-5)
    assert torch.allclose(fno(a, queries=x.expand(2, -1, -1)), expected, atol=1e-5)
    with torch.no_grad():
        assert torch.allclose(fno(a, queries=x), expected, atol=1e-5)


@torch.no_grad()
def test_points_are_those_of_a_finer_grid_when_a_is_linear() -> None:
    """a is reproduced by interpolation, and the grid's coefficients converge: so must u."""
    fno = make((6, 6)).double()

    def a(n: int) -> Tensor:
        x = torch.linspace(0, 1, n).double()
        return torch.stack((x.view(-1, 1) + 2 * x, x.view(-1, 1) - x)).unsqueeze(0)

    x = mesh((torch.linspace(0, 1, 13).double(),) * 2)
    fine = fno(a(241))[..., ::20, ::20].flatten(2)
    errors = [float((fno(a(n), queries=x) - fine).abs().max()) for n in (21, 41, 81)]
    assert errors[1] < errors[0] / 3
    assert errors[2] < errors[1] / 3


def test_points_of_each_function_and_their_gradient() -> None:
    fno = make((4, 4)).double()
    a, x = torch.randn(2, 2, 9, 9).double(), torch.rand(2, 5, 2).double()
    both = fno(a, queries=x)
    for i in range(2):
        assert torch.allclose(both[i : i + 1], fno(a[i : i + 1], queries=x[i]))
    x.requires_grad_()
    inside = torch.rand(2, 2, 5).double()
    assert torch.autograd.gradcheck(lambda x: fno(a, queries=x, a_queries=inside), (x,))


def test_any_coordinates() -> None:
    fno = make((6, 6), domain=[(0, 2), (-1, 1)]).double()
    uniform = (torch.linspace(0, 2, 15).double(), torch.linspace(-1, 1, 14).double())
    a = torch.randn(1, 2, 15, 14).double()
    assert torch.allclose(fno(a, coordinates=uniform), fno(a))
    warped = tuple(lo + (x - lo) ** 2 / 2 for lo, x in zip((0, -1), uniform, strict=True))
    answer = fno(a, coordinates=warped)
    assert not torch.allclose(answer, fno(a))
    assert torch.allclose(fno(a, warped, queries=mesh(warped)), answer.flatten(2))


@torch.no_grad()
def test_converges_with_resolution() -> None:
    fno = make((6, 6)).double()

    def u(n: int) -> Tensor:
        x = torch.linspace(0, 1, n).double()
        a = torch.stack((torch.exp(x.view(-1, 1) * x), torch.cos(4 * x).expand(n, n)))
        return fno(a.unsqueeze(0))[..., :: (n - 1) // 20, :: (n - 1) // 20]

    errors = [float((u(n) - u(321)).abs().max()) for n in (21, 41, 81)]
    assert errors[1] < errors[0] / 3.5
    assert errors[2] < errors[1] / 3.5


def test_features_times_last_layer_is_the_answer() -> None:
    fno = make((4, 4))
    a, x = torch.randn(2, 2, 9, 9), torch.rand(7, 2)
    for fields in ({}, {"queries": x}):
        features = fno.features(a, **fields)
        assert torch.allclose(
            fno.last(features.movedim(1, -1)).movedim(-1, 1), fno(a, **fields), atol=1e-6
        )


@pytest.mark.parametrize("queries", [None, torch.rand(6, 2)])
def test_autocast_is_close_and_trains(queries: Tensor | None) -> None:
    fno, a = make((4, 4)), torch.randn(2, 2, 12, 12)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = fno(a, queries=queries)
        mixed.float().square().mean().backward()
    full = fno(a, queries=queries).detach()
    assert mixed.isfinite().all()
    assert float((mixed.detach().float() - full).norm() / full.norm()) < 0.05
    assert all(p.grad is not None and p.grad.isfinite().all() for p in fno.parameters())


def test_dropout_is_random_in_training_mode_alone() -> None:
    fno, a = make((4, 4), dropout=0.3), torch.randn(1, 2, 12, 12)
    with torch.no_grad():
        assert not torch.equal(fno(a), fno(a))
        assert not torch.equal(fno(a, queries=torch.rand(3, 2)), fno(a, queries=torch.rand(3, 2)))
        fno.eval()
        assert torch.equal(fno(a), fno(a))


def test_second_derivatives_without_pieces() -> None:
    fno, a = plain(make((4, 4)).double()), torch.randn(1, 2, 6, 5).double().requires_grad_()
    (g,) = torch.autograd.grad(fno(a).square().sum(), a, create_graph=True)
    g.square().sum().backward()
    assert a.grad is not None
    assert a.grad.isfinite().all()


def test_overfits_one_batch() -> None:
    fno, a = make((6, 6)), torch.randn(4, 2, 16, 16)
    u = torch.cumsum(a[:, :1], -1).expand(-1, 3, -1, -1) / 4
    optimiser = torch.optim.AdamW(fno.parameters(), 1e-2)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = (fno(a) - u).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.2 * losses[0]


def test_errors_state_value_bound_and_remedy() -> None:
    fno = make((12, 12))
    with pytest.raises(ValueError, match=r"10 points in dimension 0.*modes=12 needs at least 13"):
        fno(torch.zeros(1, 2, 10, 20))
    with pytest.raises(ValueError, match=r"expected a \(batch, 2, \*grid\).*got \(1, 1, 20, 20\)"):
        fno(torch.zeros(1, 1, 20, 20))
    a = torch.zeros(2, 2, 20, 20)
    with pytest.raises(ValueError, match=r"from 0 to 1.5 in dimension 1, outside.*domain="):
        fno(a, queries=torch.tensor([[0.0, 0.0], [1.0, 1.5]]))
    with pytest.raises(ValueError, match=r"expected queries \(q, 2\)"):
        fno(a, queries=torch.zeros(4, 3))
    with pytest.raises(ValueError, match="queries of 3 functions for a batch of 2"):
        fno(a, queries=torch.zeros(3, 4, 2))
    with pytest.raises(ValueError, match=r"expected a_queries \(2, 2, 4\)"):
        fno(a, queries=torch.zeros(4, 2), a_queries=torch.zeros(2, 1, 4))
    with pytest.raises(ValueError, match="layers=0"):
        FNO(1, 1, layers=0)


@pytest.mark.parametrize("shape", [(21,), (21, 17), (13, 11, 9)])
def test_tiles_give_the_same_function(shape, monkeypatch):
    torch.manual_seed(0)
    fno = FNO(2, 1, modes=(6,) * len(shape), width=8, channel_mlp=0.5).eval()
    a = torch.randn(2, 2, *shape)
    with torch.no_grad():
        whole, features = fno(a), fno.features(a)
        monkeypatch.setattr("uqno.operators.fno.TILE", 60)
        torch.testing.assert_close(fno(a), whole, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(fno.features(a), features, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("fused", [True, False])
def test_without_places_a_periodic_operator_commutes_with_shifts(fused: bool) -> None:
    torch.manual_seed(0)
    fno = FNO(2, 1, (4, 4), width=6, periodic=True, sees_place=False, fused=fused).double()
    a = torch.randn(2, 2, 9, 8).double()
    u = fno(a)
    assert torch.allclose(fno(a.roll((2, 3), (2, 3))), u.roll((2, 3), (2, 3)), atol=1e-12)
    x = mesh(fno.fourier.grid((9, 8), a))
    assert torch.allclose(fno(a, queries=x), u.flatten(2), atol=1e-12)
    with torch.no_grad():
        assert torch.allclose(fno(a), u, atol=1e-12)
    seeing = FNO(2, 1, (4, 4), width=6, periodic=True).double()
    assert not torch.allclose(seeing(a.roll(2, 2)), seeing(a).roll(2, 2), atol=1e-6)
