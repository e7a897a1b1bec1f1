"""How well a model tells what it can answer from what it cannot."""
