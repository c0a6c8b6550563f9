"""The loop: repeatable, resumable, and clear about what is wrong."""

import csv
import logging
import math
import os
import signal
import threading

import numpy as np
import pytest
import torch
from lightning_fabric.strategies import DataParallelStrategy
from training_stub import Stub, make_data, make_stub, same_weights

from uqno.training import CheckpointError, RelativeL2, fit
from uqno.training.samples import epoch_batches
from uqno.training.schedule import learning_rate

OPTIONS = {"loss": RelativeL2(), "epochs": 3, "batch_size": 4, "learning_rate": 0.01}


def trained(dropout: float = 0.2, **changes):
    operator = make_stub(dropout=dropout)
    return operator, fit(operator, make_data(), **(OPTIONS | changes))


def test_it_learns():
    operator, result = trained(dropout=0.0, epochs=60, learning_rate=0.03)
    assert result.chosen.validation_loss < 0.25
    assert not operator.training
    assert not any(p.grad is not None and p.grad.isnan().any() for p in operator.parameters())


def test_the_same_seed_gives_the_same_weights_and_another_one_others():
    one, _ = trained()
    torch.rand(5)  # what else is drawn in the process does not matter
    two, _ = trained()
    other, _ = trained(seed=1)
    assert same_weights(one, two)
    assert not same_weights(one, other)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    trained()
    assert torch.equal(before, torch.get_rng_state())


def test_against_a_loop_written_out_by_hand():
    """No dropout, no clipping, no validation: plain AdamW on the same batches of 4 and of 2."""
    data, operator, plain = make_data(22), make_stub(), make_stub()
    result = fit(operator, data, **OPTIONS, clip=None, validation=0.0, weight_decay=0.1)
    losses = torch.zeros(3)
    plain.fit_normalisers(data)
    optimizer = torch.optim.AdamW(plain.parameters(), weight_decay=0.1)
    for step in range(18):
        epoch, k = divmod(step, 6)
        batch = plain.collate([data[i] for i in epoch_batches(range(22), 4, 0, epoch)[k]])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, 18, 0.01, 0.05)
        optimizer.zero_grad()
        difference = (plain(batch) - batch["u"]).flatten(1).norm(dim=1)
        relative = difference / batch["u"].flatten(1).norm(dim=1)
        losses[epoch] += relative.sum().item() / 22
        relative.mean().backward()
        optimizer.step()
    assert [row.training_loss for row in result.history] == pytest.approx(losses.tolist())
    for mine, theirs in zip(operator.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5)


def test_validation_samples_are_never_trained_on():
    seen: dict[bool, set[float]] = {True: set(), False: set()}

    class Watching(Stub):
        def forward(self, batch):
            seen[self.training].update(batch["a"][:, 0, 0].tolist())
            return super().forward(batch)

        def fit_normalisers(self, data):
            seen[True].update(data[i]["a"][0, 0].item() for i in range(len(data)))
            super().fit_normalisers(data)

    data = make_data(20)
    result = fit(Watching(), data, **OPTIONS, validation=0.25)
    first = [sample["a"][0, 0].item() for sample in data]
    assert seen[True] == {first[i] for i in result.training}
    assert seen[False] == {first[i] for i in result.validation}
    assert len(result.validation) == 5
    assert sorted(result.training + result.validation) == list(range(20))


def test_keep_chooses_between_best_and_last(tmp_path):
    options = {"epochs": 12, "learning_rate": 0.3, "clip": None, "dropout": 0.0}
    best, result = trained(**options, folder=tmp_path)
    losses = [row.validation_loss for row in result.history]
    assert result.chosen_epoch == losses.index(min(losses)) + 1 < 12
    last, other = trained(**options, keep="last")
    assert other.chosen_epoch == 12
    assert not same_weights(best, last)
    batch = best.collate([make_data()[i] for i in result.validation])
    assert RelativeL2()(best(batch), batch).item() == pytest.approx(min(losses), rel=1e-5)
    assert RelativeL2()(last(batch), batch).item() == pytest.approx(losses[-1], rel=1e-5)


def test_the_log_has_a_row_an_epoch(tmp_path):
    _, result = trained(folder=tmp_path)
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert float(rows[1]["validation_loss"]) == result.history[1].validation_loss
    assert list(rows[0]) == [
        "epoch",
        "step",
        "learning_rate",
        "training_loss",
        "validation_loss",
        "seconds",
    ]


def test_a_finished_run_returns_at_once(tmp_path):
    operator, result = trained(folder=tmp_path)
    again = make_stub(seed=5, dropout=0.2)
    again.fit_normalisers = lambda data: pytest.fail("prepared")
    poisoned = [{"a": s["a"] * math.nan, "u": s["u"]} for s in make_data()]
    assert fit(again, poisoned, **OPTIONS, folder=tmp_path, resume=True) == result
    assert same_weights(operator, again)


class Flaky(list):
    """Data that fail at the n-th access."""

    def __init__(self, samples, after, action):
        super().__init__(samples)
        self.left, self.action = after, action

    def __getitem__(self, index):
        self.left -= 1
        if self.left == 0:
            self.action()
        return super().__getitem__(index)


def fail():
    raise RuntimeError("gone")


@pytest.mark.parametrize("after", [1, 30, 57, 58, 75, 85, 90])
def test_resumed_after_a_crash_it_is_bit_equal(tmp_path, after):
    whole, expected = trained()
    data = Flaky(make_data(), after, fail)
    with pytest.raises(RuntimeError, match="gone"):
        fit(make_stub(dropout=0.2), data, **OPTIONS, folder=tmp_path, checkpoint_every=0)
    resumed, result = trained(folder=tmp_path, resume=True)
    assert same_weights(whole, resumed)
    assert result.chosen_epoch == expected.chosen_epoch
    pairs = zip(result.history, expected.history, strict=True)
    assert all(mine.training_loss == theirs.training_loss for mine, theirs in pairs)


def test_the_best_epoch_before_a_crash_is_not_forgotten(tmp_path):
    options = {**OPTIONS, "epochs": 12, "learning_rate": 0.3, "clip": None}
    whole, resumed = make_stub(), make_stub()
    expected = fit(whole, make_data(), **options)
    data = Flaky(make_data(), 24 + 22 + 11 * 24 + 5, fail)  # in the last epoch
    with pytest.raises(RuntimeError, match="gone"):
        fit(make_stub(), data, **options, folder=tmp_path)
    result = fit(resumed, make_data(), **options, folder=tmp_path, resume=True)
    assert result.chosen_epoch == expected.chosen_epoch < 12
    assert same_weights(whole, resumed)


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    whole, _ = trained()
    before = signal.getsignal(signal.SIGINT)  # a shell's background job ignores it
    data = Flaky(make_data(), 60, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt, match=r"epoch 1, batch 4; .* go on with resume=True"):
        fit(make_stub(dropout=0.2), data, **OPTIONS, folder=tmp_path)
    assert signal.getsignal(signal.SIGINT) is before
    resumed, _ = trained(folder=tmp_path, resume=True)
    assert same_weights(whole, resumed)


def test_ctrl_c_without_a_folder_and_after_the_last_step():
    accesses = 24 + 22 + 3 * 24  # to check, to prepare, to train and validate
    for left, message in ((60, "nothing was saved"), (accesses, "after the last step")):
        data = Flaky(make_data(), left, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt, match=message):
            fit(make_stub(), data, **OPTIONS)


def test_it_trains_in_a_thread():
    """Where Python allows no signal handlers."""
    results = []
    thread = threading.Thread(target=lambda: results.append(trained()))
    thread.start()
    thread.join()
    assert same_weights(results[0][0], trained()[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 4}, "epochs was 3, now 4"),
        ({"seed": 1}, "seed was 0, now 1"),
        ({"loss": lambda output, batch: output.mean()}, "loss was"),
        ({"batch_size": 5}, "batch_size was 4, now 5"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change, message):
    trained(folder=tmp_path)
    with pytest.raises(CheckpointError, match=message):
        trained(folder=tmp_path, resume=True, **change)


def test_a_checkpoint_of_other_data_or_operators_is_refused(tmp_path):
    trained(folder=tmp_path)
    again = {**OPTIONS, "folder": tmp_path, "resume": True}
    with pytest.raises(CheckpointError, match="samples was 24, now 23"):
        fit(make_stub(), make_data(23), **again)
    with pytest.raises(CheckpointError, match=r"shape of network.0.weight was \[16, 1, 1\]"):
        fit(make_stub(width=8), make_data(), **again)


def test_an_earlier_run_is_not_overwritten(tmp_path):
    trained(folder=tmp_path)
    with pytest.raises(ValueError, match="holds an earlier run: go on with resume=True"):
        trained(folder=tmp_path)


def test_a_missing_best_is_named(tmp_path):
    trained(folder=tmp_path)
    (tmp_path / "best.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"best\.safetensors is missing"):
        trained(folder=tmp_path, resume=True)


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    whole, _ = trained()
    real, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > 20:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left.*intact.*resume=True"):
        trained(folder=tmp_path, checkpoint_every=0)
    monkeypatch.setattr(os, "fsync", real)
    assert not list(tmp_path.glob(".*"))  # nothing half-written left to fill the disk
    resumed, _ = trained(folder=tmp_path, resume=True)
    assert same_weights(whole, resumed)


def test_a_loss_that_turns_nan_stops_the_run(tmp_path):
    def bad(output, batch):
        calls.append(1)
        return output.square().mean() * (math.nan if len(calls) == 3 else 1.0)

    calls: list[int] = []
    with pytest.raises(FloatingPointError) as stopped:
        trained(loss=bad, folder=tmp_path, checkpoint_every=0)
    assert "loss is nan at step 3 of 18 (epoch 1) with learning rate" in str(stopped.value)
    assert "try a learning_rate of 0.001" in str(stopped.value)
    resumed, _ = trained(loss=bad, folder=tmp_path, resume=True)  # the checkpoint is from before
    assert all(p.isfinite().all() for p in resumed.parameters())


def test_a_validation_loss_that_is_nan_stops_the_run():
    def bad(output, batch):
        return output.square().mean() * (1.0 if output.requires_grad else math.nan)

    with pytest.raises(FloatingPointError, match="validation loss is nan at step 6 of 18"):
        trained(loss=bad)


def test_numbers_of_numpy_are_numbers(tmp_path):
    one, _ = trained()
    numbers = {"epochs": np.int64(3), "seed": np.int32(0), "learning_rate": np.float64(0.01)}
    two, _ = trained(**numbers, folder=tmp_path)
    assert same_weights(one, two)


def test_a_gradient_that_turns_nan_stops_the_run():
    def bad(output, batch):
        return (output * 0).sqrt().mean()

    with pytest.raises(FloatingPointError, match="norm of the gradient is nan at step 1"):
        trained(loss=bad)


def test_augmentation_is_seeded_and_for_training_only():
    def flip(sample, generator):
        drawn.append(torch.rand((), generator=generator).item())
        return {name: field.flip(-1) for name, field in sample.items()}

    drawn: list[float] = []
    one, result = trained(augment=flip)
    assert len(drawn) == len(set(drawn)) == 3 * len(result.training)
    first, drawn = drawn, []
    two, _ = trained(augment=flip)
    assert first == drawn
    assert same_weights(one, two)


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_other_precisions_train(precision, tmp_path):
    operator = make_stub()
    result = fit(operator, make_data(), **OPTIONS, precision=precision, folder=tmp_path)
    assert math.isfinite(result.chosen.validation_loss)
    options = {**OPTIONS, "precision": precision, "folder": tmp_path, "resume": True}
    assert fit(make_stub(), make_data(), **options) == result


def test_mixed_precision_leaves_the_inputs_alone():
    """Coordinates rounded to 8 bits would merge."""
    seen = []

    class Watching(Stub):
        def forward(self, batch):
            seen.append(batch["a"].dtype)
            return super().forward(batch)

    fit(Watching(), make_data(), **OPTIONS, precision="bf16-mixed")
    assert set(seen) == {torch.float32}


def test_complex_parameters_survive_a_checkpoint(tmp_path):
    class Spectral(Stub):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(1, dtype=torch.complex128))

        def forward(self, batch):
            return (super().forward(batch) * self.scale).real.float()

    torch.manual_seed(0)
    operator, again = Spectral(), Spectral()
    fit(operator, make_data(), **OPTIONS, folder=tmp_path)
    fit(again, make_data(), **OPTIONS, folder=tmp_path, resume=True)
    assert same_weights(operator, again)
    assert not torch.equal(again.scale, torch.ones_like(again.scale))


def test_progress_and_log_messages(capfd, caplog):
    with caplog.at_level(logging.INFO):
        trained(progress=True)
    assert "epoch 3/3" in capfd.readouterr().err
    assert "epoch 2: training loss" in caplog.text
    trained()  # not a terminal
    out = capfd.readouterr()
    assert out.out == out.err == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 23}, "batch_size=23 is above the 22 samples to train on .* at most 22"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"epochs": 1.5}, "epochs must be a whole number"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0 is outside"),
        ({"learning_rate": math.nan}, "learning_rate = nan is outside"),
        ({"weight_decay": -1.0}, "weight_decay = -1.0 is outside"),
        ({"warmup": 1.0}, "share of all steps"),
        ({"validation": 1.0}, "share of the data"),
        ({"clip": 0.0}, "None turns it off"),
        ({"keep": "first"}, "'best' or 'last', got 'first'"),
        ({"resume": True}, "needs the folder"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"checkpoint_every": math.nan}, "at least 0 seconds"),
        ({"loss": lambda output, batch: output}, "expected a scalar"),
        ({"strategy": DataParallelStrategy(), "accelerator": "cpu"}, "use strategy='ddp'"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        trained(**change)


def test_bad_operators_and_data_are_named():
    with pytest.raises(ValueError, match=r"Linear is not an operator.*as_operator"):
        fit(torch.nn.Linear(1, 1), make_data(), **OPTIONS)
    with pytest.raises(ValueError, match="the data are empty"):
        fit(make_stub(), [], **OPTIONS)
    with pytest.raises(ValueError, match="leaves none to train on"):
        fit(make_stub(), make_data(1), **OPTIONS)
    frozen = make_stub().requires_grad_(False)
    with pytest.raises(ValueError, match="no parameter to train"):
        fit(frozen, make_data(), **OPTIONS)


@pytest.mark.parametrize("name", ["last", "best"])
@pytest.mark.parametrize("content", [b"", b"half of it"])
def test_a_checkpoint_that_came_back_damaged_is_set_aside_and_the_fit_begins_again(
    tmp_path, name, content
):
    whole, _ = trained(folder=tmp_path)
    (tmp_path / f"{name}.safetensors").write_bytes(content)
    again, _ = trained(folder=tmp_path, resume=True)
    assert same_weights(whole, again)
    assert (tmp_path / f"{name}.safetensors.damaged").read_bytes() == content


@pytest.mark.parametrize("keep", [None, 0, 30, -3])
def test_a_log_that_a_disk_lost_is_written_again(keep, tmp_path):
    """A run is done when its log has all epochs, so without it a finished fit would not be."""
    trained(folder=tmp_path)
    log = tmp_path / "log.csv"
    whole = log.read_bytes()
    log.unlink() if keep is None else log.write_bytes(whole[:keep])
    trained(folder=tmp_path, resume=True)
    assert log.read_bytes() == whole
    before = log.stat().st_mtime_ns
    trained(folder=tmp_path, resume=True)
    assert log.stat().st_mtime_ns == before, "not written where it is whole"
