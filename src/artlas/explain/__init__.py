"""Write a page about one graph."""
