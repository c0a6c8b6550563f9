import pytest

from uqno.conformal import plan
from uqno.evaluation.presets import METHODS, PRESETS, Settings, preset


def test_the_presets_are_those_of_the_readme():
    assert set(PRESETS) == {"quick", "standard", "paper"}
    assert PRESETS["standard"].methods == METHODS
    paper = PRESETS["paper"]
    assert (paper.train, paper.solved_at, paper.tested_at) == (5000, 421, 421)
    for settings in PRESETS.values():
        assert settings.alphas == (0.1, 0.02)
        assert settings.delta == 0.02


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_feasible_on_its_grid(name):
    settings = PRESETS[name]
    for alpha in settings.alphas:
        assert plan(alpha, settings.delta, settings.calibration, settings.tested_at**2).feasible


def test_changes_take_the_kind_of_what_they_replace():
    changed = preset("quick", ["epochs=3", "learning_rate=1e-2", "alphas=0.2, 0.1", "ablation=true",
                               "methods=uqno"])  # fmt: skip
    assert (changed.epochs, changed.learning_rate) == (3, 0.01)
    assert changed.alphas == (0.2, 0.1)
    assert changed.ablation is True
    assert changed.methods == ("uqno",)
    assert changed.train == PRESETS["quick"].train


def test_an_unknown_key_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"no setting 'epoch'; the nearest are epochs"):
        preset("quick", ["epoch=3"])
    with pytest.raises(ValueError, match=r"no setting 'zzz'; there are seed, train"):
        preset("quick", ["zzz=3"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("epochs", "has no '='"),
        ("epochs=few", "expected a whole number"),
        ("epochs=0", "epochs = 0 must be at least 1"),
        ("ablation=perhaps", "expected true or false"),
        ("alphas=", "at least one"),
        ("alphas=0.1,2", "in \\(0, 1\\)"),
        ("delta=nan", "in \\(0, 1\\)"),
        ("methods=uqno,magic", "'magic'"),
        ("learning_rate=inf", "positive and finite"),
        ("dropout=1.0", "in \\(0, 1\\)"),
        ("tested_at=44", "multiple of 43"),
        ("tested_at=2", "at least 3"),
        ("train=8", "at least 64"),
    ],
)
def test_bad_changes_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        preset("quick", [change])


def test_an_unknown_preset_is_refused():
    with pytest.raises(ValueError, match="quick, standard, paper"):
        preset("huge")


def test_a_record_is_plain_and_complete():
    record = Settings().record()
    assert record["alphas"] == [0.1, 0.02]
    assert Settings(**record) == Settings()
