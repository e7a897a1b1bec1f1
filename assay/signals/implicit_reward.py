"""A process reward model that outcomes alone train: a language model whose log-ratio to a reference is the reward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import RunError, UsageError
from assay.ops.outcome_losses import OutcomeLoss, outcome_loss, pairwise_accuracy
from assay.ops.turns import own_turns
from assay.policies.base import Policy
from assay.registry import part
from assay.signals.base import Models
from assay.types import Verdict


@part("signal", "implicit_reward")
class ImplicitReward:
    """Signal ``implicit_reward`` ``(N, T)``: q_t = log phi(y_t | y_<t) - log ref(y_t | y_<t), zero outside the mask.

    phi is a second language model, a copy of the policy at first, so that q begins at 0. It is trained on verdicts
    alone, by a loss on h_i = sum_t q_it, see :func:`assay.ops.outcome_losses.outcome_loss`; sum_{s <= t} beta q_s is
    then the soft value of the prefix, beta log E_ref exp(r / beta) up to a constant, and beta q_t what a token adds.

    Each step it takes ``epochs`` steps of the run's optimiser over the samples that are learned from and were judged.
    Their gradient is that of the loss over all of them, whatever the passes they are read in.

    Args:
        loss: ``ce``, ``dpo``, ``detached_dpo``, ``kto`` or ``nca``.
        beta: of the loss, above 0.
        lr: of phi; twice the policy's highest if left out, as in PRIME.
        update: ``after``: phi learns once the policy has, which reads it as it was; ``before``: phi learns first, and
            the policy reads it anew, for one pass more.
        reference: ``initial``, the policy when RL began; ``behaviour``, the log-probabilities that responses were
            sampled with, which takes no second model (a token whose is not known has q = 0).
        epochs: steps per batch.
        balanced: right and wrong responses weigh the same.
        per_turn: h is divided by the response's number of turns, so that long episodes weigh as short ones do.
        threshold: a response is right if its score is above this; ``None`` for what its verdict says.
        max_grad_norm: L2 norm that gradients are scaled down to.

    Raises:
        UsageError: ``beta``, ``lr`` or ``max_grad_norm`` not above 0, ``epochs`` below 1.

    Source: "Free process rewards without process labels" (arXiv 2412.01981), proposition 3.1; PRIME (arXiv 2502.01456).
    """

    name = "implicit_reward"
    trains_model = True

    def __init__(
        self,
        loss: OutcomeLoss = "ce",
        beta: float = 0.05,
        lr: float | None = None,
        update: Literal["after", "before"] = "after",
        reference: Literal["initial", "behaviour"] = "initial",
        epochs: int = 1,
        balanced: bool = False,
        max_grad_norm: float = 10.0,
        per_turn: bool = False,
        threshold: float | None = None,
    ):
        if not (beta > 0 and max_grad_norm > 0 and epochs >= 1 and (lr is None or lr > 0)):
            raise UsageError(
                "signal 'implicit_reward': needs beta, lr and max_grad_norm above 0 and epochs >= 1, not "
                f"{beta:g}, {lr}, {max_grad_norm:g} and {epochs}"
            )
        self.loss, self.beta, self.lr, self.turn, self.reference = loss, beta, lr, update, reference
        self.epochs, self.balanced, self.max_grad_norm = epochs, balanced, max_grad_norm
        self.per_turn, self.threshold = per_turn, threshold
        self.model: Policy | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The models of a run that it reads."""
        return ("reference",) if self.reference == "initial" else ()

    def start(self, models: Models) -> None:
        """Copy the policy, and make the optimiser."""
        self.model = models.policy.twin()
        self.optimizer = models.optimizer(self.model.module.parameters(), self.lr or 2 * models.lr)

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T"]:
        here = torch.zeros_like(batch.logprobs)
        for rows in self._model.micro_batches(batch, models.token_budget):
            with torch.no_grad():
                found = self._model.forward(batch.rows(rows), (), models.temperature).logprobs
            here[rows[:, None], torch.arange(found.shape[1])] = found.to(here)
        gap = here - self._reference(batch, models)
        return torch.where(batch.mask & ~gap.isnan(), gap, 0)

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Fit the verdicts; metrics ``implicit/loss``, ``implicit/grad_norm`` and ``implicit/accuracy``.

        The accuracy is that of pairs of a right and a wrong response to one task, before this step.

        Raises:
            RunError: the loss or the gradient is not finite.
        """
        right, judged = labelled(batch.verdicts, self.threshold)
        where = judged.to(batch.mask.device) & batch.active & (batch.lengths > 0)
        right = right.to(batch.mask.device)
        index = where.nonzero()[:, 0]
        if not len(index):
            return {}
        metrics: dict[str, float] = {}
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        share = batch.rewards.new_ones(len(batch))
        if self.per_turn:
            share = 1 / torch.tensor([len(own_turns(e)) for e in batch.episodes]).to(share)
        for epoch in range(self.epochs):
            # Read in this step already, by weights that are still the same.
            q = batch.signals[self.name] if epoch == 0 else self(batch, models)
            h = (share * torch.where(batch.mask, q, 0).sum(-1)).requires_grad_()
            loss = outcome_loss(h, right, batch.group, where, self.beta, self.loss, self.balanced)
            (slope,) = torch.autograd.grad(loss, h)
            slope = share * slope
            self.optimizer.zero_grad(set_to_none=True)
            work = batch.rows(index)
            for rows in self._model.micro_batches(work, models.token_budget):
                part = work.rows(rows)
                logprobs = self._model.forward(part, (), models.temperature).logprobs
                known = torch.where(part.mask, slope[index[rows]][:, None], 0).to(logprobs)
                (known * logprobs).sum().backward()
            norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm))
            if not (loss.isfinite() and norm < float("inf")):
                raise RunError(
                    f"implicit reward: loss {loss.item()} with gradient norm {norm}; lower its lr, or raise its beta"
                )
            self.optimizer.step()
            if epoch == 0:
                accuracy = pairwise_accuracy(h.detach(), right, batch.group, where)
                metrics = {"implicit/accuracy": accuracy, "implicit/grad_norm": norm}
            metrics["implicit/loss"] = loss.item()
        return metrics

    @property
    def _model(self) -> Policy:
        if self.model is None:
            raise RunError("signal 'implicit_reward' has not been started: it learns in a run")
        return self.model

    def _reference(self, batch: Batch, models: Models) -> Float[Tensor, "N T"]:
        """Log-probabilities of the reference, which are read once a step."""
        if self.reference == "behaviour":
            return batch.logprobs
        if "reference_logprobs" not in batch.signals:
            batch.signals["reference_logprobs"] = models.quantities(batch, {"logprobs"}, "reference")["logprobs"]
        return batch.signals["reference_logprobs"]

    def state_dict(self) -> dict[str, Any]:
        return {"model": self._model.module.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def labelled(
    verdicts: Sequence[Verdict], threshold: float | None = None
) -> tuple[Bool[Tensor, "N"], Bool[Tensor, "N"]]:
    """Return which responses passed, or scored above a threshold, and of which that is known."""
    right = [v.passed is True if threshold is None else v.score > threshold for v in verdicts]
    return (
        torch.tensor(right, dtype=torch.bool),
        torch.tensor([v.passed is not None for v in verdicts], dtype=torch.bool),
    )
