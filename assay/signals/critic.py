"""A learned critic: the value of every prefix, from hidden states of the policy or of a model of its own."""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import RunError, UsageError
from assay.ops import masked_mean
from assay.registry import part
from assay.signals.base import Models


@part("signal", "critic")
class Critic:
    """Signal ``values`` ``(N, T)``: V_t = w . h_t + b, h_t the hidden state that predicts token t.

    After the policy's update it takes ``epochs`` steps on L = 1/2 mean_t max((V - ret)^2, (clip(V, V_old - clip, V_old
    + clip) - ret)^2), ret the returns that credit ``gae`` left in ``batch.signals["returns"]``, the mean over the
    learnable tokens of active samples.

    Source: PPO (arXiv 1707.06347), section 5, with the clipped value loss of its reference implementation.

    Args:
        trunk: ``policy``: a head on the policy's hidden states, which it does not change; ``own``: a second model,
            trained as a whole, that starts as a copy of the policy.
        lr: of AdamW; for the head on the policy's states it may be much larger than for a whole model.
        clip: half-width of the value's trust region; 0 leaves the clip out.
        epochs: steps per batch.
        max_grad_norm: L2 norm that gradients are scaled down to.

    Raises:
        UsageError: ``clip`` below 0, ``epochs`` below 1.
    """

    name = "values"

    def __init__(
        self,
        trunk: Literal["policy", "own"] = "policy",
        lr: float = 1e-3,
        clip: float = 0.2,
        epochs: int = 1,
        max_grad_norm: float = 1.0,
    ):
        if clip < 0 or epochs < 1:
            raise UsageError(f"signal 'critic': needs clip >= 0 and epochs >= 1, not {clip:g} and {epochs}")
        self.trains_model = trunk == "own"
        self.trunk, self.lr, self.clip, self.epochs, self.max_grad_norm = trunk, lr, clip, epochs, max_grad_norm

    def start(self, models: Models) -> None:
        """Make the head, zero at first, and the second model if there is one."""
        self.model = models.policy.twin() if self.trunk == "own" else None
        width = models.policy.width
        first = next(models.policy.module.parameters())
        self.head = torch.nn.Linear(width, 1, device=first.device, dtype=first.dtype)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)
        parameters = [*self.head.parameters()]
        if self.model is not None:
            parameters += [p for p in self.model.module.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(parameters, lr=self.lr, weight_decay=0.0)

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T"]:
        values = torch.zeros_like(batch.logprobs)
        policy = self.model or models.policy
        for rows in policy.micro_batches(batch, models.token_budget):
            found = self.values(batch.rows(rows), models)
            values[rows[:, None], torch.arange(found.shape[1])] = found.detach().to(values)
        return values

    def values(self, batch: Batch, models: Models) -> Float[Tensor, "N T"]:
        """Return V with a gradient on what the critic trains."""
        policy = self.model or models.policy
        with torch.set_grad_enabled(self.model is not None and torch.is_grad_enabled()):
            hidden = policy.forward(batch, {"hidden"}).live["hidden"]
        return self.head(hidden)[..., 0]

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Fit the returns; metrics ``critic/loss`` and ``critic/explained``, the share of their variance explained.

        Raises:
            RunError: no credit left returns.
        """
        if "returns" not in batch.signals:
            raise RunError("the critic has nothing to learn: use a credit that leaves returns, such as 'gae'")
        use = batch.mask & batch.active[:, None]
        index = use.any(-1).nonzero()[:, 0]
        if not len(index):
            return {}
        old, total = batch.signals["values"], float(use.sum())
        returns = batch.signals["returns"][use]
        spread = float(returns.var(unbiased=False))
        explained = 1 - float((old[use] - returns).var(unbiased=False)) / spread if spread > 0 else 0.0
        work, value = batch.rows(index), 0.0
        policy = self.model or models.policy
        for _ in range(self.epochs):
            self.optimizer.zero_grad(set_to_none=True)
            value = 0.0
            for rows in policy.micro_batches(work, models.token_budget):
                part = work.rows(rows)
                loss = self.loss(self.values(part, models).to(part.rewards), part) * float(part.mask.sum()) / total
                loss.backward()
                value += loss.item()
            parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
            torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
            self.optimizer.step()
        return {"critic/loss": value, "critic/explained": explained}

    def loss(self, values: Float[Tensor, "N T"], batch: Batch) -> Float[Tensor, ""]:
        """The clipped squared error of ``values`` against the returns of ``batch``."""
        old, returns = batch.signals["values"].to(values), batch.signals["returns"].to(values)
        error = (values - returns) ** 2
        if self.clip:
            error = torch.maximum(error, (old + (values - old).clamp(-self.clip, self.clip) - returns) ** 2)
        return masked_mean(error, batch.mask) / 2

    def state_dict(self) -> dict[str, Any]:
        model = None if self.model is None else self.model.module.state_dict()
        return {"head": self.head.state_dict(), "optimizer": self.optimizer.state_dict(), "model": model}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.head.load_state_dict(state["head"])
        if self.model is not None:
            self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
