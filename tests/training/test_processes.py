"""Killed runs, and runs of two processes: real processes, a real script."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from killing_script import EPOCHS, MOMENTS
from safetensors.torch import load_file
from training_script import train

HERE = Path(__file__).parent


def run(*line: str) -> None:
    """Run Python as in a new shell, on one thread."""
    environment = {k: v for k, v in os.environ.items() if k not in ("LOCAL_RANK", "WORLD_SIZE")}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    line = (sys.executable, *line)
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def weights(out: Path, rank: int = 0) -> dict[str, torch.Tensor]:
    return load_file(out / f"weights-{rank}.safetensors")


def losses(out: Path, rank: int = 0) -> torch.Tensor:
    return torch.tensor(json.loads((out / f"losses-{rank}.json").read_text()), dtype=torch.float64)


def folders(parent: Path, *names: str) -> list[Path]:
    for name in names:
        (parent / name).mkdir()
    return [parent / name for name in names]


@pytest.mark.slow
def test_killed_at_chosen_and_random_moments_it_ends_in_the_same_weights(tmp_path):
    whole, broken = folders(tmp_path, "whole", "broken")
    train(whole, dropout=0.2, epochs=EPOCHS)
    run(str(HERE / "killing_script.py"), str(broken))
    kills = (broken / "kills").read_text().split()
    assert kills[: len(MOMENTS)] == ["1"] * len(MOMENTS)  # at random moments it may be done
    expected, got = weights(whole), weights(broken)
    assert expected.keys() == got.keys()
    assert all(torch.equal(expected[name], got[name]) for name in expected)
    assert torch.equal(losses(whole), losses(broken))
    rows = (broken / "run" / "log.csv").read_text().splitlines()
    assert [int(row.split(",")[0]) for row in rows[1:]] == list(range(1, EPOCHS + 1))


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["fabric", "torchrun"])
def test_two_processes_train_one_model(tmp_path, launcher):
    """The batches are those of one process, so all but the last digits of the result are too."""
    alone, both = folders(tmp_path, "alone", "both")
    train(alone)
    script = (str(HERE / "training_script.py"), str(both))
    if launcher == "fabric":
        run(*script, "2")
    else:
        elastic = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
        run(*elastic, *script, "0")
    for rank in (0, 1):
        assert torch.allclose(losses(both, rank), losses(alone), rtol=1e-4)
        for name, value in weights(alone).items():
            assert torch.allclose(weights(both, rank)[name], value, atol=1e-4)
    one, other = weights(both, 0), weights(both, 1)
    assert all(torch.equal(one[name], other[name]) for name in one)
