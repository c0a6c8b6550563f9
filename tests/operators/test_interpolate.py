import pytest
import torch

from uqno.operators.interpolate import multilinear


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_exact_for_multilinear_functions_on_any_axes(dimensions: int) -> None:
    torch.manual_seed(0)
    axes = [torch.rand(n).double().sort().values for n in (5, 7, 4)[:dimensions]]
    mesh = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)

    def f(x: torch.Tensor) -> torch.Tensor:
        return 1 + x.prod(-1) - 2 * x[..., 0]

    low, high = torch.stack([x[0] for x in axes]), torch.stack([x[-1] for x in axes])
    points = low + (high - low) * torch.rand(2, 30, dimensions).double()
    values = multilinear(f(mesh).expand(2, 1, *mesh.shape[:-1]), axes, points)
    assert torch.allclose(values[:, 0], f(points), atol=1e-12)
    shared = multilinear(f(mesh).expand(2, 1, *mesh.shape[:-1]), axes, points[0])
    assert torch.allclose(shared[1, 0], f(points[0]), atol=1e-12)


def test_grid_values_are_kept_and_outside_is_clamped() -> None:
    a = torch.tensor([[[1.0, 5.0, 2.0]]])
    axis = torch.tensor([0.0, 0.5, 1.0])
    values = multilinear(a, [axis], torch.tensor([[-1.0], [0.0], [0.5], [1.0], [2.0]]))
    assert values.tolist() == [[[1.0, 1.0, 5.0, 2.0, 2.0]]]
