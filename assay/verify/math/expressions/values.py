"""What an answer can be, once read."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from assay.verify.math.expressions.nodes import Node
from assay.verify.math.expressions.units import Unit


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression, perhaps with a unit.

    ``decimals`` and ``significant`` count digits where it is written as one decimal numeral, and ``computed`` marks
    arithmetic that is still to be carried out (``12 + 30``, ``6 * 7``). ``inexact`` marks
    ``3.14...`` and ``≈ 3.14``, ``percent`` that a percent sign divided ``node`` by 100, ``loose`` that the unit is the
    first noun of further words, ``tight`` that the unit is one letter that touches the number (``5m``).
    """

    node: Node
    unit: Unit | None = None
    decimals: int | None = None
    significant: int = 0
    inexact: bool = False
    percent: bool = False
    loose: bool = False
    tight: bool = False
    computed: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """``name = value``; the name is ``""`` where the left side is a text or a computation."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Items:
    """Several values: ``(1, 2)``, ``[1, 2]``, ``{1, 2}``, a column ``v``, a row ``r``, or bare (``""``)."""

    items: tuple[Value, ...]
    brackets: str = ""


@dataclass(frozen=True, slots=True)
class Matrix:
    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """An interval of real numbers; an end is ``None`` where it is infinite."""

    low: Node | None
    low_closed: bool
    high: Node | None
    high_closed: bool


@dataclass(frozen=True, slots=True)
class RealSet:
    """A union of intervals (and points, as closed intervals), of the variable ``name`` if one is written."""

    pieces: tuple[Piece, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """``difference = 0``, ``< 0``, ``<= 0`` or ``!= 0``; ``sides`` are as written."""

    kind: str
    difference: Node
    sides: tuple[Node, Node]


@dataclass(frozen=True, slots=True)
class Ratio:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Residue:
    """The integers that leave one of ``values`` modulo ``modulus``, of the variable ``name`` if one is written."""

    name: str
    values: frozenset[int]
    modulus: int


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds since midnight; ``half`` is ``am``, ``pm`` or ``""`` for a time of 24 hours or unsaid."""

    seconds: int
    half: str


@dataclass(frozen=True, slots=True)
class Date:
    """A day of the calendar; ``year`` is 0 where none is written."""

    year: int
    month: int
    day: int


@dataclass(frozen=True, slots=True)
class Sign:
    """One of the relations ``<``, ``>``, ``=``, ``<=``, ``>=``, ``!=``."""

    kind: str


@dataclass(frozen=True, slots=True)
class Based:
    """A numeral in an explicit base."""

    digits: str
    base: int
    value: Fraction


@dataclass(frozen=True, slots=True)
class Choice:
    """Letters of options, with what stands after a single letter."""

    letters: frozenset[str]
    content: str = ""


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool


@dataclass(frozen=True, slots=True)
class Text:
    """Words, normalised."""

    words: str


Value = (
    Scalar
    | Named
    | Items
    | Matrix
    | RealSet
    | Relation
    | Ratio
    | Residue
    | Clock
    | Date
    | Sign
    | Based
    | Choice
    | Truth
    | Text
)
