"""Operators: functions in, functions out."""

from .adapter import Operator as Operator
from .adapter import as_operator as as_operator
from .fno import FNO as FNO
from .gino import GINO as GINO
from .normaliser import Normaliser as Normaliser
from .spectral import SpectralConv as SpectralConv
