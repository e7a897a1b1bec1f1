"""verifiers: environments whose own loop runs in a process of its own."""
