"""Batches of prompts whose responses are texts, for rewards that compare them."""

from __future__ import annotations

import numpy as np
import torch

from assay.batch import Batch
from assay.types import Ask, Episode, Group, Task, Verdict


def grouped(*texts: list[str], passed: bool | None = True) -> Batch:
    """One group a list, of tasks 0, 1, ... that ask q0, q1, ...; the verifier abstains from the text ``broken``."""
    made = []
    for g, some in enumerate(texts):
        one = np.ones(1, dtype=np.int64)
        episodes = tuple(Episode(one[:0], one, one > 0, np.zeros(1), text, "eos") for text in some)
        verdicts = tuple(Verdict(0.0, None if text == "broken" else passed) for text in some)
        made.append(Group(Ask(Task(str(g), f"q{g}"), len(some)), episodes, verdicts))
    return Batch.from_groups(made, torch.float64)
