"""Trajectories that a verifier judges by a rubric of the task, with all that was seen at hand."""
