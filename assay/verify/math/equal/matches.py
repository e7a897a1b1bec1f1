"""When the text of an answer is the reference."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from fractions import Fraction

from assay.verify.math.equal.measured import same_measured
from assay.verify.math.equal.same import same
from assay.verify.math.expressions.nodes import PI, mentions, substituted, variables
from assay.verify.math.expressions.values import (
    Based,
    Choice,
    Items,
    Named,
    Scalar,
    Sign,
    Text,
    Value,
)
from assay.verify.math.question.context import Context
from assay.verify.math.question.form import in_form
from assay.verify.math.read.forms import in_base
from assay.verify.math.read.latex import plain
from assay.verify.math.read.reading import read
from assay.verify.math.words.numerals import roman

_MIXED = re.compile(
    r"[\s*$]*(-?[0-9]{1,15})\s(?:and|&|\\text\s?\{\s?and\s?\})\s\$?(?=(?:[0-9]{1,15}\s?/\s?[0-9]{1,15}|"
    r"\\[dt]?frac\s?\{[0-9]{1,15}\})|[½¼¾⅐-⅞])"
)
# The constant of integration, whatever it is called.
_ALTERNATIVES = re.compile(r"\bor\b|\\lor|∨")
_CONSTANT = re.compile(r"\+\s*(?:[CcKkDA](?:_?\{?[01]\}?|₁|₀)?|(?:\\text\{)?const(?:ant|\.)?\}?)\s*\$?\s*$")


@functools.lru_cache(4096)  # the same text is asked about by many rules
def matches(reference: str, answer: str, ctx: Context) -> bool:
    """Say whether any reading of ``answer`` is any reading of ``reference``, both the text of a final answer alone."""
    if as_written(reference) == as_written(answer):
        return True
    if _INTEGER.fullmatch(answer) and _INTEGER.fullmatch(reference) and not ctx.base:
        return int(answer) == int(reference)
    return _reads_as(reference, answer, ctx)


def _reads_as(reference: str, answer: str, ctx: Context) -> bool:
    if reference == answer:
        return True
    if ("±" in reference or "pm" in reference or "+/-" in reference) and same_measured(reference, answer):
        return True
    if "C" in reference and _CONSTANT.search(reference) and (other := _CONSTANT.search(answer)) is not None:
        answer = f"{answer[: other.start()]}+ C"
    ours, theirs = read(reference), read(answer)
    if not ours or not theirs:
        return False
    if ",0" in answer.replace(" ", "") or answer[:1] == "0":
        theirs = _without_padding(reference, answer, theirs)
    if "," in answer and _COMMA.fullmatch(answer.strip(" $.")) and _COMMA.fullmatch(reference.strip(" $.")):
        ours, theirs = _decimals(ours, ctx), _decimals(theirs, ctx)
    mathematical = not isinstance(ours[0], Text)
    if isinstance(ours[0], Items) and _together(ours[0]) and _ALTERNATIVES.search(answer):
        return False  # "2 or 3" is no pair
    if ctx.base and any(isinstance(v, Based) for v in theirs):
        bare = in_base(reference.strip(" $"), ctx.base)
        if bare is not None and any(bare == v for v in theirs):
            return True
    if ctx.base and _numeral_in_base(reference, answer, ctx.base):
        return True
    if isinstance(ours[0], Based) and (bare := in_base(answer.strip(" $"), ours[0].base)) is not None:
        return bare.value == ours[0].value
    if isinstance(ours[0], Choice | Based) and isinstance(theirs[0], type(ours[0])):
        return same(ours[0], theirs[0], ctx)  # 1FF_{16} is not 1 times FF_{16}
    for left in ours:
        if isinstance(left, Text) and mathematical:
            break
        for right in theirs:
            if same(left, right, ctx):
                return in_form(reference, left, answer, right, ctx)
    if mathematical and ours[-1] == theirs[-1] and isinstance(theirs[0], Text):
        return True
    if mathematical and isinstance(ours[0], Scalar) and (mixed := _MIXED.match(said := plain(answer))) is not None:
        # "2 and 1/2" may be two values; beside one number it is a mixed number.
        return _reads_as(reference, f"{mixed[1]} {said[mixed.end() :]}", ctx)
    if "pi" in reference or "π" in reference:
        renamed = _with_parameter(ours[0], theirs)
        if renamed is not None and same(ours[0], renamed, ctx):
            return True
    if isinstance(ours[0], Sign) and _filled_in(ours[0].kind, answer, ctx):
        return True
    return _roman(reference, answer, ctx) or _option(reference, ours, theirs, ctx)


_INTEGER = re.compile(r"-?[1-9][0-9]{0,14}")
_PADDED = re.compile(r"(?:^|,)[\s$]*0[0-9]+(?![0-9:.])")


def _without_padding(reference: str, answer: str, readings: tuple[Value, ...]) -> tuple[Value, ...]:
    """``3,05`` is a decimal and no list, unless the items of the reference begin with 0 too."""
    if not _PADDED.search(answer) or _PADDED.search(reference):
        return readings
    return tuple(value for value in readings if not isinstance(value, Items)) or readings[-1:]


_COMMA = re.compile(r"-?[0-9]+,[0-9]+")
_DECIMALS = re.compile(
    r"\bde[cz]im|komma(?:zahl|getal|tal)|\bvirgule|десятичн|десятков|小数|소수|dziesi[ęe]tn|desetin|ondal[ıi]k|"
    r"thập phân",
    re.IGNORECASE,
)


def _decimals(readings: tuple[Value, ...], ctx: Context) -> tuple[Value, ...]:
    """The readings that are no lists, where the question speaks of decimals."""
    if not _DECIMALS.search(ctx.question):
        return readings
    return tuple(value for value in readings if not isinstance(value, Items)) or readings


_BASE_SUFFIX = re.compile(
    r"\s?(?:\(?\s?(?:in )?(?:base[- ]?(?:[0-9]{1,2}|two|eight|sixteen)|binary|octal|hex(?:adecimal)?)\s?\)?|"
    r"_\{?\(?[0-9]{1,2}\)?\}?|_\{[a-z]{3,7}\})$",
    re.IGNORECASE,
)
_LETTERED = {2: "b", 8: "o", 16: "h"}


def _numeral_in_base(reference: str, answer: str, base: int) -> bool:
    """``45_{10} = 101101_2``, ``10 1101``, ``2FH``, ``#2F`` where the question names the base."""
    wanted = in_base(_BASE_SUFFIX.sub("", plain(reference)).strip(" $()"), base)
    given = plain(answer).rpartition("=")[2].strip()
    if wanted is None or len(given) > 400:
        return False
    suffix = _BASE_SUFFIX.search(given)
    if suffix is not None and (named := re.findall("[0-9]+", suffix.group())) and int(named[-1]) != base:
        return False
    bare = _BASE_SUFFIX.sub("", given).strip(" $()#").replace(" ", "").replace("_", "")
    found = in_base(bare, base)
    if found is None and base in _LETTERED:
        found = in_base(bare.casefold().removesuffix(_LETTERED[base]), base)
    return found is not None and found.value == wanted.value


def _together(values: Items) -> bool:
    """Say whether values belong together: the coordinates of a point, several unknowns."""
    names = {value.name for value in values.items if isinstance(value, Named)}
    return values.brackets not in ("", "{", "[") or (len(names) > 1 and len(names) == len(values.items))


_PARAMETERS = frozenset("nkm")


def _with_parameter(ref: Value, readings: tuple[Value, ...]) -> Value | None:
    """The answer with the reference's letter for any integer, where each side has just one such letter."""
    name = _parameter(ref)
    for value in readings:
        other = _parameter(value)
        if name and other and name != other:
            scalar = value.value if isinstance(value, Named) else value
            assert isinstance(scalar, Scalar)
            changed = replace(scalar, node=substituted(scalar.node, other, name))
            return replace(value, value=changed) if isinstance(value, Named) else changed
    return None


def _parameter(value: Value) -> str:
    scalar = value.value if isinstance(value, Named) else value
    names = variables(scalar.node) if isinstance(scalar, Scalar) else frozenset()
    periodic = isinstance(scalar, Scalar) and mentions(scalar.node, PI)
    return next(iter(names)) if periodic and len(names) == 1 and names <= _PARAMETERS else ""


_GAP = re.compile(r"([^,:;_□○]{1,60})(?:_+|□|\\square|○)([^,:;_□○?.]{1,60})")
_SIGN = re.compile(r"[<>!]=?|=")


def _filled_in(kind: str, answer: str, ctx: Context) -> bool:
    """``7^6 < 6^7`` fills the gap of ``7^6 _ 6^7``."""
    flat = plain(answer).replace(" ", "").rstrip(".")
    signs = _SIGN.findall(flat)
    if len(signs) != 1 or signs[0] != kind:
        return False
    left, right = flat.split(kind)
    gap = _GAP.search(ctx.text)
    if not left or not right or gap is None:
        return False
    return any(same(a, b, ctx) for a in read(gap[1]) for b in read(left)) and any(
        same(a, b, ctx) for a in read(gap[2]) for b in read(right)
    )


_LOOSE_BLANK = re.compile(r"(?<![0-9]) | (?![0-9])")


@functools.lru_cache(8192)
def as_written(text: str) -> str:
    """The plain spelling of ``text`` without the blanks that do not matter."""
    said = plain(text)
    return (_LOOSE_BLANK.sub("", said) if " " in said else said).rstrip(".")


def _roman(reference: str, answer: str, ctx: Context) -> bool:
    """Roman numerals count where the reference is one of two letters or more, or the question speaks of them."""
    left, right = reference.strip(" $."), answer.strip(" $.")
    a, b = roman(left), roman(right)
    if a is not None and (len(left) > 1 or ctx.roman):
        if b is None and ctx.numeral:
            return False
        return b == a if b is not None else Scalar(Fraction(a)) in read(answer)
    return b is not None and ctx.roman and Scalar(Fraction(b)) in read(reference)


def _option(reference: str, ours: tuple[Value, ...], theirs: tuple[Value, ...], ctx: Context) -> bool:
    """One side names an option's letter, the other its content."""
    left, right = ours[0], theirs[0]
    if isinstance(left, Choice) and len(left.letters) == 1 and not isinstance(right, Choice):
        content = left.content or ctx.options.get(min(left.letters), "")
        return bool(content) and any(
            same(a, b, ctx) for a in read(content) for b in theirs if not isinstance(b, Choice)
        )
    if isinstance(right, Choice) and len(right.letters) == 1 and not isinstance(left, Choice):
        content = right.content or ctx.options.get(min(right.letters), "")
        listed = ctx.options.get(min(right.letters), "")
        if listed and right.content and not matches(listed, right.content, ctx):
            return False
        if content == reference:
            return True
        return bool(content) and matches(reference, content, Context().but(asked=ctx.asked))
    return False
