"""Studies beyond the main tables: one module per study, run by ``artlas-paper study NAME``."""
