"""Few-shot transfer: pretraining folds, episodes, cached vectors, and records of results.

``folds`` and ``baseline_folds`` pretrain, ``episodes`` draws the tests, ``target`` caches vectors,
``art`` and ``baselines`` evaluate, and ``records`` keeps the results.
"""
