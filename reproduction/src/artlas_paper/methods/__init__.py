"""Methods that the paper compares with: one file each, one interface for all.

A baseline (:class:`artlas_paper.methods.base.Baseline`) is made of its own frozen options, learns by
``pretrain`` from graphs of several domains, and then ``embed`` gives one vector a graph;
``stepper`` is for measuring. :mod:`artlas_paper.methods.registry` finds methods by name and knows the
paper's settings of each; :func:`artlas_paper.methods.base.load` reads what ``pretrain`` wrote.
"""
