"""A process reward model that is two language models: one that outcomes taught, and the one it began as."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from assay.batch import Batch
from assay.engines.target import resolve
from assay.errors import UsageError
from assay.policies.base import Policy
from assay.policies.tabular import text_of
from assay.signals.base import Models
from assay.signals.steps import token_ends
from assay.types import Ask, Episode, Group, Task

Of = Literal["reward", "value"]


class ImplicitPRM:
    """Scores step k by r_k = beta sum over its tokens of log phi - log ref, or by the value of what it ends.

    The value of a prefix is Q_t = beta sum_{s <= t} (log phi - log ref), which at the optimum of the outcome loss is
    beta log E_ref exp(r / beta) over how it may go on, up to a constant; as a score it is 2 sigmoid(Q_t) - 1, how sure
    it is that the response will be right.

    Args:
        policy: phi; has to know how to encode text, to score any.
        reference: ref; ``None`` leaves it out, so that log phi alone is scored.
        beta: as in training, above 0.
        of: ``reward`` or ``value``.
        separator: put after each step that does not end in white space, but for the last.
        token_budget: tokens of a pass.

    Raises:
        UsageError: ``beta`` not above 0.

    Source: "Free process rewards without process labels" (arXiv 2412.01981), proposition 3.1 and section 4.
    """

    def __init__(
        self,
        policy: Policy,
        reference: Policy | None,
        beta: float = 0.05,
        of: Of = "reward",
        separator: str = "\n\n",
        token_budget: int = 8192,
    ):
        if beta <= 0:
            raise UsageError(f"implicit process rewards: beta {beta:g} must be above 0")
        self.policy, self.reference, self.beta, self.of = policy, reference, beta, of
        self.separator, self.token_budget = separator, token_budget

    @classmethod
    def of_run(cls, run: str | Path, reference: str = "initial", **options: object) -> ImplicitPRM:
        """Return that of a run trained by method S197, or by another objective with a reference.

        Args:
            run: its folder.
            reference: ``initial``, the policy that its RL began with, ``none``, or a model.
            options: see the class.

        Raises:
            UsageError: no such run, or one that keeps no reference.
        """
        policy, folder = resolve(str(run)).load(), Path(run).expanduser() / "reference"
        if reference == "none":
            other: Policy | None = None
        elif reference == "initial":
            if not folder.is_dir():
                raise UsageError(f"{run} keeps no reference policy to compare with; name a model as reference, or none")
            other = policy.frozen(folder)
        else:
            other = resolve(reference).load()
        return cls(policy, other, **options)  # type: ignore[arg-type]

    def token_rewards(self, responses: Sequence[tuple[Task, Episode]]) -> list[np.ndarray]:
        """Return beta (log phi - log ref) of each token ``(T,)`` of each response, in float64."""
        rows = [i for i, (_, e) in enumerate(responses) if len(e.tokens)]
        out = [np.zeros(len(e.tokens)) for _, e in responses]
        groups = [Group(Ask(responses[i][0], 1), (responses[i][1],)) for i in rows]
        batch = Batch.from_groups(groups, torch.float64)
        models = Models(self.policy, self.reference, token_budget=self.token_budget)
        if rows:
            gap = models.quantities(batch, {"logprobs"})["logprobs"]
            if self.reference is not None:
                gap = gap - models.quantities(batch, {"logprobs"}, "reference")["logprobs"]
            for i, row in zip(rows, gap, strict=True):
                out[i] = self.beta * row[: len(out[i])].numpy()
        return out

    def scored(self, rewards: np.ndarray, ends: Sequence[int]) -> list[float]:
        """Return one score per step of a response, by the rewards of its tokens ``(T,)`` and where its steps end."""
        sums = np.concatenate([[0.0], np.cumsum(rewards)])
        if self.of == "value":
            return [float(np.tanh(sums[end] / 2)) for end in ends]  # 2 sigmoid(Q) - 1
        return [float(sums[b] - sums[a]) for a, b in pairwise([0, *ends])]

    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float]]:
        """Return one score per step; see :class:`assay.rewards.process.step_scores.StepScorer`."""
        read = [self._read(task, steps) for task, steps in responses]
        rewards = self.token_rewards([(task, e) for (task, _), (e, _) in zip(responses, read, strict=True)])
        return [self.scored(row, ends) for row, (_, ends) in zip(rewards, read, strict=True)]

    def episode(self, task: Task, text: str) -> Episode:
        """Return a response as phi reads it, ended by its end-of-sequence token."""
        prompt = self.policy.encode(task.prompt)  # type: ignore[attr-defined]
        tokens = np.asarray(self.policy.encode_response(text), dtype=np.int64)  # type: ignore[attr-defined]
        return Episode(prompt, tokens, np.ones(len(tokens), dtype=bool), None, text, "eos")

    def _read(self, task: Task, steps: Sequence[str]) -> tuple[Episode, list[int]]:
        """Return the response that steps make, and after how many tokens each of them ends; a token over a border
        belongs to the step that it begins in."""
        last = len(steps) - 1
        pieces = [s if s[-1:].isspace() or k == last else s + self.separator for k, s in enumerate(steps)]
        episode = self.episode(task, "".join(pieces))
        tokens = episode.tokens.tolist()
        ends = token_ends(tokens, getattr(self.policy, "decode", text_of))
        cuts = [bisect_left(range(len(tokens)), c, key=ends) + 1 for c in accumulate(map(len, pieces[:-1]))]
        return episode, [*(min(c, len(tokens)) for c in cuts), len(tokens)] if steps else []


def first_below(scores: Sequence[float], threshold: float) -> int:
    """Return the first step whose score is below ``threshold``; -1 where none is: the rule of ProcessBench."""
    return next((k for k, s in enumerate(scores) if s < threshold), -1)
