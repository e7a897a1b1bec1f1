"""Formulas in a controlled English, as SMT-LIB terms: "if age is at least 18 then adult", "x = 2 * y and not late"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.verify.logic.sexpr import show
from assay.verify.logic.smt import term_of
from assay.verify.puzzles.puzzle import BadAnswer

DEEPEST = 50
_TOKEN = re.compile(
    r"\s*(?:[0-9]{1,50}(?:\.[0-9]{1,50})?|[A-Za-z_][A-Za-z0-9_]{0,99}|<->|<=>|->|=>|==|!=|<=|>=|&&|\|\||[-+*<>=()!&|])"
)
_PHRASES = (
    (r"\bit is not the case that\b", " ! "),
    (r"\bis not at least\b", " < "),
    (r"\bis not at most\b", " > "),
    (r"\bis not equal to\b|\bdoes not equal\b|\bis not\b(?! (?:at|more|less|greater|above|below))", " != "),
    (r"\bis (?:at least|not less than|not below)\b", " >= "),
    (r"\bis (?:at most|not (?:more|greater) than|not above)\b", " <= "),
    (r"\bis (?:more|greater|larger) than\b|\bis above\b|\bexceeds\b", " > "),
    (r"\bis (?:less|smaller) than\b|\bis below\b", " < "),
    (r"\bis equal to\b|\bequals\b|\bis\b", " = "),
    (r"\bif and only if\b|\biff\b", " <-> "),
    (r"\bnot\b", " ! "),
    (r"\bimplies\b", " -> "),
    (r"\band\b", " & "),
    (r"\bor\b", " | "),
    (r"\bplus\b", " + "),
    (r"\bminus\b", " - "),
    (r"\btimes\b", " * "),
)
_COMPARE = {"=": "=", "==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def formula(text: str) -> str | None:
    """Return the SMT-LIB term that a sentence says, or ``None`` for what is no such sentence.

    A sentence is a formula with ``and``, ``or``, ``not``, ``implies``, ``if ... then ...``, ``if and only if``,
    comparisons in signs or words, and sums and products of names and numbers; or a term of SMT-LIB in brackets. Whether
    names are declared and sorts fit is the solver's to say.
    """
    text = text.strip().rstrip(".").strip()
    if text.startswith("("):
        try:
            return str(show(term_of(text)))
        except BadAnswer:
            pass  # brackets begin formulas of the other kind, too
    try:
        reader = _Reader(text)
        found = reader.equivalence()
        return found if reader.at == len(reader.tokens) else None
    except _NoSentence:
        return None


class _NoSentence(Exception):
    pass


class _Reader:
    def __init__(self, text: str):
        if len(text) > 2000:
            raise _NoSentence
        for phrase, sign in _PHRASES:
            text = re.sub(phrase, sign, text, flags=re.IGNORECASE)
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise _NoSentence
            self.tokens.append(match[0].strip())
            at = match.end()
        self.at = self.depth = 0

    def take(self, *signs: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at].lower() in signs:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def need(self, sign: str) -> None:
        if self.take(sign) is None:
            raise _NoSentence

    def equivalence(self) -> str:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _NoSentence
        left = self.implication()
        while self.take("<->", "<=>"):
            left = f"(= {left} {self.implication()})"
        self.depth -= 1
        return left

    def implication(self) -> str:
        if self.take("if"):
            given = self.equivalence()
            self.need("then")
            return f"(=> {given} {self.equivalence()})"
        left = self.either()
        return f"(=> {left} {self.equivalence()})" if self.take("->", "=>") else left

    def either(self) -> str:
        found = [self.both()]
        while self.take("|", "||"):
            found.append(self.both())
        return found[0] if len(found) == 1 else f"(or {' '.join(found)})"

    def both(self) -> str:
        found = [self.negation()]
        while self.take("&", "&&"):
            found.append(self.negation())
        return found[0] if len(found) == 1 else f"(and {' '.join(found)})"

    def negation(self) -> str:
        negated = False
        while self.take("!"):
            negated = not negated
        found = self.comparison()
        return f"(not {found})" if negated else found

    def comparison(self) -> str:
        left = self.sum()
        sign = self.take(*_COMPARE)
        if sign is None:
            return left
        right = self.sum()
        return f"(not (= {left} {right}))" if sign == "!=" else f"({_COMPARE[sign]} {left} {right})"

    def sum(self) -> str:
        left = self.product()
        while sign := self.take("+", "-"):
            left = f"({sign} {left} {self.product()})"
        return left

    def product(self) -> str:
        left = self.atom()
        while self.take("*"):
            left = f"(* {left} {self.atom()})"
        return left

    def atom(self) -> str:
        if self.take("-"):
            return f"(- {self.atom()})"
        if self.take("("):
            found = self.equivalence()
            self.need(")")
            return found
        if self.at == len(self.tokens) or not re.match(r"[A-Za-z0-9_]", self.tokens[self.at]):
            raise _NoSentence
        word = self.tokens[self.at]
        if word.lower() in ("if", "then"):
            raise _NoSentence
        self.at += 1
        return word.lower() if word.lower() in ("true", "false") else word


def declared(constants: Mapping[str, str]) -> str:
    """Return SMT-LIB declarations of constants with their sorts: Bool, Int or Real.

    Raises:
        ValueError: a name or sort is none.
    """
    for name, sort in constants.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or sort not in ("Bool", "Int", "Real"):
            raise ValueError(f"{name}: {sort} declares no constant")
    return "".join(f"(declare-const {name} {sort})" for name, sort in constants.items())
