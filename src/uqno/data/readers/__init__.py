"""Readers of files of fields, of published data sets and of meshes, one file a format."""
