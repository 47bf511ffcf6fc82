"""File formats: a module turns the bytes of one format into graphs, and executes none of them."""
