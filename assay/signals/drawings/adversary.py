"""A reward model that learns to tell a flow's drawings from references, against the flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.signals.base import Models
from assay.signals.drawings.encoders import encoder_of

PATCHES = 64
"""Patches of a drawing that a loss looks at, at most."""


@part("signal", "adversary")
class Adversary:
    """Signal ``adversary`` ``(N,)``: what the head h says of a drawing,

        R = (1 - patch_reward) h(whole) + patch_reward mean_p h(patch p),    h = Linear(width) GELU Linear(1)

    over features of a frozen encoder, of unit length if ``normalise`` says so. In its turn it learns from the batch's
    drawings and as many references of the same prompts, ``task.meta["references"]``, or else the task's solution:

        ``hinge``:       1/2 [relu(1 - h(real)) + relu(1 + h(drawn))] of wholes + patch_loss times the same of patches
        ``preference``:  -log sigmoid(R(real) - R(drawn)), while the mean R of the drawn is above that of the real

    Of every ``every`` steps the last one is the policy's (:class:`~assay.select.in_turns.InTurns`) and the others are
    the head's; with 1 a step is both's.

    Args:
        encoder: ``plain``: a point's own numbers; ``random``: convolutions with random weights over pictures; or a
            vision transformer's folder or hub id.
        loss: see above.
        width, lr, betas: of the head and its optimiser, Adam.
        updates: steps of the head in a turn.
        every: see above.
        patch_loss, patch_reward: weight of patches; a point has none, and its reward is h(whole) alone.
        normalise: ``reward``: features are of unit length where it rewards, as in the authors' code; ``both``: where it
            learns too; ``none``.

    Raises:
        UsageError: a count below 1, a weight below 0.

    Source: Adv-GRPO (arXiv 2511.20256) and its authors' code.
    """

    name = "adversary"
    models: tuple[str, ...] = ()

    def __init__(
        self,
        encoder: str = "plain",
        loss: Literal["hinge", "preference"] = "hinge",
        width: int = 512,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.5, 0.999),
        updates: int = 1,
        every: int = 10,
        patch_loss: float = 0.3,
        patch_reward: float = 0.3,
        normalise: Literal["reward", "both", "none"] = "reward",
    ):
        if min(width, updates, every) < 1 or patch_loss < 0 or not 0 <= patch_reward <= 1:
            raise UsageError(
                "signal 'adversary': width, updates and every are 1 or more, patch_loss 0 or more, patch_reward 0 to 1"
            )
        self.encoder, self.loss, self.width, self.lr, self.betas = encoder, loss, width, lr, betas
        self.updates, self.every, self.normalise = updates, every, normalise
        self.patch_loss, self.patch_reward = patch_loss, patch_reward
        self.step = 0

    @property
    def policys(self) -> bool:
        """Whether the step is the policy's turn."""
        return (self.step + 1) % self.every == 0

    @property
    def own(self) -> bool:
        """Whether the step is the head's turn."""
        return self.every == 1 or not self.policys

    def check(self, policy: Any) -> None:
        """Raise UsageError for a policy that is no flow, or draws what the encoder does not look at."""
        if not getattr(policy, "draws", False):
            raise UsageError("the reward is learned from drawings; set model.source=flow")
        encoder_of(self.encoder, policy.config.shape)

    def start(self, models: Models) -> None:
        """Make the head."""
        self.look = encoder_of(self.encoder, models.policy.config.shape)  # type: ignore[attr-defined]
        self.head = torch.nn.Sequential(
            torch.nn.Linear(self.look.width, self.width), torch.nn.GELU(), torch.nn.Linear(self.width, 1)
        )
        self.optimizer = torch.optim.Adam(self.head.parameters(), lr=self.lr, betas=self.betas)

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N"]:
        return self.reward(*self.look([e.text for e in batch.episodes])).to(batch.logprobs)

    def reward(self, whole: Float[Tensor, "N W"], patches: Float[Tensor, "N P W"]) -> Float[Tensor, "N"]:
        """Return R of features."""
        if self.normalise != "none":
            whole, patches = (torch.nn.functional.normalize(x, dim=-1) for x in (whole, patches))
        said = self.head(whole)[:, 0]
        if not patches.shape[1]:
            return said
        return (1 - self.patch_reward) * said + self.patch_reward * self.head(patches)[..., 0].mean(-1)

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Take the turn, if it is the head's.

        Raises:
            RunError: a task has neither references nor a solution.
        """
        mine = self.own
        self.step += 1
        if not mine or not len(batch):
            return {}
        drawn = self.look([e.text for e in batch.episodes])
        real = self.look(self.references(batch, models))
        with torch.no_grad():
            gap = float((self.reward(*real) - self.reward(*drawn)).mean())
        metrics = {"adversary/gap": gap}
        if self.loss == "preference" and gap >= 0:
            return metrics
        value = 0.0
        for _ in range(self.updates):
            loss = self.hinge(real, drawn, models) if self.loss == "hinge" else self.preference(real, drawn)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            value = loss.item()
        return {**metrics, "adversary/loss": value}

    def references(self, batch: Batch, models: Models) -> list[str]:
        """Draw a reference for each sample of a batch."""
        found = []
        for task in batch.tasks:
            shown = task.meta.get("references") or ([task.solution] if task.solution is not None else [])
            if not shown:
                raise RunError(f"task {task.id} has no reference to learn from: meta['references'] or a solution")
            found.append(str(shown[int(models.rng.integers(len(shown)))]))
        return found

    def hinge(self, real: Sequence[Tensor], drawn: Sequence[Tensor], models: Models) -> Float[Tensor, ""]:
        """Return the hinge loss of features of references and drawings."""
        if self.normalise == "both":
            real, drawn = ([torch.nn.functional.normalize(x, dim=-1) for x in seen] for seen in (real, drawn))

        def apart(right: Tensor, wrong: Tensor) -> Tensor:
            return torch.relu(1 - self.head(right)).mean() + torch.relu(1 + self.head(wrong)).mean()

        loss = apart(real[0], drawn[0]) / 2
        if count := real[1].shape[1]:
            some = torch.from_numpy(models.rng.permutation(count)[:PATCHES].copy())
            loss = loss + self.patch_loss * apart(real[1][:, some], drawn[1][:, some])
        return loss

    def preference(self, real: Sequence[Tensor], drawn: Sequence[Tensor]) -> Float[Tensor, ""]:
        """Return the Bradley-Terry loss of references over drawings."""
        return -torch.nn.functional.logsigmoid(self.reward(*real) - self.reward(*drawn)).mean()

    def state_dict(self) -> dict[str, Any]:
        return {"head": self.head.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.head.load_state_dict(state["head"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
