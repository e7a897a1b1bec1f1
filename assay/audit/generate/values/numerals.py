"""Whole numbers in words, in other digits and in other bases."""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.spell import (
    english,
    swapped_digits,
    table,
)


@family("english_words", "whole numbers in English words, as the answer or as the reference")
def english_words(rng: random.Random) -> Draw:
    gold = rng.randint(11, 99) if rng.random() < 0.6 else rng.randint(100, 99_999)
    part = rng.randint(1, gold - 1)
    in_words = rng.random() < 0.3
    draw = Draw(
        f"How many apples are {gold - part} apples and {part} apples together?",
        english(gold) if in_words else str(gold),
        gold,
    )
    if in_words:
        draw.right("digits", str(gold), f"{gold} apples")
    text = english(gold)
    draw.right("words", text, english(gold, link=" and "))
    draw.right("capital", text.capitalize(), text.title())
    draw.right("no hyphen", english(gold, hyphen=" "))
    draw.right("with noun", f"{text} apples")
    draw.right("boxed words", rf"\text{{{text}}}", form="latex")
    for kind, value in (
        ("off by one", gold + 1),
        ("off by one", gold - 1),
        ("teen for ty", int(f"1{str(gold)[0]}") if gold < 100 and gold % 10 == 0 and gold > 20 else gold + 10),
        ("a power of ten away", gold * 10),
        ("digits swapped", int(str(gold)[::-1])),
    ):
        draw.wrong(kind, value, english(value), english(value, hyphen=" "), f"{english(value)} apples")
        if in_words:
            draw.wrong(kind, value, str(value))
    return draw


def digits_in(number: int, base: int) -> str:
    """Return ``number >= 0`` in ``base`` up to 16."""
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = "0123456789ABCDEF"[digit] + digits
    return digits or "0"


PREFIX = {2: "0b", 8: "0o", 16: "0x"}


@family(
    "bases", "numbers in another base: with and without the subscript, prefixes; a decimal or another base is wrong"
)
def bases(rng: random.Random) -> Draw:
    base = rng.choice((2, 3, 4, 5, 6, 7, 8, 9, 16))
    gold = rng.randint(20, 400)
    digits = digits_in(gold, base)
    draw = Draw(
        f"Write the decimal number {gold} in base {base}.",
        rng.choice((digits, f"{digits}_{{{base}}}", f"{digits}_{base}")),
        (base, gold),
    )
    draw.right("no subscript", digits)
    draw.right(
        "subscript",
        f"{digits}_{{{base}}}",
        f"({digits})_{{{base}}}",
        rf"{digits}_{{\text{{{english(base)}}}}}",
        form="latex",
    )
    draw.right("base in words", f"{digits} (base {base})", f"{digits} in base {base}", f"{digits} base {english(base)}")
    draw.right("unicode subscript", digits + str(base).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")))
    if base < 10:
        draw.right("subscript", f"{digits}_{base}", form="latex")
    if base in PREFIX:
        draw.right("prefix", f"{PREFIX[base]}{digits}")
    if base == 16:
        draw.right("lower case", digits.lower(), f"0x{digits.lower()}")
    if digits != str(gold):
        draw.wrong("left decimal", ("decimal", gold), str(gold))
    other = base + 1 if base < 9 else base - 1
    draw.wrong(
        "subscript of another base",
        (other, int(digits, 16) if base == 16 else int(digits, base + 1)),
        f"{digits}_{{{other}}}",
        form="latex",
    )
    for kind, value in (("off by one", gold + 1), ("off by one", gold - 1), ("a digit more", gold * base)):
        wrong = digits_in(value, base)
        draw.wrong(kind, (base, value), wrong, f"{wrong} (base {base})")
        draw.wrong(kind, (base, value), f"{wrong}_{{{base}}}", form="latex")
    reverse = digits[::-1]
    if not reverse.startswith("0") and reverse != digits:
        draw.wrong("reversed", (base, int(reverse, base)), reverse)
        draw.wrong("reversed", (base, int(reverse, base)), f"{reverse}_{{{base}}}", form="latex")
    return draw


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
    for script, digits in table("digits").items():
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
    draw.right("full width", in_script(gold, table("digits")["full width"]))
    for kind, value in (
        ("off by one", gold + 1),
        ("off by one", gold - 1),
        ("digits swapped", swapped_digits(gold)),
        ("ten more", gold + 10),
    ):
        draw.wrong(kind, value, chinese(value), in_script(value, table("digits")["full width"]))
        draw.wrong(kind, value, rf"\text{{{chinese(value)}}}", form="latex")
    return draw


@family("roman_numerals", "numbers asked for as Roman numerals")
def roman_numerals(rng: random.Random) -> Draw:
    gold = rng.randint(4, 3999)
    draw = Draw(f"Write {gold} as a Roman numeral.", roman(gold), ("roman", gold), verifier="text")
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


def in_words(number: int, language: str) -> str:
    """Return ``0 <= number < 100`` in Spanish, German or French words."""
    words = table("number_words")[language]
    if number < len(words["ones"]):
        return "eins" if language == "german" and number == 1 else str(words["ones"][number])
    tens, rest = divmod(number, 10)
    ten = str(words["tens"][tens])
    if language == "spanish":
        return f"{ten} y {words['ones'][rest]}" if rest else ten
    if language == "german":
        return (f"{words['ones'][rest]}und" if rest else "") + ten
    if tens in (7, 9):  # sixty-ten, four-twenties-ten
        rest += 10
    if not rest:
        return "quatre-vingts" if tens == 8 else ten
    return f"{ten}{' et ' if rest in (1, 11) and tens < 8 else '-'}{words['ones'][rest]}"


@family("foreign_words", "whole numbers below 100 in Spanish, German and French words, asked for in that language")
def foreign_words(rng: random.Random) -> Draw:
    language = rng.choice(("spanish", "german", "french"))
    ask = table("number_words")[language]["ask"]

    def write(number: int) -> str:
        return in_words(number, language)

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
