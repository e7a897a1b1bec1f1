"""Outputs for reward and remaining length, trained together with the model under them, which stays what it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.errors import UsageError
from assay.inference.heads.joint import Bins, JointHead
from assay.inference.heads.joint_training import outcomes
from assay.policies.base import Policy
from assay.rewards.step_models.states import lengthened
from assay.types import Episode, Group

TOKENS = 8192
"""Of a pass."""


class Original:
    """The likeliest next tokens of a model before it is changed, along responses.

    Args:
        policy: a model with an output layer; a tabular policy has none.
        episodes: the responses.
        top: tokens at each position.

    Raises:
        UsageError: a policy without an output layer.
    """

    def __init__(self, policy: Any, episodes: Sequence[Episode], top: int = 32):
        if getattr(policy, "head", None) is None:
            raise UsageError("a model is tuned under its outputs; this policy is not a language model")
        self.episodes = episodes
        self.batch = lengthened(episodes)
        top = min(top, policy.head.weight.shape[0])
        shape = (*self.batch.tokens.shape, top)
        self.logq, ids = torch.zeros(shape), torch.zeros(shape, dtype=torch.int64)
        size = policy.head.rows()
        with torch.no_grad():
            for rows in policy.micro_batches(self.batch, TOKENS):
                hidden = policy.forward(self.batch.rows(rows), {"hidden"}).live["hidden"]
                for row, i in zip(hidden, rows.tolist(), strict=True):
                    for start in range(0, len(episodes[i].tokens), size):
                        part = slice(start, min(start + size, len(episodes[i].tokens)))
                        found = policy.head.logits(row[part]).float().topk(top, dim=-1)
                        # Among themselves: what is below the top has no say.
                        self.logq[i, part] = found.values.log_softmax(-1).cpu()
                        ids[i, part] = found.indices.cpu()
        self.batch.signals["candidates"] = ids

    def passed(self, policy: Policy, rows: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return states ``(T + 1, D)``, from before the first token on, and KL(q_t || p_t) ``(T,)`` of some responses.

        q is the original model's, among its likeliest tokens; p the policy's, over the vocabulary. With a gradient.
        """
        out = policy.forward(self.batch.rows(rows), {"hidden", "candidate_logprobs"})
        found = []
        for j, i in enumerate(rows.tolist()):
            n = len(self.episodes[i].tokens)
            logq = self.logq[i, :n].to(out.logprobs.device)
            apart = (logq.exp() * (logq - out.live["candidate_logprobs"][j, :n].float())).sum(-1)
            found.append((out.live["hidden"][j, : n + 1].float(), apart))
        return found

    @torch.no_grad()
    def divergence(self, policy: Policy) -> float:
        """Return the mean of KL(q_t || p_t) over all positions, in nats; of the original, what lies below its top."""
        parts = [self.passed(policy, rows) for rows in policy.micro_batches(self.batch, TOKENS)]
        return float(torch.cat([kl for part in parts for _, kl in part]).mean())


@dataclass(frozen=True, slots=True)
class JointTuning:
    """Fits outputs for outcomes and the model under them, which is changed in place.

        L = mean_t [ -log P(outcome of t) + kl KL(q_t || p_t) ]

    P is the softmax of as many rows of the unembedding as there are outcomes, among themselves; q_t the original
    model's next token among its ``top`` likeliest, p_t the model's. The rows are kept in a
    :class:`~assay.inference.heads.joint.JointHead` beside the model and not in the rows of its vocabulary: reserved and
    masked wherever a token is drawn or a log-probability taken, since no sampler, engine or format ever has them.

    The first of two stages trains a copy on verdicts with kl = 0. The second begins again from the original: each
    response's reward is the mean of what the copy expects over its last ``last`` positions, and kl holds the model.

    Source: ZIP-RC (arXiv 2512.01457) and its authors' code: the loss, its stages, 32 tokens and a kl of 10.

    Args:
        bins: of the outcomes; the second stage is for 3 rewards or more, with 2 it would round to the nearer verdict.
        stages: 1 (the second alone, on verdicts) or 2.
        last, kl, top: see above.
        epochs, batch: of each stage: passes over the responses, and responses of a step.
        lr, backbone_lr: of AdamW, for the outputs and for the model.

    Raises:
        UsageError: an option out of range.
    """

    bins: Bins = field(default_factory=lambda: Bins(7))
    stages: int = 2
    last: int = 512
    kl: float = 10.0
    top: int = 32
    epochs: int = 10
    batch: int = 32
    lr: float = 0.01
    backbone_lr: float = 1e-4

    def __post_init__(self) -> None:
        small = min(self.last, self.top, self.epochs, self.batch)
        if self.stages not in (1, 2) or small < 1 or min(self.lr, self.backbone_lr) <= 0 or self.kl < 0:
            raise UsageError(
                "a model is tuned in 1 or 2 stages, with last, top, epochs and batch of at least 1, rates above 0 and "
                "kl of at least 0"
            )

    def fit(self, policy: Any, groups: Sequence[Group], rng: np.random.Generator) -> JointHead:
        """Return the outputs, and leave the policy as it was trained under them.

        Args:
            policy: a language model.
            groups: judged responses; abstentions and truncated responses, of unknown end, are left out.
            rng: of their order.

        Raises:
            UsageError: nothing is left, or a policy that is no language model.
        """
        episodes, rewards = outcomes(groups)
        original = Original(policy, episodes, self.top)
        if self.stages == 2:
            copy = policy.twin()
            head = self._stage(copy, original, rewards, 0.0, rng)
            rewards = self._expected(copy, head, original)
        return self._stage(policy, original, rewards, self.kl, rng)

    def _stage(
        self, policy: Policy, original: Original, rewards: Sequence[float], kl: float, rng: np.random.Generator
    ) -> JointHead:
        own = [p for p in policy.module.parameters() if p.requires_grad]
        device, many = own[0].device, len(original.episodes)
        head = JointHead(policy.width, self.bins).to(device)
        sets = [{"params": list(head.parameters()), "lr": self.lr}, {"params": own, "lr": self.backbone_lr}]
        optimizer = torch.optim.AdamW(sets, weight_decay=0.0)
        lengths = [len(e.tokens) for e in original.episodes]
        labels = [
            torch.tensor([self.bins.of(n - t, r) for t in range(n + 1)], device=device)
            for n, r in zip(lengths, rewards, strict=True)
        ]
        for _ in range(self.epochs):
            order = torch.from_numpy(rng.permutation(many))
            for chosen in order.split(self.batch):
                optimizer.zero_grad(set_to_none=True)
                tokens = sum(lengths[i] for i in chosen.tolist())
                for part in policy.micro_batches(original.batch.rows(chosen), TOKENS):
                    rows = chosen[part]
                    hidden, apart = zip(*original.passed(policy, rows), strict=True)
                    logits, wanted = head.linear(torch.cat(hidden)), torch.cat([labels[i] for i in rows.tolist()])
                    miss = torch.nn.functional.cross_entropy(logits, wanted, reduction="sum")
                    loss = miss / (tokens + len(chosen)) + kl * torch.cat(apart).sum() / tokens
                    torch.autograd.backward(loss)
                optimizer.step()
        return head

    @torch.no_grad()
    def _expected(self, policy: Policy, head: JointHead, original: Original) -> list[float]:
        """Return the mean reward that outputs expect over the last positions of each response."""
        out = [0.0] * len(original.episodes)
        for rows in policy.micro_batches(original.batch, TOKENS):
            for i, (hidden, _) in zip(rows.tolist(), original.passed(policy, rows), strict=True):
                value = torch.from_numpy(self.bins.values).to(hidden)
                out[i] = float((head(hidden[-self.last :]).sum(-1) @ value).mean())
        return out
