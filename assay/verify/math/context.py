"""What the question says about the answer: the unit it asks for, its options, the form it wants."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from fractions import Fraction

from assay.verify.math.latex import plain
from assay.verify.math.units import Unit, lookup, read_unit
from assay.verify.math.words import number_words

MAX_QUESTION = 20_000


@dataclass(frozen=True, slots=True)
class Context:
    """Attributes:

    asked: the unit after "how many" or "in", if it is a known one.
    options: texts of the options by letter.
    approximate: rounding is asked for.
    exact: an exact value is asked for, so that no rounding is accepted.
    percent: percentages are spoken of.
    chance: a probability is asked for.
    interval: an inequality, a domain or a range is spoken of, so that two numbers in brackets are an interval.
    equation: solutions of an equation are asked for, so that they are not.
    base: the number base asked for, 0 if none.
    simplest: a fraction in lowest terms, or a radical without square factors, is asked for.
    factored, expanded: that form of a polynomial is asked for.
    ordered: a list is asked for in order.
    roman: Roman numerals are spoken of.
    numeral: the answer is to be a Roman numeral.
    unevaluated: an answer may be left as a product.
    text: the question in plain spelling, without blanks; ``question`` is it as it stands.
    converted: a quantity is to be converted to the unit asked for, so that no other unit will do.
    given: number and unit of the quantity in a question that only asks for it in another unit; it is no answer.
    digits: significant digits a rounded answer needs.
    form: the form that the question asks for counts.
    """

    asked: Unit | None = None
    options: dict[str, str] = field(default_factory=dict, hash=False, compare=False)
    approximate: bool = False
    exact: bool = False
    percent: bool = False
    chance: bool = False
    interval: bool = False
    equation: bool = False
    base: int = 0
    simplest: bool = False
    factored: bool = False
    expanded: bool = False
    ordered: bool = False
    roman: bool = False
    numeral: bool = False
    unevaluated: bool = False
    text: str = ""
    question: str = field(default="", hash=False, compare=False)
    converted: bool = False
    given: tuple[Fraction, Unit] | None = None
    digits: int = 6
    form: bool = True


_OPTION = re.compile(
    r"(?:^|(?<=[\s(\[{,;$]))\(?([A-J])(?:\)|\.|:)\s*(.{1,200}?)(?=[\s,;]*(?:\s|\\\\)\(?[A-J](?:\)|\.|:)\s|\n|$)",
    re.DOTALL,
)
_ASKED = re.compile(  # of a text in small letters: much faster
    r"(?:how many|number of|in|express(?:ed)? in|to the nearest|how much .{0,40} in)\s+((?:square |"
    r"cubic )?[A-Za-z]{2,14}(?: per [a-z]{1,10}|/[a-z]{1,4}| squared| cubed)?)(?:\b|$)"
)
_ASKED_ANY = re.compile(_ASKED.pattern, re.IGNORECASE)
_CONVERTS = ("convert", "change", "turn", "transform", "express", "write", "give")
_CONVERTED = re.compile(
    r"\b(?:convert|change|turn|transform|express|rewrite|write|give)\b(?:[^.?!]|\.(?=[0-9])){0,80}?\b(?:to|"
    r"into|in|as)\s+((?:square |cubic )?"
    r"[A-Za-zµ]{1,14}(?: per [a-z]{1,10}|/[a-z]{1,4}| squared| cubed|\^?[23]|[²³])?)(?=[\s.?!,]*(?:$|\.\s))",
    re.I,
)
_CONTAINED = re.compile(
    r"\b(?:how many\s(?P<many>[A-Za-z]{3,14})\s(?:(?:are|is|make(?: up)?|does|do)\s)?(?:there\s)?"
    r"(?:in\s|equals?\s|make(?: up)?\s)?|what is\s)"
    r"(?:an?\s|one\s|(?P<value>[0-9]+(?:\.[0-9]+)?)\s?)(?P<given>[A-Za-z]{1,14})(?:\s(?:equal|make|contain|have|last)|"
    r"\s(?:in|into|to)\s(?P<unit>[A-Za-z]{2,14}))?[\s?.!]*$",
    re.IGNORECASE,
)
"""A question that is nothing but a conversion: ``How many minutes are there in 2.5 hours?``"""
_NEAREST = re.compile(r"nearest (?:cent|penny|pence|paisa)", re.I)
_MONEY = ((("$", 1),), (("€", 1),), (("£", 1),), (("₹", 1),))
_APPROXIMATE = re.compile(
    r"approximat|round|nearest|decimal place|significant (?:figure|digit)|estimate|\\approx|≈|"
    r"to \w+ decimals|correct to",
)
_EXACT = re.compile(
    r"\bexact(?:ly)?\b|in terms of (?:\$?\\?pi|π)|(?:as an? |in )(?:common |reduced |"
    r"simplified )?(?:fraction|surd|radical)|(?:repeating|recurring|periodic) decimal|no decimals?|not (?:a )?decimal",
)
_SIMPLEST = re.compile(
    r"simplest (?:radical )?form|lowest terms|reduced (?:fraction|form)|fully (?:simplif|reduc)|"
    r"irreducible|\bsimplif|simplest",
)
_FACTORED = re.compile(
    r"^\W*(?:completely |fully )?factor(?:ise|ize)?\b|\bfactor(?:ise|ize)?\b.{0,40}(?:completely|"
    r"fully|expression|polynomial)",
)
_EXPANDED = re.compile(r"\bexpand(?:ed)?\b|multiply out")
_ORDERED = re.compile(
    r"\border\b|\bsort|arrange|sequence|ascending|descending|respectively|decrypt|permutation|"
    r"increasing|decreasing|next .{0,20}terms?|rank|\bfirst\b.{0,60}\bthen\b|\b(?:in|keep) (?:this|that) order\b",
)


_ROMAN = re.compile(
    r"\b(?:as|in|into|to|using|with|by|is the|the equivalent) (?:an? |the |its |capital |standard |correct |"
    r"upper[- ]?case )*"
    r"roman (?:numerals?|number|notation|form)\b|"
    r"\broman (?:numerals?|number|representation) (?:for|of|that represents|representing|representation|"
    r"equivalent|form) ",
)
_UNEVALUATED = re.compile(
    r"\bany (?:\w+ )?form\b|\bexact (?:form|expression)|\bas an? (?:product|power|factorial|binomial|expression)|"
    r"(?:product|quotient) of (?:powers|factorials|primes|numbers|factors)|\bunsimplified|\bunevaluated|"
    r"prime factori[sz]|into (?:\w+ )?(?:prime factors|primes)|"
    r"(?:not|n't) (?:need to )?(?:be )?(?:simplif|evaluat|multipl|comput)",
)


_CHANCE = re.compile(r"\bprobabilit|\bchances?\b|\blikelihood\b|\bhow likely\b")
_INTERVAL = re.compile(
    r"inequalit|\binterval|\bdomain\b|\brange\b|[≤≥<>]|\\(?:le|ge|leq|geq|lt|gt|leqslant|geqslant)(?![a-z])"
)
_EQUATION = re.compile(r"\b(?:real|integer|complex|all|the) (?:solutions?|roots?|zeros?)\b|\bsolve\b|\bequation")


def context_of(question: str, digits: int = 6, form: bool = True) -> Context:
    return _context(question[:MAX_QUESTION], digits, form)


_BASE = re.compile(
    r"\b(?:in|to|into|as a) (?:base[- ]?\$?(?:\{?([0-9]{1,2})\}?|([a-z]{3,8}))|(binary|octal|hexa?decimal|"
    r"hex))\b",
    re.I,
)
_NAMED_BASES = {"binary": 2, "octal": 8, "hex": 16, "hexadecimal": 16, "hexdecimal": 16}


def _base(question: str) -> int:
    """The base of "in base 6", "to binary"; the last one named."""
    found = 0
    for match in _BASE.finditer(question):
        spoken = number_words(match[2]) if match[2] else None
        found = (
            int(match[1])
            if match[1]
            else int(spoken)
            if spoken is not None
            else _NAMED_BASES.get((match[3] or "").lower(), found)
        )
    return found


def _says(low: str, pattern: re.Pattern[str], *words: str) -> bool:
    """Search for a pattern every match of which holds one of ``words``; looking for words is much faster."""
    for word in words:  # a loop, since a generator costs more than what it does
        if word in low:
            return pattern.search(low) is not None
    return False


@functools.lru_cache(2048)
def _context(question: str, digits: int, form: bool) -> Context:
    if not question.strip():
        return Context(digits=digits, form=form)
    low = question.casefold()
    asked = None
    for match in _ASKED.finditer(low) if question.isascii() else _ASKED_ANY.finditer(question):
        name = question[match.start(1) : match.end(1)]
        unit = read_unit(name) or lookup(name)
        if unit is not None and unit.known and (match[0][:2].lower() != "in" or len(name) > 2):
            asked = unit
    converted = False
    given: tuple[Fraction, Unit] | None = None
    if any(map(low.__contains__, _CONVERTS)):
        for match in _CONVERTED.finditer(question):
            unit = read_unit(match[1]) or lookup(match[1])
            if unit is not None and unit.known and len(match[1]) > 1:
                asked, converted = unit, True
    if ("many" in low or "what" in low) and (within := _CONTAINED.search(question[-160:])) is not None:
        unit, other = lookup(within["many"] or within["unit"] or ""), lookup(within["given"])
        if unit is not None and other is not None and unit.dimension == other.dimension != () and unit != other:
            asked, given = unit, (Fraction(within["value"] or 1), other)
    if asked is not None and asked.factor < 1 and asked.dimension in _MONEY and _NEAREST.search(question):
        asked = None  # "to the nearest cent" is a price in dollars
    options: dict[str, str] = {}
    if "A." in question or "A)" in question or "A:" in question:
        for match in _OPTION.finditer(question):
            options.setdefault(match[1], match[2].strip())
        if list(options) != [chr(ord("A") + k) for k in range(len(options))] or len(options) < 2:
            options = {}
    return Context(
        asked,
        options,
        _says(low, _APPROXIMATE, "approx", "round", "nearest", "decimal", "signif", "estimate", "≈", "correct"),
        _says(low, _EXACT, "exact", "in terms", "fraction", "surd", "radical", "decimal"),
        "%" in low or "percent" in low or "per cent" in low,
        _says(low, _CHANCE, "probab", "chance", "likel"),
        _says(low, _INTERVAL, "inequalit", "interval", "domain", "range", "≤", "≥", "<", ">", "\\l", "\\g"),
        _says(low, _EQUATION, "solution", "root", "zero", "solve", "equation"),
        _base(question) if any(word in low for word in ("base", "bin", "oct", "hex")) else 0,
        form and _says(low, _SIMPLEST, "simpl", "lowest", "reduc", "irreducible"),
        form and _says(low, _FACTORED, "factor"),
        form and _says(low, _EXPANDED, "expand", "multiply"),
        _says(
            low,
            _ORDERED,
            "order",
            "sort",
            "arrang",
            "sequence",
            "cending",
            "respectively",
            "decrypt",
            "permutation",
            "creasing",
            "next",
            "rank",
            "then",
        ),
        "roman" in low,
        form and _says(low, _ROMAN, "roman"),
        _says(
            low,
            _UNEVALUATED,
            "form",
            "product",
            "power",
            "factor",
            "binomial",
            "expression",
            "quotient",
            "simplif",
            "evaluat",
            "multipl",
            "comput",
        ),
        plain(question).replace(" ", "") if len(question) < 4000 else "",
        question,
        converted,
        given,
        digits,
        form,
    )
