"""A joint head trained on judged responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from assay.errors import UsageError
from assay.inference.heads.joint import Bins, JointHead, start_states
from assay.policies.base import Policy
from assay.rewards.step_models.states import states
from assay.types import Episode, Group


def outcomes(groups: Sequence[Group]) -> tuple[list[Episode], list[float]]:
    """Return the responses whose outcome is known, and their rewards: those that were judged and not cut off.

    Raises:
        UsageError: nothing is left.
    """
    known = [
        (e, float(v.score))
        for g in groups
        for e, v in zip(g.episodes, g.verdicts, strict=True)
        if v.passed is not None and not e.truncated and len(e.tokens)
    ]
    if not known:
        raise UsageError("a joint head has nothing to learn from: no response that ended was judged")
    return [e for e, _ in known], [r for _, r in known]


@dataclass(frozen=True, slots=True)
class JointTraining:
    """Fits a head on a frozen policy: L = -mean_t log P(outcome of t), over all beginnings of all responses.

    The outcome after t tokens is (final reward, T - t); t runs from 0, the prompt alone, to T. In the first stage the
    reward is the verdict's; in the second, from the beginning again, each response's reward is instead the mean of the
    rewards that the first head expects over its last ``last`` positions, which is less of a coin toss.

    Args:
        bins: of the outcomes; the second stage is for 3 rewards or more, with 2 it would round to the nearer verdict.
        stages: 1 or 2.
        last: positions, see above.
        epochs, lr: of each stage, full batches by Adam.

    Raises:
        UsageError: an option out of range.
    """

    bins: Bins = field(default_factory=lambda: Bins(7))
    stages: int = 2
    last: int = 512
    epochs: int = 200
    lr: float = 0.05

    def __post_init__(self) -> None:
        if self.stages not in (1, 2) or min(self.last, self.epochs) < 1 or self.lr <= 0:
            raise UsageError("a joint head needs 1 or 2 stages, last and epochs of at least 1, and lr above 0")

    def fit(self, policy: Policy, groups: Sequence[Group]) -> JointHead:
        """Return a head trained on judged responses; abstentions and truncated responses, of unknown end, are left out.

        Raises:
            UsageError: nothing is left.
        """
        episodes, judged = outcomes(groups)
        with torch.no_grad():
            after = states(policy, episodes)
            hidden = [torch.cat([s[None].to(h), h]) for s, h in zip(start_states(policy, episodes), after, strict=True)]
        head = self._stage(hidden, judged)
        if self.stages == 2:
            value = torch.from_numpy(self.bins.values).to(hidden[0])
            with torch.no_grad():
                rewards = [float((head(h[-self.last :]).sum(-1) @ value).mean()) for h in hidden]
            head = self._stage(hidden, rewards)
        return head

    def _stage(self, hidden: Sequence[Tensor], rewards: Sequence[float]) -> JointHead:
        labels = [self.bins.of(len(h) - 1 - t, r) for h, r in zip(hidden, rewards, strict=True) for t in range(len(h))]
        x, y = torch.cat(list(hidden)), torch.tensor(labels, device=hidden[0].device)
        head = JointHead(x.shape[1], self.bins).to(x.device)
        optimizer = torch.optim.Adam(head.parameters(), lr=self.lr)
        for _ in range(self.epochs):
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(head.linear(x), y).backward()
            optimizer.step()
        return head
