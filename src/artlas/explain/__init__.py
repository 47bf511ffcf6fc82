"""Explain how a model aligns one graph, as an HTML page."""
