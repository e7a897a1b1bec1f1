"""Signals of judges that are trained."""
