# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Number words of Spanish, French and German up to 999 999, by a table of all spellings below a thousand.

:mod:`~assay.verify.math.foreign_more` has further languages.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator

from assay.verify.math.foreign_more import further_number

MAX_LETTERS = 120

_ES_SMALL = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis diecisiete "
    "dieciocho diecinueve veinte veintiuno veintidos veintitres veinticuatro veinticinco veintiseis veintisiete "
    "veintiocho veintinueve"
).split()
_ES_TENS = "treinta cuarenta cincuenta sesenta setenta ochenta noventa".split()
_ES_HUNDREDS = "ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
_FR_SMALL = (
    "zero un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize "
    "dixsept dixhuit dixneuf"
).split()
_FR_TENS = {20: "vingt", 30: "trente", 40: "quarante", 50: "cinquante", 60: "soixante"}
_FR_SWISS = {70: ("septante",), 80: ("huitante", "octante"), 90: ("nonante",)}
_DE_SMALL = (
    "null eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn funfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
).split()
_DE_TENS = "zwanzig dreissig vierzig funfzig sechzig siebzig achtzig neunzig".split()


def foreign_number(text: str) -> int | None:
    """Return the number that the whole of ``text`` spells in Spanish, French, German or one of
    eight further languages, ``None`` if it is none.

    Accents, hyphens and blanks do not matter. ``once`` and ``null`` alone are left out: they are English words.
    """
    if len(text) > MAX_LETTERS or not text[:1].isalpha():
        return None
    flat = _flat(text)
    if flat in ("once", "null"):
        return None
    for table, thousand in ((_spanish(), "mil"), (_french(), "mille"), (_german(), "tausend")):
        found = _below_million(flat, table, thousand)
        if found is not None:
            return found
    return further_number(flat)


def _flat(text: str) -> str:
    """Letters only, without accents: ``fünf-und-zwanzig`` and ``fuenfundzwanzig`` as ``funfundzwanzig``."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(c for c in folded if c not in " -\u2010\u2011" and not unicodedata.combining(c))
    return letters.replace("fuenf", "funf").replace("zwoelf", "zwolf") if letters.isalpha() else ""


def _below_million(flat: str, table: dict[str, int], thousand: str) -> int | None:
    if flat in table:
        return table[flat]
    head, mark, tail = flat.partition(thousand)
    if not mark:
        return None
    several = 1 if not head else table.get(head)
    rest = 0 if not tail else table.get(tail)
    return None if not several or rest is None or (tail and not rest) else several * 1000 + rest


@functools.cache
def _spanish() -> dict[str, int]:
    below: dict[str, int] = {word: n for n, word in enumerate(_ES_SMALL)}
    below["un"], below["veintiun"], below["una"], below["veintiuna"] = 1, 21, 1, 21
    below |= {f"dieciy{word}": 10 + n for n, word in enumerate(_ES_SMALL[:10]) if n}
    below |= {f"diezy{word}": 10 + n for n, word in enumerate(_ES_SMALL[:10]) if n > 5}
    for tens, word in enumerate(_ES_TENS, 3):
        below[word] = 10 * tens
        below |= {f"{word}y{unit}": 10 * tens + n for n, unit in enumerate(_ES_SMALL[:10]) if n}
        below[f"{word}yun"] = below[f"{word}yuna"] = 10 * tens + 1
    table = below | {"cien": 100}
    for hundreds, word in enumerate(_ES_HUNDREDS.split(), 1):
        for spelling in {word, word.replace("os", "as") if hundreds > 1 else word}:
            if hundreds > 1:
                table[spelling] = 100 * hundreds
            table |= {spelling + rest: 100 * hundreds + n for rest, n in below.items() if n}
    return table


def _french_below_hundred() -> Iterator[tuple[str, int]]:
    for n, word in enumerate(_FR_SMALL):
        yield word, n
    yield "une", 1
    for tens, word in _FR_TENS.items():
        yield word, tens
        for n, unit in enumerate(_FR_SMALL[: 20 if tens == 60 else 10]):
            if n:
                yield f"{word}{'et' if n in (1, 11) else ''}{unit}", tens + n
    for tens, words in _FR_SWISS.items():
        for word in words:
            yield word, tens
            for n, unit in enumerate(_FR_SMALL[:10]):
                if n:
                    yield f"{word}{'et' if n == 1 else ''}{unit}", tens + n
    yield "quatrevingts", 80
    for n, unit in enumerate(_FR_SMALL):
        if n:
            yield f"quatrevingt{unit}", 80 + n


@functools.cache
def _french() -> dict[str, int]:
    below = dict(_french_below_hundred())
    table = dict(below)
    for hundreds in range(1, 10):
        word = "cent" if hundreds == 1 else f"{_FR_SMALL[hundreds]}cent"
        table[word if hundreds == 1 else f"{word}s"] = 100 * hundreds
        table[word] = 100 * hundreds
        table |= {word + rest: 100 * hundreds + n for rest, n in below.items() if n}
    # "trois cent mille" has no s before mille; "quatre-vingt mille" neither.
    table["quatrevingt"] = 80
    return table


@functools.cache
def _german() -> dict[str, int]:
    below: dict[str, int] = {word: n for n, word in enumerate(_DE_SMALL)}
    units = ["", "ein", *_DE_SMALL[2:10]]
    for tens, word in enumerate(_DE_TENS, 2):
        below[word] = 10 * tens
        below |= {f"{unit}und{word}": 10 * tens + n for n, unit in enumerate(units) if n}
    table = below | {"ein": 1}
    for hundreds in range(1, 10):
        for head in {"", "ein"} if hundreds == 1 else {units[hundreds]}:
            word = f"{head}hundert"
            table[word] = 100 * hundreds
            for link in ("", "und"):
                table |= {word + link + rest: 100 * hundreds + n for rest, n in below.items() if n}
    return table
