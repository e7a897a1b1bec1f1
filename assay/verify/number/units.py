"""Units and physical constants as a scale and a dimension; names are looked up, expressions are never evaluated.

Pint knows the names, SciPy the CODATA constants. The grammar of products, quotients and powers is read here, with
bounded exponents, because a general parser would compute ``m**9**9**9``.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

MAX_POWER = 20
MAX_LENGTH = 80
MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Unit:
    """``value * scale + offset`` is the quantity in base units of ``dimension`` (sorted pairs of name and power)."""

    scale: Fraction
    dimension: tuple[tuple[str, Fraction], ...] = ()
    offset: Fraction = Fraction(0)

    def __mul__(self, other: Unit) -> Unit:
        powers = dict(self.dimension)
        for name, power in other.dimension:
            powers[name] = powers.get(name, Fraction(0)) + power
        # In a product a temperature is a difference: J/°C is J/K.
        return Unit(self.scale * other.scale, tuple(sorted((n, p) for n, p in powers.items() if p)))

    def __pow__(self, power: Fraction) -> Unit:
        whole = power.denominator == 1
        scale = self.scale**power.numerator if whole else Fraction(float(self.scale) ** float(power))
        return Unit(scale, tuple((n, p * power) for n, p in self.dimension))


ONE = Unit(Fraction(1))

_ALIASES = {
    "AU": "astronomical_unit",
    "Cal": "kilocalorie",
    "sec": "second",
    "secs": "second",
    "hrs": "hour",
    "mins": "minute",
    "yrs": "year",
    "kph": "kilometer_per_hour",
    "cc": "milliliter",
    "°": "degree",
    "deg": "degree",
    "celsius": "degree_Celsius",
    "Celsius": "degree_Celsius",
    "fahrenheit": "degree_Fahrenheit",
    "Fahrenheit": "degree_Fahrenheit",
    "metre": "meter",
    "metres": "meter",
}
_CODATA = {
    "hbar": "reduced Planck constant",
    "ħ": "reduced Planck constant",
    "ℏ": "reduced Planck constant",
    "k_B": "Boltzmann constant",
    "N_A": "Avogadro constant",
    "m_e": "electron mass",
    "m_p": "proton mass",
    "m_n": "neutron mass",
    "epsilon_0": "vacuum electric permittivity",
    "ε_0": "vacuum electric permittivity",
    "mu_0": "vacuum mag. permeability",
    "μ_0": "vacuum mag. permeability",
    "a_0": "Bohr radius",
    "mu_B": "Bohr magneton",
    "μ_B": "Bohr magneton",
    "R_inf": "Rydberg constant",
    "sigma_SB": "Stefan-Boltzmann constant",
    "E_h": "Hartree energy",
    "G_N": "Newtonian constant of gravitation",
}
_NAME = re.compile(r"[^\W\d_][^\W\d_]*(?:_[A-Za-z0-9]{1,20}){0,6}|°[CFK]?|%|Å")
_POWER = re.compile(
    r"\s?(?:\^|\*\*)\s?(?:\(\s?([+-]?\d{1,3}(?:\s?/\s?\d{1,2}|\.\d{1,3})?)\s?\)|([+-]?\d{1,2}(?:\.\d{1,3})?))"
)
_BARE_POWER = re.compile(r"([+-]?\d)(?![\d.])")
_TIMES = re.compile(r"\s?[*·⋅×]\s?(?!\*)|[-.](?=[^\W\d_])")
_PER = re.compile(r"\s?/\s?|\s+per\s+")
_SPACE = re.compile(r"\s+")
_WORD_POWER = re.compile(r"\s+(squared|cubed)\b")
_POWER_WORD = re.compile(r"(square|cubic)\s+")
# Words that are also units for pint ("in" an inch, "a" a year); they count as units at the end of the text only.
_ENGLISH = frozenset(
    (
        "a",
        "am",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "do",
        "for",
        "has",
        "he",
        "if",
        "in",
        "is",
        "it",
        "me",
        "my",
    )
) | {"no", "of", "on", "or", "per", "so", "than", "the", "to", "us", "we"}


class UnknownUnit(ValueError):
    """The text does not begin with a unit."""


def available() -> bool:
    """Say whether pint is installed."""
    return importlib.util.find_spec("pint") is not None


_LOCK = threading.Lock()


@functools.cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry(cache_folder=None)


@functools.lru_cache(maxsize=4096)
def lookup(name: str) -> Unit | None:
    """Return the unit or constant called ``name``, ``None`` if there is none (or it is logarithmic)."""
    if name in _CODATA:
        from scipy.constants import physical_constants

        value, unit, _ = physical_constants[_CODATA[name]]
        return Unit(Fraction(value)) * (parse(unit) if unit else ONE)
    if not available() or len(name) > 40:
        return None
    candidates = [_ALIASES.get(name, name)]
    if len(name) > 3 and name != name.lower():
        candidates.append(_ALIASES.get(name.lower(), name.lower()))
    return next((u for c in candidates if (u := _from_pint(c)) is not None), None)


def _from_pint(name: str) -> Unit | None:
    # Pint fills its caches while it looks up; a name is all it gets, so there is nothing for it to evaluate.
    with _LOCK:
        registry = _registry()
        try:
            zero, one, two = (registry.Quantity(float(v), name).to_root_units() for v in range(3))
            dimension = one.dimensionality
        except Exception:
            return None  # whatever pint raises for a name (many classes), it is not one of its units
    if two.m - one.m != one.m - zero.m and abs((two.m - one.m) / (one.m - zero.m) - 1) > 1e-9:
        return None
    powers = sorted((str(n), Fraction(p).limit_denominator(100)) for n, p in dimension.items())
    return Unit(Fraction(one.m) - Fraction(zero.m), tuple(powers), Fraction(zero.m))


def parse(text: str) -> Unit:
    """Return the unit that the whole of ``text`` is, e.g. ``kg m^2/s^2``; raise UnknownUnit otherwise.

    Of ``a/b c`` the blank binds more tightly, as in ``J/mol K``; ``a/b*c`` is read from left to right.
    """
    unit, end = prefix(text.strip())
    if end != len(text.strip()):
        raise UnknownUnit(f"{text!r} is not a unit")
    return unit


def prefix(text: str, tight: bool = True) -> tuple[Unit, int]:
    """Return the longest unit that ``text`` begins with, and where it ends; raise UnknownUnit if there is none.

    ``tight``: of ``a/b c`` the denominator is ``b c``, otherwise ``b``.
    """
    return _Reader(text[:MAX_LENGTH], tight).product(0, 0)


class _Reader:
    def __init__(self, text: str, tight: bool):
        self.text, self.tight = text, tight

    def product(self, at: int, depth: int) -> tuple[Unit, int]:
        if self.text.startswith("1/", at):
            unit, at = ONE, at + 1
        else:
            unit, at = self.factor(at, depth)
        under = False
        while True:
            if match := _PER.match(self.text, at):
                under = True
            elif match := _TIMES.match(self.text, at):
                under = under and self.tight and match.group().strip() in ("·", "⋅", ".", "-")
            elif match := _SPACE.match(self.text, at):
                under = under and self.tight
            else:
                return unit, at
            try:
                factor, end = self.factor(match.end(), depth)
            except UnknownUnit:
                return unit, at
            unit, at = unit * (factor ** Fraction(-1) if under else factor), end
            if not self.tight:
                under = False

    def factor(self, at: int, depth: int) -> tuple[Unit, int]:
        if self.text.startswith("(", at):
            if depth >= MAX_DEPTH:
                raise UnknownUnit("nested too deeply")
            unit, at = self.product(at + 1, depth + 1)
            if not self.text.startswith(")", at):
                raise UnknownUnit("unbalanced parenthesis")
            return self.powered(unit, at + 1, bare=False)
        if match := _POWER_WORD.match(self.text, at):
            unit, at = self.name(match.end())
            return unit ** Fraction({"square": 2, "cubic": 3}[match[1]]), at
        unit, at = self.name(at)
        return self.powered(unit, at, bare=True)

    def name(self, at: int) -> tuple[Unit, int]:
        match = _NAME.match(self.text, at)
        if match is None or (match.group() in _ENGLISH and self.text[match.end() :].strip(" .,;)")):
            raise UnknownUnit("no unit here")
        unit = lookup(match.group())
        if unit is None:
            raise UnknownUnit(f"{match.group()!r} is not a known unit")
        return unit, match.end()

    def powered(self, unit: Unit, at: int, bare: bool) -> tuple[Unit, int]:
        if match := _POWER.match(self.text, at):
            try:
                power = Fraction("".join((match[1] or match[2]).split()))
            except (ValueError, ZeroDivisionError):
                raise UnknownUnit("no power") from None
        elif match := _WORD_POWER.match(self.text, at):
            power = Fraction({"squared": 2, "cubed": 3}[match[1]])
        elif bare and (match := _BARE_POWER.match(self.text, at)):
            power = Fraction(int(match[1]))
        else:
            return unit, at
        if abs(power) > MAX_POWER or not unit.scale:
            raise UnknownUnit("power out of range")
        try:
            return unit**power, match.end()
        except (OverflowError, ZeroDivisionError, ValueError):
            raise UnknownUnit("power out of range") from None
