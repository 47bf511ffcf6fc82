"""Learn from labelled vectors."""
