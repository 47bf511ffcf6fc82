"""The twelve baselines that the paper compares with, one file and one interface each.

A baseline (:class:`artlas_paper.methods.base.Baseline`) is created from frozen settings. Its
``pretrain`` learns from graphs of several domains, and its ``embed`` gives one vector per graph.
:mod:`artlas_paper.methods.registry` finds methods by name with the paper's settings, and loads what
``pretrain`` wrote. Files that only one method imports carry its name (``graphglue_links``).
"""
