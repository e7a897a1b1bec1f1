"""A reward as it is, and beside it a judge's word on whether rationales support the answers given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.engines.asking import ask, escaped, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.outcome.appeals import reading
from assay.rewards.spec import reward_of

TEMPLATE = """Question:
"{question}"

Response:
"{response}"

Does the reasoning of the response support the final answer that it gives, be that right or wrong? Reply with yes or \
no."""


@part("reward", "monitored")
@dataclass(slots=True)
class Monitored:
    """R_i is another reward's; every ``every`` steps a judge says of each response whether its rationale supports its
    answer.

    The share of which it does (reasoning-answer consistency, RAC) is ``reward/rac`` by ``reward/rac_told`` in the log:
    terms of 1 where the judge said yes, and where it said either. It is in no reward and no gradient: a good place to
    stop a run is near its peak. The step is in the checkpoint.

    Args:
        reward: what is rewarded.
        judge: an engine, or the specification of one; ``None`` asks nobody.
        every: steps, from the first on.
        template: with ``{question}`` and ``{response}``, which are shown as JSON has texts.
        max_tokens: of the reply, which is greedy; its last yes or no counts.

    Raises:
        UsageError: ``every`` or ``max_tokens`` below 1, no engine, or a template that does not show the response.

    Source: Puzzle Curriculum GRPO (arXiv 2512.14944), whose judge has 72B parameters.
    """

    reward: Any = "verdict"
    judge: Any = None
    every: int = 10
    template: str = TEMPLATE
    max_tokens: int = 16
    _step: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if min(self.every, self.max_tokens) < 1 or "{response}" not in self.template:
            raise UsageError(
                "reward 'monitored': every and max_tokens must be at least 1, and the template show {response}"
            )
        self.reward = reward_of(self.reward)
        if self.judge is not None:
            self.judge = judge_of(self.judge, "reward 'monitored'")

    @property
    def members(self) -> list[Any]:
        return [self.reward]

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset(getattr(self.reward, "needs", ()))

    def __call__(self, batch: Batch) -> Reward:
        found: Reward = self.reward(batch)
        due = self.judge is not None and self._step % self.every == 0
        self._step += 1
        if due:
            found.terms |= self.consistency(batch)
        return found

    def consistency(self, batch: Batch) -> dict[str, Float[Tensor, "N"]]:
        """Return the terms, see above."""
        prompts = [
            filled(self.template, question=escaped(task.question), response=escaped(episode.text))
            for task, episode in zip(batch.tasks, batch.episodes, strict=True)
        ]
        said = [reading(reply) for reply in ask(self.judge, prompts, Sampling(self.max_tokens, 0.0))]
        terms = {"rac": [s is True for s in said], "rac_told": [s is not None for s in said]}
        return {name: torch.tensor(values).to(batch.rewards) for name, values in terms.items()}

    def state_dict(self) -> dict[str, Any]:
        return {"step": self._step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._step = int(state["step"])
