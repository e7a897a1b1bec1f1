"""Capture-the-flag challenges as tasks: what is checked of them before anybody plays."""
