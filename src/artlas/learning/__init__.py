"""Learn classifiers from labelled vectors."""
