"""Write all results as one page."""
