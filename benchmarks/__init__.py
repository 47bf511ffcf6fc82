"""Side-by-side measurements of artlas and the published form of the same model."""
