# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Units of measurement and currencies: what they measure, in exact multiples of a base unit."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from fractions import Fraction

from assay.verify.math.unit_names import NAMES, SQUARES_AND_CUBES

Dimension = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """``factor`` base units of ``dimension``, e.g. km/h is 5/18 of ``(("m", 1), ("s", -1))``.

    ``known`` is false where a word is only a noun that is counted ("apples"). ``offset`` is for temperatures: a value
    of v means ``v * factor + offset`` base units.
    """

    dimension: Dimension
    factor: Fraction
    known: bool = True
    offset: Fraction = Fraction(0)


_TABLE = """
m: m 1 meter metre | mm 1/1000 millimeter millimetre | cm 1/100 centimeter centimetre | dm 1/10 decimeter decimetre
m: km 1000 kilometer kilometre | µm 1/1000000 μm micrometer micrometre micron | nm 1/1000000000 nanometer nanometre
m: inch 127/5000 in inches | foot 381/1250 ft feet | yard 1143/1250 yd | mile 201168/125 mi | nmi 1852
m^2: hectare 10000 ha | acre 316160658/78125
m^3: liter 1/1000 l litre L | ml 1/1000000 mL milliliter millilitre cc | cl 1/100000 cL centiliter centilitre
m^3: dl 1/10000 dL deciliter decilitre | gallon 473176473/125000000000 gal | quart 473176473/500000000000 qt
m^3: pint 473176473/1000000000000 pt | cup 473176473/2000000000000 | kl 1 kL kiloliter
m^3: tablespoon 473176473/32000000000000 tbsp tablespoonful | teaspoon 473176473/96000000000000 tsp teaspoonful
g: g 1 gram gramme gm | mg 1/1000 milligram | kg 1000 kilogram kilo kgs | tonne 1000000 t | µg 1/1000000 microgram
g: lb 45359237/100000 lbs pound | oz 45359237/1600000 ounce | ton 1000000
s: s 1 sec second secs | ms 1/1000 millisecond | min 60 minute mins | h 3600 hr hour hrs | day 86400 d | week 604800 wk
s: µs 1/1000000 microsecond | fortnight 1209600
month: month 1 mo | year 12 yr yrs | decade 120 | century 1200 centuries
$: dollar 1 usd buck | cent 1/100 ¢ penny pennies | nickel 1/20 | dime 1/10
€: euro 1 eur € | eurocent 1/100
£: gbp 1 £ quid sterling | pence 1/100
¥: yen 1 jpy ¥ 円
cny: yuan 1 rmb cny 元 | 角 1/10 毛
₹: rupee 1 inr ₹ rs | paisa 1/100 paise
₽: ruble 1 rub ₽ rouble | kopek 1/100
₩: won 1 krw ₩
bit: bit 1 | byte 8 | kb 8000 kilobyte | mb 8000000 megabyte | gb 8000000000 gigabyte
deg: ° 1 degree deg
K: K 1 kelvin
mol: mol 1 mole
A: A 1 amp ampere | mA 1/1000 milliamp
"""
_DERIVED = {
    # name: (expression over the base units above, factor)
    "N": ("g m s^-2", Fraction(1000)), "newton": ("g m s^-2", Fraction(1000)),
    "kN": ("g m s^-2", Fraction(10**6)),
    "J": ("g m^2 s^-2", Fraction(1000)), "joule": ("g m^2 s^-2", Fraction(1000)),
    "kJ": ("g m^2 s^-2", Fraction(10**6)), "kilojoule": ("g m^2 s^-2", Fraction(10**6)),
    "MJ": ("g m^2 s^-2", Fraction(10**9)), "mJ": ("g m^2 s^-2", Fraction(1)),
    "cal": ("g m^2 s^-2", Fraction(4184)), "calorie": ("g m^2 s^-2", Fraction(4184)),
    "kcal": ("g m^2 s^-2", Fraction(4184000)),
    "kWh": ("g m^2 s^-2", Fraction(3600000000)),
    "kilowatt-hour": ("g m^2 s^-2", Fraction(3600000000)),
    "kilowattstunde": ("g m^2 s^-2", Fraction(3600000000)), "千瓦时": ("g m^2 s^-2", Fraction(3600000000)),
    "Wh": ("g m^2 s^-2", Fraction(3600000)),
    "W": ("g m^2 s^-3", Fraction(1000)), "watt": ("g m^2 s^-3", Fraction(1000)),
    "kW": ("g m^2 s^-3", Fraction(10**6)), "kilowatt": ("g m^2 s^-3", Fraction(10**6)),
    "MW": ("g m^2 s^-3", Fraction(10**9)), "mW": ("g m^2 s^-3", Fraction(1)),
    "Pa": ("g m^-1 s^-2", Fraction(1000)), "pascal": ("g m^-1 s^-2", Fraction(1000)),
    "kPa": ("g m^-1 s^-2", Fraction(10**6)), "MPa": ("g m^-1 s^-2", Fraction(10**9)),
    "atm": ("g m^-1 s^-2", Fraction(101325000)), "bar": ("g m^-1 s^-2", Fraction(10**8)),
    "Hz": ("s^-1", Fraction(1)), "hertz": ("s^-1", Fraction(1)), "kHz": ("s^-1", Fraction(1000)),
    "MHz": ("s^-1", Fraction(10**6)), "GHz": ("s^-1", Fraction(10**9)),
    "V": ("g m^2 s^-3 A^-1", Fraction(1000)), "volt": ("g m^2 s^-3 A^-1", Fraction(1000)),
    "mV": ("g m^2 s^-3 A^-1", Fraction(1)), "kV": ("g m^2 s^-3 A^-1", Fraction(10**6)),
    "C": ("A s", Fraction(1)), "coulomb": ("A s", Fraction(1)),
    "Ω": ("g m^2 s^-3 A^-2", Fraction(1000)), "ohm": ("g m^2 s^-3 A^-2", Fraction(1000)),
    "kΩ": ("g m^2 s^-3 A^-2", Fraction(10**6)),
    "mph": ("m s^-1", Fraction(1397, 3125)), "kph": ("m s^-1", Fraction(5, 18)),
    "kmh": ("m s^-1", Fraction(5, 18)), "knot": ("m s^-1", Fraction(463, 900)),
}  # fmt: skip
_CASED = frozenset("m mm mL M s g G h l L N J W V A K C t d Pa MJ mJ MW mW kW kN kJ mA mV".split())
"""Symbols that are only units in this very case; other names are known in any case."""


def _dimension(text: str) -> Dimension:
    parts = (item.partition("^") for item in text.split())
    return tuple(sorted((name, int(exponent or 1)) for name, _, exponent in parts))


def _load() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for line in _TABLE.strip().splitlines():
        base, _, rest = line.partition(": ")
        for entry in rest.split(" | "):
            name, factor, *others = entry.split()
            unit = Unit(_dimension(base), Fraction(factor))
            for word in (name, *others):
                units[word] = unit
                if len(word) > 2:
                    units[f"{word}es" if word.endswith("ch") else f"{word}s"] = unit
    for name, (base, scale) in _DERIVED.items():
        units[name] = Unit(_dimension(base), scale)
        if len(name) > 3:
            units[f"{name}s"] = units[name]
    for name, parts in (("million", 10**9), ("billion", 10**6), ("trillion", 1000)):
        unit = Unit((("parts", 1),), Fraction(parts))
        units[f"pp{name[0]}"] = units[f"parts per {name}"] = unit
    units["rad"] = units["radian"] = units["radians"] = Unit((), Fraction(1))
    kelvin = (("K", 1),)
    for name in ("°c", "celsius", "degc", "centigrade"):
        units[name] = Unit(kelvin, Fraction(1), True, Fraction(5463, 20))
    for name in ("°f", "fahrenheit", "degf"):
        units[name] = Unit(kelvin, Fraction(5, 9), True, Fraction(45967, 180))
    return units


UNITS = _load()
_LOWER = {name.casefold(): unit for name, unit in UNITS.items() if name not in _CASED}


def _load_foreign() -> None:
    for line in NAMES.strip().splitlines():
        name, _, words = line.partition(": ")
        for word in words.split():
            if word not in _LOWER:
                UNITS[word] = _LOWER[word] = UNITS[name]
    for line in SQUARES_AND_CUBES.strip().splitlines():
        name, _, words = line.partition(": ")
        power, base = int(name[0]), UNITS[name[1:] or "m"]
        unit = Unit(tuple((n, e * power) for n, e in base.dimension), base.factor**power)
        for word in words.split():
            UNITS[word] = _LOWER[word] = unit


_load_foreign()
UNITS["$"] = UNITS["dollar"]
CURRENCY = {"$": "dollar", "€": "euro", "£": "gbp", "¥": "yen", "₹": "rupee", "₽": "ruble", "₩": "won", "¢": "cent"}

_NUMBERS = re.compile(r"\^?\s?\{?\s?(-?[0-9])\s?\}?")
_PIECES = re.compile(r"°\s?[CF]\b|[°¢€£¥₹₽₩$'\"]|[^\W\d_]+|[/*·.]|\^\s?\{?-?[0-9]\}?|(?<=\w)[0-9]|[()]")
_SQUARE = {
    **{"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3},
    **dict.fromkeys("carré carrés carrée cuadrado cuadrados quadrato quadrati quadrado quadrados кв".split(), 2),
    **dict.fromkeys("cube cubes cúbico cúbicos cubo cubi cubico cubici куб".split(), 3),
}
_PER = frozenset(("/", "per", "an", "a", "pro", "por", "par", "в", "all'"))


def lookup(word: str) -> Unit | None:
    """Return the unit called ``word``, ``None`` if it is none."""
    return UNITS.get(word) or (_LOWER.get(word.casefold()) if len(word) > 1 or not word.isalpha() else None)


def singular(noun: str) -> str:
    noun = noun.casefold()
    if noun.endswith("ies") and len(noun) > 4:
        return noun[:-3] + "y"
    if noun.endswith(("sses", "xes", "ches", "shes")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") and len(noun) > 2 else noun


@functools.lru_cache(4096)
def read_unit(text: str) -> Unit | None:
    """Return the unit that the whole of ``text`` names, e.g. ``km/h``, ``square feet``, ``m s^{-2}``, ``apples``.

    A word that is not in the table is a dimension of its own, and the result is not ``known``; ``None`` if ``text`` is
    no unit.
    """
    text = text.strip().rstrip(".")
    unit = lookup(text)
    if unit is not None:
        return unit
    if not text or len(text) > 80 or _PIECES.sub("", text).strip():
        return None
    pieces = _PIECES.findall(text)
    dimension: dict[str, int] = {}
    factor, known, sign, pending = Fraction(1), True, 1, 0
    last: Unit | None = None
    last_sign = 1
    offset = Fraction(0)

    def multiply(unit: Unit, times: int) -> None:
        nonlocal factor
        for base, exponent in unit.dimension:
            dimension[base] = dimension.get(base, 0) + exponent * times
        factor *= unit.factor**times

    words = 0
    for piece in pieces:
        low = piece.casefold().replace(" ", "")
        if low in _PER or (low in ("each", "every") and last is not None):
            if low in ("a", "an", "в") and (last is None or not known):
                return None
            sign = -1
            continue
        if piece in "*·.()" or low == "of":
            continue
        if low in ("square", "sq", "cubic", "cu", "кв", "куб"):
            pending = _SQUARE[low]
            continue
        exponent = _SQUARE.get(low)
        if exponent is None and (match := _NUMBERS.fullmatch(piece)):
            exponent = int(match[1])
        if exponent is not None:
            if last is None or exponent == 0:
                return None
            multiply(last, last_sign * (exponent - 1))
            last = None
            continue
        unit = lookup(low if low in ("°c", "°f") else piece)
        if unit is None:
            if len(piece) < 2 and piece.isascii():
                return None
            unit = Unit(((singular(piece), 1),), Fraction(1), False)
        if low in ("celsius", "fahrenheit", "c", "f") and dimension == {"deg": 1}:
            dimension, factor = {}, Fraction(1)
            unit = UNITS["celsius" if low.startswith("c") else "fahrenheit"]
        known = known and unit.known
        multiply(unit, sign * (pending or 1))
        offset = unit.offset
        last, last_sign, pending = unit, sign, 0
        words += 1
    if not words or words > 5:
        return None
    kept = tuple(sorted((base, exponent) for base, exponent in dimension.items() if exponent))
    return Unit(kept, factor, known, offset if words <= 2 and len(kept) == 1 else Fraction(0))


def nouns(unit: Unit) -> frozenset[str]:
    return frozenset(base for base, _ in unit.dimension)
