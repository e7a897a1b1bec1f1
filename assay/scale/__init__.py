"""One run over many processes: ranks that train together, weights sharded over them, how they are started."""
