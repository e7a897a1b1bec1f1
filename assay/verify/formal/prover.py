"""Programs with contracts, judged by tests in both directions and by a prover: code, specification, proof, or all."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.errors import UsageError
from assay.registry import build, part
from assay.types import NOTE, Task, Verdict
from assay.verify.base import Verifier
from assay.verify.formal.backends import BuiltIn, ProverBackend, backend
from assay.verify.formal.imperative.parse import parse
from assay.verify.formal.imperative.syntax import BadProgram, Program, shown, written
from assay.verify.formal.spec_tests import Broken, Case, outputs, truths
from assay.verify.formal.tool import program_of
from assay.verify.text.exact import shorten

TAGS = ("dafny", "dfy")
Asked = Literal["code", "spec", "proof", "all"]
ELSEWHERE = ("coq", "lean", "verus", "dafny")
"""Languages whose own verifier keeps statement and proof apart."""


@dataclass(frozen=True, slots=True)
class Item:
    """A problem: what is asked, the program it is of, and its tests, as ``task.reference`` gives them."""

    asked: Asked
    source: str
    program: Program
    positive: list[Case]
    negative: list[Case]


@part("verify", "prover")
@dataclass(frozen=True, slots=True)
class Prover:
    """Right iff the response is what is asked of a programming problem with a contract.

    ``task.reference`` is ``{"ask": ..., "source": a verified program, "positive": [[inputs, outputs], ...], "negative":
    [[inputs, wrong outputs], ...]}``; programs are written in :mod:`assay.verify.formal.imperative`, a subset of Dafny.

    - ``"code"``: the method with a body; it returns the right outputs on all positive inputs.
    - ``"spec"``: the method with ``requires`` and ``ensures``. The precondition admits every positive input, the
      postcondition accepts every positive test (or it is too strong) and rejects every negative one (too weak).
    - ``"proof"``: the program with annotations. It verifies, and without annotations it is the task's, by
      :func:`spec_hash`.
    - ``"all"``: code, contract and annotations of the response's own: the code is tested, the contract is tested as a
      specification, and the proof holds. A proof of a weak contract earns nothing.

    With ``"language"`` (``coq``, ``lean``, ``verus``, ``dafny``) in the reference, a proof is asked for, and that
    verifier judges it by the same reference. Escapes (``assume``, ``sorry``, axioms ...) are refused although the
    prover would accept them.

    ``parts``: ``reads``, ``signature``, then as far as they apply ``code``, ``admits``, ``accepts``, ``rejects``
    (shares of tests), ``unchanged``, ``proof``, and a note on how much a specification is like the task's code, since
    one that copies it passes all tests. Where a test cannot be told, such as for a quantifier without bounds, and none
    fails, the verifier abstains, or says wrong (``untold``).

    Args:
        prover: ``builtin``, or ``dafny`` where it is installed.
        untold: see above.
        spec_tests: whether the response's own contract is tested. Without, ``"all"`` is a proof of whatever it says;
            that is there to be compared with.
        seconds, effort: of the built-in prover, see :class:`~assay.verify.formal.backends.BuiltIn`.

    Raises:
        UsageError: the prover is not installed.

    Source: VeriContest (arXiv 2605.08553) and its authors' code.
    """

    prover: Literal["builtin", "dafny"] = "builtin"
    untold: Literal["abstain", "wrong"] = "abstain"
    spec_tests: bool = True
    seconds: float = 30.0
    effort: int = 3_000_000

    def __post_init__(self) -> None:
        self.backend.require()

    @property
    def backend(self) -> ProverBackend:
        return BuiltIn(self.effort, self.seconds) if self.prover == "builtin" else backend(self.prover)

    def __call__(self, task: Task, response: str) -> Verdict:
        language = task.reference.get("language") if isinstance(task.reference, Mapping) else None
        if language is not None:
            try:
                other: Verifier = build("verify", language if language in ELSEWHERE else "")
            except UsageError as error:
                return Verdict.abstain(f"task {task.id}: language {language!r}: {error}")
            return other(task, response)
        try:
            item = read(task.reference)
        except (TypeError, KeyError, ValueError, AttributeError, BadProgram) as error:
            return Verdict.abstain(f"task {task.id}: reference is no problem with a contract: {error}", "tests")
        text = program_of(response, TAGS)
        try:
            mine = parse(text or "")
        except BadProgram as error:
            return _verdict({"reads": 0.0}, f"no program: {error}")
        parts: dict[str, float | None] = {"reads": 1.0, "signature": float(mine.signature == item.program.signature)}
        if not parts["signature"]:
            return _verdict(parts, "the method's name, parameters or results are not the task's")
        if mine.method.body is None and item.asked != "spec":
            return _verdict(parts, "the method has no body")
        try:
            return self._judge(item, str(text), mine, parts)
        except Broken as error:
            return Verdict.abstain(f"the tests could not be run: {error}", "infrastructure")

    def _judge(self, item: Item, text: str, mine: Program, parts: dict[str, float | None]) -> Verdict:
        complaint, unclear = "", ""
        if item.asked == "code" or (item.asked == "all" and self.spec_tests):
            got = outputs(text, [x for x, _ in item.positive])
            parts["code"], complaint = _code(got, item.positive)
        if item.asked == "spec" or (item.asked == "all" and self.spec_tests):
            for name, side, cases, wanted in _spec_tests(item):
                parts[name], why, unknown = _share(truths(text, side, cases), cases, wanted, name)
                complaint, unclear = complaint or why, unclear or unknown
            parts[f"rejects{NOTE}like the code"] = likeness(mine, item.program)
        if item.asked == "proof":
            same = spec_hash(text) == spec_hash(item.source)
            parts["unchanged"] = float(same)
            complaint = "" if same else "the program or its contract is not the task's"
        if complaint or item.asked in ("code", "spec"):
            return self._said(parts, complaint, unclear)
        checked = self.backend.check(text)
        if checked.proved is None:
            return Verdict.abstain(checked.fault, "infrastructure")
        parts["proof"] = float(checked.proved)
        if checked.escapes:
            complaint = f"takes for granted: {checked.escapes[0]}"
        elif not checked.proved:
            seen = ", ".join(f"{k} = {v}" for k, v in checked.counter)
            complaint = f"not proved: {checked.errors[0]}{f', see {seen}' if seen else ''}"
        return self._said(parts, complaint, unclear)

    def _said(self, parts: dict[str, float | None], complaint: str, unclear: str) -> Verdict:
        if complaint or not unclear:
            return _verdict(parts, complaint)
        return _verdict(parts, unclear) if self.untold == "wrong" else Verdict(0.0, None, parts, shorten(unclear, 300))


def read(reference: Any) -> Item:
    """Return the problem of a reference, or raise one of the errors that its reading gives."""
    asked = reference["ask"]
    if asked not in ("code", "spec", "proof", "all"):
        raise ValueError(f"'ask' is {asked!r}, not code, spec, proof or all")
    source = str(reference["source"])
    positive, negative = ([(list(x), list(y)) for x, y in reference.get(k, ())] for k in ("positive", "negative"))
    if not positive and asked != "proof":
        raise ValueError("no positive tests")
    return Item(asked, source, parse(source), positive, negative)


def spec_hash(source: str) -> str:
    """Return a hash of a program without its annotations, in one layout: what a proof has to leave as it is.

    Raises:
        BadProgram: it is none.
    """
    return hashlib.sha256(written(parse(source), proof=False).encode()).hexdigest()


def likeness(mine: Program, truth: Program) -> float:
    """Return how much the words of a postcondition are those of the task's code, in [0, 1]: 1 for a copy in order."""
    said = re.findall(r"\w+|[^\w\s]+", " ".join(map(shown, mine.method.ensures)))
    code = re.findall(r"\w+|[^\w\s]+", written(truth, proof=False, contract=False).partition("{")[2])
    matcher = difflib.SequenceMatcher(None, said, code, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks()) / max(len(said), 1)


def _spec_tests(item: Item) -> list[tuple[str, str, list[list[Any]], bool]]:
    inputs = [x for x, _ in item.positive]
    return [
        ("admits", "requires", inputs, True),
        ("accepts", "ensures", [x + y for x, y in item.positive], True),
        ("rejects", "ensures", [x + y for x, y in item.negative], False),
    ]


_AMISS = {
    "admits": "the precondition refuses {}",
    "accepts": "the postcondition is too strong: it refuses {}",
    "rejects": "the postcondition is too weak: it accepts {}",
}


def _share(found: Sequence[bool | None], cases: Sequence[list[Any]], wanted: bool, name: str) -> tuple[float, str, str]:
    """Return the share of tests that went well, what the first failure is, and which could not be told."""
    share = sum(x is wanted for x in found) / len(found) if found else 1.0
    failed = next((c for x, c in zip(found, cases, strict=True) if x is (not wanted)), None)
    unclear = next((c for x, c in zip(found, cases, strict=True) if x is None), None)
    why = "" if failed is None else _AMISS[name].format(failed)
    return share, why, "" if unclear is None else f"whether it holds of {unclear} cannot be tried out"


def _code(got: Sequence[Any], positive: Sequence[Case]) -> tuple[float, str]:
    wrong = [(x, y, g) for (x, y), g in zip(positive, got, strict=True) if g != y]
    why = ""
    if wrong:
        x, y, g = wrong[0]
        why = f"on {x} it returns {g}, not {y}" if isinstance(g, list) else f"on {x} it fails: {g}"
    return 1 - len(wrong) / len(positive), why


def _verdict(parts: Mapping[str, float | None], complaint: str) -> Verdict:
    return Verdict(float(not complaint), not complaint, dict(parts), shorten(complaint, 300))
