"""What the question says about the answer: the unit it asks for, its options, the form it wants."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Generic, TypeVar

from assay.verify.math.latex import plain
from assay.verify.math.number_words import number_words
from assay.verify.math.units import Unit, lookup, read_unit

MAX_QUESTION = 20_000


_T = TypeVar("_T")


class _Once(Generic[_T]):
    """A property that is computed when it is first asked for, without the lock of :func:`functools.cached_property`."""

    def __init__(self, compute: Callable[[Any], _T]):
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, instance: Any, owner: type) -> _T:
        value = vars(instance)[self.name] = self.compute(instance)
        return value


class Context:
    """A question, and what it says about its answer; each part is looked for when it is first asked for.

    Args:
        question: the text, of which the first :data:`MAX_QUESTION` characters count.
        digits: significant digits a rounded answer needs.
        form: the form that the question asks for counts.
    """

    def __init__(self, question: str = "", digits: int = 6, form: bool = True):
        self.question, self.digits, self.form = question[:MAX_QUESTION], digits, form

    def but(self, **parts: bool | Unit | None) -> Context:
        """The same, its attributes named in ``parts`` set to them."""
        other = copy.copy(self)
        vars(other).update(parts)
        return other

    @_Once
    def _low(self) -> str:
        return self.question.casefold()

    @_Once
    def _quantity(self) -> tuple[Unit | None, bool, tuple[Fraction, Unit] | None]:
        return _quantity(self.question, self._low)

    @_Once
    def asked(self) -> Unit | None:
        """The unit after "how many" or "in", if it is a known one."""
        return self._quantity[0]

    @_Once
    def converted(self) -> bool:
        """A quantity is to be converted to the unit asked for, so that no other unit will do."""
        return self._quantity[1]

    @_Once
    def given(self) -> tuple[Fraction, Unit] | None:
        """Number and unit of the quantity in a question that only asks for it in another unit; it is no answer."""
        return self._quantity[2]

    @_Once
    def options(self) -> dict[str, str]:
        """Texts of the options by letter."""
        return _options(self.question)

    @_Once
    def approximate(self) -> bool:
        """Rounding is asked for."""
        return _says(
            self._low,
            _APPROXIMATE,
            "approx",
            "round",
            "nearest",
            "decimal",
            "signif",
            "estimate",
            "≈",
            "correct",
        )

    @_Once
    def exact(self) -> bool:
        """An exact value is asked for, so that no rounding is accepted."""
        return _says(self._low, _EXACT, "exact", "in terms", "fraction", "surd", "radical", "decimal")

    @_Once
    def percent(self) -> bool:
        """Percentages are spoken of."""
        low = _SHARE_OF.sub(" ", self._low) if "%" in self._low or "cent" in self._low else ""
        return "%" in low or "percent" in low or "per cent" in low

    @_Once
    def chance(self) -> bool:
        """A probability is asked for."""
        return _says(self._low, _CHANCE, "probab", "chance", "likel")

    @_Once
    def interval(self) -> bool:
        """An inequality, a domain or a range is spoken of, so that two numbers in brackets are an interval."""
        return _says(self._low, _INTERVAL, "inequalit", "interval", "domain", "range", "≤", "≥", "<", ">", "\\l", "\\g")

    @_Once
    def equation(self) -> bool:
        """Solutions of an equation are asked for, so that they are not."""
        return _says(self._low, _EQUATION, "solution", "root", "zero", "solve", "equation")

    @_Once
    def base(self) -> int:
        """The number base asked for, 0 if none."""
        named = any(word in self._low for word in ("base", "bin", "oct", "hex"))
        return _base(self.question) if named else 0

    @_Once
    def simplest(self) -> bool:
        """A fraction in lowest terms, or a radical without square factors, is asked for."""
        return self.form and _says(self._low, _SIMPLEST, "simpl", "lowest", "reduc", "irreducible")

    @_Once
    def factored(self) -> bool:
        """A polynomial in factors is asked for."""
        return self.form and _says(self._low, _FACTORED, "factor")

    @_Once
    def expanded(self) -> bool:
        """A polynomial multiplied out is asked for."""
        return self.form and _says(self._low, _EXPANDED, "expand", "multiply")

    @_Once
    def ordered(self) -> bool:
        """A list is asked for in order."""
        return _says(self._low, _ORDERED, *_ORDERLY) or _says(self._low, _PARTS, " and ")

    @_Once
    def roman(self) -> bool:
        """Roman numerals are spoken of."""
        return "roman" in self._low

    @_Once
    def numeral(self) -> bool:
        """The answer is to be a Roman numeral."""
        return self.form and _says(self._low, _ROMAN, "roman")

    @_Once
    def unevaluated(self) -> bool:
        """An answer may be left as a product."""
        return _says(self._low, _UNEVALUATED, *_AS_IT_STANDS)

    @_Once
    def text(self) -> str:
        """The question in plain spelling, without blanks."""
        return plain(self.question).replace(" ", "") if len(self.question) < 4000 else ""


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
_PART = (
    r"(?:sum|product|difference|quotient|remainder|length|width|height|breadth|area|perimeter|volume|mean|median|mode|"
    r"range|numerator|denominator|radius|diameter|circumference|slope|intercept|minimum|maximum|smallest|largest|least|"
    r"greatest|gcd|lcm|real part|imaginary part|domain|amplitude|period)"
)
_PARTS = re.compile(
    rf"\b(?:the|its|their|find|give|state|name|compute|calculate|determine) {_PART}(?: \w+)?,? and "
    rf"(?:the |its |their )?{_PART}\b"
)
_SHARE_OF = re.compile(r"[0-9]\s?(?:\\?%|percent|per cent)\$? of\b")
"""A part that is given: what it amounts to is no percentage."""
_ORDERLY = (
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
)
_AS_IT_STANDS = (
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
)


@functools.lru_cache(2048)
def context_of(question: str, digits: int = 6, form: bool = True) -> Context:
    return Context(question, digits, form)


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


def _quantity(question: str, low: str) -> tuple[Unit | None, bool, tuple[Fraction, Unit] | None]:
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
    return asked, converted, given


def _options(question: str) -> dict[str, str]:
    options: dict[str, str] = {}
    if "A." in question or "A)" in question or "A:" in question:
        for match in _OPTION.finditer(question):
            options.setdefault(match[1], match[2].strip())
        if list(options) != [chr(ord("A") + k) for k in range(len(options))] or len(options) < 2:
            options = {}
    return options
