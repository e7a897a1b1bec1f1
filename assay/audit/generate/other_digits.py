"""Whole numbers in the digits and words of other languages, Chinese and Roman numerals."""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import swapped_digits

DIGITS = {
    "arabic-indic": "٠١٢٣٤٥٦٧٨٩",
    "persian": "۰۱۲۳۴۵۶۷۸۹",
    "devanagari": "०१२३४५६७८९",
    "bengali": "০১২৩৪৫৬৭৮৯",
    "thai": "๐๑๒๓๔๕๖๗๘๙",
    "full width": "０１２３４５６７８９",
    "mathematical bold": "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗",
}


def in_script(number: int, digits: str) -> str:
    return str(number).translate({ord("0") + i: c for i, c in enumerate(digits)})


def chinese(number: int) -> str:
    """Return ``0 < number < 10_000`` in Chinese numerals."""
    names, units = "零一二三四五六七八九", ("", "十", "百", "千")
    text, gap = "", False
    for place in range(3, -1, -1):
        digit = number // 10**place % 10
        if digit:
            text += ("零" if gap and text else "") + names[digit] + units[place]
            gap = False
        else:
            gap = True
    return text[1:] if text.startswith("一十") else text


def roman(number: int) -> str:
    """Return ``0 < number < 4000`` in Roman numerals."""
    text = ""
    for value, letters in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"),
        strict=True,
    ):
        text += letters * (number // value)
        number %= value
    return text


def sum_question(rng: random.Random, gold: int, ask: str = "What is {a} + {b}?") -> str:
    a = rng.randint(1, gold - 1)
    return ask.format(a=a, b=gold - a)


@family("other_digits", "whole numbers in Arabic, Persian, Indian, Thai and full-width digits")
def other_digits(rng: random.Random) -> Draw:
    gold = rng.randint(11, 9999)
    draw = Draw(sum_question(rng, gold), str(gold), gold)
    for script, digits in DIGITS.items():
        draw.right(script, in_script(gold, digits))
        for kind, value in (("off by one", gold + 1), ("digits swapped", swapped_digits(gold)), ("shifted", gold * 10)):
            draw.wrong(f"{kind}, {script}", value, in_script(value, digits))
    return draw


@family("chinese_numerals", "whole numbers in Chinese numerals")
def chinese_numerals(rng: random.Random) -> Draw:
    gold = rng.randint(11, 99) if rng.random() < 0.5 else rng.randint(101, 9999)
    draw = Draw(sum_question(rng, gold, "{a} + {b} 等于多少？"), str(gold), gold)
    draw.right("numerals", chinese(gold))
    draw.right("boxed", rf"\text{{{chinese(gold)}}}", form="latex")
    draw.right("full width", in_script(gold, DIGITS["full width"]))
    for kind, value in (
        ("off by one", gold + 1),
        ("off by one", gold - 1),
        ("digits swapped", swapped_digits(gold)),
        ("ten more", gold + 10),
    ):
        draw.wrong(kind, value, chinese(value), in_script(value, DIGITS["full width"]))
        draw.wrong(kind, value, rf"\text{{{chinese(value)}}}", form="latex")
    return draw


@family("roman_numerals", "numbers asked for as Roman numerals")
def roman_numerals(rng: random.Random) -> Draw:
    gold = rng.randint(4, 3999)
    draw = Draw(f"Write {gold} as a Roman numeral.", roman(gold), ("roman", gold), verifier="choice")
    draw.right("capitals", roman(gold))
    draw.right("latex", rf"\text{{{roman(gold)}}}", rf"\mathrm{{{roman(gold)}}}", form="latex")
    for kind, value in (
        ("off by one", gold - 1),
        ("ten more", gold + 10 if gold < 3990 else gold - 10),
        ("digits swapped", swapped_digits(gold)),
    ):
        if 0 < value < 4000:
            draw.wrong(kind, ("roman", value), roman(value))
            draw.wrong(kind, ("roman", value), rf"\text{{{roman(value)}}}", form="latex")
    draw.wrong("not converted", ("decimal", gold), str(gold))
    text = roman(gold)
    if len(text) > 1 and text[::-1] != text:
        draw.wrong("reversed", ("text", text[::-1]), text[::-1])
    return draw


SPANISH = (
    "cero", "uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez", "once", "doce",
    "trece", "catorce", "quince", "dieciséis", "diecisiete", "dieciocho", "diecinueve", "veinte", "veintiuno",
    "veintidós", "veintitrés", "veinticuatro", "veinticinco", "veintiséis", "veintisiete", "veintiocho",
    "veintinueve",
)  # fmt: skip
SPANISH_TENS = ("", "", "", "treinta", "cuarenta", "cincuenta", "sesenta", "setenta", "ochenta", "noventa")
GERMAN = (
    "null", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf",
    "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn",
)  # fmt: skip
GERMAN_TENS = ("", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
FRENCH = (
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze",
    "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf",
)  # fmt: skip
FRENCH_TENS = (
    "",
    "",
    "vingt",
    "trente",
    "quarante",
    "cinquante",
    "soixante",
    "soixante",
    "quatre-vingt",
    "quatre-vingt",
)


def spanish(number: int) -> str:
    if number < 30:
        return SPANISH[number]
    return SPANISH_TENS[number // 10] + (f" y {SPANISH[number % 10]}" if number % 10 else "")


def german(number: int) -> str:
    if number < 20:
        return "eins" if number == 1 else GERMAN[number]
    return (f"{GERMAN[number % 10]}und" if number % 10 else "") + GERMAN_TENS[number // 10]


def french(number: int) -> str:
    if number < 20:
        return FRENCH[number]
    tens, rest = divmod(number, 10)
    if tens in (7, 9):
        rest += 10
    if not rest:
        return "quatre-vingts" if tens == 8 else FRENCH_TENS[tens]
    joint = " et " if rest in (1, 11) and tens < 8 else "-"
    return f"{FRENCH_TENS[tens]}{joint}{FRENCH[rest]}"


@family("foreign_words", "whole numbers below 100 in Spanish, German and French words, asked for in that language")
def foreign_words(rng: random.Random) -> Draw:
    write, ask = rng.choice(
        (
            (spanish, "¿Cuánto es {a} + {b}? Escribe el resultado con palabras o cifras."),
            (german, "Wie viel ist {a} + {b}? Schreibe das Ergebnis in Worten oder Ziffern."),
            (french, "Combien font {a} + {b} ? Écrivez le résultat en lettres ou en chiffres."),
        )
    )
    gold = rng.randint(12, 98)
    draw = Draw(sum_question(rng, gold, ask), rng.choice((str(gold), write(gold))), gold)
    draw.right("words", write(gold), write(gold).capitalize())
    draw.right("boxed words", rf"\text{{{write(gold)}}}", form="latex")
    draw.right("digits", str(gold))
    for kind, value in (
        ("off by one", gold + 1),
        ("off by one", gold - 1),
        ("digits swapped", swapped_digits(gold)),
        ("ten more", gold + 10),
    ):
        if value < 100:
            draw.wrong(kind, value, write(value), write(value).capitalize(), str(value))
            draw.wrong(kind, value, rf"\text{{{write(value)}}}", form="latex")
    return draw
