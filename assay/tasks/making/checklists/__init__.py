"""Checklists written by a model: of what an agent is to do in a dialogue, and of what there is to be seen."""
