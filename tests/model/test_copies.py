"""Functions that repeat others, or that the model was trained on: copies of any kind are found."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import uqno
from tests.model.analytic import ExactUncertainty
from uqno.model import UQNO
from uqno.model.copies import alike, copies
from uqno.model.description import describe, images, is_plain
from uqno.model.seen import Seen
from uqno.operators import Operator
from uqno.operators.latent import LatentGrid
from uqno.operators.symmetry import reflection, square
from uqno.storage import DamagedError

SIDE = 24


def fields(seed, count):
    """Smooth random fields (count, 1, SIDE, SIDE)."""
    generator = torch.Generator().manual_seed(seed)
    k = torch.fft.fftfreq(SIDE) * SIDE
    damped = torch.exp(-(k[:, None] ** 2 + k[None] ** 2) / 9)
    white = torch.randn(count, 1, SIDE, SIDE, generator=generator)
    a = torch.fft.ifft2(torch.fft.fft2(white) * damped).real
    return a / a.std()


def with_truth(a, seed):
    generator = torch.Generator().manual_seed(seed)
    return [
        {"a": x, "u": x[-1:] + 0.1 * torch.randn(1, SIDE, SIDE, generator=generator)} for x in a
    ]


def model(symmetries=()):
    """Ĝ(a) is the last channel of a, so that more channels may be added."""
    last = Operator(lambda a: a[:, -1:], normalise=(), output=None)
    return UQNO(last, ExactUncertainty(), symmetries=symmetries).fit(TRAIN)


TRAIN = with_truth(fields(0, 30), 1)
FRESH = with_truth(fields(2, 30), 3)


def coordinate(x):
    return torch.linspace(0, 1, SIDE)[None, :, None].expand(1, SIDE, SIDE).to(x)


CHANGES = {
    "exact": lambda s: dict(s),
    "half precision": lambda s: {**s, "a": s["a"].half().float()},
    "bfloat16": lambda s: {**s, "a": s["a"].bfloat16().float()},
    "another truth": lambda s: {**s, "u": s["u"].flip(-1) + 1},
    "weights": lambda s: {**s, "weights": torch.rand(SIDE, SIDE)},
    "another channel": lambda s: {**s, "a": torch.cat([coordinate(s["a"]), s["a"]])},
    "other units": lambda s: {**s, "a": 25.4 * s["a"]},
    "degrees": lambda s: {**s, "a": 1.8 * s["a"] + 32},
}
# Every function of a batch has the same fields.
ADDED = ("another channel", "weights")
MIRRORED = {
    "mirrored": lambda s: {n: x.flip(-1) for n, x in s.items()},
    "turned, half precision": lambda s: {
        n: x.rot90(1, (-2, -1)).half().float() for n, x in s.items()
    },
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("symmetries", [(), square()[:4]], ids=["plain", "symmetric"])
def test_copies_of_training_functions_are_refused_by_index(change, symmetries):
    leaked = [CHANGES[change](s) for s in TRAIN[4:7]]
    others = [CHANGES[change](s) if change in ADDED else s for s in FRESH[:20]]
    with pytest.raises(ValueError, match=r"^3 of 23 calibration functions were used in training "
                       r"\(indices \[20, 21, 22\]"):  # fmt: skip
        model(symmetries).calibrate([*others, *leaked], 0.2, 0.2)
    model(symmetries).calibrate(others, 0.2, 0.2)


@pytest.mark.parametrize("change", MIRRORED)
def test_mirrored_copies_are_copies_where_the_model_has_the_symmetry(change):
    leaked = [*FRESH, *(MIRRORED[change](s) for s in TRAIN[:2])]
    with pytest.raises(
        ValueError, match=r"^2 of 32 .*\(indices \[30, 31\]; 2 of them with another"
    ):
        model(square()).calibrate(leaked, 0.2, 0.2)
    model().calibrate(leaked, 0.2, 0.2)


@pytest.mark.parametrize("change", [*CHANGES, *MIRRORED])
def test_copies_within_a_calibration_set_are_refused(change):
    copied = {**CHANGES, **MIRRORED}[change]
    first = [copied(s) if change in ADDED else s for s in FRESH[:20]]
    data = [*first, *(copied(s) for s in FRESH[3:5])]
    if change == "another channel":
        data[20:] = [
            {**s, "a": s["a"] * torch.tensor([0.5, 1.0])[:, None, None]} for s in data[20:]
        ]
    expected = "20 repeats 3, 21 repeats 4"
    with pytest.raises(ValueError, match=f"repeat others .*{expected}.*repeated='allow'"):
        model(square()).calibrate(data, 0.2, 0.2)


def test_sixty_copies_of_one_function_are_refused():
    with pytest.raises(ValueError, match=r"1 repeats 0, 2 repeats 0, .* …\)"):
        model().calibrate([FRESH[0]] * 60, 0.1, 0.1)
    noisy = with_truth(FRESH[0]["a"].expand(60, 1, SIDE, SIDE), 5)
    with pytest.raises(ValueError, match=r"1 repeats 0, .*their inputs are equal"):
        model().calibrate(noisy, 0.1, 0.1)
    constant = {"a": torch.ones(1, SIDE, SIDE), "u": FRESH[0]["u"]}  # told by the error alone
    with pytest.raises(ValueError, match=r"1 repeats 0, .*their error and uncertainty are equal"):
        model().calibrate([constant] * 60, 0.1, 0.1)


def test_copies_in_a_stream_are_found_without_reading_it_again():
    data = [*FRESH[:20], {**FRESH[3], "u": FRESH[3]["u"] + 1}]
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    with pytest.raises(ValueError, match="20 repeats 3"):
        model().calibrate(loader, 0.2, 0.2)
    assert model().calibrate(torch.utils.data.DataLoader(FRESH), 0.2, 0.2).functions == 30


def test_repeated_functions_that_are_allowed_are_told():
    ours = model()
    data = [*FRESH[:20], {**FRESH[3], "u": FRESH[3]["u"] + 1}, FRESH[4]]
    allowed = ours.calibrate(data, 0.2, 0.2, repeated="allow")
    assert allowed.circumstances.repeated == 2
    assert "2 of the 22 repeat another: this is a promise about distinct draws" in allowed.guarantee
    assert allowed.levels["repeated"] == "allow"
    assert ours.predict(FRESH[0]["a"]).guarantee == allowed.guarantee
    refused = model().calibrate(data[:20], 0.2, 0.2)
    assert "Repeated" not in refused.guarantee
    assert "repeated" not in refused.levels
    with pytest.raises(ValueError, match="repeated = 'yes' must be one of refuse, allow"):
        ours.calibrate(data, 0.2, 0.2, repeated="yes")
    with pytest.raises(ValueError, match="used in training"):
        ours.calibrate([*FRESH, TRAIN[0]], 0.2, 0.2, repeated="allow")


def test_functions_that_differ_anywhere_are_no_copies():
    """Where descriptions agree, the functions are read again and compared at every point."""
    one, other = FRESH[0], {**FRESH[0], "a": FRESH[0]["a"].clone()}
    other["a"][0, 5, 5] += 1e-3
    calibration = model().calibrate([*FRESH, other], 0.2, 0.2)
    assert calibration.functions == 31
    told = [describe(s, ()) for s in (one, other)]
    same_sums = [[replace(c, sums=told[0][0].sums) for c in one] for one in told]
    both = [images(s, ())[0] for s in (one, other)]
    assert not alike(*both)
    if np.array_equal(told[0][0].values, told[1][0].values):
        assert copies([], same_sums)
        assert not copies([], same_sums, lambda pair: alike(both[pair.earlier], both[pair.later]))


# --- what is lawful -------------------------------------------------------------------------------


def found(known, new, symmetries=()):
    both = ([describe({"a": x}, symmetries) for x in each] for each in (known, new))

    def confirm(pair):
        moved = images({"a": [*known, *new][pair.earlier]}, symmetries)
        (other, *_) = images({"a": new[pair.later]}, symmetries)
        return any(alike(image, other, rescaled=True) for image in moved)

    return [pair.later for pair in copies(*both, confirm)]


GRID = torch.linspace(0, 1, SIDE)
DRAW = torch.Generator().manual_seed(7)
SCALARS = torch.rand(200, 1, 1, 1, generator=DRAW)
FEW = torch.randint(1, 6, (60, 1, 1, 1), generator=DRAW).float()


def family(s):
    return torch.exp(-s * GRID[:, None]) * torch.cos(3 * GRID * s)


def darcy(a):
    return torch.where(a > 0, 12.0, 3.0)


def sharing_much():
    """Two-valued fields that share all but four points with one."""
    a = darcy(fields(9, 1)).repeat(25, 1, 1, 1)
    for i in range(25):
        part = a[i, 0, i // 5 * 4 : i // 5 * 4 + 2, i % 5 * 4 : i % 5 * 4 + 2]
        part.copy_(15 - part)
    return a


LAWFUL = {
    "smooth fields": fields(8, 60),
    "constants": SCALARS.expand(200, 1, SIDE, SIDE),
    "constants of a few values": FEW.expand(60, 1, SIDE, SIDE),
    "layers": torch.where(GRID[:, None] * 6 < FEW, 1.0, 2.0).expand(60, 1, SIDE, SIDE),
    "one scalar 1e-3 apart": family(torch.arange(100)[:, None, None, None] * 1e-3),
    "one scalar at random": family(SCALARS),
    "amplitudes of one shape": SCALARS * fields(8, 1),
    "amplitudes of a family": SCALARS[:100] * family(SCALARS[100:]),
    "Darcy coefficients": darcy(fields(8, 60)),
    "Darcy coefficients that share much": sharing_much(),
    "a forcing and a scalar of few values": torch.cat(
        [fields(8, 1).expand(60, 1, SIDE, SIDE), FEW.expand(60, 1, SIDE, SIDE)], dim=1
    ),
}


@pytest.mark.parametrize("kind", LAWFUL)
@pytest.mark.parametrize("symmetries", [(), square()], ids=["plain", "symmetric"])
def test_lawful_functions_are_not_taken_for_copies(kind, symmetries):
    a = LAWFUL[kind]
    assert found([], a, symmetries) == []
    assert found(a[: len(a) // 2], a[len(a) // 2 :], symmetries) == []


def test_copies_of_two_valued_fields_are_found():
    known, new = darcy(fields(8, 40)), darcy(fields(9, 20))
    assert found(known, torch.cat([new, known[:3]])) == [20, 21, 22]
    assert found(known, torch.cat([new, known[:3].flip(-1)]), square()) == [20, 21, 22]
    assert found(known, torch.cat([new, known[:3].flip(-1)])) == []


def test_one_rescaling_for_the_whole_set():
    known, new = fields(8, 40), fields(9, 20)
    factors = torch.linspace(1.5, 3, 20)[:, None, None, None]
    assert found(known, 2.5 * torch.cat([new, known[:3]]) - 4) == [20, 21, 22]
    assert found(known, factors * known[:20]) == []  # each its own: amplitudes of a few shapes
    assert found(known, -known[:3]) == []  # no units are negative
    assert found([], torch.cat([new, 3 * new])) == list(range(20, 40))


def test_what_is_plain():
    assert is_plain(np.full((50, 50), 0.3))
    assert is_plain(np.repeat([1.0, 2.0, 5.0], [100, 300, 200]))
    assert not is_plain(np.linspace(0, 1, 40))
    assert not is_plain(darcy(fields(8, 1))[0, 0].numpy())
    assert not is_plain(darcy(fields(8, 1))[0, 0].repeat(40, 40).numpy())  # looked at in part


def geometry(seed, points=200):
    """A ball with random waves."""
    rng = np.random.default_rng(seed)
    x = np.random.default_rng(0).normal(size=(points, 3))
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    x = 0.5 * x * (1 + 0.3 * np.sin(3 * x @ rng.normal(size=3) + rng.normal()))[:, None]
    return {"points": torch.tensor(x, dtype=torch.float32), "u": torch.ones(1, points)}


def test_geometries_are_described_by_their_points_in_any_order():
    grid = LatentGrid([(-1.0, 1.0)] * 3, (4, 4, 4))
    known = [geometry(i) for i in range(20)]
    mirrored = {**known[3], "points": known[3]["points"] * torch.tensor([1.0, -1.0, 1.0])}
    shuffled = {**known[4], "points": known[4]["points"][torch.randperm(200)]}
    half = {**known[5], "points": known[5]["points"].half().float()}
    metres = {**known[6], "points": 1000 * known[6]["points"]}
    observed = {**known[7], "queries": torch.rand(10, 3), "sdf": torch.rand(4, 4, 4)}

    def leaked(new, symmetries):
        both = ([describe(s, symmetries) for s in each] for each in (known, new))
        return [pair.later for pair in copies(*both)]

    fresh = [geometry(i) for i in range(50, 60)]
    changed = [mirrored, shuffled, half, observed]
    assert leaked([*fresh, *changed], reflection(grid)) == [10, 11, 12, 13]
    assert leaked([*fresh, *changed], ()) == [11, 12, 13]
    assert leaked([*fresh, metres], ()) == [10]
    faster = [{**s, "speed": torch.tensor([float(i)])} for i, s in enumerate([known[0]] * 3)]
    assert copies([], [describe(s, (), ("points", "speed")) for s in faster]) == []
    assert copies([], [describe(s, ()) for s in faster])


# --- files ----------------------------------------------------------------------------------------


def test_descriptions_survive_save_load_and_further_fits(tmp_path):
    ours = model(square()).fit(FRESH[:5])
    ours.calibrate(with_truth(fields(11, 20), 0), 0.2, 0.2)
    ours.save(tmp_path / "model")
    base = Operator(lambda a: a[:, -1:], normalise=(), output=None)
    loaded = UQNO.load(tmp_path / "model", base, ExactUncertainty())
    assert len(loaded.seen.functions) == 35
    for leaked in (TRAIN[0], FRESH[0]):
        copied = MIRRORED["turned, half precision"](leaked)
        for one in (ours, loaded, loaded.fit(with_truth(fields(12, 4), 0))):
            with pytest.raises(ValueError, match=r"^1 of 21 .*\[20\]"):
                one.calibrate([*with_truth(fields(11, 20), 0), copied], 0.2, 0.2)
    assert (tmp_path / "model" / "seen.safetensors").stat().st_size < 35 * 500


def test_a_model_without_descriptions_knows_its_functions_exactly(tmp_path):
    assert Seen.read(tmp_path / "absent", ["f", "g", "f"]).functions == {"f": [], "g": []}


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.update(values=t["values"][1:]),
        lambda t: t.update(sums=t["sums"][:, 1:].contiguous()),
        lambda t: t.update(function=t["function"] + 1),
        lambda t: t.update(field=t["field"] - 1),
        lambda t: t.pop("plain"),
        lambda t: t.update(plain=t["plain"].float()),
        lambda t: t.update(more=torch.zeros(3)),
        lambda t: t.clear(),
    ],
)
def test_descriptions_of_other_sizes_than_declared_are_refused(change, tmp_path):
    from uqno.training.checkpoint import read_checkpoint, write_checkpoint

    base = model().base
    prints, seen = Seen.of(TRAIN[:3], base)
    seen.write(tmp_path / "seen")
    assert len(Seen.read(tmp_path / "seen", prints).functions) == 3
    checkpoint = read_checkpoint(tmp_path / "seen")
    tensors = dict(checkpoint.tensors)
    change(tensors)
    write_checkpoint(tmp_path / "seen", replace(checkpoint, tensors=tensors))
    with pytest.raises(DamagedError, match="does not fit the 3 functions"):
        Seen.read(tmp_path / "seen", prints)


def test_no_functions_are_written_and_read(tmp_path):
    Seen().write(tmp_path / "seen")
    assert Seen.read(tmp_path / "seen", []) == Seen()


# --- the history of a model -----------------------------------------------------------------------


def test_every_calibration_but_the_first_says_so(tmp_path):
    ours = model()
    first = ours.calibrate(FRESH, 0.2, 0.2)
    assert "calibrated before" not in first.guarantee
    again = ours.calibrate(FRESH[::-1], 0.3, 0.2)  # the same functions in another order
    assert "This model was calibrated before, once on these functions: the" in again.guarantee
    other = ours.calibrate(FRESH[:20], 0.3, 0.2)
    assert "calibrated before, 2 times on others" in other.guarantee
    ours.save(tmp_path / "model")
    base = Operator(lambda a: a[:, -1:], normalise=(), output=None)
    loaded = UQNO.load(tmp_path / "model", base, ExactUncertainty())
    assert loaded.history == ours.history
    assert loaded.predict(FRESH[0]["a"]).guarantee == other.guarantee
    fitted_again = loaded.fit(TRAIN[:10])
    last = fitted_again.calibrate(FRESH, 0.2, 0.2)
    assert "2 times on these functions and once on others" in last.guarantee
    assert [past.functions for past in fitted_again.history] == [30, 30, 20, 30]
    assert fitted_again.history[1].levels[0]["alpha"] == 0.3
    assert fitted_again.history[0].when == first.created


def test_several_promises_of_one_pass_hold_each_alone():
    ours = model()
    calibrations = ours.calibrate(FRESH, [0.2, 0.3], 0.2)
    for one in calibrations:
        assert "one of 2 promises made from the same functions: each holds alone" in one.guarantee
    assert [len(past.levels) for past in ours.history] == [2]


def test_a_calibration_that_is_refused_is_not_counted():
    ours = model()
    for wrong in ([*FRESH, TRAIN[0]], [FRESH[0]] * 20):
        with pytest.raises(ValueError, match="calibration functions"):
            ours.calibrate(wrong, 0.2, 0.2)
    with pytest.raises(uqno.InfeasibleError):
        ours.calibrate(FRESH[:3], 0.2, 0.02)
    assert ours.history == ()


@pytest.mark.parametrize(
    "history", [{}, ["x"], [{"when": 1, "digest": "", "functions": 2, "levels": []}],
                [{"when": "", "digest": "", "functions": 2, "levels": ["x"]}],
                [{"when": "", "digest": "", "functions": 0, "levels": []}]],
)  # fmt: skip
def test_a_history_that_is_none_is_refused(history, tmp_path):
    from uqno.model.files import SUMS, check
    from uqno.storage import sha256_of

    folder = tmp_path / "model"
    model().save(folder)
    content = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**content, "history": history}))
    lines = (f"{sha256_of(f)}  {f.name}\n" for f in sorted(folder.iterdir()) if f.name != SUMS)
    (folder / SUMS).write_text("".join(lines))
    check(folder)  # the sums fit
    base = Operator(lambda a: a[:, -1:], normalise=(), output=None)
    with pytest.raises(ValueError, match=r"the history of the model holds|functions = 0"):
        UQNO.load(folder, base, ExactUncertainty())
