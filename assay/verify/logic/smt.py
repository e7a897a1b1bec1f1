"""Satisfiability modulo theories: models, equivalent formulas, entailed claims, decided by z3."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Verdict
from assay.verify.isolate.workers import Failure, Workers
from assay.verify.logic.sexpr import Node, SyntaxFault, parse, show
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle, denies
from assay.verify.puzzles.reading import assignment
from assay.verify.text.exact import shorten

WORKERS = Workers("assay.verify.logic.smt_worker")
_DECLARATIONS = ("declare-const", "declare-fun", "declare-sort", "declare-datatypes", "declare-datatype", "define-fun",
                 "define-sort", "define-const", "define-fun-rec", "define-funs-rec")  # fmt: skip
_IGNORED = ("set-logic", "set-info", "set-option", "check-sat", "get-model", "exit", "get-value")
_NUMBER = re.compile(r"([-+]?)([0-9]{1,1000})(?:\.([0-9]{1,1000})|/([0-9]{1,1000}))?")
_ATOM = re.compile(r"[A-Za-z0-9_.#+\-*/<>=!?@$%&^~]{1,1000}")
_TRUTH = {"true": "true", "yes": "true", "entailed": "true", "false": "false", "no": "false", "contradicted": "false",
          "unknown": "unknown", "uncertain": "unknown", "undetermined": "unknown"}  # fmt: skip

Ask = Literal["model", "equivalent", "entailed", "status"]


@dataclass(frozen=True, slots=True)
class Theory:
    """Declarations and assertions of an SMT-LIB script, what is asked, the formula or claim, and what is declared."""

    declarations: str
    assertions: tuple[str, ...]
    ask: Ask
    formula: str | None
    constants: tuple[str, ...]
    declared: tuple[str, ...]

    @property
    def script(self) -> str:
        return self.declarations + "".join(self.assertions)


@part("verify", "smt")
@dataclass(frozen=True, slots=True)
class Smt(Puzzle):
    """Right iff z3 finds that the answer is what is asked of an SMT-LIB script.

    ``task.reference`` is ``{"smtlib": script, "ask": ...}``; only the script's declarations and assertions are used.

    - ``"model"`` (default): the answer gives a value to every declared constant (``x = 3, y = 5/2, b = true`` or
      ``(define-fun x () Int 3)``) so that every assertion holds; or it says "unsat" and the script is.
    - ``"equivalent"``: the answer is a Boolean term that, where the assertions hold, is true exactly when
      ``"formula"`` is.
    - ``"entailed"``: the answer is a term that follows from the assertions; with ``"formula"``, that has to follow from
      the answer alone.
    - ``"status"``: the answer says whether ``"formula"`` follows: true, false (its negation follows) or unknown.

    ``parts``: ``assertions``, the share of assertions that the model keeps; or ``sound`` (the answer follows) and
    ``complete`` (the formula follows from it). Abstains where z3 cannot tell within ``seconds`` of processor time.

    Raises:
        UsageError: when made, if z3 is not installed.
    """

    seconds: float = 10.0
    max_chars: int = 20_000
    shape: ClassVar[str] = "{'smtlib': script}"

    def __post_init__(self) -> None:
        if importlib.util.find_spec("z3") is None:
            raise UsageError("verifier 'smt' needs z3: pip install assay[logic]")

    def read(self, reference: Mapping[str, Any]) -> Theory:
        ask: Ask = reference.get("ask", "model")
        formula = reference.get("formula")
        if ask not in ("model", "equivalent", "entailed", "status"):
            raise ValueError(f"'ask' is {ask!r}, not model, equivalent, entailed or status")
        if formula is None and ask in ("equivalent", "status"):
            raise ValueError(f"'ask': {ask!r} needs 'formula'")
        declarations, assertions, constants, declared = [], [], [], []
        for command in parse(reference["smtlib"]):
            name = command[0] if isinstance(command, list) and command else command
            if name == "assert":
                assertions.append(show(command))
            elif name in _DECLARATIONS:
                declarations.append(show(command))
                if name in ("declare-const", "declare-fun"):
                    declared.append(command[1])
                if name == "declare-const" or (name == "declare-fun" and command[2] == []):
                    constants.append(command[1])
            elif name not in _IGNORED:
                raise ValueError(f"command {shorten(str(name), 30)!r} is not supported")
        if formula is not None:
            [term] = parse(formula)
            formula = show(term)
        return Theory("".join(declarations), tuple(assertions), ask, formula, tuple(constants), tuple(declared))

    def deny(self, puzzle: Theory, solvable: bool) -> Verdict:
        if puzzle.ask != "model":
            return self.unreadable("the answer is no term")
        found = WORKERS.call("status", puzzle.script, seconds=self.seconds)
        if found is None or isinstance(found, Failure):
            return _cannot_tell(found)
        return Verdict.wrong("the assertions are satisfiable") if found else Verdict.right()

    def check(self, puzzle: Theory, answer: str) -> Verdict:
        if puzzle.ask == "model":
            return self._model(puzzle, answer)
        if puzzle.ask == "status":
            return self._status(puzzle, answer)
        term = show(term_of(answer))
        arguments = (puzzle.declarations, "".join(puzzle.assertions), *_implication(puzzle, term))
        found = WORKERS.call("implied", *arguments, seconds=self.seconds)
        if isinstance(found, Failure):
            return _cannot_tell(found)
        if "error" in found:
            raise BadAnswer(f"not a Boolean term over what is declared: {found['error']}")
        sound, complete = found["sound"], found["complete"]
        if None in (sound, complete) and False not in (sound, complete):
            return _cannot_tell(None)
        parts = {k: None if v is None else float(v) for k, v in (("sound", sound), ("complete", complete))}
        complaint = "does not follow" if sound is False else "is too weak" if complete is False else ""
        return self.verdict(f"{complaint}: see {found['counter']}" if complaint else "", 0.5 * (sound is True), parts)

    def _model(self, puzzle: Theory, answer: str) -> Verdict:
        values = values_of(answer, puzzle.constants)
        names = set(puzzle.declared)
        free = next(
            (name for name, value in values.items() if not names.isdisjoint(re.findall(r"[^\s()]+", value))), None
        )
        if free is not None:  # "x = x" would hold whatever x is
            raise BadAnswer(f"the value of {free} is not a constant")
        missing = next((name for name in puzzle.constants if name not in values), None)
        if missing is not None:
            raise BadAnswer(f"gives no value to {missing}")
        given = "".join(f"(assert (= {name} {value}))" for name, value in values.items())
        found = WORKERS.call("model", puzzle.declarations, puzzle.assertions, given, seconds=self.seconds)
        if isinstance(found, Failure):
            return _cannot_tell(found)
        if "error" in found:
            raise BadAnswer(f"a value does not fit its sort: {found['error']}")
        kept, unknown = set(found["kept"]), set(found["unknown"])
        broken = [a for i, a in enumerate(puzzle.assertions) if i not in kept and i not in unknown]
        share = len(kept) / len(puzzle.assertions) if puzzle.assertions else 1.0
        if broken:
            return self.verdict(f"violates {shorten(broken[0], 100)}", share, {"assertions": share})
        if found["together"] is None:
            return _cannot_tell(None)
        complaint = "" if found["together"] else "the assertions cannot all hold with these values"
        return self.verdict(complaint, share, {"assertions": share})

    def _status(self, puzzle: Theory, answer: str) -> Verdict:
        said = _TRUTH.get(answer.strip(" \t\r\n.*`\"'").lower())
        if said is None:
            raise BadAnswer("the answer is none of true, false, unknown")
        follows = WORKERS.call("status", f"{puzzle.script}(assert (not {puzzle.formula}))", seconds=self.seconds)
        excluded = WORKERS.call("status", f"{puzzle.script}(assert {puzzle.formula})", seconds=self.seconds)
        for found in (follows, excluded):
            if found is None or isinstance(found, Failure):
                return _cannot_tell(found)
        if not follows and not excluded:
            return Verdict.abstain("the premises contradict each other")
        status = "true" if not follows else "false" if not excluded else "unknown"
        return self.verdict("" if said == status else f"the claim is {status}", 0.0)


def _implication(puzzle: Theory, term: str) -> tuple[str, str | None]:
    """Return what has to follow from the premises, and what has to follow from the answer."""
    # Equivalent under the premises: they entail the equation.
    return (term, puzzle.formula) if puzzle.ask == "entailed" else (f"(= {term} {puzzle.formula})", None)


def _cannot_tell(failure: Failure | None) -> Verdict:
    return Verdict.abstain(f"z3: {failure.reason}" if failure is not None else "z3 cannot tell")


def term_of(text: str) -> Node:
    """Return the one SMT-LIB term that ``text`` is, or asserts.

    Raises:
        BadAnswer: it is none, or holds quoted symbols, strings or annotations.
    """
    try:
        nodes = parse(text)
    except SyntaxFault as error:
        raise BadAnswer(f"not an SMT-LIB term: {error}") from None
    if len(nodes) != 1:
        raise BadAnswer(f"{len(nodes)} terms, not one")
    [term] = nodes
    if isinstance(term, list) and len(term) == 2 and term[0] == "assert":
        term = term[1]
    pending = [term]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            if not node or node[0] == "!":
                raise BadAnswer("an empty or annotated term")
            pending += node
        elif not _ATOM.fullmatch(node):
            raise BadAnswer(f"{shorten(node, 30)!r} is no symbol or number")
    return term


def values_of(answer: str, constants: tuple[str, ...]) -> dict[str, str]:
    """Return ``{constant: value as SMT-LIB term}`` for the declared ``constants`` that the answer gives a value to.

    Raises:
        BadAnswer: it cannot be read.
    """
    if "define-fun" not in answer:
        given = assignment(answer)
        return {name: _value(given[name]) for name in constants if name in given}
    try:
        nodes = parse(answer)
    except SyntaxFault as error:
        raise BadAnswer(f"not a model in SMT-LIB: {error}") from None
    pending = list(reversed(nodes))
    values: dict[str, str] = {}
    while pending:
        node = pending.pop()
        if isinstance(node, list) and len(node) == 5 and node[0] == "define-fun" and node[2] == []:
            if not isinstance(node[1], str) or node[1] not in constants:
                continue
            value = show(term_of(show(node[4])))
            if values.setdefault(node[1], value) != value:
                raise BadAnswer(f"{node[1]} has two values")
        elif isinstance(node, list):
            pending += reversed(node)
    return values


def _value(text: str) -> str:
    match = _NUMBER.fullmatch(text)
    if match is None:
        if denies(text) or not _ATOM.fullmatch(text):
            raise BadAnswer(f"{shorten(text, 30)!r} is no value")
        return text.lower() if text.lower() in ("true", "false") else text
    sign, whole, decimals, denominator = match.groups()
    if denominator is not None and not int(denominator):
        raise BadAnswer(f"{shorten(text, 30)!r} divides by zero")
    number = f"{whole}.{decimals}" if decimals else whole if denominator is None else f"(/ {whole} {denominator})"
    return f"(- {number})" if sign == "-" else number
