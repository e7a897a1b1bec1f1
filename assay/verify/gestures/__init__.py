"""Single gestures on a screen, read and judged."""
