"""A model's configuration is compared with the tensors beside it before a network is made."""

import json

import pytest
import torch
from torch import nn

from uqno import UQNO
from uqno.memory import VARIABLE
from uqno.model.rehearsal import check_sizes
from uqno.model.tie import Probe
from uqno.operators import FNO, GINO, Operator
from uqno.storage import sha256_of
from uqno.training.checkpoint import Checkpoint, write_checkpoint
from uqno.uncertainty import ESTIMATORS


def saved(tmp_path, uncertainty="quantile"):
    torch.manual_seed(0)
    train = [{"a": a, "u": a.sin()} for a in torch.rand(6, 1, 9, 9)]
    model = UQNO(Operator(FNO(1, 1, modes=(4, 4), width=4, layers=2)), ESTIMATORS[uncertainty]())
    model.fit(train, epochs=1, batch_size=1)
    model.save(tmp_path / "model")
    return tmp_path / "model"


def forge(folder, change):
    """Change model.json, and the checksum, as whoever can write the folder can."""
    file = folder / "model.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    names = sorted(f.name for f in folder.iterdir() if f.name != "SHA256SUMS")
    sums = "".join(f"{sha256_of(folder / name)}  {name}\n" for name in names)
    (folder / "SHA256SUMS").write_text(sums)


def base(**changed):
    return lambda content: content["base"]["config"].update(changed)


def uncertainty(**changed):
    return lambda content: content["uncertainty"].update(changed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("rehearsal"))


@pytest.fixture
def whole(folder):
    before = {f: f.read_bytes() for f in folder.iterdir()}
    yield folder
    for file, content in before.items():
        file.write_bytes(content)


@pytest.mark.parametrize(("change", "said"), [
    (base(width=10**9), "overflow|the base describes"),
    (base(width=10**6), r"the base describes .* of shape .*, the tensor beside it has \("),
    (base(width=5), r"the base describes"),
    (base(layers=10**9), r"describes more layers than the \d+ tensors beside it"),
    (base(layers=3), r"tensor beside it has none"),
    (base(modes=[10**9, 4]), r"the base describes module\.blocks"),
    (base(in_channels=10**12), r"the base describes module\.lifting"),
    (base(projection=10**9), r"the base describes module\.projection"),
    (base(width="x"), "cannot be rebuilt|model.json"),
    (uncertainty(inputs=10**9), "size mismatch|describes"),
    (uncertainty(outputs=10**9), "size mismatch|describes"),
    (uncertainty(outputs=-1), "cannot be rebuilt"),
], ids=range(12))  # fmt: skip
def test_sizes_that_the_tensors_do_not_have_are_refused(whole, change, said, monkeypatch):
    made = []
    fill = nn.init.kaiming_uniform_

    def counted(tensor, *rest, **named):
        made.append((tensor.device.type, tensor.numel()))
        return fill(tensor, *rest, **named)

    monkeypatch.setattr(nn.init, "kaiming_uniform_", counted)
    forge(whole, change)
    with pytest.raises(ValueError, match=said):
        UQNO.load(whole)
    assert max((n for device, n in made if device != "meta"), default=0) < 10_000


def test_a_whole_model_is_loaded_as_before(folder):
    assert UQNO.load(folder).base.operator.module.config["width"] == 4


def test_members_of_a_forged_ensemble_are_compared_too(tmp_path):
    folder = saved(tmp_path, "ensemble")
    UQNO.load(folder)
    for changed in ({"width": 10**6}, {"layers": 10**9}):
        forge(folder, lambda c, changed=changed: c["uncertainty"]["operators"][0]["config"].update(
            changed))  # fmt: skip
        with pytest.raises(ValueError, match=r"size mismatch|describes more layers"):
            UQNO.load(folder)


def test_the_latent_grid_is_compared_with_the_budget(monkeypatch):
    box = [(0.0, 1.0)] * 3
    with pytest.raises(ValueError, match=r"latent grid \(10000, 10000, 10000\) declares 36 TB"):
        GINO(1, domain=box, latent=(10**4,) * 3, modes=(4, 4, 4), width=4)
    monkeypatch.setenv(VARIABLE, "10 KB")
    with pytest.raises(ValueError, match="the memory budget is 10 KB"):
        GINO(1, domain=box, latent=(8, 8, 8), modes=(4, 4, 4), width=4)


def test_a_network_of_ones_own_that_needs_memory_to_be_made_is_not_compared():
    def make(_):
        return nn.Linear(2, int(torch.ones(()).item()))  # fails on the meta device

    check_sizes(make, {"weight": torch.zeros(7, 2)}, "it", foreign=True)
    with pytest.raises(RuntimeError):
        check_sizes(make, {"weight": torch.zeros(7, 2)}, "it", foreign=False)
    with pytest.raises(ValueError, match=r"it describes weight of shape \(3, 2\)"):
        check_sizes(lambda _: nn.Linear(2, 3), {"weight": torch.zeros(7, 2)}, "it", foreign=True)


def test_buffers_are_compared_with_the_budget(monkeypatch):
    def make(_):
        module = nn.Module()
        module.register_buffer("grid", torch.zeros(10**15))
        return module

    with pytest.raises(ValueError, match="it declares 4e\\+03 TB"):
        check_sizes(make, {}, "it", foreign=False)


def test_a_checkpoint_larger_than_the_budget_and_a_probe_that_lies_are_refused(
    tmp_path, monkeypatch
):
    write_checkpoint(tmp_path / "probe.safetensors", Checkpoint({}, {"functions": 10**12}))
    with pytest.raises(ValueError, match="declares 1000000000000 functions, it has 0 tensors"):
        Probe.read(tmp_path / "probe.safetensors")
    monkeypatch.setenv(VARIABLE, "100")
    with pytest.raises(ValueError, match=r"probe\.safetensors declares .* budget is 100 bytes"):
        Probe.read(tmp_path / "probe.safetensors")
