"""An answer as claims: each entailed, possible or contradicted by what is given, and all of them together."""

from __future__ import annotations

import importlib.util
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any, Literal, Protocol

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.isolate.workers import Failure
from assay.verify.logic.sentences import declared, formula
from assay.verify.logic.smt import WORKERS
from assay.verify.text.exact import shorten

Status = Literal[
    "entailed", "possible", "contradictory", "unknown", "supported", "plausible", "unsupported", "uncertain"
]
MOST = 50
"""Claims of an answer that are judged; one with more is wrong."""
SECONDS = 10.0
"""Of processor time for each question to z3."""
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")


class Unreadable(Exception):
    """The solver could not be asked, or what a task gives is no context."""


@dataclass(frozen=True, slots=True)
class Theory:
    """What claims are held against.

    Attributes:
        declarations: of the constants, in SMT-LIB.
        context: what is given, as assertions.
        bridges: what relates claims that no solver can judge to the others; soft claim i is the constant ``soft_i``.
        question: a term that the claims have to settle; empty for none.
    """

    declarations: str
    context: str
    bridges: str = ""
    question: str = ""


class Translator(Protocol):
    """Writes a claim as candidate formulas of SMT-LIB; none for a claim that is not a matter of logic."""

    def __call__(self, claim: str, theory: Theory) -> Translated: ...


class SoftJudge(Protocol):
    """Judges claims that no solver can: supported, plausible, unsupported or uncertain; ``None`` where it failed."""

    def __call__(self, task: Task, claims: Sequence[str]) -> Sequence[Status | None]: ...


@dataclass(frozen=True, slots=True)
class Translated:
    """The formula a claim was settled on, ``None`` for one that goes to the judges; ``alert`` says what is amiss."""

    formula: str | None
    alert: str = ""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What is known of an answer.

    Attributes:
        claims: as the answer makes them.
        statuses: of each.
        score: of all, see :func:`answer_score`.
        joint: whether all can hold at once; ``None`` where the solver cannot tell.
        removed: claims without which the others can hold with what is given: a minimal correction set.
        core: claims that cannot hold together.
        consistent: whether what is given can hold at all.
        answers: whether the claims settle the question, where the task has one.
        alerts: what went amiss where claims were made formulas.
        failed: claims that could not be judged for no fault of the answer's.
    """

    claims: tuple[str, ...]
    statuses: tuple[Status, ...]
    score: float
    joint: bool | None
    removed: tuple[int, ...]
    core: tuple[int, ...]
    consistent: bool
    answers: bool
    alerts: tuple[str, ...]
    failed: tuple[int, ...]

    def accepted(self, threshold: float) -> bool:
        return self.consistent and self.answers and self.joint is True and self.score >= threshold

    def feedback(self) -> str:
        """What to repair, claim by claim, in words."""
        if not self.consistent:
            return "What is given contradicts itself, so that everything would follow from it."
        out = [
            f"Claim {i + 1} ({self.claims[i]!r}) {_SAID[status]}."
            for i, status in enumerate(self.statuses)
            if status in _SAID
        ]
        clash = [i for i in self.removed if self.statuses[i] != "contradictory"]
        if clash:
            others = " and ".join(str(i + 1) for i in self.core)
            named = " and ".join(f"{i + 1} ({self.claims[i]!r})" for i in clash)
            out.append(f"Claims {others} cannot all hold: change {named}.")
        if not self.answers:
            out.append("The claims do not say whether what is asked holds.")
        return " ".join([*out, *self.alerts])


_SAID: Mapping[str, str] = {
    "contradictory": "contradicts what is given",
    "possible": "is possible, but does not follow from what is given",
    "unknown": "could not be decided",
    "plausible": "is plausible, but not supported",
    "unsupported": "is not supported",
    "uncertain": "is uncertain",
}


def claim_score(status: Status, plausible: float = 0.0) -> float:
    """1 for entailed, 0.9 for supported, 0.7 for possible, ``plausible`` for that, 0 for everything else."""
    return {"entailed": 1.0, "supported": 0.9, "possible": 0.7, "plausible": plausible}.get(status, 0.0)


def answer_score(scores: Sequence[float]) -> float:
    """S = m max(1/2, 1 - s / (m + 0.01)), with mean m and population standard deviation s over claims; 0 without any.

    Source: VERGE (arXiv 2601.20055).
    """
    if not scores:
        return 0.0
    mean = fmean(scores)
    return mean * max(0.5, 1 - pstdev(scores) / (mean + 0.01))


def vote(opinions: Sequence[tuple[Status, float] | None]) -> Status | None:
    """Return the status with the most confidence behind it, of equal ones the earlier; ``None`` without an opinion."""
    weights: defaultdict[Status, float] = defaultdict(float)
    for opinion in opinions:
        if opinion is not None:
            weights[opinion[0]] += opinion[1]
    return max(weights.items(), key=lambda item: item[1])[0] if weights else None


def consensus(theory: Theory, candidates: Sequence[str], seconds: float = SECONDS) -> tuple[str | None, str | None]:
    """Return the formula that candidates agree on, and the one that most of them are equivalent to.

    They agree where a group of equivalent ones holds at least half of all that were asked for, rounded up; what cannot
    be read counts as asked for.

    Raises:
        Unreadable: the solver could not be asked.
    """
    found = _asked("cliques", theory.declarations, list(candidates), seconds=seconds)["cliques"]
    if not found:
        return None, None
    first = candidates[found[0][0]]
    return (first if len(found[0]) >= math.ceil(len(candidates) / 2) else None), first


def entailed_by(theory: Theory, term: str, other: str, seconds: float = SECONDS) -> bool:
    """Say whether ``other`` is shown to follow from ``term``; both are terms that can be read."""
    return _asked("entails", theory.declarations, term, other, seconds=seconds) is True


def equivalent(theory: Theory, term: str, other: str, seconds: float = SECONDS) -> bool:
    """Say whether two terms are shown to be equivalent; what cannot be read is equivalent to nothing."""
    return len(_asked("cliques", theory.declarations, [term, other], seconds=seconds)["cliques"][0]) == 2


def controlled(claim: str, theory: Theory) -> Translated:
    """The translator of sentences in a controlled English, see :mod:`assay.verify.logic.sentences`."""
    term = formula(claim)
    if term is None:
        return Translated(None)
    return Translated(consensus(theory, [term])[0])


def claims_of(answer: str) -> list[str]:
    """Return the claims of an answer, one a line, without bullets; what stands in ``<answer>`` tags alone, if any
    does."""
    marked = answer.rpartition("<answer>")[2].partition("</answer>")[0] if "<answer>" in answer else answer
    lines = (_BULLET.sub("", line).strip() for line in marked.splitlines())
    return [line for line in lines if line]


def assess(
    task: Task,
    claims: Sequence[str],
    theory: Theory,
    translate: Translator = controlled,
    judge: SoftJudge | None = None,
    plausible: float = 0.0,
    seconds: float = SECONDS,
) -> Assessment:
    """Judge claims one by one and together; see :class:`Claims`.

    Raises:
        Unreadable: the solver could not be asked.
    """
    translated = [translate(claim, theory) for claim in claims]
    hard = [i for i, t in enumerate(translated) if t.formula is not None]
    soft = [i for i, t in enumerate(translated) if t.formula is None]
    free = [f"soft_{i + 1}" for i in soft]
    # A bridge may speak of a claim that turns out to be a formula: then nothing is known of its constant.
    named = sorted({*free, *re.findall(r"\bsoft_[0-9]+\b", theory.bridges)})
    declarations = theory.declarations + "".join(f"(declare-const {name} Bool)" for name in named)
    terms = [str(translated[i].formula) for i in hard]
    found = _asked("statuses", declarations, theory.context, terms, theory.bridges, free, seconds=seconds)
    order = [*hard, *soft]
    statuses: dict[int, Status] = dict(zip(hard, found["statuses"], strict=True))
    said = judge(task, [claims[i] for i in soft]) if judge is not None and soft else [None] * len(soft)
    failed = tuple(i for i, s in zip(soft, said, strict=True) if s is None and judge is not None)
    statuses |= {i: s or "uncertain" for i, s in zip(soft, said, strict=True)}
    ordered = tuple(statuses[i] for i in range(len(claims)))
    return Assessment(
        tuple(claims),
        ordered,
        answer_score([claim_score(s, plausible) for s in ordered]),
        found["joint"],
        tuple(sorted(order[i] for i in found["removed"])),
        tuple(sorted(order[i] for i in found["core"])),
        found["context"] is not False,
        _answers(declarations, [*terms, *free], theory.question, seconds),
        tuple(t.alert for t in translated if t.alert),
        failed,
    )


def _answers(declarations: str, terms: Sequence[str], question: str, seconds: float) -> bool:
    """Say whether claims alone, without what is given, settle the question, one way or the other."""
    if not question:
        return True
    whole = f"(and true {' '.join(terms)})"
    return any(
        _asked("entails", declarations, whole, other, seconds=seconds) is True
        for other in (question, f"(not {question})")
    )


def _asked(function: str, *arguments: Any, seconds: float) -> Any:
    found = WORKERS.call(function, *arguments, seconds=seconds)
    if isinstance(found, Failure):
        raise Unreadable(f"z3: {found.reason}")
    return found


def theory_of(reference: Any) -> Theory:
    """Return the theory of ``{"constants": {name: sort}, "context": [sentences], "bridges": [sentences]}``.

    ``"smtlib"`` adds declarations that constants are not enough for, ``"question"`` a sentence that claims have to
    settle.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: it is none.
    """
    parts = []
    for key in ("context", "bridges"):
        terms = [formula(str(sentence)) for sentence in reference.get(key, ())]
        if None in terms:
            raise ValueError(f"{key}: {reference[key][terms.index(None)]!r} is no formula")
        parts.append("".join(f"(assert {term})" for term in terms))
    question = formula(str(reference["question"])) if "question" in reference else ""
    if question is None:
        raise ValueError(f"question: {reference['question']!r} is no formula")
    declarations = declared(reference.get("constants", {})) + str(reference.get("smtlib", ""))
    return Theory(declarations, parts[0], parts[1], question)


@part("verify", "claims")
@dataclass(frozen=True, slots=True)
class Claims:
    """Right iff the claims of an answer hold with what is given, and with each other.

    ``task.reference`` is ``{"constants": {"age": "Int", "adult": "Bool"}, "context": ["if age >= 18 then adult", "age =
    20"]}``. An answer is claims, one a line. With C what is given, a claim c is contradictory if C and c cannot hold,
    else entailed if C and not c cannot, else possible; unknown where z3 cannot tell. A claim that is no formula goes to
    the ``judge``, and without one it is uncertain.

    The score is :func:`answer_score` of 1 (entailed), 0.9 (supported), 0.7 (possible), 0 (else); right where it is at
    least ``threshold`` and all claims can hold together. An answer of truisms would be; where the reference has a
    ``"question"``, the claims by themselves have to settle it. The feedback names what to repair: contradicted claims,
    and a minimal set of claims without which the rest can hold. A context that contradicts itself entails everything,
    and is the task's fault: the verifier abstains, as it does where the solver or the judge failed.

    Args:
        threshold: see above.
        plausible: what a plausible claim is worth; the paper's list does not name it.
        seconds: of processor time for each question to z3.
        judge: of claims that are no formulas.
        translate: writes claims as formulas; sentences of a controlled English unless given.

    Raises:
        UsageError: z3 is not installed, or a number is outside [0, 1].

    Source: VERGE (arXiv 2601.20055).
    """

    threshold: float = 0.75
    plausible: float = 0.0
    seconds: float = SECONDS
    judge: Any = None
    translate: Any = None

    def __post_init__(self) -> None:
        if importlib.util.find_spec("z3") is None:
            raise UsageError("verifier 'claims' needs z3: pip install assay[logic]")
        if not (0 <= self.threshold <= 1 and 0 <= self.plausible <= 1):
            raise UsageError("verifier 'claims': threshold and plausible must be in [0, 1]")

    def assess(self, task: Task, response: str) -> Assessment:
        """Return what is known of a response, or raise what :func:`theory_of` and :func:`assess` raise."""
        theory = theory_of(task.reference)
        return assess(
            task,
            claims_of(response),
            theory,
            self.translate or controlled,
            self.judge,
            self.plausible,
            self.seconds,
        )

    def __call__(self, task: Task, response: str) -> Verdict:
        response = response.rpartition("</think>")[2]
        if len(claims_of(response)) > MOST or len(response) > 200_000:
            return Verdict.wrong(f"more than {MOST} claims")
        try:
            found = self.assess(task, response)
        except Unreadable as error:
            return Verdict.abstain(str(error), "infrastructure")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return Verdict.abstain(shorten(f"task {task.id}: reference is no context: {error}", 300), "tests")
        parts: dict[str, float | None] = {
            f"claim {i + 1}": claim_score(s, self.plausible) for i, s in enumerate(found.statuses)
        }
        parts["together"] = None if found.joint is None else float(found.joint)
        said = shorten(found.feedback(), 1000)
        if not found.consistent:
            return Verdict(0.0, None, parts, f"task {task.id}: {said}", "tests")
        if found.failed or (found.joint is None and found.score >= self.threshold):
            return Verdict(0.0, None, parts, said or "z3 cannot tell whether all claims hold together")
        return Verdict(found.score, found.accepted(self.threshold), parts, said)
