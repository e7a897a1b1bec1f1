"""``assay tasks``: looking at tasks, and making new ones."""
