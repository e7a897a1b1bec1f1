"""What an agent's turns have led to, in words, and what those are worth by a reward model that is learned meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.engines.asking import judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.ops.turns import own_turns
from assay.registry import part
from assay.signals.base import Models
from assay.signals.captions.annotator import Stack, annotated, beside
from assay.signals.captions.models import Classification, Fit, Kind, Question, Ranking, Retrieval, RewardModel
from assay.types import Turn

Labels = dict[Question, float | None]


@part("signal", "captions")
class Captions:
    """Signal ``captions`` ``(N, K)``: r(o) of what each own turn of a response has led to, NaN without a caption.

    A caption is what the environment said to a turn, or a text that it has noted of it. r is a reward model, see
    :mod:`assay.signals.captions.models`. After every step it meets the step's captions; those that it knows no label of
    (``ranking``: pairs of those met) are put on a stack, and an annotator is asked of the newest ``batch`` in a thread
    beside the run, one batch at a time. What it says is learned from in a later step. r is computed where a batch is
    valued, by the model as it is then, however long ago its episodes were sampled.

    Labels come in after ``delay`` steps, so that a run repeats itself bit for bit: it waits for an annotator that takes
    longer, and for none that is as fast. With ``arrival`` it never waits: labels come in in the first step that finds
    them there, and a run does not repeat itself. What an annotator failed on is put back under the
    others.

    Args:
        annotator: an engine, or the specification of one; a run without is refused.
        model: ``retrieval``, ``classification`` or ``ranking``.
        goal: what the annotator is told of it.
        of: ``reply``, what the environment said, or the name of a note of the turn.
        batch: questions that are asked at a time.
        capacity: that wait at most, the oldest are dropped; and what ``ranking`` keeps.
        delay: see above, at least 1.
        arrival: see above.
        eta, epsilon: thresholds of ``classification`` and ``ranking``.
        pairs: that ``ranking`` draws in a step.
        lr, rows, updates, few, length, width: of their networks, see :class:`~assay.signals.captions.models.Fit`.
        max_tokens, temperature: of the annotator.

    Raises:
        UsageError: an option out of range.

    Source: ONI (arXiv 2410.23022) and its authors' code; the wording of the questions is a choice.
    """

    name = "captions"
    whole = True

    def __init__(
        self,
        annotator: Any = None,
        model: Kind = "retrieval",
        goal: str = "",
        of: str = "reply",
        batch: int = 100,
        capacity: int = 10_000,
        delay: int = 1,
        arrival: bool = False,
        eta: float = 0.5,
        epsilon: float = -0.5,
        pairs: int = 10,
        lr: float = 1e-4,
        rows: int = 256,
        updates: int = 32,
        few: int = 25_000,
        length: int = 256,
        width: int = 64,
        max_tokens: int = 4096,
        temperature: float = 0.1,
    ):
        if min(batch, capacity, delay, pairs, rows, max_tokens) < 1 or min(updates, few) < 0 or not 0 <= eta <= 1:
            raise UsageError(
                "signal 'captions': batch, capacity, delay, pairs, rows and max_tokens must be at least 1, updates and "
                f"few at least 0, and eta {eta:g} in [0, 1]"
            )
        if not of:
            raise UsageError("signal 'captions': of names a note of a turn, or is 'reply'")
        self.annotator = None if annotator is None else judge_of(annotator, "captions")
        self.kind, self.goal, self.of, self.batch, self.delay, self.arrival = model, goal, of, batch, delay, arrival
        self.eta, self.epsilon, self.pairs, self.capacity = eta, epsilon, pairs, capacity
        self.how, self.sampling = Fit(lr, rows, updates, few, length, width), Sampling(max_tokens, temperature)
        self.queue = Stack(capacity)
        self.steps = 0
        self.asked: list[Question] = []
        self.due = 0
        self._answer: Future[Labels] | None = None
        if model != "retrieval":
            self._made()  # what it is made of is checked before the run

    def _made(self) -> RewardModel:
        if self.kind == "classification":
            return Classification(self.eta, self.how)
        if self.kind == "ranking":
            return Ranking(self.epsilon, self.how, self.pairs, 2 * self.batch, self.capacity)
        return Retrieval()

    def check(self, policy: Any) -> None:
        """Refuse a run without an annotator."""
        if self.annotator is None:
            raise UsageError("captions need an annotator: give an engine, such as annotator = {name = ...}")

    def start(self, models: Models) -> None:
        self.model = self._made()
        # Of its own: how often it is drawn from may depend on when labels come.
        self.rng = np.random.default_rng(int(models.rng.integers(2**62)))

    def caption(self, turn: Turn) -> str:
        """Return what a turn led to; empty where nothing is told."""
        return turn.reply if self.of == "reply" else str(turn.info.get(self.of) or "")

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N K"]:
        self.check(models.policy)
        rows = [[self.caption(turn) for turn in own_turns(episode)] for episode in batch.episodes]
        places = [(i, k) for i, row in enumerate(rows) for k, caption in enumerate(row) if caption]
        out = torch.full((len(rows), max(map(len, rows), default=0)), torch.nan, dtype=batch.rewards.dtype)
        if places:
            where = tuple(torch.tensor(places).T)
            out[where] = self.model.worth([rows[i][k] for i, k in places]).to(out.dtype)
        return out

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Meet the batch's captions, take in labels that are due, learn from them, and have the next ones asked."""
        self.steps += 1
        told = [e for e, valid in zip(batch.episodes, batch.valid.tolist(), strict=True) if valid]
        captions = [c for episode in told for turn in own_turns(episode) if (c := self.caption(turn))]
        pushed = self.model.meet(captions, len(self.queue), self.rng)
        under_way = set(self.asked)
        dropped = self.queue.push(q for q in pushed if q not in under_way)
        labels = self._taken_in(models)
        self.model.add({q: label for q, label in labels.items() if label is not None})
        failed = [q for q, label in labels.items() if label is None]
        dropped += self.queue.push_under(failed)
        first = self.how.updates if labels else 0
        loss = self.model.fit(first if len(self.model) < self.how.few else 1, self.rng)
        if not self.asked and len(self.queue):
            self.asked, self.due = self.queue.take(self.batch), self.steps + self.delay
            self._ask(models)
        return {
            "captions/labelled": float(len(self.model)),
            "captions/helpful": self.model.helpful,
            "captions/waiting": float(len(self.queue) + len(self.asked)),
            "captions/dropped": float(dropped),
            "captions/failed": float(len(failed)),
            **({} if loss is None else {"captions/loss": loss}),
        }

    def _ask(self, models: Models) -> None:
        """Have the annotator asked in its thread; of several processes one does."""
        questions, engine = list(self.asked), self.annotator
        assert engine is not None

        def begin() -> None:
            self._answer = beside(lambda: annotated(engine, questions, self.goal, self.sampling))

        models.once(begin)

    def _taken_in(self, models: Models) -> Labels:
        """Return the labels that are due, or with ``arrival`` there; none otherwise."""
        if not self.asked or (not self.arrival and self.steps < self.due):
            return {}

        def found() -> Labels | None:
            assert self._answer is not None
            return self._answer.result() if not self.arrival or self._answer.done() else None

        labels = models.once(found)
        if labels is None:
            return {}
        self.asked, self._answer = [], None
        return labels

    def state_dict(self) -> dict[str, Any]:
        """What is under way is waited for and kept; with ``arrival`` it is put back on the stack."""
        waiting, labels = list(self.queue.waiting), None
        if self.asked and self.arrival:
            waiting += self.asked
        elif self._answer is not None:
            labels = self._answer.result()
        return {
            "model": self.model.state_dict(),
            "waiting": waiting,
            "asked": [] if self.arrival else list(self.asked),
            "labels": labels,
            "due": self.due,
            "steps": self.steps,
            "rng": self.rng.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.queue.waiting = dict.fromkeys(map(tuple, state["waiting"]))
        self.asked, self.due, self.steps = [tuple(q) for q in state["asked"]], state["due"], state["steps"]
        self.rng.bit_generator.state = state["rng"]
        self._answer = None
        if state["labels"] is not None:
            self._answer = Future()
            self._answer.set_result(dict(state["labels"]))
