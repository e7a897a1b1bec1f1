"""A table of methods on language models: fixed settings, one baseline, equal budgets, everyone tuned by one rule."""

from assay.league.entry import enter
from assay.league.settings import SETTINGS, Setting, load

__all__ = ["SETTINGS", "Setting", "enter", "load"]
