"""Settings in which a flow draws."""
