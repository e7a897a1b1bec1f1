"""What the run's second policy says of each step of a response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.errors import RunError
from assay.signals.base import Models
from assay.signals.steps import Decode, Steps, decoder, step_texts
from assay.tasks.solutions.verifications import Verifications
from assay.types import Group, Task
from assay.verify.verification import Form, read


@dataclass(frozen=True, slots=True)
class PartnerMarks:
    """Signal ``partner_marks`` ``(N, T)``: 1 on the last token of a step that the partner calls right, -1 of one that
    it calls wrong, 0 on other tokens; NaN on all tokens of a response whose steps it did not judge one by one.

    One reply is sampled for each response.

    Args:
        steps: how responses are cut.
        asked: what the partner is asked.
        form: how its reply is read, see :func:`assay.verify.verification.read`.
        max_tokens: of the reply.

    Raises:
        RunError: the run has no partner.
    """

    steps: Steps = field(default_factory=lambda: Steps("tag"))
    asked: Verifications = field(default_factory=Verifications)
    form: Form = "tagged"
    max_tokens: int = 2048

    name = "partner_marks"

    def tasks(self, groups: Sequence[Group], decode: Decode) -> list[Task]:
        """Return what the partner is asked of judged responses when it is its turn to learn."""
        cut = [[step_texts(e, self.steps.of(e, decode), decode) for e in group.episodes] for group in groups]
        return self.asked.tasks(groups, cut)

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T"]:
        if models.partner is None:
            raise RunError(
                f"signal {self.name!r} asks the run's second policy, and it has none; take a method with one"
            )
        decode = decoder(models)
        spans = [self.steps.of(episode, decode) for episode in batch.episodes]
        out = torch.zeros_like(batch.logprobs)
        rows = [i for i, parts in enumerate(spans) if parts]
        seeds = models.rng.integers(2**63, size=len(batch)).tolist()
        sampling = Sampling(self.max_tokens, models.temperature)
        requests = []
        for i in rows:
            texts = step_texts(batch.episodes[i], spans[i], decode)
            prompt = self.asked.prompt(batch.tasks[i].question, texts, batch.episodes[i].text)
            requests.append(Request(prompt, 1, sampling, seeds[i]))
        replies = models.partner.generate(requests) if requests else []
        out[[i for i, parts in enumerate(spans) if not parts]] = math.nan
        for i, [reply] in zip(rows, replies, strict=True):
            said = read(reply.text, self.form).judged
            if len(said) != len(spans[i]):
                out[i] = math.nan
                continue
            for right, span in zip(said, spans[i], strict=True):
                out[i, span.end - 1] = 1.0 if right else -1.0
        return out
