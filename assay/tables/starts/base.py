"""What a part of one's own begins with."""

from __future__ import annotations

from dataclasses import dataclass

BATCH = '''
import numpy as np
import torch

from assay import Ask, Batch, Episode, Group, Task, Verdict
from FILE import CLASS


def batch(rewards):
    """A group of one-token responses with these rewards."""
    one = {"prompt": np.zeros(1, int), "tokens": np.ones(1, int), "mask": np.ones(1, bool)}
    episodes = [Episode(**one, logprobs=np.zeros(1, np.float32), text="7", stop="eos") for _ in rewards]
    verdicts = [Verdict(r, r == 1) for r in rewards]
    made = Batch.from_groups([Group(Ask(Task("t", "3+4="), len(rewards)), tuple(episodes), tuple(verdicts))])
    made.rewards = torch.tensor(rewards)
    return made
'''


@dataclass(frozen=True, slots=True)
class Start:
    """A file to begin with.

    Attributes:
        use: the command that takes the part; PART stands for it, as ``file.py:Name``.
        code: of the part; CLASS stands for its class's name.
        test: of it; FILE stands for the part's file.
        suffix: of the class that the command is told of, where the file has two.
    """

    use: str
    code: str
    test: str
    suffix: str = ""
