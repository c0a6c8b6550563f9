import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from training_stub import make_data

from uqno.training.samples import check_data, epoch_batches, index_batches, share, split


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", ["a", "u"])
def test_what_is_not_finite_is_named(field, value):
    data = make_data(5)
    data[3][field][0, 2] = value
    with pytest.raises(ValueError, match=f"field '{field}' of sample 3 has 1 of .*NaN"):
        check_data(data)


def test_large_numbers_are_not_infinite():
    check_data([{"u": torch.full((1, 9), 3e38)}])


def test_what_is_missing_or_no_measure_is_named():
    with pytest.raises(ValueError, match="data are empty"):
        check_data([])
    with pytest.raises(ValueError, match=r"fields \['a'\] and no truth 'u'"):
        check_data([{"a": torch.ones(1, 2)}])
    with pytest.raises(ValueError, match="is a list: convert it"):
        check_data([{"u": [1.0]}])
    for weights in (torch.zeros(3), torch.tensor([1.0, -1.0, 1.0])):
        with pytest.raises(ValueError, match="'weights' of sample 0 must be at least 0"):
            check_data([{"u": torch.ones(1, 3), "weights": weights}])


@given(st.integers(2, 200), st.floats(0, 0.99), st.integers(0, 2**63))
def test_a_split_is_a_partition(samples, validation, seed):
    if samples - max(1, round(validation * samples)) < 1:
        return
    training, held_out = split(samples, validation, seed)
    assert sorted(training + held_out) == list(range(samples))
    assert len(held_out) == (max(1, round(validation * samples)) if validation else 0)


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 5))
def test_processes_share_a_batch(samples, size, processes):
    for batch in index_batches(range(samples), size):
        parts = [share(batch, rank, processes) for rank in range(processes)]
        assert sorted(i for mine, count in parts for i in mine[:count]) == batch
        assert all(mine for mine, _ in parts)


def test_epochs_are_different_permutations():
    one, two = (epoch_batches(range(10, 50), 7, 0, epoch) for epoch in (0, 1))
    assert one != two
    assert one == epoch_batches(range(10, 50), 7, 0, 0)
    assert [len(batch) for batch in one] == [7] * 5 + [5]
    assert sorted(i for batch in one for i in batch) == list(range(10, 50))
