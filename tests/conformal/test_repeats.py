"""Copies in a calibration set of arrays, and what a guarantee tells of its circumstances."""

import json
from dataclasses import replace

import numpy as np
import pytest

from uqno import Calibration, calibrate
from uqno.conformal import FunctionStream, calibrate_all, guarantees
from uqno.conformal.circumstances import Circumstances
from uqno.conformal.repeats import DISTINCT, LOOKED_AT, LOOKED_AT_ALONE, NAMED


def functions(n=30, m=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)), rng.uniform(0.5, 2, (n, m))


def as_arrays(error, uncertainty):
    return error, uncertainty


def as_lists(error, uncertainty):
    return list(error), list(uncertainty)


def as_iterators(error, uncertainty):
    return iter(error), iter(uncertainty)


def as_stream(error, uncertainty):
    return FunctionStream((e, E, None) for e, E in zip(error, uncertainty, strict=True)), None


FORMS = [as_arrays, as_lists, as_iterators, as_stream]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("points", [DISTINCT, LOOKED_AT, LOOKED_AT + 1, 3000])
def test_copies_are_refused_by_index(form, points):
    error, uncertainty = functions(30, points)
    calibrate(*form(error, uncertainty), 0.2, 0.2)
    error[20], uncertainty[20] = error[3], uncertainty[3]
    error[29], uncertainty[29] = error[3], uncertainty[3]
    said = r"\(function 20 repeats 3, 29 repeats 3\): their error .* say repeated='allow'"
    with pytest.raises(ValueError, match=said):
        calibrate(*form(error, uncertainty), 0.2, 0.2)


@pytest.mark.parametrize("form", FORMS)
def test_sixty_copies_of_one_function_are_refused(form):
    error, uncertainty = functions(1)
    both = (np.repeat(x, 60, axis=0) for x in (error, uncertainty))
    with pytest.raises(ValueError, match=r"1 repeats 0, .*10 repeats 0 …\)") as why:
        calibrate(*form(*both), 0.1, 0.1)
    assert str(why.value).count("repeats") == NAMED


@pytest.mark.parametrize("count", [NAMED, NAMED + 1])
def test_how_many_are_named(count):
    both = (np.concatenate([x, x[:count]]) for x in functions())
    with pytest.raises(ValueError, match="repeat others") as why:
        calibrate(*both, 0.2, 0.2)
    assert (" …" in str(why.value)) == (count > NAMED)


def test_what_sixty_copies_would_have_promised():
    """60 copies carry one draw: 90 % promised, and about half of new functions covered."""
    rng = np.random.default_rng(0)
    scales = np.exp(rng.normal(size=(400, 1)))
    error = scales * np.linspace(0.1, 1, 40)
    covered = []
    for one in range(200):
        copies = np.repeat(error[[one]], 60, axis=0)
        cal = calibrate(copies, np.ones_like(copies), 0.1, 0.1, repeated="allow")
        covered.append(cal.coverage(error[200:], np.ones((200, 40))) >= 0.9)
    assert abs(np.mean(covered) - 0.5) < 0.1


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_few_different_values_are_lawful_ties(form):
    ties = np.tile(np.arange(DISTINCT), (30, 2)) + 0.0  # one of them is zero
    ones = np.ones_like(ties)
    assert calibrate(*form(ties, ones), 0.2, 0.2).scale == 25
    with pytest.raises(ValueError, match="repeat others"):
        calibrate(*form(ties + 1, ones), 0.2, 0.2)
    zeros = np.zeros((30, 5000))
    assert calibrate(*form(zeros, zeros + 1), 0.2, 0.2).scale == 0


@pytest.mark.parametrize("form", FORMS)
def test_what_differs_in_error_or_uncertainty_is_no_copy(form):
    error, uncertainty = functions()
    calibrate(*form(np.repeat(error[:1], 30, axis=0), uncertainty), 0.2, 0.2)
    calibrate(*form(error, np.repeat(uncertainty[:1], 30, axis=0)), 0.2, 0.2)


def test_rows_that_agree_where_they_are_looked_at_are_compared_in_full():
    """Arrays and lists are read again; of a stream, more points are looked at."""
    error, uncertainty = (np.repeat(x, 30, axis=0) for x in functions(1, 200 * LOOKED_AT_ALONE))
    error *= 1 + 1e-3 * np.eye(30, error.shape[1])
    for form in (as_arrays, as_lists):
        assert calibrate(*form(error, uncertainty), 0.2, 0.2).functions == 30
    with pytest.raises(ValueError, match="repeat others"):
        calibrate(*as_stream(error, uncertainty), 0.2, 0.2)


def test_vectors_are_compared_by_component():
    error, uncertainty = functions()
    angle = np.linspace(0, 1, 30)[:, None]
    vectors = np.stack([np.cos(angle) * error[:1], np.sin(angle) * error[:1]], axis=-1)
    same = np.repeat(uncertainty[:1], 30, axis=0)
    assert calibrate(vectors, same, 0.2, 0.2).functions == 30
    with pytest.raises(ValueError, match="1 repeats 0"):
        calibrate(np.repeat(vectors[:1], 30, axis=0), same, 0.2, 0.2)


def test_weights_do_not_hide_a_copy():
    error, uncertainty = functions()
    error[20], uncertainty[20] = error[3], uncertainty[3]
    weights = np.random.default_rng(0).random(error.shape)
    with pytest.raises(ValueError, match="20 repeats 3"):
        calibrate(error, uncertainty, 0.2, 0.2, weights=weights)


def test_repeats_that_are_allowed_are_told():
    error, uncertainty = functions()
    none = calibrate(error, uncertainty, 0.2, 0.2, repeated="allow")
    assert none.guarantee.endswith(" Repeated functions were allowed, and none was found.")
    usual = calibrate(error, uncertainty, 0.2, 0.2)
    assert usual == none
    assert usual.guarantee == usual.rule.sentence(usual)
    assert "repeated" not in usual.levels
    error[20], uncertainty[20] = error[3], uncertainty[3]
    allowed = calibrate(error, uncertainty, 0.2, 0.2, repeated="allow")
    assert allowed.circumstances == Circumstances(repeated=1)
    assert (
        "1 of the 30 repeat another: this is a promise about distinct draws, and nothing is "
        in (allowed.guarantee)
    )
    assert {**usual.levels, "repeated": "allow"} == allowed.levels
    (also,) = calibrate_all(error, uncertainty, [guarantees.Nothing()], repeated="allow")
    assert also.circumstances == allowed.circumstances
    with pytest.raises(ValueError, match="repeated = 'never' must be one of refuse, allow"):
        calibrate(error, uncertainty, 0.2, 0.2, repeated="never")


# --- what is told ---------------------------------------------------------------------------------


def test_circumstances_survive_the_file():
    usual = calibrate(*functions(), 0.2, 0.2)
    assert "circumstances" not in json.loads(usual.to_json())
    for told in (
        Circumstances(),
        Circumstances(repeated=0),
        Circumstances(repeated=3, together=2, here=1, elsewhere=4),
    ):
        cal = replace(usual, circumstances=told)
        read = Calibration.from_json(cal.to_json())
        assert read.circumstances == told
        assert read.guarantee == cal.guarantee


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([], "must be an object of elsewhere, here, repeated, together"),
        ({"often": 3}, "must be an object of"),
        ({"here": -1}, "here = -1 must be a whole number, at least 0"),
        ({"together": 0}, "together = 0 must be a whole number, at least 1"),
        ({"repeated": None}, "repeated = None must be a whole number"),
        ({"elsewhere": 0.5}, "elsewhere = 0.5 must be"),
    ],
)
def test_circumstances_of_a_damaged_file_are_refused(told, said):
    content = json.loads(calibrate(*functions(), 0.2, 0.2).to_json())
    with pytest.raises(ValueError, match=said):
        Calibration.from_json(json.dumps({**content, "circumstances": told}))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (Circumstances(), ""),
        (Circumstances(here=1), " This model was calibrated before, once on these functions: "),
        (Circumstances(elsewhere=2), " This model was calibrated before, 2 times on others: "),
        (
            Circumstances(here=3, elsewhere=1),
            " This model was calibrated before, 3 times on these functions and once on others: ",
        ),
        (Circumstances(together=3), " This is one of 3 promises made from the same functions: "),
    ],
)
def test_what_is_told(told, said):
    assert told.sentence(50).startswith(said)
    assert bool(said) == bool(told.sentence(50))
