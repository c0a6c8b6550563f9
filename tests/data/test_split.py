"""Splits are disjoint, repeatable and recorded."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uqno.data.split import ROLES, Split, split_functions

sizes = st.integers(0, 12)


@given(sizes, sizes, sizes, sizes, sizes, st.integers(0, 2**32))
def test_disjoint_of_the_sizes_asked_and_recorded(base, residual, calibration, test, spare, seed):
    wanted = {"base": base, "residual": residual, "calibration": calibration, "test": test}
    total = base + residual + calibration + test + spare
    split = split_functions(total, **wanted, seed=seed)
    used = [i for role in ROLES for i in getattr(split, role)]
    assert len(used) == len(set(used)) == total - spare
    assert all(0 <= i < total for i in used)
    assert {role: len(getattr(split, role)) for role in ROLES} == wanted
    assert split_functions(total, **wanted, seed=seed) == split
    assert Split.from_record(json.loads(json.dumps(split.record()))) == split


def test_the_seed_and_nothing_else_decides():
    sizes = {"base": 50, "residual": 20, "calibration": 20, "test": 10}
    one, other = (split_functions(100, **sizes, seed=s) for s in (0, 1))
    assert one.base != other.base
    fewer = split_functions(100, **{**sizes, "test": 5}, seed=0)
    assert (fewer.base, fewer.residual, fewer.calibration) == (
        one.base,
        one.residual,
        one.calibration,
    )


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"= 101 functions do not fit into 100.* 1 fewer"):
        split_functions(100, base=50, residual=20, calibration=20, test=11)
    with pytest.raises(ValueError, match="at least 0"):
        split_functions(100, base=-1, residual=20, calibration=20, test=11)
    record = split_functions(10, base=4, residual=2, calibration=2, test=2).record()
    with pytest.raises(ValueError, match="two roles"):
        Split.from_record({**record, "test": record["base"]})
    with pytest.raises(ValueError, match="0 to 9"):
        Split.from_record({**record, "test": [10, 11]})
    with pytest.raises(ValueError, match=r"lacks \['test'\]"):
        Split.from_record({key: value for key, value in record.items() if key != "test"})
