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


def about_points(sampling: str, mixed: str, by_tail: bool, least: int, most: int) -> str:
    """What a promise supposes of the points of functions, to be added to its sentence.

    Args:
        sampling, mixed: of `guarantees.Fraction`.
        by_tail: whether the rule is the same for functions of any number of points.
        least, most: the numbers of points of the calibration functions.
    """
    finely = ", that how finely a function is observed is part of its draw"
    if sampling == "grid":
        return finely if least != most else ""
    drawn = ", that each function's points are independent draws from the domain"
    if by_tail:
        return drawn + finely
    at_least = f"a new one is observed at no fewer than {least} points"
    if mixed == "subsample":
        return f"{drawn} and their number tells nothing of the function, or {at_least}"
    if least != most:
        return f"{drawn}{finely} and {at_least}"
    return f"{drawn} and their number, {least}, was fixed beforehand or is the new one's too"
