"""The true worlds, as programs: each is completed by what is drawn for a task, and runs in the sandbox."""
