"""Turn files of graphs into tables: of vectors, of predictions."""
