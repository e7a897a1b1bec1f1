"""A plan of skills, by how much of it is the reference's in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.lists.matching import ordered_pairs, total
from assay.verify.planning.skills import Skill, in_form, read_plan, read_skill

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
MOST = 200
"""Lines of a plan, beyond which it is worth nothing."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The sentences that skills are said in, what is called how, and the plan that is right."""

    templates: tuple[str, ...]
    synonyms: Mapping[str, str]
    plan: tuple[Skill, ...]

    @classmethod
    def of(cls, reference: Any) -> Reference | None:
        """Read a task's reference, see :class:`PlanMatch`; ``None`` where it is none."""
        spec = reference if isinstance(reference, Mapping) else {}
        templates, plan, synonyms = spec.get("skills"), spec.get("plan"), spec.get("synonyms", {})
        texts = [templates, plan]
        if not all(isinstance(x, list | tuple) and x and all(isinstance(y, str) for y in x) for x in texts):
            return None
        if not isinstance(synonyms, Mapping) or not all(isinstance(x, str) for pair in synonyms.items() for x in pair):
            return None
        skills = [read_skill(line, tuple(templates), synonyms) for line in plan]  # type: ignore[arg-type, union-attr]
        known = tuple(skill for skill in skills if skill is not None)
        return cls(tuple(templates), synonyms, known) if len(known) == len(skills) else None  # type: ignore[arg-type]


@part("verify", "plan_match")
@dataclass(frozen=True, slots=True)
class PlanMatch(Marked):
    """Overlap of a plan with the reference's, order kept.

    A response is ``<think>...</think><answer>1. ...</answer>``, the answer a numbered list of skills. With m lines,
    n skills in the reference and S_ij how much line i is skill j, M is the greatest sum of S over pairs that increase
    on both sides, and

        score = 2 M / (m + n)        or, by ``measure = "max"``, M / max(m, n)

    What is too much, missing or in another order lowers it. A line that is no skill is like none of them.
    ``task.reference`` is ``{"skills": ["Put the [object] into the [location].", ...], "plan": ["Put the apple ...",
    ...]}``, to which may come ``synonyms``, ``{said: called}``.

    Passed iff all is the reference's. ``parts``: ``content``, the score; ``recall``, M / n; ``format``, whether tags
    are as above, each once and with blanks alone around them, and the list has all its lines, as they are numbered,
    from the skills, none of them twice.

    Args:
        measure: what M is divided by.
        partial: of a skill, what the same verb, object and target are worth, to sum to 1; without it skills are the
            same, 1, or not, 0.

    Raises:
        UsageError: parts of a skill that do not sum to 1.

    Source: REVER (arXiv 2509.25852): ordered bipartite matching; what M is divided by there was not at hand.
    """

    measure: Literal["dice", "max"] = "dice"
    partial: tuple[float, float, float] | None = None
    rules: ClassVar[tuple[Rule, ...]] = ("answer_tag",)
    fallback: ClassVar[Fallback] = "none"

    def __post_init__(self) -> None:
        if self.partial is not None and (abs(sum(self.partial) - 1) > 1e-9 or min(self.partial) < 0):
            raise UsageError(f"verifier 'plan_match': partial {list(self.partial)} must be three shares that sum to 1")

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = Reference.of(task.reference)
        if wanted is None:
            return Verdict.abstain(f"task {task.id}: reference has no skills and a plan of them", "tests")
        answer = extract(response, self.rules, self.fallback) or ""
        lines = read_plan(answer, wanted.templates, wanted.synonyms)
        if len(lines) > MOST:
            return Verdict(0.0, False, {"format": 0.0, "content": 0.0, "recall": 0.0}, f"more than {MOST} lines")
        alike = np.array([[self.like(line.skill, skill) for skill in wanted.plan] for line in lines])
        found = total(alike, ordered_pairs(alike)) if lines else 0.0
        m, n = len(lines), len(wanted.plan)
        content = 2 * found / (m + n) if self.measure == "dice" else found / max(m, n)
        form = float(in_tags(response) and in_form(lines))
        parts: dict[str, float | None] = {"format": form, "content": content, "recall": found / n}
        passed = [line.skill for line in lines] == list(wanted.plan)
        return Verdict(content, passed, parts, "" if passed else f"{found:g} of {n} skills, in {m} lines")

    def like(self, given: Skill | None, wanted: Skill) -> float:
        """How much a line is a skill, in [0, 1]."""
        if self.partial is None or given is None:
            return float(given == wanted)
        return sum(w for w, a, b in zip(self.partial, given, wanted, strict=True) if a == b)


def in_tags(response: str) -> bool:
    """Whether a response is a thought and an answer, in their tags and nothing else."""
    places = [response.find(tag) for tag in TAGS]
    if any(response.count(tag) != 1 for tag in TAGS) or places != sorted(places):
        return False
    begin, close, answer, end = places
    around = (response[:begin], response[close + len(TAGS[1]) : answer], response[end + len(TAGS[3]) :])
    return not any(text.strip() for text in around)
