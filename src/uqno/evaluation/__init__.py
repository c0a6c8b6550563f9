"""Measuring methods against each other: presets, methods, the experiment, its numbers."""
