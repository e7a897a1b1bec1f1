"""A look at data before a step: responses of the policy, judged and valued, and what a curriculum keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.curriculum.base import Surveying, unaided
from assay.engines.base import Engine
from assay.learning.signals import compute_signals
from assay.method import Method
from assay.rollout.base import Rollout
from assay.signals.base import Models
from assay.types import Ask
from assay.verify.base import Verifier
from assay.verify.episodes import judge_groups


def look(
    curriculum: Surveying,
    asks: Sequence[Ask],
    rollout: Rollout,
    engine: Engine,
    verifier: Verifier,
    method: Method,
    models: Models,
    rng: np.random.Generator,
    dtype: torch.dtype = torch.float32,
) -> list[dict[str, Any]]:
    """Ask, judge and value, and return the rows that the curriculum keeps; the parts' own state stays as it was.

    Args:
        curriculum: reads what comes back.
        asks: what it wants to know of.
        rollout, engine, verifier, method, models: of the run.
        rng: every draw comes from it.
        dtype: of the batch.
    """
    groups = unaided(judge_groups(verifier, rollout.collect(asks, engine, rng)))
    batch = Batch.from_groups(groups, dtype)
    batch.answer = models.answer
    if len(batch):
        before = deepcopy(method.state_dict())
        needs = method.needs | getattr(curriculum, "needs", frozenset())
        compute_signals(batch, needs, replace(models, rng=rng))
        method.worth(batch)
        method.load_state_dict(before)
    return curriculum.look(groups, batch)
