"""Traces measured against each of their reference solutions, the best of which counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from assay.engines.asking import ask, filled
from assay.engines.base import Sampling
from assay.evaluate.chain_judge import ChainJudge
from assay.evaluate.traces.alignment import DISTINCT, fused_score, image_score, local_score, text_score
from assay.evaluate.traces.encoder import Network
from assay.evaluate.traces.regions import Encoder, colours, region_likeness
from assay.evaluate.traces.trace import Step, Trace
from assay.media import marks
from assay.types import Prompt, Task
from assay.verify.critique import said
from assay.verify.kind import KindVerifier

COVERED = r"""A point that a good solution makes:
{question}

A solution:
{response}

Is the point made in the solution, in whatever words or formulas, or does it follow from what is said there? \
Write \boxed{True} if so, and \boxed{False} if not."""


SHOWN = r"""A problem:
{question}

Somebody's solution:
{response}

The first picture is a step of a right solution. What counts of it lies in these boxes, given as left, top, width and \
height in shares of the picture: {boxes}
The other pictures are those of the solution above, in their order.

Does at least one of these others show, with what the solution says, what counts of the first? Words alone are not \
enough. Write \boxed{True} if so, and \boxed{False} if not."""


@dataclass(frozen=True, slots=True)
class Against:
    """How a trace does against one reference solution; ``None`` for what could not be measured.

    Attributes:
        text, image, local: of steps, see :mod:`assay.evaluate.traces.alignment`.
        overall: share of the reference's points that a judge finds made, its pictures among them where the judge sees;
            ``None`` without points or opinions.
        fused: of local and overall, local alone where there is no overall.
    """

    text: float | None
    image: float | None
    local: float
    overall: float | None
    fused: float


@dataclass(frozen=True, slots=True)
class Scored:
    """A trace against the reference it does best against, how much worse it does against the worst, and its answer."""

    id: str
    best: Against
    gap: float
    right: bool | None


class TraceScore:
    """Measures traces.

    Args:
        likeness: of given steps with reference steps in words.
        judge: engine that says which points are made; ``None`` for no such score.
        sees: the judge sees pictures: every picture of a reference is then a point, by its boxes, and one that is not
            made where a trace has no picture.
        encode: makes a map of a picture; or the name of a network, see
            :class:`~assay.evaluate.traces.encoder.Network`.
        distinct: see :func:`~assay.evaluate.traces.alignment.image_score`.

    Source: StepSTEM (its paper and code).
    """

    def __init__(
        self,
        likeness: Callable[[Sequence[str], Sequence[str]], Float[np.ndarray, "m n"]],
        judge: Any = None,
        encode: Encoder | str = colours,
        distinct: float = DISTINCT,
        sees: bool = False,
    ):
        self.likeness, self.distinct, self.sees = likeness, distinct, sees
        self.encode: Encoder = Network(encode) if isinstance(encode, str) else encode
        self.judge = None if judge is None else ChainJudge(judge, 1, COVERED, Sampling(512, 0.0))
        self.verifier = KindVerifier()

    def __call__(self, trace: Trace) -> Scored:
        found = [self.against(trace, solution) for solution in trace.solutions]
        best = max(found, key=lambda one: one.fused)
        right = None
        if trace.reference is not None:
            task = Task(trace.id, trace.question, trace.reference, trace.kind)
            right = self.verifier(task, trace.answer).passed
        return Scored(trace.id, best, best.fused - min(one.fused for one in found), right)

    def against(self, trace: Trace, solution: Sequence[Step]) -> Against:
        """Measure a trace against one reference solution."""
        words = [step.text for step in solution if step.image is None]
        shown = [step for step in solution if step.image is not None]
        said = [step.text for step in trace.steps if step.image is None]
        seen = [self.encode(step.image.open()) for step in trace.steps if step.image is not None]
        text = text_score(self.likeness(said, words)) if words else None
        image = None
        if shown:
            rows = [[region_likeness(self._map(step), one, step.boxes) for one in seen] for step in shown]
            image = image_score(np.array(rows).reshape(len(shown), len(seen)), self.distinct)
        local = local_score(text or 0.0, image or 0.0, len(words), len(shown))
        overall = self.covered(trace, solution)
        fused = local if overall is None else fused_score(local, overall)
        return Against(text, image, local, overall, fused)

    def covered(self, trace: Trace, solution: Sequence[Step]) -> float | None:
        """Return the share of a solution's points that the judge finds made, of those it has an opinion on."""
        if self.judge is None:
            return None
        whole = "\n".join([*(step.text for step in trace.steps if step.image is None), trace.answer])
        votes = [vote for (vote,) in self.judge.votes([(step.point, whole) for step in solution if step.point])]
        if self.sees:
            votes += self._shown(trace, whole, [step for step in solution if step.image is not None])
        known = [vote for vote in votes if vote is not None]
        return sum(known) / len(known) if known else None

    def _shown(self, trace: Trace, whole: str, steps: Sequence[Step]) -> list[bool | None]:
        """Return whether the judge finds what counts of each picture shown in the trace's."""
        given = [step.image for step in trace.steps if step.image is not None]
        if not given or not steps:
            return [False] * len(steps)
        prompts: list[Prompt] = []
        for step in steps:
            boxes = "; ".join("[" + ", ".join(f"{x:g}" for x in box) + "]" for box, _ in step.boxes)
            text = filled(SHOWN, question=trace.question, response=whole, boxes=boxes)
            images = [step.image, *given]
            message = {"role": "user", "content": f"{marks(len(images))}\n{text}", "images": images}
            prompts.append((message,))  # type: ignore[arg-type]
        assert self.judge is not None
        replies = ask(self.judge.engine, prompts, self.judge.sampling)
        return [None if reply.stop == "error" else said(reply.text) for reply in replies]

    def _map(self, step: Step) -> Float[np.ndarray, "C H W"]:
        assert step.image is not None
        return self.encode(step.image.open())
