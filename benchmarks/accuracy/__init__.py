"""Judge the vector and the classifier: `python -m benchmarks.accuracy STUDY --data DIR`."""
