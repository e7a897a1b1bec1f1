"""What the question says about the answer: the unit it asks for, its options, the form it wants."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Generic, TypeVar

from assay.verify.answer.options import listed
from assay.verify.math.expressions.units import Unit, lookup, read_unit
from assay.verify.math.read.latex import plain
from assay.verify.math.tables import load
from assay.verify.math.words.number_words import number_words

MAX_QUESTION = 20_000


_T = TypeVar("_T")


class _Once(Generic[_T]):
    """A property that is computed when it is first asked for, without the lock of :func:`functools.cached_property`."""

    def __init__(self, compute: Callable[[Any], _T]):
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, instance: Any, owner: type) -> _T:
        value = vars(instance)[self.name] = self.compute(instance)
        return value


@functools.cache
def _table() -> dict[str, tuple[tuple[str, ...], re.Pattern[str]]]:
    return {k: (tuple(v["words"]), re.compile("|".join(v["asked"]), re.DOTALL)) for k, v in load("question").items()}


@functools.lru_cache(2048)
def said(question: str) -> frozenset[str]:
    """Return what a question says about its answer; looking for words first is much faster than for patterns."""
    low = question[:4000].casefold()
    return frozenset(
        name for name, (words, asked) in _table().items() if any(map(low.__contains__, words)) and asked.search(low)
    )


class _Said:
    """What a question says of its answer; demands for a form count only where the context's form does."""

    def __init__(self, name: str, doc: str, *others: str, form: bool = False):
        self.names, self.form, self.__doc__ = frozenset({name, *others}), form, doc

    def __get__(self, instance: Context, owner: type) -> bool:
        return not self.names.isdisjoint(instance.says) and (instance.form or not self.form)


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
    def options(self) -> Mapping[str, str]:
        """Texts of the options by letter."""
        return listed(self.question)

    @_Once
    def says(self) -> frozenset[str]:
        """What the question says about its answer, by the names of ``tables/question.toml``."""
        return said(self.question)

    approximate = _Said("approximate", "Rounding is asked for.")
    exact = _Said("exact", "An exact value is asked for, so that no rounding is accepted.")
    chance = _Said("chance", "A probability is asked for.")
    interval = _Said("interval", "An inequality, a domain or a range is spoken of: (1, 2) is an interval.")
    equation = _Said("equation", "Solutions of an equation are asked for: (1, 2) is no interval.")
    roman = _Said("roman", "Roman numerals are spoken of.")
    unevaluated = _Said("unevaluated", "An answer may be left as a product.")
    ordered = _Said("ordered", "A list is asked for in order.", "parts")
    simplest = _Said("simplest", "Lowest terms, or a radical without square factors, are asked for.", form=True)
    factored = _Said("factored", "A polynomial in factors is asked for.", form=True)
    expanded = _Said("expanded", "A polynomial multiplied out is asked for.", form=True)
    numeral = _Said("numeral", "The answer is to be a Roman numeral.", form=True)

    @_Once
    def percent(self) -> bool:
        """Percentages are spoken of."""
        low = _SHARE_OF.sub(" ", self._low) if "%" in self._low or "cent" in self._low else ""
        return "%" in low or "percent" in low or "per cent" in low

    @_Once
    def base(self) -> int:
        """The number base asked for, 0 if none."""
        named = any(word in self._low for word in ("base", "bin", "oct", "hex"))
        return _base(self.question) if named else 0

    @_Once
    def text(self) -> str:
        """The question in plain spelling, without blanks."""
        return plain(self.question).replace(" ", "") if len(self.question) < 4000 else ""


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
_SHARE_OF = re.compile(r"[0-9]\s?(?:\\?%|percent|per cent)\$? of\b")
"""A part that is given: what it amounts to is no percentage."""


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
