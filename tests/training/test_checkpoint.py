import json
import os

import pytest
import torch
from safetensors.torch import save_file

from uqno.training import checkpoint as module
from uqno.training.checkpoint import (
    Checkpoint,
    CheckpointError,
    differences,
    read_checkpoint,
    write_checkpoint,
)

CHECKPOINT = Checkpoint(
    {
        "matrix": torch.randn(3, 4).T,
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "complex": torch.randn(2, 2, dtype=torch.complex128).conj(),
        "flag": torch.tensor([True, False]),
        "none": torch.empty(0, 3),
        "half": torch.randn(5).bfloat16(),
    },
    {"number": 0.1 + 0.2, "nested": {"list": [1, None, "x"]}},
)


@pytest.fixture
def path(tmp_path):
    write_checkpoint(tmp_path / "last.safetensors", CHECKPOINT)
    return tmp_path / "last.safetensors"


def test_what_is_written_is_read(path):
    read = read_checkpoint(path)
    assert read.state == CHECKPOINT.state
    assert read.tensors.keys() == CHECKPOINT.tensors.keys()
    for name, value in CHECKPOINT.tensors.items():
        assert read.tensors[name].dtype == value.dtype
        assert torch.equal(read.tensors[name], value)


def test_shared_storage_is_no_obstacle(path):
    tensor = torch.arange(4.0)
    write_checkpoint(path, Checkpoint({"a": tensor, "b": tensor, "c": tensor[1:]}, {}))
    assert torch.equal(read_checkpoint(path).tensors["c"], tensor[1:])


def test_a_single_number_with_strides_of_its_own_is_stored(tmp_path):
    column = torch.arange(6.0).reshape(2, 3)[:1, 1]
    assert column.stride() != (1,)
    write_checkpoint(tmp_path / "one.safetensors", Checkpoint({"x": column}, {}))
    assert read_checkpoint(tmp_path / "one.safetensors").tensors["x"].tolist() == [1.0]


def test_any_truncation_is_refused_by_name(path):
    content = path.read_bytes()
    for length in {0, 1, 7, 8, 9, len(content) // 2, len(content) - 1}:
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match=r"last\.safetensors is truncated.*start again"):
            read_checkpoint(path)


def test_any_flipped_bit_is_refused(path):
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"last\.safetensors"):
            read_checkpoint(path)


def test_foreign_and_newer_files_are_refused(path, monkeypatch):
    save_file({"weights": torch.ones(2)}, path)
    with pytest.raises(CheckpointError, match="no uqno training checkpoint"):
        read_checkpoint(path)
    path.write_bytes(b"not even safetensors, only text")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        read_checkpoint(path)
    monkeypatch.setattr(module, "VERSION", 2)
    write_checkpoint(path, CHECKPOINT)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="format version 2, this library reads 1"):
        read_checkpoint(path)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(path, monkeypatch, call):
    def full(*_):
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match=r"could not write the checkpoint.*is intact"):
        write_checkpoint(path, Checkpoint({}, {}))
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_differences_are_words():
    saved = json.loads(json.dumps({"epochs": 3, "same": [1, 2], "gone": None}))
    assert differences(saved, {"epochs": 4, "same": [1, 2], "new": "x"}) == [
        "epochs was 3, now 4",
        "new was None, now 'x'",
    ]
