"""Train modules on unlabelled graphs of several domains."""
