"""Beam search: the most likely responses in place of samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.engines.base import Request
from assay.engines.trie import Trie
from assay.errors import UsageError


def check_beam(request: Request) -> None:
    """Raise UsageError if a beam search is asked for something that only sampling has."""
    sampling = request.sampling
    if request.beam and (sampling.stop or sampling.top_k or sampling.top_p < 1):
        raise UsageError("a beam search has no stop strings, top_k or top_p; leave them out")


class Beams:
    """Searches side by side, each with its ``width`` best hypotheses, best first; row ``p * width + w`` is the w-th of
    search p.

    A hypothesis is worth the sum of its tokens' log-probabilities, whatever its length; one that has ended keeps its
    place among the others as long as it is good enough. All hypotheses of a search are different. There are fewer than
    ``width`` where there are not as many; the rows left over are *dead*.

    Attributes:
        tokens, logprobs, entropies: ``(rows, steps)``, zero after a hypothesis' end.
        lengths: ``(rows,)``.
        scores: ``(rows,)``; minus infinity for dead rows.

    Args:
        searches, width, steps: how many, how wide, and how long at most.
        within: what the responses may be; anything if left out.
        device: of the tensors.
    """

    def __init__(
        self, searches: int, width: int, steps: int, within: Trie | None = None, device: torch.device | str = "cpu"
    ):
        rows = searches * width
        self.width, self.within, self.step = width, within, 0
        self.first = torch.arange(0, rows, width, device=device).repeat_interleave(width)
        self.scores = torch.full((rows,), -torch.inf, dtype=torch.float64, device=device)
        self.scores[::width] = 0
        self.tokens = torch.zeros(rows, steps, dtype=torch.int64, device=device)
        self.logprobs = torch.zeros(rows, steps, device=device)
        self.entropies = torch.zeros(rows, steps, device=device)
        self.lengths = torch.zeros(rows, dtype=torch.int64, device=device)
        self.ended = torch.zeros(rows, dtype=torch.bool, device=device)
        self.nodes = np.zeros(rows, dtype=np.int64)

    @property
    def dead(self) -> Bool[Tensor, "R"]:
        return self.scores.isneginf()

    @property
    def over(self) -> bool:
        """Whether every hypothesis has ended."""
        return bool((self.ended | self.dead).all())

    def offers(self, logprobs: Float[Tensor, "B V"], start: int) -> tuple[Float[Tensor, "B K"], Int[Tensor, "B K"]]:
        """Return the best next tokens of rows ``start`` to ``start + B`` and their log-probabilities.

        One that has ended is offered a single token, which changes nothing, at log-probability 0.
        """
        rows = slice(start, start + len(logprobs))
        if self.within is not None:
            allowed = torch.from_numpy(self.within.mask(self.nodes[rows], logprobs.shape[1])).to(logprobs.device)
            logprobs = logprobs.masked_fill(~allowed, -torch.inf)
        values, tokens = logprobs.topk(min(self.width, logprobs.shape[1]), dim=-1)
        values = values.masked_fill(self.ended[rows, None], -torch.inf)
        values[:, 0] = torch.where(self.ended[rows], 0, values[:, 0])
        return values, tokens

    def advance(
        self,
        values: Float[Tensor, "R K"],
        tokens: Int[Tensor, "R K"],
        entropies: Float[Tensor, "R"],
        ends: Callable[[Int[Tensor, "R"], Int[Tensor, "R"]], Bool[Tensor, "R"]],
    ) -> tuple[Int[Tensor, "R"], Int[Tensor, "R"]]:
        """Keep the best of what all rows were offered.

        Args:
            values, tokens: see :meth:`offers`, of all rows.
            entropies: of the distributions that the tokens are from.
            ends: says of parents and tokens whether a response ends with the token.

        Returns:
            For each row of now, the row it continues and the token it was given; any token where it had ended.
        """
        offered = values.shape[1]
        totals = (self.scores[:, None] + values.double()).reshape(-1, self.width * offered)
        # Stable, so that of equals the one whose parent was better comes first.
        best, place = (x[:, : self.width].flatten() for x in totals.sort(dim=-1, descending=True, stable=True))
        parents = self.first + place // offered
        token = tokens[parents, place % offered]
        going = ~self.ended[parents] & ~best.isneginf()
        for name in ("tokens", "logprobs", "entropies", "lengths", "ended"):
            setattr(self, name, getattr(self, name)[parents])
        self.scores = best
        self.tokens[going, self.step] = token[going]
        self.logprobs[going, self.step] = values[parents, place % offered][going].to(self.logprobs)
        self.entropies[going, self.step] = entropies[parents][going].to(self.entropies)
        self.lengths += going
        self.ended |= going & ends(parents, token)
        self.step += 1
        if self.within is not None:
            self.nodes = self.nodes[parents.cpu().numpy()]
            on = going.cpu().numpy()
            self.nodes[on] = self.within.follow(self.nodes[on], token.cpu().numpy()[on])
            self.ended |= going & torch.from_numpy(self.within.complete(self.nodes)).to(going.device)
        return parents, token
