"""Amounts of money, times of day, durations and dates."""

from __future__ import annotations

import calendar
import datetime
import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family
from assay.audit.generate.exact import Quantity
from assay.audit.generate.spell import (
    decimal,
    grouped,
    table,
)


@family("currency", "amounts of money: sign, word, code, cents; another currency or a shifted point is wrong")
def currency(rng: random.Random) -> Draw:
    sign, command, word, code, small = rng.choice(table("currency")["rows"])
    n, cents = rng.randint(2, 12), rng.choice((25, 50, 75, 100, 150, 199, 250, 320, 405, 999, 1250, 10_000))
    gold = Quantity(Fraction(n * cents, 100), code)
    amount = f"{n * cents // 100}.{n * cents % 100:02}"
    each = f"{sign}{cents // 100}.{cents % 100:02}"
    question = f"A ticket costs {each}. How much do {n} tickets cost? Give the amount with its currency."
    draw = Draw(question, rng.choice((f"{sign}{amount}", f"{command}{amount}", f"{amount} {word}")), gold)
    whole = n * cents % 100 == 0
    texts = [amount, str(n * cents // 100)] if whole else [amount]
    for text in texts:
        big = grouped(text.partition(".")[0], ",") + text[len(text.partition(".")[0]) :]
        draw.right("sign", f"{sign}{text}", f"{sign}{big}", f"{sign} {text}")
        draw.right("latex sign", f"{command}{text}", rf"{command}\,{text}", form="latex")
        draw.right("word", f"{text} {word}")
        draw.right("latex word", rf"{text}\text{{ {word}}}", rf"{text} \text{{ {word}}}", form="latex")
        draw.right("code", f"{text} {code}", f"{code} {text}")
    draw.right("small units", f"{n * cents} {small}")

    def wrong(
        kind: str, hundredths: int, mark: str = sign, name: str = word, iso: str = code, tex: str = command
    ) -> None:
        value = Quantity(Fraction(hundredths, 100), iso)
        shown = f"{hundredths // 100}.{hundredths % 100:02}"
        draw.wrong(kind, value, f"{mark}{shown}", f"{shown} {name}", f"{shown} {iso}")
        draw.wrong(kind, value, f"{tex}{shown}", form="latex")

    wrong("a cent off", n * cents + 1)
    wrong("one unit off", n * cents + 100)
    wrong("decimal shift", n * cents * 10)
    wrong("in hundredths", n * cents * 100)
    wrong("one ticket", cents)
    for other in table("currency")["rows"]:
        if other[0] != sign:
            wrong("another currency", n * cents, other[0], other[2], other[3], other[1])
    draw.wrong(
        "small units for large",
        Quantity(Fraction(n * cents, 10_000), code),
        f"{decimal(Fraction(n * cents, 100))} {small}",
    )
    return draw


def clock(minutes: int) -> tuple[int, int]:
    return divmod(minutes % 1440, 60)


@family("clock_times", "times of day on the 12 and the 24 hour clock; morning for afternoon is wrong")
def clock_times(rng: random.Random) -> Draw:
    start, length = rng.randrange(1440), rng.randint(20, 700)
    gold = (start + length) % 1440

    def texts(minutes: int) -> tuple[list[str], list[str]]:
        hour, minute = clock(minutes)
        half = "AM" if hour < 12 else "PM"
        twelve = hour % 12 or 12
        dotted = f"{half[0].lower()}.m."
        short = [
            f"{twelve}:{minute:02} {half}",
            f"{twelve}:{minute:02} {half.lower()}",
            f"{twelve}:{minute:02}{half.lower()}",
        ]
        short.append(f"{twelve}:{minute:02} {dotted}")
        if minute == 0:
            short.append(f"{twelve} {half}")
        return short, [f"{hour:02}:{minute:02}", *([f"{hour}:{minute:02}"] if hour > 12 else [])]

    twelve, long = texts(gold)
    hours, minutes = divmod(length, 60)
    span = f"{hours} hours and {minutes} minutes" if hours else f"{minutes} minutes"
    begin = texts(start)[0][0]
    question = f"A journey starts at {begin} and takes {span}. At what time does it end? (AM/PM or 24-hour time)"
    draw = Draw(question, rng.choice((twelve[0], long[0])), gold)
    draw.right("12 hours", *twelve[:3])
    draw.right("12 hours, dotted", twelve[3], form="text")
    draw.right("24 hours", *long)
    draw.right("latex", rf"\text{{{twelve[0]}}}", form="latex")
    hour, minute = clock(gold)
    draw.right("latex", rf"{hour % 12 or 12}:{minute:02} \text{{ {'AM' if hour < 12 else 'PM'}}}", form="latex")
    for kind, other in (
        ("the other half of the day", gold + 720),
        ("an hour late", gold + 60),
        ("a minute early", gold - 1),
        ("the start", start),
        ("ten minutes late", gold + 10),
    ):
        a, b = texts(other % 1440)
        draw.wrong(kind, other % 1440, *a[:3], *b)
        draw.wrong(kind, other % 1440, rf"\text{{{a[0]}}}", form="latex")
    return draw


@family("durations", "a duration in hours and minutes, in minutes, in hours; 2 h 30 min is not 2.3 hours")
def durations(rng: random.Random) -> Draw:
    hours, minutes = rng.randint(1, 9), rng.choice((3, 6, 12, 15, 18, 24, 30, 36, 42, 45, 48, 54))
    gold = 60 * hours + minutes
    first = rng.randint(5, gold - 1)
    question = f"One film lasts {first} minutes, another one {gold - first} minutes. How long are both together?"
    reference = rng.choice((f"{hours} {'hour' if hours == 1 else 'hours'} {minutes} minutes", f"{gold} minutes"))
    draw = Draw(question + " Give the duration with its units.", reference, Quantity(Fraction(gold), "minutes"))
    hour = "hour" if hours == 1 else "hours"

    def mixed(h: int, m: int) -> list[str]:
        name = "hour" if h == 1 else "hours"
        return [
            f"{h} {name} and {m} minutes",
            f"{h} {name} {m} minutes",
            f"{h} h {m} min",
            f"{h}h {m}min",
            f"{h} hr {m} min",
        ]

    draw.right("mixed", *mixed(hours, minutes))
    draw.right("mixed, latex", rf"{hours}\text{{ {hour} }}{minutes}\text{{ minutes}}", form="latex")
    draw.right("mixed, latex", rf"{hours}\,\text{{h}}\,{minutes}\,\text{{min}}", form="latex")
    draw.right("minutes", f"{gold} minutes", f"{gold} min")
    draw.right("minutes", rf"{gold}\text{{ minutes}}", rf"{gold}\,\mathrm{{min}}", form="latex")
    as_hours = decimal(Fraction(gold, 60)) or ""
    draw.right("hours", f"{as_hours} hours", f"{as_hours} h", value=Quantity(Fraction(as_hours) * 60, "minutes"))
    draw.right("seconds", f"{gold * 60} seconds")

    def amount(value: Fraction | int) -> Quantity:
        return Quantity(Fraction(value), "minutes")

    pointed = f"{hours}.{minutes:02}"
    draw.wrong("minutes as hundredths", amount(Fraction(pointed) * 60), f"{pointed} hours", f"{pointed} h")
    draw.wrong("units for each other", amount(60 * gold), f"{gold} hours", f"{gold} h")
    draw.wrong("a hundred minutes an hour", amount(100 * hours + minutes), f"{100 * hours + minutes} minutes")
    for kind, h, m in (
        ("an hour more", hours + 1, minutes),
        ("a minute more", hours, minutes + 1),
        ("swapped", minutes, hours),
    ):
        draw.wrong(kind, amount(60 * h + m), *mixed(h, m), f"{60 * h + m} minutes")
    draw.wrong("minutes left out", amount(60 * hours), f"{hours} {hour}")
    return draw


def date_texts(day: datetime.date) -> list[str]:
    month = calendar.month_name[day.month]
    return [f"{month} {day.day}, {day.year}", f"{day.day} {month} {day.year}", day.isoformat()]


@family("dates", "calendar dates in words and digits; orders that could be misread are left out")
def dates(rng: random.Random) -> Draw:
    start = datetime.date(rng.randint(1901, 2099), rng.randint(1, 12), rng.randint(1, 28))
    step = rng.randint(2, 400)
    gold = start + datetime.timedelta(days=step)
    question = f"Which date is {step} days after {calendar.month_name[start.month]} {start.day}, {start.year}?"
    draw = Draw(question, date_texts(gold)[0], gold.isoformat())
    month, ending = calendar.month_name[gold.month], {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
    ordinal = f"{gold.day}{ending.get(gold.day, 'th')}"
    draw.right("words", *date_texts(gold)[:2], f"{month[:3]} {gold.day}, {gold.year}", form="text")
    draw.right("boxed words", rf"\text{{{date_texts(gold)[0]}}}", form="latex")
    draw.right("ordinal", f"{month} {ordinal}, {gold.year}", f"{ordinal} of {month} {gold.year}", form="text")
    draw.right("iso", gold.isoformat(), gold.isoformat().replace("-", "/"), form="text")
    draw.right("weekday", f"{gold.strftime('%A')}, {date_texts(gold)[0]}", form="text")
    if gold.day > 12:
        draw.right(
            "digits", f"{gold.day}/{gold.month}/{gold.year}", f"{gold.day:02}.{gold.month:02}.{gold.year}", form="text"
        )
    for kind, value in (
        ("a day late", gold + datetime.timedelta(days=1)),
        ("a day early", gold - datetime.timedelta(days=1)),
        ("another month", (gold.replace(day=1) + datetime.timedelta(days=32)).replace(day=min(gold.day, 28))),
        ("another year", gold.replace(day=min(gold.day, 28), year=gold.year + 1)),
        ("the start", start),
    ):
        draw.wrong(kind, value.isoformat(), *date_texts(value), form="text")
    return draw
