"""How many words an answer shares with the reference."""

from __future__ import annotations

import re
import string

import torch

from assay.batch import Batch, Reward
from assay.ops.turns import own_turns
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Episode
from assay.verify.text.text import references

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_APART = str.maketrans(string.punctuation, " " * len(string.punctuation))


@part("reward", "answer_f1")
class AnswerF1:
    """R_i = 2 n(a & b) / (n(a) + n(b)) of the sets of words a of the answer and b of a reference, the best of several.

    The answer is what stands in the last ``<answer>`` of the last turn. Words are compared in lower case, and end at
    punctuation. A task without a reference that is a text has no reward.

    Source: the authors' code of IGPO (arXiv 2510.14967).

    Args:
        malformed: reward of a last turn in which no answer stands, or tags ``think`` and ``answer`` do not pair up.
    """

    def __init__(self, malformed: float = -2.0):
        self.malformed = malformed

    def __call__(self, batch: Batch) -> Reward:
        values, valid = torch.zeros_like(batch.rewards), judged(batch)
        for i, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            accepted = [r for r in references(task.reference) if r.strip()]
            valid[i] = bool(valid[i]) and bool(accepted)
            if accepted:
                values[i] = self.worth(episode, accepted)
        return Reward(values, valid=valid, terms={"answer_f1": values})

    def worth(self, episode: Episode, accepted: list[str]) -> float:
        """Return the reward of an episode by the references that are accepted."""
        text = own_turns(episode)[-1].text or episode.text
        found = _ANSWER.findall(text)
        whole = all(text.count(f"<{tag}>") == text.count(f"</{tag}>") for tag in ("think", "answer"))
        if not found or not whole:
            return self.malformed
        return max(word_f1(found[-1], reference) for reference in accepted)


def word_f1(answer: str, reference: str) -> float:
    """F1 of the sets of words; 0 if either has none."""
    a, b = (set(text.lower().translate(_APART).split()) for text in (answer, reference))
    return 2 * len(a & b) / (len(a) + len(b)) if a and b else 0.0
