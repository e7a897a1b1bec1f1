"""Numbers in English words and in other bases."""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family

ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def english(number: int, hyphen: str = "-", link: str = " ") -> str:
    """Return ``0 <= number < 1_000_000`` in words; ``link`` is between the hundreds and the rest (`" and "`)."""
    if number < 20:
        return ONES[number]
    if number < 100:
        tens, one = divmod(number, 10)
        return TENS[tens] + (hyphen + ONES[one] if one else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{ONES[hundreds]} hundred" + (link + english(rest, hyphen, link) if rest else "")
    thousands, rest = divmod(number, 1000)
    between = link if rest < 100 else " "
    return f"{english(thousands, hyphen, link)} thousand" + (between + english(rest, hyphen, link) if rest else "")


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


NAMES = {2: "binary", 8: "octal", 16: "hexadecimal"}
PREFIX = {2: "0b", 8: "0o", 16: "0x"}
IN_WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 16: "sixteen"}


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
        rf"{digits}_{{\text{{{IN_WORDS[base]}}}}}",
        form="latex",
    )
    draw.right(
        "base in words", f"{digits} (base {base})", f"{digits} in base {base}", f"{digits} base {IN_WORDS[base]}"
    )
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
