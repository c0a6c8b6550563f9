"""A training script as a user would write it: run alone, by fabric or by torchrun."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from training_stub import make_data, make_stub

from uqno.training import RelativeL2, fit


def train(
    out: Path, devices: int = 0, dropout: float = 0.0, epochs: int = 6, resume: bool = False
) -> None:
    torch.set_num_threads(1)
    operator = make_stub(dropout=dropout, width=32)
    result = fit(
        operator,
        make_data(50),  # neither the batch size nor two processes divide what is trained on
        loss=RelativeL2(),
        epochs=epochs,
        batch_size=7,
        learning_rate=0.01,
        folder=out / "run",
        resume=resume,
        checkpoint_every=0,
        accelerator="cpu",
        devices=devices or "auto",
        strategy="ddp" if devices else "auto",
    )
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    save_file(operator.state_dict(), out / f"weights-{rank}.safetensors")
    losses = [[row.training_loss, row.validation_loss] for row in result.history]
    (out / f"losses-{rank}.json").write_text(json.dumps(losses))


if __name__ == "__main__":
    train(Path(sys.argv[1]), int(sys.argv[2]))
