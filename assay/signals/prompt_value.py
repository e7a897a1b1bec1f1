"""What a frozen reference policy earns on a prompt, read off its hidden states of the prompt."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.base import Models
from assay.types import Ask, Episode, Group

RECORD = "record"
"""``meta["role"]`` of episodes that the reference policy did not write: the value is not fitted on them."""


class PooledValue(torch.nn.Module):
    """V = ceiling x sigmoid(w . pool(h) + b), the pool an attention over the prompt's states with one learned query.

    Args:
        width: of a hidden state.
        heads: of the attention, at most; the largest number up to it that divides ``width``.
        ceiling: largest value.
    """

    def __init__(self, width: int, heads: int = 8, ceiling: float = 1.0):
        super().__init__()
        heads = next(n for n in range(min(heads, width), 0, -1) if width % n == 0)
        self.query = torch.nn.Parameter(0.02 * torch.randn(width))
        self.attention = torch.nn.MultiheadAttention(width, heads, batch_first=True)
        self.out = torch.nn.Linear(width, 1)
        self.ceiling = ceiling

    def forward(self, states: Float[Tensor, "M P D"], mask: Bool[Tensor, "M P"]) -> Float[Tensor, "M"]:
        query = self.query.expand(len(states), 1, -1)
        pooled, _ = self.attention(query, states, states, key_padding_mask=~mask, need_weights=False)
        return self.ceiling * torch.sigmoid(self.out(pooled[:, 0])[:, 0])


@part("signal", "prompt_value")
class PromptValue:
    """Signal ``prompt_value`` ``(N,)``: V(x) of :class:`PooledValue` on the last hidden states of the reference policy.

    In the first ``steps`` steps it collects the rewards of the policy's own responses, which is the reference as long
    as nothing is learned from them (rollout ``recorded`` sees to that); at the end of the last it fits V to them once,
    by the squared error, for ``epochs`` passes with a fifth of the prompts held out, and keeps the best pass. From then
    on V is fixed (``ready``).

    Source: A-LoL (arXiv 2305.14718) and its authors' code.

    Args:
        steps: that bring responses of the reference policy.
        epochs, lr, batch: of the fit, by AdamW. (The paper takes a rate of 1e-5 over far more responses.)
        ceiling: largest reward; of a sum of rewards in [0, 1], how many there are.
        heads: of the attention.

    Raises:
        UsageError: ``steps``, ``epochs`` or ``batch`` below 1, ``ceiling`` not above 0.
    """

    name = "prompt_value"
    models = ("reference",)
    kept = True
    """Whether what was read once is kept: prompts come again."""

    def __init__(
        self,
        steps: int = 10,
        epochs: int = 10,
        lr: float = 1e-3,
        batch: int = 16,
        ceiling: float = 1.0,
        heads: int = 8,
    ):
        if min(steps, epochs, batch) < 1 or ceiling <= 0:
            raise UsageError(
                f"signal {self.name!r}: needs steps, epochs and batch of at least 1, and a ceiling above 0"
            )
        self.steps, self.epochs, self.lr, self.batch = steps, epochs, lr, batch
        self.ceiling, self.heads = ceiling, heads
        self.seen = 0
        self.head: PooledValue | None = None
        self._data: list[tuple[Tensor, float, int]] = []
        self._known: dict[bytes, float] = {}

    @property
    def ready(self) -> bool:
        """Whether V is fitted."""
        return self.seen >= self.steps

    def start(self, models: Models) -> None:
        device = next(models.policy.module.parameters()).device
        self.head = PooledValue(models.policy.width, self.heads, self.ceiling).to(device)

    @torch.no_grad()
    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N"]:
        assert self.head is not None
        keys = [self.key(e) for e in batch.episodes]
        new = list({k: i for i, k in reversed(list(enumerate(keys))) if k not in self._known}.values())
        found = dict(self._known)
        if new:
            states, mask = self.states([batch.episodes[i] for i in new], batch, models)
            found |= {keys[i]: v for i, v in zip(new, self.head(states, mask).tolist(), strict=True)}
        if self.ready and self.kept:
            self._known = found
        return torch.tensor([found[k] for k in keys], dtype=batch.rewards.dtype)

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Collect, and at the end of the last of ``steps`` fit; the metric, held out, is the signal's name/error."""
        if self.ready:
            return {}
        targets = self.targets(batch)
        rows: dict[bytes, list[int]] = {}
        for i, episode in enumerate(batch.episodes):
            if episode.meta.get("role") != RECORD and math.isfinite(targets[i]):
                rows.setdefault(self.key(episode), []).append(i)
        if rows:
            states, mask = self.states([batch.episodes[r[0]] for r in rows.values()], batch, models)
            for state, here, mine in zip(states.cpu(), mask.cpu(), rows.values(), strict=True):
                self._data.append((state[here], float(targets[mine].mean()), len(mine)))
        self.seen += 1
        return self._fit(models) if self.ready and self._data else {}

    def key(self, episode: Episode) -> bytes:
        """What the head reads of an episode, so that equal ones are read once."""
        return episode.prompt.tobytes()

    def states(
        self, episodes: list[Episode], batch: Batch, models: Models
    ) -> tuple[Float[Tensor, "M P D"], Bool[Tensor, "M P"]]:
        """The reference's hidden states that the head reads, and which of them are there."""
        return prompt_states(episodes, batch, models)

    def targets(self, batch: Batch) -> Float[Tensor, "N"]:
        """What the head is fitted to, NaN for samples that say nothing."""
        return torch.where(batch.valid, batch.rewards, torch.nan)

    def _fit(self, models: Models) -> dict[str, float]:
        assert self.head is not None
        device = next(self.head.parameters()).device
        order = models.rng.permutation(len(self._data)).tolist()
        held = order[: len(order) // 5] or order
        train = order[len(order) // 5 :]
        # From the mean reward on, so that even a short fit is not far off.
        total = sum(n for _, _, n in self._data)
        mean = min(max(sum(r * n for _, r, n in self._data) / (total * self.ceiling), 0.01), 0.99)
        torch.nn.init.constant_(self.head.out.bias, math.log(mean / (1 - mean)))
        optimizer = torch.optim.AdamW(self.head.parameters(), lr=self.lr)
        best, weights = float("inf"), None
        for _ in range(self.epochs):
            for start in range(0, len(train), self.batch):
                loss = self._error(train[start : start + self.batch], device)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                error = float(self._error(held, device))
            if error < best:
                best, weights = error, deepcopy(self.head.state_dict())
            models.rng.shuffle(train)
        if weights is not None:
            self.head.load_state_dict(weights)
        self._data.clear()
        return {f"{self.name}/error": best}

    def _error(self, members: list[int], device: torch.device) -> Float[Tensor, ""]:
        """Squared error against the mean reward of each prompt, weighted by its responses."""
        assert self.head is not None
        data = [self._data[i] for i in members]
        states = torch.nn.utils.rnn.pad_sequence([d[0] for d in data], batch_first=True).to(device)
        mask = torch.arange(states.shape[1]) < torch.tensor([len(d[0]) for d in data])[:, None]
        target = torch.tensor([d[1] for d in data], device=device)
        weight = torch.tensor([float(d[2]) for d in data], device=device)
        return (weight * (self.head(states, mask.to(device)) - target) ** 2).sum() / weight.sum()

    def state_dict(self) -> dict[str, Any]:
        assert self.head is not None
        return {"head": self.head.state_dict(), "seen": self.seen, "data": list(self._data)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        assert self.head is not None
        self.head.load_state_dict(state["head"])
        self.seen, self._data, self._known = state["seen"], list(state["data"]), {}


def prompt_states(
    episodes: list[Episode], batch: Batch, models: Models, model: str = "reference"
) -> tuple[Float[Tensor, "M P D"], Bool[Tensor, "M P"]]:
    """Return a model's last hidden states at the tokens of each episode's prompt, and which of them are there.

    A hidden state belongs to the token it predicts, so the prompt is read as a response to its own first token, with
    the episode's first token at its end. An empty prompt has one state, the one that the response begins at.
    """
    read = []
    for episode in episodes:
        prompt = episode.prompt
        last = episode.tokens[:1] if len(episode.tokens) else np.zeros(1, dtype=np.int64)
        tokens = np.concatenate([prompt[1:], last])
        read.append(Episode(prompt[:1], tokens, np.ones(len(tokens), dtype=bool), None, "", "eos"))
    work = Batch.from_groups([Group(Ask(batch.tasks[0], 1), (e,)) for e in read], torch.float32)
    states = models.quantities(work, {"hidden"}, model)["hidden"]
    device = next(models.policy.module.parameters()).device
    return states.to(device), work.mask.to(device)
