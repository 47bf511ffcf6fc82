"""Few-shot transfer: folds, records and the main tables."""
