"""Closed surfaces: areas, normals, signed distance, forces, the ideal flow around them."""

from uqno.geometry.distance import signed_distance as signed_distance
from uqno.geometry.forces import pressure_force as pressure_force
from uqno.geometry.forces import projected_area as projected_area
from uqno.geometry.ideal_flow import Stream as Stream
from uqno.geometry.ideal_flow import ideal_pressure as ideal_pressure
from uqno.geometry.surface import Surface as Surface
