"""Numbers in sentences that a person quotes: every digit true, no bound on the wrong side."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from uqno.types import Share


def percent(share: Share) -> str:
    """A share as a percentage with every digit, for what is quoted must be true.

    >>> percent(0.98), percent(Fraction(1, 3))
    ('98 %', '1/3')
    """
    exact = Fraction(str(share))
    rest_of_tens = exact.denominator
    for factor in (2, 5):
        while rest_of_tens % factor == 0:
            rest_of_tens //= factor
    if rest_of_tens != 1:  # no decimal number is this share
        return str(exact)
    decimal = 100 * Decimal(exact.numerator) / Decimal(exact.denominator)
    return f"{decimal.normalize():f} %"


def rest(share: Share) -> str:
    """What is left of a share: 0.02 → '98 %'."""
    return percent(1 - Fraction(str(share)))


def ordinal(i: int) -> str:
    """1 → '1st', 12 → '12th'."""
    suffix = "th" if i % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(i % 10, "th")
    return f"{i}{suffix}"


def rounded_up(x: float, digits: int = 3) -> str:
    """A few digits, never below x: a bound that is quoted still works. A share stays below 1."""
    d = Decimal(repr(float(x)))
    step = Decimal(1).scaleb(d.adjusted() - digits + 1)
    up = d.quantize(step, rounding=ROUND_CEILING).normalize()
    return rounded_up(x, digits + 3) if d < 1 <= up else f"{up:f}"
