"""How a judge is asked to mark the criteria of a rubric, some in one request, and how its replies are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.engines.asking import filled
from assay.errors import UsageError
from assay.verify.rubric.criteria import Criterion, Rubric
from assay.verify.rubric.forms import after_reasoning, form_of

TEMPLATE = """Mark the response below by each criterion, strictly and by what the response itself says. What it says of
its own quality is no evidence.

Question:
{question}

Response:
{response}

Criteria:
{criteria}

First write your reasons, in <reasoning>...</reasoning>. Then write one label for each criterion, in order, as {form} \
and nothing else. For example:
{example}"""
YES_NO = {"yes": 1.0, "no": 0.0}
MARKS = "marks"
"""Key of ``episode.meta``: the marks of a response, where a rollout has had it marked."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge is asked of a response, and the marks that its reply gives.

    A criterion with tiers is marked by a number from 0 to M, another by one of ``labels``. A reply is read strictly:
    behind its reasons it has to be a list of as many labels as criteria, in the form asked for, or gives no mark at
    all; a label that is none of a criterion's gives that criterion none. An unread mark is ``None``, never 0.

    Args:
        block: criteria a request, at most; 0 for all in one.
        form: of the labels, see :data:`~assay.verify.rubric.forms.FORMS`.
        labels: what each label of a criterion without tiers is worth, in [0, 1].
        template: with ``{question}``, ``{response}``, ``{criteria}``, ``{form}`` and ``{example}``.

    Raises:
        UsageError: no such form, labels that are worth nothing or too much, or a template that does not show response
            and criteria.
    """

    block: int = 0
    form: str = "json"
    labels: Mapping[str, float] = field(default_factory=lambda: dict(YES_NO))
    template: str = TEMPLATE

    def __post_init__(self) -> None:
        form_of(self.form)
        values = list(self.labels.values())
        if self.block < 0 or len(values) < 2 or not all(math.isfinite(v) and 0 <= v <= 1 for v in values):
            raise UsageError("a judge of criteria needs a block of at least 0 and two or more labels, each in [0, 1]")
        if any(f"{{{name}}}" not in self.template for name in ("response", "criteria")):
            raise UsageError("a judge of criteria: the template must show the judge {response} and {criteria}")

    def blocks(self, rubric: Rubric) -> list[tuple[Criterion, ...]]:
        """Return the criteria of each request."""
        size = self.block or len(rubric.criteria)
        return [rubric.criteria[k : k + size] for k in range(0, len(rubric.criteria), size)]

    def prompts(self, question: str, response: str, rubric: Rubric) -> list[str]:
        """Return the requests about one response."""
        form = form_of(self.form)
        out = []
        for block in self.blocks(rubric):
            lines = "\n".join(f"{k}. {self._shown(c)}" for k, c in enumerate(block, 1))
            example = [self._words(c)[k % len(self._words(c))] for k, c in enumerate(block)]
            shown = {"question": question, "response": response, "criteria": lines, "form": form.called}
            out.append(filled(self.template, **shown, example=form.write(example)))
        return out

    def read(self, rubric: Rubric, replies: Sequence[str | None]) -> list[float | None]:
        """Return the mark of each criterion from the replies to :meth:`prompts`; ``None`` is one that failed."""
        out: list[float | None] = []
        for block, reply in zip(self.blocks(rubric), replies, strict=True):
            parts = None if reply is None else after_reasoning(reply)
            found = None if parts is None else form_of(self.form).read(parts[1])
            fits = found is not None and len(found) == len(block)
            out += [self.mark(c, x) for c, x in zip(block, found or (), strict=True)] if fits else [None] * len(block)
        return out

    def mark(self, criterion: Criterion, label: str) -> float | None:
        """Return what a label says of a criterion, ``None`` if it is none of its labels."""
        words = self._words(criterion)
        if label.casefold() not in words:
            return None
        if criterion.levels:
            return words.index(label) / criterion.top
        return next(v for word, v in self.labels.items() if word.casefold() == label.casefold())

    def _words(self, criterion: Criterion) -> list[str]:
        return [str(k) for k in range(criterion.top + 1)] if criterion.levels else [w.casefold() for w in self.labels]

    def _shown(self, criterion: Criterion) -> str:
        if not criterion.levels:
            return f"{criterion.text} (label: {' or '.join(self.labels)})"
        told = "; ".join(f"{k}: {level}" for k, level in enumerate(criterion.levels) if level)
        return f"{criterion.text} (label: a number from 0 to {criterion.top}{' - ' + told if told else ''})"
