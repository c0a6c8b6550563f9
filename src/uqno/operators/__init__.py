"""Operators: functions in, functions out."""

from uqno.operators.adapter import Operator as Operator
from uqno.operators.adapter import as_operator as as_operator
from uqno.operators.base import OPERATORS as OPERATORS
from uqno.operators.base import NeuralOperator as NeuralOperator
from uqno.operators.equivariant import EquivariantFNO as EquivariantFNO
from uqno.operators.fno import FNO as FNO
from uqno.operators.gino import GINO as GINO
from uqno.operators.latent import LatentGrid as LatentGrid
from uqno.operators.normaliser import Normaliser as Normaliser
from uqno.operators.padding import unpadded as unpadded
from uqno.operators.spectral import SpectralConv as SpectralConv
from uqno.operators.symmetry import Symmetry as Symmetry
from uqno.operators.symmetry import reflection as reflection
from uqno.operators.symmetry import square as square
from uqno.operators.symmetry import translations as translations
