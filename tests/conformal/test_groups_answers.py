"""Some of a few functions answer as those functions do by themselves."""

import numpy as np

from uqno.conformal.groups import Remembered, Some
from uqno.conformal.scores import LARGE, blocks
from uqno.conformal.stream import Stream


def block(error, uncertainty):
    (one,) = blocks(Stream(error, uncertainty))
    return one


def test_rows_of_a_block_answer_like_a_block_of_these_rows():
    rng = np.random.default_rng(0)
    error, uncertainty = rng.normal(size=(6, 30)), rng.uniform(0.5, 1, (6, 30))
    rows = np.array([1, 4])
    every, alone = block(error, uncertainty), block(error[rows], uncertainty[rows])
    some = Some(every, Remembered(every), rows)
    np.testing.assert_array_equal(
        some.widened(0.1, 0.2).all_ratios(), alone.widened(0.1, 0.2).all_ratios()
    )
    above, between = some.window(0.5, 1.0)
    expected_above, expected = alone.window(0.5, 1.0)
    assert above == expected_above
    np.testing.assert_array_equal(np.sort(between), np.sort(expected))
    np.testing.assert_array_equal(some.every(3).all_ratios(), alone.every(3).all_ratios())


def test_the_largest_of_a_large_function_is_that_of_its_ratios():
    rng = np.random.default_rng(0)
    error, uncertainty = np.abs(rng.normal(size=(1, LARGE))), rng.uniform(0.5, 1, (1, LARGE))
    ranks, sizes = np.array([LARGE, LARGE - 300, LARGE - 3000]), np.array([3.0, 2.0, 1.0])
    ordered = np.sort(error / uncertainty)
    expected = (ordered[:, ranks - 1] / sizes).max(axis=1)
    np.testing.assert_allclose(block(error, uncertainty).largest(ranks, sizes), expected)
    same = block(error, uncertainty)
    same.expect(np.sort(ranks))
    np.testing.assert_allclose(same.largest(ranks, sizes), expected)
