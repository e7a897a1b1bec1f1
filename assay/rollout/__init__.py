"""Rollouts: how is a response made?"""

from assay.rollout import single_turn

__all__ = ["single_turn"]
