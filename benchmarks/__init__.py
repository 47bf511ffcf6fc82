"""Benchmarks of artlas: time and memory beside a plain reference and other libraries."""
