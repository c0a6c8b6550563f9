"""Numbers in sentences: every digit true, no bound on the wrong side."""

from decimal import Decimal
from fractions import Fraction

import pytest

from uqno.conformal.words import ordinal, percent, rest, rounded_up


def test_ordinals():
    special = {1: "1st", 2: "2nd", 3: "3rd", 21: "21st", 32: "32nd", 43: "43rd", 101: "101st",
               122: "122nd", 1003: "1003rd"}  # fmt: skip
    for i in (*range(1, 20), 21, 30, 32, 43, 101, 111, 112, 113, 122, 211, 1003, 1012):
        assert ordinal(i) == special.get(i, f"{i}th")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.98, "98 %"),
        (0.001, "0.1 %"),
        (Fraction(1, 16), "6.25 %"),
        (Fraction(1, 125), "0.8 %"),
        (Fraction(3, 80), "3.75 %"),
        (Decimal("0.5"), "50 %"),
        (Fraction(1, 3), "1/3"),
        (Fraction(5, 6), "5/6"),
        (Fraction(2, 15), "2/15"),
        (1e-9, "0.0000001 %"),
        (Decimal("1e-40"), f"0.{'0' * 37}1 %"),
        (1.0, "100 %"),
    ],
)
def test_percentages_with_every_digit(share, text):
    assert percent(share) == text


def test_what_is_left_of_a_share():
    assert rest(0.02) == "98 %"
    assert rest(4e-7) == "99.99996 %"
    assert rest(Fraction(1, 3)) == "2/3"


@pytest.mark.parametrize(
    ("x", "digits", "text"),
    [
        (0.99999, 3, "0.99999"),
        (0.9999, 3, "0.9999"),
        (0.99999999, 3, "0.99999999"),
        (0.99991234, 3, "0.999913"),
        (0.0, 3, "0"),
        (1.0, 3, "1"),
        (1.0001, 3, "1.01"),
        (0.0019960079840319364, 3, "0.002"),
        (0.12345, 3, "0.124"),
        (0.124, 3, "0.124"),
        (123456.0, 3, "124000"),
        (2.0000004, 6, "2.00001"),
        (9.999, 2, "10"),
        (0.5, 1, "0.5"),
        (2.5e-9, 3, "0.0000000025"),
    ],
)
def test_rounded_up(x, digits, text):
    assert rounded_up(x, digits) == text


def test_three_digits_are_the_default():
    assert rounded_up(3.14159) == "3.15"
