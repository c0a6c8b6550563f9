"""What the command line says of the comparison on Darcy flow."""

from __future__ import annotations

from uqno.experiments.darcy.settings import PRESETS, DarcySettings
from uqno.experiments.description import TaskDescription


class DarcyDescription(TaskDescription):
    """Darcy flow on the unit square."""

    name = "darcy"
    title = "Darcy flow on the unit square: from the permeability a to the pressure u."
    settings_type = DarcySettings
    presets = PRESETS
