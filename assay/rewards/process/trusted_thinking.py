"""A reward for how good a thought is, trusted as far as it tells right from wrong responses, and less with time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.engines.asking import ask, judge_of
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.ops import group_count, group_mean
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.spec import reward_of
from assay.rewards.wrapped import Around, valid_in
from assay.tasks.making.scored_thoughts import TEMPLATE, read_score, thought_prompt

UNKNOWN = 500
"""T of a run that nobody has said the length of."""
RIGHT = 0.5
EASY, HARD = 0.9, 0.1


class AskedThoughts:
    """R_i is the number in [0, 1] that a model gives the thought alone; no reward where it failed or gave none.

    It is shown the pictures of the question beside it. Responses of which ``wanted`` says no are not asked about, and
    have 0.

    Args:
        engine: an engine, or the specification of one; for questions with pictures one that sees.
        template: with ``{question}`` and ``{thought}``, which are shown as JSON has texts.
        max_tokens: of the reply, which is greedy.

    Raises:
        UsageError: no engine, or a template that does not show the thought.
    """

    def __init__(self, engine: Any, template: str = TEMPLATE, max_tokens: int = 16):
        if "{thought}" not in template:
            raise UsageError("reward 'trusted_thinking': the template must show {thought}")
        self.engine = judge_of(engine, "reward 'trusted_thinking'")
        self.template, self.sampling = template, Sampling(max_tokens, 0.0)

    def __call__(self, batch: Batch) -> Reward:
        return self.of(batch, judged(batch))

    def of(self, batch: Batch, wanted: Bool[Tensor, "N"]) -> Reward:
        """Return the scores of the responses that are wanted."""
        rows = wanted.nonzero()[:, 0].tolist()
        prompts = [thought_prompt(batch.tasks[i], batch.episodes[i].text, self.template) for i in rows]
        values, valid = torch.zeros_like(batch.rewards), judged(batch)
        for i, reply in zip(rows, ask(self.engine, prompts, self.sampling), strict=True):
            score = None if reply.stop == "error" else read_score(reply.text)
            valid[i], values[i] = bool(valid[i]) and score is not None, score or 0.0
        return Reward(values, valid=valid, terms={"thinking": values})


@part("reward", "trusted_thinking")
class TrustedThinking(Around):
    """R_i = o_i + gamma alpha exp(-t / T) s_i, with o_i the outcome's reward and s_i the score of the thought.

    Over a prompt's responses, mu_c is the mean score of those with o >= 1/2, mu_w of the others, and

        gamma = exp(min(mu_c - mu_w, 0)),    1 where there are none of either

    so that a scorer which prefers wrong responses is trusted less. t counts batches, from 0, and is in the checkpoint.

    Args:
        scorer: an engine, or the specification of one (a table with ``engine``, see :class:`AskedThoughts`), that is
            asked of each thought; or a reward part in [0, 1].
        outcome: what o is.
        alpha: weight of the thinking, at least 0.
        decay: T in batches; the run's steps if left out (500 where nobody says how many).
        trust: ``False``: gamma is 1.
        skip_flat: scores are 0 where all of a prompt's outcomes are at least 0.9, or all at most 0.1.
        min_outcome: responses with less are not asked about, and have a score of 0.

    Raises:
        UsageError: no scorer, an option out of range, or ``min_outcome`` with a scorer that is a part.

    Source: SophiaVL-R1 (arXiv 2505.17018), Trust-GRPO. ``skip_flat`` and ``min_outcome = 0.2`` are its authors' code.
    """

    def __init__(
        self,
        scorer: Any = None,
        outcome: Any = "verdict",
        alpha: float = 0.3,
        decay: float | None = None,
        trust: bool = True,
        skip_flat: bool = False,
        min_outcome: float | None = None,
    ):
        if scorer is None:
            raise UsageError(
                "reward 'trusted_thinking': nobody says how good a thought is; name a scorer, such as "
                '{engine = {name = "openai", ...}}'
            )
        if alpha < 0 or (decay is not None and decay <= 0):
            raise UsageError(
                f"reward 'trusted_thinking': alpha {alpha:g} must be at least 0, and decay {decay} above 0"
            )
        if isinstance(scorer, Engine) or (isinstance(scorer, Mapping) and "engine" in scorer):
            scorer = AskedThoughts(**scorer) if isinstance(scorer, Mapping) else AskedThoughts(scorer)
        super().__init__({"outcome": outcome, "thinking": reward_of(scorer)})
        if min_outcome is not None and not isinstance(self.inner["thinking"], AskedThoughts):
            raise UsageError("reward 'trusted_thinking': min_outcome is for a scorer that is asked; this one is a part")
        self.alpha, self.decay, self.trust, self.skip_flat = alpha, decay, trust, skip_flat
        self.least = -math.inf if min_outcome is None else min_outcome
        self.done, self.run = 0, UNKNOWN

    def planned(self, steps: int) -> None:
        """Take in how many steps the run has."""
        self.run = max(steps, 1)

    @property
    def weight(self) -> float:
        """alpha exp(-t / T), as it is now."""
        return self.alpha * math.exp(-self.done / (self.decay or self.run))

    def __call__(self, batch: Batch) -> Reward:
        outcome: Reward = self.inner["outcome"](batch)
        told = judged(batch) if outcome.valid is None else judged(batch) & outcome.valid
        asked = told & (outcome.values >= self.least)
        if self.skip_flat:
            asked &= ~self.flat(batch, outcome.values, told)
        scorer = self.inner["thinking"]
        thinking: Reward = scorer.of(batch, asked) if isinstance(scorer, AskedThoughts) else scorer(batch)
        valid = valid_in({"outcome": outcome, "thinking": thinking}, batch) & told
        scores = torch.where(asked, thinking.values, 0)
        trusted = self.gamma(batch, outcome.values >= RIGHT, scores, valid)
        values = outcome.values + trusted * self.weight * scores
        self.done += 1
        return Reward(values, outcome.tokens, valid, {"outcome": outcome.values, "thinking": scores, "trust": trusted})

    def gamma(
        self, batch: Batch, right: Bool[Tensor, "N"], scores: Float[Tensor, "N"], valid: Bool[Tensor, "N"]
    ) -> Float[Tensor, "N"]:
        """Return how far the scores of each sample's prompt are trusted."""
        if not self.trust:
            return torch.ones_like(scores)
        sides = (valid & right, valid & ~right)
        good, bad = (group_mean(scores, batch.prompt_group, side) for side in sides)
        both = [group_count(batch.prompt_group, side, scores.dtype) > 0 for side in sides]
        return torch.where(both[0] & both[1], (good - bad).clamp(max=0).exp(), 1)

    def flat(self, batch: Batch, outcomes: Float[Tensor, "N"], told: Bool[Tensor, "N"]) -> Bool[Tensor, "N"]:
        """Whether all of a prompt's outcomes are high, or all low."""
        whole = group_count(batch.prompt_group, told, outcomes.dtype)
        sides = (outcomes >= EASY, outcomes <= HARD)
        counts = [group_count(batch.prompt_group, told & side, outcomes.dtype) for side in sides]
        return (counts[0] == whole) | (counts[1] == whole)

    def state_dict(self) -> dict[str, Any]:
        return {"done": self.done}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.done = int(state["done"])
