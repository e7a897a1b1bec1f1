"""Whether the numbers of a remark leave the answer before it as it is.

A remark may name the numbers of the question and of the working, compute rightly (``35 = 5 × 7``) and name another
quantity (``Its surface area is 150 cm².``); it may not give what is asked for another value.
"""

from __future__ import annotations

import functools
import itertools
import re

from assay.verify.math.evaluate import approximate
from assay.verify.math.nodes import variables
from assay.verify.math.read import read
from assay.verify.math.values import Scalar
from assay.verify.math.words import NUMBER_WORDS

NUMBER = re.compile(r"(?<![A-Za-z0-9_.,])[-−]?[0-9][0-9,]*(?:\.[0-9]+)?(?:/[0-9]+)?(?![A-Za-z0-9])")
_TOKENS = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_CONSTANTS = frozenset(re.findall(r"\w+", "0 1 2 3 4 7 10 12 24 60 90 100 180 360 365 1000"))
"""Numbers of facts that anybody may name: "the angles add up to 180°", "an hour has 60 minutes"."""
_ASKS = re.compile(
    r"[^.?!\n]*\?|\b(?:find|calculate|compute|determine|give|state|solve|simplify|evaluate|what|how)\b[^.?!\n]*",
    re.IGNORECASE,
)
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "what which many much number find does will would that this with from have there their they give your "
        "answer when into each every calculate compute determine state other than",
    )
)
_WORD = re.compile(r"(?<!\\)\b[A-Za-z]{4,}")
_SUBJECT = r"it|its|this|that|these|those|they|there|you|we|i|she|he|one|value|total|rest|amount|number|sum"
_GIVES = (
    r"is|are|was|were|be|being|been|becomes?|equals?|has|have|had|needs?|pays?|gets?|got|gives?|makes?|costs?|comes?|"
    r"remains?|leaves?|leaving|takes?|saves?|earns?|uses?|requires?|buys?|works?|goes|lies|stands|find|obtain|reads?|"
    r"amounts?|totals?|wants?"
)
_QUANTITIES = {
    name: kind
    for kind, names in (
        ("area", "area surface"),
        ("length", "perimeter circumference boundary border fence length edge side way distance width height"),
        ("volume", "volume capacity contents"),
        ("money", "price cost charge fee bill amount interest discount saving profit total revenue"),
        ("time", "time duration hours minutes"),
        ("speed", "speed pace rate velocity"),
        ("diameter", "diameter"),
        ("radius", "radius"),
        ("mean", "mean average"),
        ("median", "median"),
        ("mode", "mode"),
        ("range", "range"),
    )
    for name in names.split()
}
"""Names of quantities, those that can mean the same together."""
_UNIT = re.compile(
    r"[0-9](?:\s|\\,|\\ |\$|\\text\{|\{|~)*(?:square |cubic |sq\.? |cu\.? )?(km|cm|mm|m|ft|in|inches|feet"
    r"|meters?|metres?|"
    r"centimeters?|centimetres?|yards?|kg|g|grams?|liters?|litres?|mL|L|J|N|W|hours?|h|minutes?|min|seconds?|s)\b"
    r"\}?\s?\$?(\^?\{?[23]\}?|[²³])?"
)


def plain(number: str) -> str:
    """A number as it is compared: without separators of thousands, sign marks and end zeros after the point."""
    said = number.replace(",", "").replace("−", "-").rstrip(".")
    return said.rstrip("0").rstrip(".") if "." in said and "/" not in said else said


def numbers(text: str) -> set[str]:
    return {plain(match.group()) for match in NUMBER.finditer(text)}


@functools.lru_cache(64)
def asked_words(question: str) -> frozenset[str]:
    """The words of what a question asks for, cut to five letters."""
    asking = " ".join(_ASKS.findall(question[-4000:])[-2:])
    return frozenset(word.lower()[:5] for word in _WORD.findall(asking) if word.lower() not in _COMMON)


def value(text: str) -> float | None:
    """The number that ``text`` computes or names, ``None`` if it is none."""
    readings = read(text.strip(" $*.,;:!")) if len(text) < 120 else ()
    if not readings or not isinstance(readings[0], Scalar) or variables(readings[0].node):
        return None
    found = approximate(readings[0].node)
    return None if found is None or abs(found.imag) > 1e-12 else found.real


def near(one: float, other: float, tolerance: float) -> bool:
    return abs(one - other) <= tolerance * max(abs(one), abs(other))


_EQUATION = re.compile(
    r"\$(?P<tex>[^$\n]*=[^$\n]*)\$|(?<![A-Za-z0-9_.])(?P<text>[-−(√0-9][-−+*/×·÷^()√²³0-9.,%° ]*"
    r"(?:=\s?[-−$€£(√0-9][-−+*/×·÷^()√²³0-9.,%° ]*)+)"
)
_ORDER = re.compile(r"\\(?:geq?|leq?|gt|lt|neq?)(?![a-z])|[<>≤≥≠]")


def equations(text: str) -> list[tuple[str, bool]]:
    """The equations of ``text`` between numbers, each with whether it is true; one with letters has none."""
    found = []
    for match in _EQUATION.finditer(text):
        sides = [value(side) for side in _ORDER.split(match["tex"] or match["text"])[0].split("=")]
        true = len(sides) > 1 and all(
            a is not None and b is not None and near(a, b, 1e-9) for a, b in itertools.pairwise(sides)
        )
        found.append((match.group(), true))
    return found


_ASSIGNED = re.compile(r"\$(?P<name>[a-z])\s?=\s?[-−]?[0-9.]+(?:\s?[<>]\s?0)?\$")
_COPULA = re.compile(r"(?:\b(?:is|are|be|equals?)|=) (?:just |only )?[$€£]?[0-9]")
_IS_NOT_0 = re.compile(r"\bis not (?:0|zero)\b")
_PROPERTY = re.compile(
    r"(?:[0-9]+(?:, | and |, and ))*[0-9]+ (?:itself )?(?:(?:is|are) (?:both |also )?)(?:not )?(?:odd|even|"
    r"(?<=not )prime|divisible|multiples?|composite)\b"
)
"""What is told of numbers that are no candidates for the answer: "33 and 35 are odd"."""


def true_sums(text: str) -> bool:
    """Say whether ``text`` is nothing but a right computation, or several."""
    found = equations(text)
    rest = text
    for equation, true in found:
        if not true:
            return False
        rest = rest.replace(equation, " ")
    rest = _PROPERTY.sub(" ", rest)
    return bool(found) and not re.sub(r"\band\b|[\s,;.!)✓✔]", "", rest)


_OWN_NUMBER = re.compile(r"[0-9]+(?:-[0-9]+)+(?![0-9])|\b(?:same factor of|triangle scaled by|base) [0-9.]*[0-9]")
"""Numbers that name a thing: "the 3-4-5 triangle", "the same factor of 2.5"."""


def consistent(remark: str, statement: str, before: str, question: str) -> bool:
    """Say whether the numbers of ``remark`` speak of nothing that ``statement`` answers.

    Args:
        remark: a sentence behind the answer.
        statement: the sentence that gives the answer.
        before: all that stands before the remark.
        question: what is asked.
    """
    for match in _ASSIGNED.finditer(remark):
        name = match["name"]
        if re.search(rf"(?<![A-Za-z\\]){name}\W{{0,3}}=|(?:for|of|find|is) \$?{name}\b", f"{statement} | {question}"):
            return False
    remark = _ASSIGNED.sub(" ; ", remark)
    for equation, true in equations(remark):
        if not true:
            return False
        remark = remark.replace(equation, " ; ")
    stated = numbers(statement) | set(map(plain, _TOKENS.findall(statement)))
    for match in _PROPERTY.finditer(remark):
        if numbers(match.group()) & stated:
            return False
        if "not prime" not in match.group() and "prime" in match.group():
            return False
    if _IS_NOT_0.search(remark):
        if "0" in stated:
            return False
        remark = _IS_NOT_0.sub(" ; ", remark)
    remark = _OWN_NUMBER.sub(" ", _PROPERTY.sub(" ; ", remark))
    given = {plain(token) for token in _TOKENS.findall(f"{question[-4000:]} {before[-4000:]}")}
    for clause in re.split(r"[,;:.!?]\s|\b(?:and|because|since|so|while|whereas)\b", remark):
        counted = [word for word in re.findall(r"[A-Za-z]+", clause.lower()) if _is_number(word)]
        named = {plain(token) for token in _TOKENS.findall(clause)}
        if not named - stated and not counted:
            continue
        new = named - stated - given
        if new - _CONSTANTS or (new and _COPULA.search(clause)):
            return False
        if _of_the_answer(clause.replace("top of that", "top"), question, stated):
            return False
    return True


def _is_number(word: str) -> bool:
    return word in NUMBER_WORDS and word not in ("one", "first", "second")


def _of_the_answer(clause: str, question: str, stated: set[str]) -> bool:
    """Say whether a clause tells a number that is not ``stated`` of what is asked for, or of no named thing."""
    asked = asked_words(question)
    for match in re.finditer(rf"{NUMBER.pattern}|\b[a-z]+\b", clause, re.IGNORECASE):
        said = match.group()
        if not _is_number(said.lower()) and (not said[-1].isdigit() or plain(said) in stated):
            continue
        front = clause[: match.start()].lower()
        verbs = list(re.finditer(rf"\b(?:{_GIVES})\b|['’]s\b|=", front))
        if verbs:
            subject = re.findall(r"[a-z]+", front[: verbs[-1].start()])
            if any(re.fullmatch(_SUBJECT, word) or word[:5] in asked for word in subject):
                return True
        behind = re.match(r"\W{0,3}([a-z]+)", clause[match.end() :].lower())
        if behind and behind[1][:5] in asked and f"{said} {behind[1]}".lower() not in question.lower():
            return True
    return False


def other_quantity(name: str, amount: str, statement: str, question: str) -> bool:
    """Say whether ``name`` means a quantity that is not asked for, and ``amount`` is no value of what is."""
    if not all(word in _QUANTITIES for word in re.findall(r"[a-z]+", name.lower())):
        return False
    kinds = {_QUANTITIES[word] for word in re.findall(r"[a-z]+", name.lower()) if word in _QUANTITIES}
    asking = " ".join(_ASKS.findall(question[-4000:])[-2:]).lower()
    asked = {
        _QUANTITIES[word] for word in re.findall(r"[a-z]+", f"{asking} {statement.lower()}") if word in _QUANTITIES
    }
    if not kinds or kinds & asked or any(word.lower()[:5] in asked_words(question) for word in _WORD.findall(name)):
        return False
    if asked:
        return True
    mine, other = _UNIT.search(statement), _UNIT.search(amount)
    if mine is None or other is None:
        return False
    return _power(mine) != _power(other)


def _power(unit: re.Match[str]) -> str:
    written = (unit[2] or "").strip("^{}").translate({ord("²"): "2", ord("³"): "3"})
    return "2" if "sq" in unit.group() else "3" if "cu" in unit.group() else written
