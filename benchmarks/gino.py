"""GINO against neuraloperator's: a training step, and time by the number of surface points.

Neuraloperator's neighbour search is part of its step, as it runs it: brute force, each time.
Its radii are chosen so that it has about as many edges as ours; both counts are printed.
"""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.common import interleaved, record, row
from uqno.operators import GINO, Operator

POINTS, LATENT, MODES, WIDTH, LAYERS = 3586, (32, 16, 16), (16, 8, 8), 32, 4
DOMAIN = ((-1.0, 1.0), (-0.5, 0.5), (-0.5, 0.5))
LARGER = (50_000, 500_000)


def ellipsoid(n: int) -> dict[str, Tensor]:
    """A closed surface the size of a car in its box, with a smooth function on it."""
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    x = x / x.norm(dim=1, keepdim=True)
    axes = torch.tensor([0.9, 0.4, 0.4])
    normals = nn.functional.normalize(x / axes)
    return {"points": x * axes, "normals": normals, "weights": torch.ones(n) / n, "u": x[:, :1].T}


def step_of(model: Callable[[], Tensor], module: nn.Module, u: Tensor) -> Callable[[], None]:
    optimiser = torch.optim.AdamW(module.parameters(), 1e-3)

    def step() -> None:
        optimiser.zero_grad()
        (model() - u).square().mean().backward()
        optimiser.step()

    return step


def ours(n: int) -> tuple[Callable[[], None], int]:
    model = GINO(1, DOMAIN, LATENT, MODES, WIDTH, LAYERS)
    operator = Operator(model)
    batch = operator.collate([model.prepare(ellipsoid(n))])
    edges = batch["grid_neighbours"].numel() + batch["query_neighbours"].numel()
    return step_of(lambda: operator(batch), operator, batch["u"]), edges


def radius_for(data: Tensor, queries: Tensor, edges: int) -> float:
    """The radius within which all queries together have about `edges` neighbours."""
    low, high = 0.0, 4.0
    for _ in range(30):
        middle = (low + high) / 2
        few = count_edges(data, queries, middle) < edges
        low, high = (middle, high) if few else (low, middle)
    return high


def count_edges(data: Tensor, queries: Tensor, radius: float) -> int:
    return sum(int((torch.cdist(q, data) <= radius).sum()) for q in queries.split(1024))


class Peer(nn.Module):
    """Neuraloperator's GINO with the size of `like` and about its edges; one geometry a batch.

    Lengths in units of the domain's longest side, as its own examples have them.
    """

    grid: Tensor

    def __init__(self, like: GINO, points: Tensor) -> None:
        super().__init__()
        self.scale = float(like.size.max())
        mesh, points = like.mesh / self.scale, points / self.scale
        k_in, k_out = like.latent.neighbours
        radius_in = radius_for(points, mesh, k_in * len(mesh))
        radius_out = radius_for(mesh, points, k_out * len(points))
        self.edges = count_edges(points, mesh, radius_in) + count_edges(mesh, points, radius_out)
        width = like.config["width"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from neuralop.models import GINO as Theirs

            self.gino = Theirs(
                in_channels=3,
                out_channels=like.out_channels,
                latent_feature_channels=1,
                in_gno_radius=radius_in,
                out_gno_radius=radius_out,
                fno_n_modes=tuple(m + 1 for m in like.config["modes"]),
                fno_hidden_channels=width,
                fno_n_layers=like.config["layers"],
                fno_use_channel_mlp=False,
                gno_embed_channels=width,
                in_gno_channel_mlp_hidden_layers=[2 * width],
                out_gno_channel_mlp_hidden_layers=[2 * width],
                projection_channel_ratio=2,
                gno_use_open3d=False,
                gno_use_torch_scatter=False,
            )
        self.register_buffer("grid", mesh.view(1, *like.latent.shape, 3), persistent=False)

    def forward(self, points: Tensor, normals: Tensor, sdf: Tensor) -> Tensor:
        """(1, out, n)."""
        points = points / self.scale
        answer: Tensor = self.gino(
            input_geom=points,
            latent_queries=self.grid,
            output_queries=points,
            x=normals,
            latent_features=sdf.unsqueeze(-1) / self.scale,
        )
        return answer.movedim(-1, 1)


def theirs() -> tuple[Callable[[], None], int]:
    model = GINO(1, DOMAIN, LATENT, MODES, WIDTH, LAYERS)
    sample = model.prepare(ellipsoid(POINTS))
    peer = Peer(model, sample["points"])
    inputs = [sample[name][None] for name in ("points", "normals", "sdf")]
    return step_of(lambda: peer(*inputs), peer, sample["u"][None]), peer.edges


def against_peer() -> dict[str, object]:
    (our_step, our_edges), (their_step, their_edges) = ours(POINTS), theirs()
    print(f"edges: ours {our_edges}, theirs {their_edges}")
    seconds = interleaved({"ours": our_step, "theirs": their_step}, 3)
    return row(
        f"GINO training step, {POINTS} points, latent {LATENT}, one thread",
        seconds["ours"],
        seconds["theirs"],
        "s",
        "at least 10 times faster",
        seconds["theirs"] >= 10 * seconds["ours"],
        edges={"ours": our_edges, "theirs": their_edges},
    )


def by_size() -> dict[str, object]:
    """Seconds a point at 500 000 points against 50 000, where the grid's own cost is small."""
    seconds = {n: interleaved({"ours": ours(n)[0]}, 3)["ours"] for n in LARGER}
    few, many = (seconds[n] / n * 1e6 for n in LARGER)
    return row(
        "GINO training step, µs a surface point: 500 000 points (ours) and 50 000 (theirs)",
        many,
        few,
        "µs",
        "linear: at most 1.25 times",
        many <= 1.25 * few,
        seconds={str(n): s for n, s in seconds.items()},
    )


def main() -> None:
    torch.set_num_threads(1)
    record("gino", [against_peer(), by_size()])


if __name__ == "__main__":
    main()
