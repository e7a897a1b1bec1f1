"""A verifier learned from judged traces of the base policy: how likely it thinks a response is to be right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.registry import part
from assay.signals.base import Models
from assay.signals.prompt_value import PromptValue, prompt_states
from assay.types import Episode


@part("signal", "outcome_verifier")
class OutcomeVerifier(PromptValue):
    """Signal ``outcome_verifier`` ``(N,)``: an estimate in [0, 1] of the chance that a response is right.

    In the first ``steps`` steps it collects the verdicts on the policy's responses, which are traces of the base policy
    as long as nothing is learned from them (select ``when_ready`` sees to that). At the end of the last it is fitted

        r = argmin over heads of sum_i (r(x_i, y_i) - 1[y_i is right])^2

    once to those n = steps x prompts x group traces, and from then on it is fixed: verdicts are not read any more.
    The head, :class:`~assay.signals.prompt_value.PooledValue`, reads two hidden states of the frozen reference policy:
    the one after the whole response, and the mean over its tokens. A fifth of the traces is held out.

    Args:
        steps: that bring judged traces.
        epochs, lr, batch: of the fit, by AdamW.
        heads: of the attention.

    Raises:
        UsageError: ``steps``, ``epochs`` or ``batch`` below 1.

    Source: "Scaling Test-Time Compute Without Verification or RL is Suboptimal" (arXiv 2502.12118), the verifier of the
    simple verifier-based algorithm; head and fit are ours.
    """

    name = "outcome_verifier"
    kept = False

    def __init__(self, steps: int = 10, epochs: int = 10, lr: float = 1e-3, batch: int = 16, heads: int = 8):
        super().__init__(steps, epochs, lr, batch, 1.0, heads)

    def key(self, episode: Episode) -> bytes:
        return b"%d %s%s" % (len(episode.prompt), episode.prompt.tobytes(), episode.tokens.tobytes())

    def states(
        self, episodes: list[Episode], batch: Batch, models: Models
    ) -> tuple[Float[Tensor, "M 2 D"], Bool[Tensor, "M 2"]]:
        # As if the response were the end of a prompt: the state at its last token has read all of it.
        read = [replace(e, prompt=np.concatenate([e.prompt, e.tokens])) for e in episodes]
        states, _ = prompt_states(read, batch, models)
        rows = []
        for row, episode, whole in zip(states, episodes, read, strict=True):
            end, begin = max(len(whole.prompt), 1), len(episode.prompt)
            mine = row[min(begin, end - 1) : end]
            rows.append(torch.stack([mine[-1], mine.mean(0)]))
        found = torch.stack(rows)
        return found, torch.ones(found.shape[:2], dtype=torch.bool, device=found.device)

    def targets(self, batch: Batch) -> Float[Tensor, "N"]:
        told = [float("nan") if v.passed is None else float(v.passed) for v in batch.verdicts]
        return torch.tensor(told, dtype=batch.rewards.dtype)
