"""Numbers with units as people write them: ``-1.5×10^{-3} m/s^2``, ``(5.0 ± 0.1) kg``, ``50 %``, ``3π/4``, ``2 c``."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from assay.verify.number import units
from assay.verify.number.units import Unit, UnknownUnit
from assay.verify.text.compare import NUMBER

MAX_CHARS = 1000
"""Characters at the end of a text that are read."""

PI = Fraction(3.141592653589793)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written and the units it may be read in.

    Attributes:
        value: the number, in the unit written.
        readings: the unit; several where ``J/mol K`` is ambiguous; empty where none is written.
        resolution: value of one unit in the last digit shown, e.g. 0.01 for ``9.81``.
        uncertainty: what stands after ``±``, in the unit written.
        text: as it was found.
        start, end: where, in the cleaned text.
    """

    value: Fraction
    readings: tuple[Unit, ...]
    resolution: Fraction
    uncertainty: Fraction | None
    text: str
    start: int
    end: int


_DEGREE = re.compile(r"\s?°\s?(?=[CF]\b)")
_STARS = re.compile(r"(?<=[\w)])\s?\*\*\s?(?=[-+(]|\d)")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?: \d{3})+(?![\d.,])")
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_THIN = re.compile("(?<=[0-9])(?:[\u00a0\u2009\u202f]|\\\\[,;:! ]|\\{,\\})(?=[0-9]{3}(?![0-9]))")
_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|mathit|textbf|rm|unit|si|operatorname|mathord)\s?\{([^{}]*)\}")
_FRAC = re.compile(r"\\[dt]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}")
_BRACED_POWER = re.compile(r"\^\s?\{\s?([^{}]*?)\s?\}")
_LATEX = {
    r"\times": "×", r"\cdot": "·", r"\pm": "±", r"\pi": "π", r"\%": "%", r"\mu": "µ", r"\Omega": "Ω", r"\hbar": "ħ",
    r"\degree": "°", r"\approx": "≈", r"\sim": "≈", r"\left": "", r"\right": "", r"\,": " ", r"\;": " ", r"\:": " ",
    r"\!": "", r"\ ": " ", r"\(": " ", r"\)": " ", r"\[": " ", r"\]": " ", r"\AA": "Å", r"^\circ": "°", "^°": "°",
    r"\circ": "°", "~": " ", "$": " ",
}  # fmt: skip
_COMMAND = re.compile("|".join(re.escape(k) + r"(?![A-Za-z])" * k[-1].isalpha() for k in _LATEX))


def clean(text: str) -> str:
    r"""Return the last :data:`MAX_CHARS` characters of ``text`` with LaTeX, superscripts and dashes made plain."""
    if len(text) > MAX_CHARS:
        # What stands at the cut is half a word or half a number.
        _, _, text = text[-MAX_CHARS:].partition(" ")
    text = _SUPERSCRIPTS.sub(lambda m: "^" + m.group().translate(_SUPERSCRIPT), text)
    text = _THIN.sub("", text)
    text = unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-").replace("\N{EN DASH}", "-")
    text = text.replace("\N{FRACTION SLASH}", "/").replace("\N{SUPERSCRIPT MINUS}", "-")
    for _ in range(3):
        text = _WRAPPED.sub(r" \1", text)
        text = _BRACED_POWER.sub(_power, text)
        text = _FRAC.sub(_fraction, text)
    text = _COMMAND.sub(lambda m: _LATEX[m.group()], text)
    # Two asterisks between a name and a number are a power, elsewhere they are bold type.
    text = _STARS.sub("^", text).replace("**", " ").replace("*", " * ")
    text = " ".join(text.replace("{", " ").replace("}", " ").split())
    return _DEGREE.sub("°", text)


def _power(match: re.Match[str]) -> str:
    inner = match[1]
    return "°" if inner == r"\circ" else f"^{inner}" if re.fullmatch(r"[+-]?\d+", inner) else f"^({inner})"


def _fraction(match: re.Match[str]) -> str:
    over, under = (p.strip() if re.fullmatch(r"\s?[\w.^]+\s?", p) else f"({p.strip()})" for p in match.groups())
    return f"{over}/{under}"


_SIGN = r"(?:(?<![0-9A-Za-z_)\]^])[+-]\s?)?"
_TENS = r"\s?(?:[xX×·]|\*)\s?10\s?\^\s?\(?\s?(?P<{}>[+-]?\d{{1,3}})(?!\d)\)?"
_VALUE = re.compile(
    rf"(?P<open>(?<!\w)\(\s?)?(?P<sign>{_SIGN})(?:\$\s?)?"
    rf"(?:(?P<number>(?<![\w.^]){NUMBER})(?:[eE](?P<exponent>[+-]?\d{{1,3}})(?![\d]))?|(?<!\w)(?P<pi>π|pi\b))"
    rf"(?:\^\(?(?P<power>[+-]?\d{{1,3}})(?!\d)\)?)?"
    rf"(?P<digits>\(\d{{1,3}}\))?"
    rf"(?:\s?(?:±|\+/-|\+-)\s?(?P<pm>{NUMBER})(?:[eE](?P<pmexp>[+-]?\d{{1,3}}))?(?(open)\s?\)|))?"
    rf"(?:{_TENS.format('tens')})?"
    rf"(?P<times_pi>\s?\*?\s?(?:π|pi\b))?"
    rf"(?:\s?/\s?(?P<denominator>\d{{1,30}})(?![\d.]))?"
)


_OVER = re.compile(r"\s?/\s?(\d{1,30})(?![\d.])")


def find_all(text: str, with_units: bool = True) -> list[Quantity]:
    """Return the quantities of a cleaned text in order; with ``with_units`` false, units are not looked for."""
    found, at = [], 0
    while match := _VALUE.search(text, at):
        quantity = _quantity(text, match, with_units)
        at = match.end()
        if quantity is not None:
            found.append(quantity)
            at = max(at, quantity.end)
    return found


def _quantity(text: str, match: re.Match[str], with_units: bool) -> Quantity | None:
    digits = (match["number"] or "1").replace(",", "")
    value = Fraction(digits)
    shift = int(match["exponent"] or 0)
    if match["power"] is not None:
        # 10^5 is scientific notation; any other power is arithmetic, which is not read here.
        if digits != "10" or match["exponent"]:
            return None
        value, digits, shift = Fraction(1), "1", int(match["power"])
    decimals = len(digits.partition(".")[2])
    resolution = Fraction(1, 10**decimals)
    uncertainty = Fraction(match["pm"].replace(",", "")) * _ten(match["pmexp"]) if match["pm"] else None
    if match["digits"] and uncertainty is None:
        uncertainty = Fraction(int(match["digits"][1:-1]), 10**decimals)
    # The exponent of "5.0e3 ± 2.0e2" belongs to each number, the power of ten of "(5.0 ± 0.2)×10^3" to both.
    factor = _ten(match["tens"])
    if match["pi"] or match["times_pi"]:
        factor *= PI
    if match["denominator"]:
        if int(match["denominator"]) == 0:
            return None
        factor /= int(match["denominator"])
    if match["sign"].startswith("-"):
        value = -value
    value, resolution = value * _ten(str(shift)) * factor, resolution * _ten(str(shift)) * factor
    end = match.end()
    if match["open"] and text.startswith(")", end):
        end += 1
        if not match["denominator"] and (over := _OVER.match(text, end)) and int(over[1]):
            value, resolution = value / int(over[1]), resolution / int(over[1])
            factor, end = factor / int(over[1]), over.end()
    readings, end = _units(text, end) if with_units else ((), end)
    uncertainty = None if uncertainty is None else abs(uncertainty * factor)
    return Quantity(
        value, readings, abs(resolution), uncertainty, text[match.start() : end].strip(), match.start(), end
    )


def _ten(exponent: str | None) -> Fraction:
    return Fraction(10) ** int(exponent or 0)


def _units(text: str, at: int) -> tuple[tuple[Unit, ...], int]:
    start = at + (text[at : at + 1] == " ")
    if text[start : start + 2] in ("* ", "· "):
        start += 2
    rest = text[start:]
    # "5/s" and "5 per second" have units too.
    if rest.startswith("/"):
        rest, start = "1" + rest, start - 1
    elif rest.startswith("per "):
        rest, start = "1/" + rest[4:], start + 2
    readings: list[Unit] = []
    ends = [at]
    for tight in (True, False):
        try:
            unit, length = units.prefix(rest, tight)
        except UnknownUnit:
            continue
        if rest[length : length + 1].isalnum():
            continue
        ends.append(start + length)
        if unit not in readings:
            readings.append(unit)
    return tuple(readings), max(ends)


def read(text: str, with_units: bool = True) -> Quantity | None:
    """Return the quantity that the whole of ``text`` is, apart from a final stop; ``None`` if it is none.

    A constant by itself (``hbar``, ``c``) is once that constant.
    """
    text = clean(text).strip(" .")
    text = _GROUPED.sub(lambda m: m.group().replace(" ", "") if m.start() == 0 else m.group(), text)
    found = find_all(text, with_units)
    if len(found) == 1 and not text[: found[0].start].strip() and not text[found[0].end :].strip():
        return found[0]
    if with_units and text:
        readings, end = _units(text, 0)
        if readings and end >= len(text):
            return Quantity(Fraction(1), readings, Fraction(1), None, text, 0, end)
    return None


def convert(value: Fraction, unit: Unit, into: Unit) -> Fraction:
    """Return ``value`` given in ``unit`` as a number in the unit ``into`` of the same dimension."""
    return (value * unit.scale + unit.offset - into.offset) / into.scale
