"""Pull requests as tasks: checked by running their tests without and with the fix."""
