import pytest

from uqno.conformal import plan
from uqno.experiments.cars.settings import CarSettings
from uqno.experiments.darcy.settings import DarcySettings
from uqno.experiments.description import known_tasks
from uqno.experiments.methods import METHODS
from uqno.experiments.settings import ALL_METHODS
from uqno.experiments.task import Task, task_type

PRESETS = {name: task_type(name).presets for name in ("darcy", "cars")}


def preset(task, name=None, changes=()):
    return task_type(task).preset(name, changes)


def test_the_methods_that_are_known_by_name_alone_have_their_records():
    assert set(ALL_METHODS) <= set(METHODS)


def test_the_presets_are_those_of_the_readme():
    for presets, alphas in ((PRESETS["darcy"], (0.1, 0.02)), (PRESETS["cars"], (0.12, 0.04))):
        assert set(presets) == {"quick", "standard", "paper"}
        assert presets["standard"].methods == ALL_METHODS
        for settings in presets.values():
            assert settings.alphas == alphas
            assert settings.delta == 0.02
    paper = PRESETS["darcy"]["paper"]
    assert (paper.train, paper.solved_at, paper.tested_at) == (5000, 421, 421)
    for name in ("standard", "paper"):
        cars = PRESETS["cars"][name]
        assert (cars.train + cars.calibration, cars.test) == (500, 111)


@pytest.mark.parametrize("name", ["quick", "standard", "paper"])
def test_every_preset_is_feasible_at_its_points(name):
    for task, settings in ((task, presets[name]) for task, presets in PRESETS.items()):
        points = settings.tested_at**2 if task == "darcy" else 3586
        for alpha in settings.alphas:
            assert plan(alpha, settings.delta, settings.calibration, points).feasible


def test_changes_take_the_kind_of_what_they_replace():
    changes = ["epochs=3", "learning_rate=1e-2", "alphas=0.2, 0.1", "ablation=true", "methods=uqno"]
    changed = preset("darcy", "quick", changes)
    assert (changed.epochs, changed.learning_rate) == (3, 0.01)
    assert changed.alphas == (0.2, 0.1)
    assert changed.ablation is True
    assert changed.methods == ("uqno",)
    assert changed.train == PRESETS["darcy"]["quick"].train
    assert preset("cars", "quick", ["latent=8,6,6", "modes=3,2,2"]).latent == (8, 6, 6)


def test_an_unknown_key_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"no setting 'epoch'; the nearest are epochs"):
        preset("darcy", "quick", ["epoch=3"])
    with pytest.raises(ValueError, match=r"no setting 'zzz'; there are seed, train"):
        preset("darcy", "quick", ["zzz=3"])


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
        ("folds=601", "at most train = 600"),
        ("calibration=1", "at least 2"),
    ],
)
def test_bad_changes_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        preset("darcy", "quick", [change])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("latent=8,6", "must be 3 numbers"),
        ("neighbours=8,8,8", "must be 2 numbers"),
        ("modes=12,16,4", "more nodes than modes"),
        ("latent=40,0,14", "at least 1"),
        ("latent=many", "joined by commas"),
        ("neighbours=4,5000", "more nodes than the 4608 of latent"),
        ("solved_at=43", "no setting 'solved_at'"),
        ("shifts=0.5", "must begin with 0"),
        ("shifts=", "must begin with 0"),
        ("shifts=0,1,1", "each must be another"),
        ("shifts=0,2.5", "at most 2 nodes either way"),
        ("shifts=0,nan", "at most 2 nodes either way"),
    ],
)
def test_bad_changes_of_cars_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        preset("cars", "quick", [change])


def test_an_unknown_preset_is_refused():
    with pytest.raises(ValueError, match="quick, standard, paper"):
        preset("darcy", "huge")


def test_a_record_is_plain_and_complete():
    record = DarcySettings().record()
    assert record["alphas"] == [0.1, 0.02]
    for settings in (DarcySettings(), CarSettings()):
        assert type(settings).from_record(settings.record()) == settings
        assert task_type(settings.task).settings_type is type(settings)
    assert not preset("cars", "standard", ["ideal_flow=false"]).extra_inputs
    assert not preset("cars", "standard", ["shifts=0"]).uses_symmetries
    del record["symmetric"]
    with pytest.raises(ValueError, match=r"missing \['symmetric'\], unknown \['magic'\]"):
        DarcySettings.from_record({**record, "magic": 1})


def test_the_tasks_of_the_library_are_found_by_their_folders():
    assert {"cars", "darcy"} <= set(known_tasks())
    with pytest.raises(
        ValueError, match=r"'weather' is not known: expected one of .*(cars|darcy),"
    ):
        task_type("weather")
    for name in ("cars", "darcy"):
        assert issubclass(task_type(name), Task)
        assert known_tasks()[name] is task_type(name)  # in place of its description
    assert preset("darcy") == PRESETS["darcy"]["quick"]  # the first one
