"""Readers of published data sets and of meshes, one file a format."""
