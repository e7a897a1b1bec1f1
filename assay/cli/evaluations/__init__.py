"""What `assay eval` measures besides held-out tasks."""
