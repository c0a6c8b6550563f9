"""The answer: a predicted function with its calibrated band."""

from uqno.band.band import Band as Band
