"""Claims as formulas that several readings of a model agree on, and opinions of a model on what is no formula."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.types import Task
from assay.verify.logic.claims import Status, Theory, Translated, consensus, entailed_by, equivalent, vote
from assay.verify.logic.sexpr import show
from assay.verify.logic.smt import term_of
from assay.verify.puzzles.puzzle import BadAnswer

FORMALISE = """Write the claim as one Boolean term of SMT-LIB over the declared constants. If it is a matter of common \
sense, vague or a probability, and not of logic, mathematics or time, write \\boxed{soft} instead.

Declarations: {declarations}
Claim: {claim}{again}

Write the term in \\boxed{...}."""
SAY = """Say in one plain sentence what this term of SMT-LIB claims, without adding anything.

{term}"""
OPINION = """{question}

Is this claim supported? {claim}

Reply with \\boxed{supported}, \\boxed{plausible}, \\boxed{unsupported} or \\boxed{uncertain}, and after it \
your confidence from 0 to 1 in \\boxed{...}."""
_BOX = re.compile(r"\\boxed\{([^{}]*)\}")
_STATUSES: dict[str, Status] = {
    "supported": "supported",
    "plausible": "plausible",
    "unsupported": "unsupported",
    "uncertain": "uncertain",
}


@dataclass(frozen=True, slots=True)
class Formaliser:
    """Writes a claim as a formula that K readings of a model agree on; see the translator of
    :mod:`assay.verify.logic.claims`.

    1. K candidates are asked for; they agree where at least half of them, rounded up, are equivalent. 2. Where they do
    not, it is asked again and shown what they were, and a formula is taken only if it entails the one that most were
    equivalent to. 3. A formula is said in words and formalised again; where that is another formula, it is told in an
    alert and the claim goes to the judges. A claim that most readings call soft goes there at once.

    Args:
        engine: an engine, or the specification of one.
        k: candidates.
        sampling: of them; the words of a formula are the likeliest.
        round_trip: whether the third is done.

    Raises:
        UsageError: fewer than one candidate.
    """

    engine: Any
    k: int = 3
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=512, temperature=0.7))
    round_trip: bool = True

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"claims are formalised by at least 1 candidate, not {self.k}")
        object.__setattr__(self, "engine", judge_of(self.engine, "who formalises claims"))

    def __call__(self, claim: str, theory: Theory) -> Translated:
        candidates = self._candidates(claim, theory, "", self.k)
        if 2 * candidates.count("soft") > self.k:
            return Translated(None)
        agreed, first = consensus(theory, candidates)
        if agreed is None:
            again = f"\nEarlier readings disagree: {'; '.join(candidates)}"
            [corrected] = self._candidates(claim, theory, again, 1)
            _, corrected_term = consensus(theory, [corrected])
            if corrected_term is None or (first is not None and not entailed_by(theory, corrected_term, first)):
                return Translated(None, f"The claim {claim!r} could not be made a formula: readings of it disagree.")
            agreed = corrected_term
        if self.round_trip and not self._same(agreed, theory):
            return Translated(
                None, f"The claim {claim!r} could not be made a formula: read back, it says something else."
            )
        return Translated(agreed)

    def _candidates(self, claim: str, theory: Theory, again: str, n: int) -> list[str]:
        """Return n terms; what is none is ``"soft"`` or empty, which no solver reads."""
        prompt = filled(FORMALISE, declarations=theory.declarations, claim=claim, again=again)
        [replies] = self.engine.generate([Request(prompt, n, self.sampling, sum(map(ord, prompt)))])
        return [_term(reply.text) for reply in replies]

    def _same(self, term: str, theory: Theory) -> bool:
        plain = Sampling(max_tokens=self.sampling.max_tokens, temperature=0.0)
        [said] = ask(self.engine, [filled(SAY, term=term)], plain)
        [again] = self._candidates(said.text.strip(), theory, "", 1)
        return equivalent(theory, term, again)


def _term(reply: str) -> str:
    start = reply.rfind("\\boxed{")
    if start < 0:
        return ""
    inner = reply[start + len("\\boxed{") :].rpartition("}")[0].strip()
    if inner.lower() == "soft":
        return "soft"
    try:
        return str(show(term_of(inner)))
    except BadAnswer:
        return ""


@dataclass(frozen=True, slots=True)
class Opinions:
    """Opinions of a model on claims that no solver can judge, weighted by the confidence it says it has.

    Args:
        engine: an engine, or the specification of one.
        n: opinions on each.
        sampling: of them.
    """

    engine: Any
    n: int = 3
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=512))

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"claims are judged by at least 1 opinion, not {self.n}")
        object.__setattr__(self, "engine", judge_of(self.engine, "who judges claims"))

    def __call__(self, task: Task, claims: Sequence[str]) -> list[Status | None]:
        prompts = [filled(OPINION, question=task.question, claim=claim) for claim in claims]
        engine: Engine = self.engine
        asked = [Request(p, self.n, self.sampling, sum(map(ord, p))) for p in prompts]
        return [vote([opinion(reply.text) for reply in replies]) for replies in engine.generate(asked)]


def opinion(reply: str) -> tuple[Status, float] | None:
    """Return the status in a reply's first box and the confidence in its second, 1 where there is none."""
    boxes = [box.strip().lower() for box in _BOX.findall(reply)]
    if not boxes or boxes[0] not in _STATUSES:
        return None
    try:
        confidence = float(boxes[1]) if len(boxes) > 1 else 1.0
    except ValueError:
        return None
    return (_STATUSES[boxes[0]], confidence) if 0 <= confidence <= 1 else None
