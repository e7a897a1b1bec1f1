"""The loop: warm-up, RL, evaluation, checkpoints."""
