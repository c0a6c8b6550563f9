"""Operators: functions in, functions out."""

from uqno.operators.adapter import Operator as Operator
from uqno.operators.adapter import as_operator as as_operator
from uqno.operators.fno import FNO as FNO
from uqno.operators.gino import GINO as GINO
from uqno.operators.normaliser import Normaliser as Normaliser
from uqno.operators.spectral import SpectralConv as SpectralConv
