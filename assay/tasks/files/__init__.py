"""Tasks from files and data sets of rows."""
