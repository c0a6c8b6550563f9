"""The equivariant operator: symmetries to rounding, its formula, other grids, boundaries."""

import itertools

import numpy as np
import pytest
import torch

from uqno.operators import EquivariantFNO, Operator, equivariant, heat, pointwise, sines

CASES = [
    ((5,), (13,), True),
    ((4, 4), (11, 11), True),
    ((4, 4), (11, 11), False),
    ((4, 3), (9, 8), False),
    ((3, 3, 3), (6, 6, 6), True),
    ((3, 2, 2), (7, 5, 4), False),
]


def make(modes, turns=True, **options):
    torch.manual_seed(0)
    options = {"width": 6, "vectors": 3, "layers": 3, "smooth": 3, **options}
    operator = EquivariantFNO(2, 3, modes=modes, turns=turns, **options).double()
    for layer in operator.layers:  # large kernels, so that nothing is hidden by small ones
        for weight in layer.kernel.parameters():
            weight.data *= 20
    return operator.eval()


def mesh(shape):
    axes = [torch.linspace(0, 1, n, dtype=torch.float64) for n in shape]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(shape))


def close(x, y):
    return torch.allclose(x, y, atol=1e-10)


@pytest.mark.parametrize(("modes", "grid", "turns"), CASES)
def test_flips_and_turns_of_the_input_flip_and_turn_the_answer(modes, grid, turns):
    operator = make(modes, turns)
    a = torch.randn(2, 2, *grid).double()
    u = operator(a)
    for axis in range(2, 2 + len(grid)):
        assert close(operator(a.flip(axis)), u.flip(axis))
    for i, j in itertools.combinations(range(2, 2 + len(grid)), 2):
        if a.shape[i] == a.shape[j]:
            assert close(operator(a.transpose(i, j)), u.transpose(i, j)) == turns
    assert u.std() > 1e-3  # it is not a constant
    assert (operator(2 * a) - u).abs().max() > 1e-3


def test_a_matrix_at_each_frequency_is_the_slow_formula():
    """v' = A v + B_kl p_x + B_lk p_y and so on, with sums written out."""
    torch.manual_seed(0)
    kernel = sines.Multiplier(2, 1, (3, 3), turns=True, smooth=3, scale=1.0).double()
    n = 8
    t = torch.linspace(0, 1, n, dtype=torch.float64)
    table = {
        name: torch.einsum("nk,nio->kio", kernel.basis.double(), getattr(kernel, name)[0]).reshape(
            3, 3, *getattr(kernel, name).shape[2:]
        )
        for name in ("from_scalars", "to_scalars", "to_vectors", "along", "across")
    }
    A = (table["from_scalars"] + table["from_scalars"].transpose(0, 1)) / 2
    B, C, D, F = (table[name] for name in ("to_scalars", "to_vectors", "along", "across"))
    fields = [torch.randn(n, n, channels).double() for channels in (2, 1, 1)]
    w = torch.full((n,), 1 / (n - 1), dtype=torch.float64)
    w[0] = w[-1] = w[0] / 2
    expected = [torch.zeros_like(field) for field in fields]
    for k, l in itertools.product(range(3), repeat=2):  # noqa: E741
        s = [torch.sin(np.pi * (m + 1) * t) for m in (k, l)]
        c = [torch.cos(np.pi * (m + 1) * t) for m in (k, l)]
        waves = [torch.outer(s[0], s[1]), torch.outer(c[0], s[1]), torch.outer(s[0], c[1])]
        hat = [
            4 * ((w[:, None] * w * wave)[..., None] * f).sum((0, 1))
            for wave, f in zip(waves, fields, strict=True)
        ]
        out = [
            hat[0] @ A[k, l] + hat[1] @ B[k, l] + hat[2] @ B[l, k],
            hat[0] @ C[k, l] + hat[1] @ D[k, l] + hat[2] @ F[l, k],
            hat[0] @ C[l, k] + hat[1] @ F[k, l] + hat[2] @ D[l, k],
        ]
        for total, wave, o in zip(expected, waves, out, strict=True):
            total += wave[..., None] * o
    basis = sines.Sines((3, 3), (0.0, 0.0), (1.0, 1.0))
    waves = basis.waves((t, t), t)
    hats = [sines.analyse(f[None], waves, j) for f, j in zip(fields, (None, 0, 1), strict=True)]
    split = equivariant.split_fields(kernel(torch.cat(hats, -1)), 2, 2)
    for j, (part, slow) in enumerate(zip((split.scalars, *split.vectors), expected, strict=True)):
        assert close(sines.synthesise(part, waves, None if j == 0 else j - 1)[0], slow)


@pytest.mark.parametrize(("modes", "grid", "turns"), CASES)
@pytest.mark.parametrize("zero_boundary", [False, True])
def test_points_of_the_grid_reproduce_the_grid(modes, grid, turns, zero_boundary, monkeypatch):
    monkeypatch.setitem(pointwise.PIECE, "cpu", 500)
    operator = make(modes, turns, zero_boundary=zero_boundary)
    a = torch.randn(2, 2, *grid).double()
    u, x = operator(a).flatten(2), mesh(grid)
    assert close(operator(a, queries=x), u)
    assert close(operator(a, queries=x, a_queries=a.flatten(2)), u)
    assert close(operator(a, queries=x.expand(2, -1, -1)), u)


def test_the_answer_belongs_to_the_function_not_to_the_grid():
    """On a finer grid the answer of a smooth function is the same at the same points."""
    operator = make((4, 4))

    def smooth(n):
        x, y = mesh((n, n)).T.reshape(2, n, n)
        return torch.stack((torch.sin(2 * x + y), torch.cos(3 * y * x)))[None]

    answers = {n: operator(smooth(n)) for n in (25, 97, 385)}
    coarse, fine, finer = (u[..., :: (n - 1) // 24, :: (n - 1) // 24] for n, u in answers.items())
    assert (fine - finer).abs().max() < 2e-3 * finer.abs().max()
    assert (coarse - finer).abs().max() < 0.05 * finer.abs().max()


def test_a_domain_and_coordinates_are_fractions_of_a_box():
    unit, box = make((3, 3)), make((3, 3), domain=[(2.0, 6.0), (-1.0, 0.0)])
    a = torch.randn(1, 2, 7, 7).double()
    assert close(unit(a), box(a))
    lower, side = torch.tensor([2.0, -1.0]).double(), torch.tensor([4.0, 1.0]).double()
    x = torch.rand(9, 2).double()
    assert close(unit(a, queries=x), box(a, queries=lower + side * x))
    assert np.allclose(box.axes((3, 3))[0], [2, 4, 6])
    t = torch.linspace(0, 1, 7).double()
    uneven = (t + 0.1 * torch.sin(2 * np.pi * t), t)  # its own mirror image
    u = unit(a, coordinates=uneven)
    assert close(unit(a.flip(2), coordinates=uneven), u.flip(2))
    assert not close(u, unit(a))


def test_zero_on_the_boundary_is_exact_in_the_units_of_the_data():
    torch.manual_seed(0)
    operator = Operator(EquivariantFNO(1, 1, (3, 3), width=4, vectors=2, zero_boundary=True))
    samples = [{"a": torch.randn(1, 9, 9), "u": 5 + torch.randn(1, 9, 9)} for _ in range(4)]
    operator.fit_normalisers(samples)
    u = operator.batch(samples)
    answer = operator({"a": u["a"]})
    for side in (answer[..., 0], answer[..., -1], answer[..., 0, :], answer[..., -1, :]):
        assert (side == 0).all()
    assert answer[..., 1:-1, 1:-1].abs().min() > 0
    corners = torch.tensor([[0.0, 0.3], [1.0, 1.0]])
    assert (operator({"a": u["a"], "queries": corners}) == 0).all()
    with pytest.raises(ValueError, match="zero_boundary=True is not linear"):
        operator.features({"a": u["a"]})


def test_vector_inputs_turn_with_the_box():
    operator = make((3, 3), vector_channels=1)
    a, p = torch.randn(1, 2, 7, 7).double(), torch.randn(1, 2, 7, 7).double()
    u = operator(a, vectors=p)
    flipped = p.flip(2) * torch.tensor([-1.0, 1.0]).double()[:, None, None]
    assert close(operator(a.flip(2), vectors=flipped), u.flip(2))
    assert close(operator(a.mT, vectors=p.mT.flip(1)), u.mT)
    assert not close(operator(a, vectors=2 * p), u)
    assert close(operator(a, vectors=p, queries=mesh((7, 7))), u.flatten(2))
    with pytest.raises(ValueError, match="vectors have the shape None, expected"):
        operator(a)
    with pytest.raises(ValueError, match="vector_channels = 1 needs vectors of at least 1"):
        make((3, 3), vector_channels=1, vectors=0)


def test_without_vectors_and_features():
    operator = make((3, 3), vectors=0)
    a = torch.randn(1, 2, 7, 7).double()
    phi = operator.features(a)
    assert phi.shape == (1, 12, 7, 7)
    assert close(operator.last(phi.movedim(1, -1)).movedim(-1, 1), operator(a))
    assert operator.like(4, 1)(torch.randn(1, 4, 7, 7)).shape == (1, 1, 7, 7)


def test_gradients_agree_with_finite_differences():
    operator = make((2, 2), width=2, vectors=1, layers=2)
    a = torch.randn(1, 2, 5, 5).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: operator(x, queries=mesh((2, 2)) * 0.9 + 0.05), (a,))
    assert torch.autograd.gradcheck(operator, (a,))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"modes": (3, 4)}, "turns=True swaps the dimensions"),
        ({"modes": (3, 3), "width": 0}, "width=0"),
        ({"modes": ()}, "1 to 3 dimensions"),
        ({"modes": (3,), "domain": [(1.0, 1.0)]}, "lower < upper"),
        ({"modes": (3,), "domain": [(0.0, 1.0)] * 2}, "differ in dimension"),
    ],
)
def test_what_cannot_be_built_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        make(**options)


def test_what_does_not_fit_is_refused():
    operator = make((4, 4))
    with pytest.raises(ValueError, match="5 points in dimension 0, but modes=4 needs at least 6"):
        operator(torch.randn(1, 2, 5, 9))
    with pytest.raises(ValueError, match="outside the domain"):
        operator(torch.randn(1, 2, 9, 9), queries=torch.full((1, 2), 1.5))
    with pytest.raises(ValueError, match=r"expected a \(batch, 2"):
        operator(torch.randn(1, 3, 9, 9))


def test_smoothing_keeps_constants_and_symmetry_and_damps_waves():
    t = torch.linspace(0, 1, 65, dtype=torch.float64)
    one = torch.ones(1, 1, 65, 65, dtype=torch.float64)
    assert close(heat.smoothed(one, (t, t), 0.1), one)
    wave = torch.cos(3 * np.pi * t)
    expected = np.exp(-0.5 * (3 * np.pi * 0.1) ** 2)
    inside = heat.kernel(t, 0.1) @ wave
    assert (inside - expected * wave).abs().max() < 1e-3
    assert close(heat.kernel(t, 1e-4), torch.eye(65, dtype=torch.float64))  # narrower than a step


@torch.no_grad()
def test_the_matrix_is_made_again_when_a_weight_has_changed():
    kernel = make((3, 3)).layers[0].kernel
    first = kernel.matrix()
    assert kernel.matrix() is first
    kernel.along.mul_(2.0)
    second = kernel.matrix()
    assert not torch.equal(first, second)
    kernel.along.data[0, 0, 0, 0] += 1.0  # no version counts this
    third = kernel.matrix()
    assert not torch.equal(second, third)
    kernel.load_state_dict({name: -w for name, w in kernel.state_dict().items()})
    assert close(kernel.matrix(), -third)
    assert kernel.float().matrix().dtype == torch.float32
    with torch.enable_grad():
        assert kernel.matrix().requires_grad
