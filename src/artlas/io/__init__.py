"""File formats: each module has ``read(path) -> Reading`` for one format, and executes nothing.

To add a format, write such a module and enter it in ``FORMATS`` of ``artlas.io.reading``.
"""
