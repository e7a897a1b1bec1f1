"""The published methods: one file per paper, in a folder for each family."""
