# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Number words below a hundred, and round hundreds, of eight further languages; spelled fractions and halves of six.

Every word is without accents, blanks and hyphens, as :func:`~assay.verify.math.foreign.foreign_number` leaves it.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class _Language:
    """Words for 0 to 19 and for 20 to 90, words for 100 to 900, and how tens and units are put together."""

    small: str
    tens: str
    hundreds: str
    join: Callable[[str, str], tuple[str, ...]]


def _plain(tens: str, unit: str) -> tuple[str, ...]:
    return (tens + unit,)


def _italian(tens: str, unit: str) -> tuple[str, ...]:
    return (tens[:-1] + unit,) if unit[0] in "uo" else (tens + unit,)


_LANGUAGES = (
    _Language(
        "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
        "diciassette diciotto diciannove",
        "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
        "cento duecento trecento quattrocento cinquecento seicento settecento ottocento novecento",
        _italian,
    ),
    _Language(
        "zero um dois tres quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete "
        "dezoito dezenove",
        "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
        "cem duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos",
        lambda tens, unit: (f"{tens}e{unit}",),
    ),
    _Language(
        "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien "
        "achttien negentien",
        "twintig dertig veertig vijftig zestig zeventig tachtig negentig",
        "honderd tweehonderd driehonderd vierhonderd vijfhonderd zeshonderd zevenhonderd achthonderd negenhonderd",
        lambda tens, unit: (f"{unit}en{tens}",),
    ),
    _Language(
        "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать "
        "четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать",
        "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто",
        "сто двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот",
        _plain,
    ),
    _Language(
        "zero jeden dwa trzy cztery piec szesc siedem osiem dziewiec dziesiec jedenascie dwanascie trzynascie "
        "czternascie pietnascie szesnascie siedemnascie osiemnascie dziewietnascie",
        "dwadziescia trzydziesci czterdziesci piecdziesiat szescdziesiat siedemdziesiat osiemdziesiat dziewiecdziesiat",
        "sto dwiescie trzysta czterysta piecset szescset siedemset osiemset dziewiecset",
        _plain,
    ),
    _Language(
        "noll ett tva tre fyra fem sex sju atta nio tio elva tolv tretton fjorton femton sexton sjutton arton nitton",
        "tjugo trettio fyrtio femtio sextio sjuttio attio nittio",
        "hundra tvahundra trehundra fyrahundra femhundra sexhundra sjuhundra attahundra niohundra",
        _plain,
    ),
    _Language(
        "sifir bir iki uc dort bes alti yedi sekiz dokuz on onbir oniki onuc ondort onbes onalti onyedi onsekiz "
        "ondokuz",
        "yirmi otuz kirk elli altmis yetmis seksen doksan",
        "yuz ikiyuz ucyuz dortyuz besyuz altiyuz yediyuz sekizyuz dokuzyuz",
        _plain,
    ),
    _Language(
        "nol satu dua tiga empat lima enam tujuh delapan sembilan sepuluh sebelas duabelas tigabelas empatbelas "
        "limabelas enambelas tujuhbelas delapanbelas sembilanbelas",
        "duapuluh tigapuluh empatpuluh limapuluh enampuluh tujuhpuluh delapanpuluh sembilanpuluh",
        "seratus duaratus tigaratus empatratus limaratus enamratus tujuhratus delapanratus sembilanratus",
        _plain,
    ),
)
_ENGLISH = frozenset(("on", "sex", "elf", "een", "hundred", "fem", "nine", "one", "six", "tien", "lima", "elva", "tua"))


@functools.cache
def _table() -> dict[str, int]:
    table: dict[str, int] = {}
    for language in _LANGUAGES:
        small, tens, hundreds = (
            _stripped(words).split() for words in (language.small, language.tens, language.hundreds)
        )
        below = {word: n for n, word in enumerate(small)}
        for ten, word in enumerate(tens, 2):
            below[word] = 10 * ten
            for unit in range(1, 10):
                below |= dict.fromkeys(language.join(word, small[unit]), 10 * ten + unit)
        whole = dict(below)
        for n, word in enumerate(hundreds, 1):
            whole[word] = 100 * n
            for link in (
                ("", "e") if word.startswith(("cem", "cent", "du", "tre", "qu", "sei", "set", "oi", "no")) else ("",)
            ):
                head = "cento" if word == "cem" else word
                whole |= {head + link + rest: 100 * n + m for rest, m in below.items() if m}
        for word, n in whole.items():
            table.setdefault(word, n)
    return {word: n for word, n in table.items() if word not in _ENGLISH}


def _stripped(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).replace("ı", "i")


def further_number(flat: str) -> int | None:
    """Return the number that ``flat`` spells, ``None`` if it is none in these languages."""
    return _table().get(flat.replace("ı", "i").replace("ł", "l"))


_PARTS = {
    word: n
    for n, words in {
        2: "halb medio medios demi demis mezzo mezzi meio meios вторая вторых",
        3: "drittel tercio tercios tiers terzo terzi terco tercos треть третьих трети",
        4: "viertel cuarto cuartos quart quarts quarti quarto quartos четверть четвертых четверти",
        5: "funftel quinto quintos cinquieme cinquiemes quinti пятая пятых",
        6: "sechstel sexto sextos sixieme sixiemes sesto sesti шестая шестых",
        7: "siebtel septimo septimos septieme septiemes settimo settimi setimo setimos седьмая седьмых",
        8: "achtel octavo octavos huitieme huitiemes ottavo ottavi oitavo oitavos восьмая восьмых",
        9: "neuntel noveno novenos neuvieme neuviemes nono noni nonos девятая девятых",
        10: "zehntel decimo decimos dixieme dixiemes decimi десятая десятых",
        11: "elftel",
        12: "zwolftel",
        20: "zwanzigstel",
        100: "hundertstel centesimo centesimos centieme centiemes centesimi сотая сотых",
    }.items()
    for word in words.split()
}
_PARTS = {_stripped(word): n for word, n in _PARTS.items()}
_ONE = frozenset("ein eine einen un una une uno um одна uma".split())
_HALVES = "einhalb undeinhalb ymedio ymedia etdemi etdemie emezzo emeio emeia".split()


def spelled_part(text: str, cardinal: Callable[[str], int | None]) -> Fraction | None:
    """Return the fraction of ``fünf Achtel``, ``trois et demi``, ``dreieinhalb``; ``cardinal`` reads integers."""
    if len(text) > 60:
        return None
    words = _stripped(text.casefold().replace("ё", "е")).replace("-", " ").split()
    flat = "".join(words)
    for ending in _HALVES:
        if flat.endswith(ending) and (whole := cardinal(flat[: -len(ending)])) is not None:
            return whole + Fraction(1, 2)
    if len(words) < 2 or words[-1] not in _PARTS:
        return None
    head = "".join(words[:-1])
    count = 1 if head in _ONE else int(head) if head.isdecimal() else {"две": 2, "два": 2}.get(head) or cardinal(head)
    return None if count is None else Fraction(count, _PARTS[words[-1]])
