"""How a program that edits a picture did as a challenge: its form, whether it ran, how hard its questions are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.errors import RunError, UsageError
from assay.signals.base import Models
from assay.tasks.pictures.challenges import Challenges, worth
from assay.tasks.pictures.edits import Edit, Kind, Refused, carried_out, in_form, question, read_edit
from assay.types import Task, pictures
from assay.verify.kind import KindVerifier

FORM, VALID, HARD = range(3)


@dataclass(frozen=True, slots=True, eq=False)
class Challenged:
    """Signal ``challenged`` ``(N, 3)``: of each response whether it is in form, whether its program is valid, and the
    mean over its questions of 1 - 2 |acc - 1/2|; NaN where the sandbox, or the solver's engine, failed.

    A program is read from the response and carried out on the picture of its task
    (:mod:`assay.tasks.pictures.edits`); questions of each kind are put to the run's other policy, ``samples`` times at
    temperature 1, and acc is the share of right answers. A question that does not fit its context is never answered.
    What comes of it is kept in ``bank``.

    Args:
        bank: of examples and questions.
        kinds: of questions.
        samples: answers to each.
        max_tokens: of an answer.

    Raises:
        UsageError: no kinds, or numbers below 1.
        RunError: the run has no other policy.
    """

    bank: Challenges
    kinds: tuple[Kind, ...] = ("picture", "setting")
    samples: int = 6
    max_tokens: int = 2048
    judge: KindVerifier = field(default_factory=KindVerifier)

    name = "challenged"

    def __post_init__(self) -> None:
        if not self.kinds or min(self.samples, self.max_tokens) < 1:
            raise UsageError(
                f"signal 'challenged': it needs kinds, samples {self.samples} and max_tokens {self.max_tokens} >= 1"
            )

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N 3"]:
        if models.partner is None:
            raise RunError(f"signal {self.name!r} asks the run's other policy, and it has none; take a method with one")
        out = torch.zeros(len(batch), 3, dtype=batch.rewards.dtype)
        posed: list[tuple[int, Edit, Task]] = []
        for i, (episode, task) in enumerate(zip(batch.episodes, batch.tasks, strict=True)):
            out[i, FORM] = float(in_form(episode.text))
            edit = read_edit(episode.text)
            if isinstance(edit, Refused):
                continue
            picture = pictures(task.prompt)[0]
            made = carried_out(edit, picture)
            if isinstance(made, Refused):
                out[i] = math.nan if made.ours else out[i]
                continue
            out[i, VALID] = 1.0
            for kind in self.kinds:
                posed.append((i, edit, question(kind, edit, picture, made, f"{task.id}/{i}/{kind}", models.rng)))
        self._answer(posed, out, models)
        return out

    def _answer(self, posed: list[tuple[int, Edit, Task]], out: Float[Tensor, "N 3"], models: Models) -> None:
        """Have questions answered, fill in how hard they are, and keep what comes of it."""
        engine = models.partner
        seeds = models.rng.integers(2**63, size=len(posed)).tolist()
        sampling = Sampling(self.max_tokens, 1.0)
        window = getattr(engine, "window", math.inf)
        fits = [len(engine.encode(task.prompt)) < window for _, _, task in posed]
        asked = [
            Request(task.prompt, self.samples, sampling, seed)
            for (_, _, task), seed, fit in zip(posed, seeds, fits, strict=True)
            if fit
        ]
        replies = iter(engine.generate(asked) if asked else [])
        found: dict[int, list[float]] = {}
        for (i, _, task), fit in zip(posed, fits, strict=True):
            said = [self.judge(task, e.text) for e in next(replies) if e.stop != "error"] if fit else []
            judged = [verdict.passed for verdict in said if verdict.passed is not None]
            accuracy = sum(judged) / len(judged) if judged else math.nan if fit else 0.0
            found.setdefault(i, []).append(worth(accuracy))
            if not math.isnan(accuracy):
                self.bank.ask(task, accuracy)
        edits = {i: edit for i, edit, _ in posed}
        for i, hard in found.items():
            out[i, HARD] = sum(hard) / len(hard)
            if math.isnan(float(out[i, HARD])):
                out[i] = math.nan
            elif out[i, FORM]:
                self.bank.show(edits[i], float(out[i, HARD]))
