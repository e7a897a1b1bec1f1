"""Settings of tasks that are seen: where and when something is, what leads to it."""
