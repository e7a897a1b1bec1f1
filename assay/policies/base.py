"""What learns: anything that makes a sequence of stochastic decisions with log-probabilities."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch

QUANTITIES = frozenset(
    {
        "entropy",
        "self_certainty",
        "logit",
        "mean_logprob",
        "probability_gap",
        "candidate_logprobs",
        "continuation_logprobs",
        "hidden",
        "next_logprob",
    }
)
"""What a policy may compute beside log-probabilities, z being the logits a token is drawn from:

- ``entropy`` ``(N, T)``: of the distribution after temperature, in nats;
- ``self_certainty`` ``(N, T)``: logsumexp(z) - mean_v z_v = KL(uniform || p) + log V, before temperature;
- ``logit`` ``(N, T)``: z of the token itself, before temperature;
- ``mean_logprob`` ``(N, T)``: mean over the vocabulary of log p, after temperature;
- ``probability_gap`` ``(N, T)``: probability of the likeliest token less that of the second, before temperature;
- ``candidate_logprobs`` ``(N, T, n)``: log p of the tokens in ``batch.signals["candidates"]`` ``(N, T, n)``, after
  temperature;
- ``continuation_logprobs`` ``(N, K, A)``: log p of other texts after prefixes of the response, after temperature: of
  ``batch.signals["continuations"]`` ``(N, K, A)`` after as many tokens as ``batch.signals["continuations_at"]``
  ``(N, K)`` says, both -1 where there is none; zero there;
- ``hidden`` ``(N, T, D)``: the last hidden state, which predicts the token; ``hidden@0.5``: that of the layer at this
  share of the depth;
- ``next_logprob@ID`` ``(N,)``: log p of token ID right after the response, before temperature.

All are zero after the end of a response.
"""

DRAWING_QUANTITIES = frozenset({"step_mean", "step_deviation", "sample"})
"""What a policy that draws may compute, D being the numbers of a sample (:mod:`assay.ops.denoising`):

- ``step_mean`` ``(N, T, D)``, ``step_deviation`` ``(N, T)``: of where each noisy step leads;
- ``sample@k`` ``(N, D)``: the sample as it comes out of the last k steps, taken anew without noise.
"""


@dataclass(slots=True)
class PolicyOutput:
    """One pass of a policy over a batch: log-probabilities of its tokens, and named quantities beside them.

    ``logprobs`` is ``(N, T)``, zero outside the responses; ``live`` holds what was asked for, see :data:`QUANTITIES`.
    """

    logprobs: Float[Tensor, "N T"]
    live: dict[str, Tensor] = field(default_factory=dict)


@runtime_checkable
class Policy(Protocol):
    """A trainable policy over the ``(N, T)`` decisions of a batch."""

    quantities: frozenset[str]
    """Which of :data:`QUANTITIES` ``forward`` can compute."""

    module: torch.nn.Module
    """Holds the parameters."""

    @property
    def width(self) -> int:
        """Length of a hidden state."""
        ...

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        """Log-probabilities of the batch's tokens under the current weights, with gradient, after temperature.

        Args:
            batch: its episodes say prompts and tokens.
            live: names of :data:`QUANTITIES`, with gradient as well.
            temperature: divides the logits.
        """
        ...

    def continuations(
        self,
        batch: Batch,
        at: Sequence[Sequence[int]],
        what: Sequence[Sequence[np.ndarray]],
        temperature: float = 1.0,
    ) -> Float[Tensor, "N K A"]:
        """Log-probabilities of other texts after prefixes of the responses, with gradient; zero after their ends.

        Args:
            batch: its episodes say prompts and responses.
            at: for each response, after how many of its tokens each continuation begins; at most K.
            what: for each response, as many arrays of token ids, of at most A tokens.
            temperature: divides the logits.
        """
        ...

    def continuation_ranks(
        self, batch: Batch, at: Sequence[Sequence[int]], what: Sequence[Sequence[np.ndarray]]
    ) -> Int[Tensor, "N K A"]:
        """How many tokens are likelier than each token of the continuations: 0 for the likeliest, and after their ends.

        Args:
            batch, at, what: as in :meth:`continuations`.
        """
        ...

    def candidates(
        self, batch: Batch, n: int, temperature: float = 1.0, generator: torch.Generator | None = None
    ) -> Int[Tensor, "N T n"]:
        """Draw ``n`` tokens from the policy at every position of the batch's responses, 0 after their end."""
        ...

    def likeliest(self, batch: Batch, n: int) -> Int[Tensor, "N T n"]:
        """The ``n`` likeliest tokens at every position of the batch's responses, best first, 0 after their end.

        Of a vocabulary of fewer tokens, all of them.
        """
        ...

    def micro_batches(self, batch: Batch, budget: int) -> list[Int[Tensor, "M"]]:
        """Partition the rows of a batch so that a pass over each part computes about ``budget`` tokens."""
        ...

    def save(self, folder: Path) -> None:
        """Write weights (safetensors) and whatever is needed to load the policy again."""
        ...

    def load_weights(self, folder: Path) -> None:
        """Take the weights that :meth:`save` wrote."""
        ...

    def twin(self) -> Policy:
        """Return a trainable copy with weights of its own."""
        ...

    def frozen(self, folder: Path) -> Policy:
        """Return a policy that keeps the weights :meth:`save` wrote to ``folder``."""
        ...
