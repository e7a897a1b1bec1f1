"""Code, specifications and proofs with scores of three values, of which only one is worth anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.formal.backends import BuiltIn
from assay.verify.formal.imperative.parse import parse
from assay.verify.formal.imperative.syntax import BadProgram, Program
from assay.verify.formal.prover import TAGS, Item, read, spec_hash
from assay.verify.formal.spec_tests import Broken, outputs
from assay.verify.formal.ternary import Cascade, Score, Side, equivalence, together
from assay.verify.formal.tool import program_of
from assay.verify.text.exact import shorten

_WORTH: dict[Score, float | None] = {"pass": 1.0, "fail": 0.0, "unknown": None}


@part("verify", "verina")
@dataclass(frozen=True, slots=True)
class Verina:
    """Judges what :class:`~assay.verify.formal.prover.Prover` judges, with scores pass, fail and unknown.

    Of a specification four properties, each over its tests (fail if one fails, else unknown if one is, else pass):

    - ``pre sound``: the precondition holds of every input of a test; ``pre complete``: of none of ``"reject"``.
    - ``post complete``: the postcondition holds of every right output; ``post sound``: of no wrong one.

    How a single test is settled is :class:`~assay.verify.formal.ternary.Cascade`'s. With ``formal`` the four are first
    tried by proofs about the true specification over all values; tests settle what these leave open.

    ``parts``: 1 pass, 0 fail, ``None`` unknown. Right iff all pass. What the response is to blame for includes that
    nobody can tell whether it is right: unknown is wrong, so that it never pays, unless it is told to ``abstain``.
    ``unknown = "right"`` pays for it, which a policy learns to live on; it is there to be compared with.

    Args:
        unknown: see above.
        formal: see above.
        plausible_pass, proofs, instances: of the cascade.
        seconds, effort: of the built-in prover.

    Source: VERINA (arXiv 2505.23135) and its authors' code, with predicates that are run in place of Lean's ``decide``,
    random values in place of its ``plausible``, and the built-in prover where a model is asked for a proof.
    """

    unknown: Literal["wrong", "abstain", "right"] = "wrong"
    formal: bool = False
    plausible_pass: bool = False
    proofs: int = 8
    instances: int = 1000
    seconds: float = 30.0
    effort: int = 3_000_000

    def __post_init__(self) -> None:
        self.prover.require()

    @property
    def prover(self) -> BuiltIn:
        return BuiltIn(self.effort, self.seconds)

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            item = read(task.reference)
            rejected = [list(x) for x in task.reference.get("reject", ())]
        except (TypeError, KeyError, ValueError, AttributeError, BadProgram) as error:
            return Verdict.abstain(f"task {task.id}: reference is no problem with a contract: {error}", "tests")
        text = program_of(response, TAGS) or ""
        try:
            mine = parse(text)
        except BadProgram as error:
            return Verdict(0.0, False, {"compiles": 0.0}, shorten(f"does not compile: {error}", 300))
        if mine.signature != item.program.signature or (mine.method.body is None and item.asked != "spec"):
            return Verdict(0.0, False, {"compiles": 0.0}, "the method's head is not the task's, or it has no body")
        try:
            scores = self._scores(item, rejected, text, mine)
        except Broken as error:
            return Verdict.abstain(f"the tests could not be run: {error}", "infrastructure")
        parts = {"compiles": 1.0, **{name: _WORTH[score] for name, score in scores.items()}}
        whole = together(scores.values())
        said = next((f"{name}: {score}" for name, score in scores.items() if score == whole != "pass"), "")
        untold = None if self.unknown == "abstain" else self.unknown == "right"
        passed = untold if whole == "unknown" else whole == "pass"
        return Verdict(float(passed is True), passed, parts, said)

    def _scores(self, item: Item, rejected: list[list[object]], text: str, mine: Program) -> dict[str, Score]:
        found: dict[str, Score] = {}
        inputs = [x for x, _ in item.positive]
        if item.asked in ("code", "all"):
            got = outputs(text, inputs)
            right: list[Score] = ["pass" if g == y else "fail" for g, (_, y) in zip(got, item.positive, strict=True)]
            found["code"] = together(right)
        if item.asked in ("spec", "all"):
            known = equivalence(mine, item.program, self.prover) if self.formal else {}
            cascade = Cascade(self.plausible_pass, self.proofs, self.instances, prover=self.prover)
            right_pairs, wrong_pairs = ([x + y for x, y in cases] for cases in (item.positive, item.negative))
            properties: list[tuple[str, Side, list[list[Any]], bool]] = [
                ("pre sound", "requires", inputs, True),
                ("pre complete", "requires", rejected, False),
                ("post complete", "ensures", right_pairs, True),
                ("post sound", "ensures", wrong_pairs, False),
            ]
            for name, side, cases, wanted in properties:
                settled = known.get(name, "unknown")
                tests = settled == "unknown"
                found[name] = together(cascade.scores(text, mine, side, cases, wanted)) if tests else settled
        if item.asked in ("proof", "all"):
            kept = item.asked == "all" or spec_hash(text) == spec_hash(item.source)
            checked = self.prover.check(text)
            if checked.proved is None:
                raise Broken(checked.fault)
            found["proof"] = "pass" if kept and checked.proved else "fail"
        return found
