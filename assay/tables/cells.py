"""What goes into the cells of the table of methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.types import Ask, Episode, Group, Task, Verdict

RATIOS = (0.5, 0.9, 1.0, 1.1, 2.0)


def batch_of(rewards: Sequence[float], lengths: Sequence[int]) -> Batch:
    """Return one group of judged responses in float64."""
    episodes = [
        Episode(
            np.zeros(0, dtype=np.int64), np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool), np.zeros(n), "", "eos"
        )
        for n in lengths
    ]
    verdicts = [Verdict(r, r > 0.5) for r in rewards]
    batch = Batch.from_groups(
        [Group(Ask(Task("table", ""), len(rewards)), tuple(episodes), tuple(verdicts))], torch.float64
    )
    batch.rewards = torch.tensor(rewards, dtype=torch.float64)
    return batch


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows))


def numbers(values: Sequence[float], digits: int = 2) -> str:
    return ", ".join(f"{v + 0.0:.{digits}f}".replace(f"-{0:.{digits}f}", f"{0:.{digits}f}") for v in values)


def spec_of(options: Mapping[str, Any]) -> str:
    return f"`{', '.join(f'{k} = {v}' for k, v in options.items())}`".replace("name = ", "", 1)
