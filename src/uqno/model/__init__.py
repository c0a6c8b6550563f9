"""From a base operator to calibrated bands: Algorithm 1 of the paper."""

from uqno.model.quantities import Functional as Functional
from uqno.model.uqno import UQNO as UQNO
