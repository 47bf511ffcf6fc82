"""Embed files of graphs into one table of vectors."""
