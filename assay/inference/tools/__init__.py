"""Tools that a model writes for itself while it answers, kept from task to task."""
