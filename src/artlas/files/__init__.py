"""Open files of strangers safely, and write our own whole or not at all."""
