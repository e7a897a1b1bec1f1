"""The tables of words and units: complete, and read the same in every language."""

from __future__ import annotations

from fractions import Fraction

import pytest

from assay.verify.math.expressions.units import read_unit
from assay.verify.math.expressions.values import Clock, Date
from assay.verify.math.words.clocks import clock
from assay.verify.math.words.compounds import one_quantity
from assay.verify.math.words.dates import calendar_date, weekday
from assay.verify.math.words.number_words import in_full, number_words

SPELLED = {
    "two hundred and five": 205,
    "nineteen hundred": 1900,
    "a thousand and one": 1001,
    "three million forty thousand and seven": 3_040_007,
    "minus twenty-five": -25,
    "half a dozen": 6,
    "three dozen": 36,
    "setecientas veintidós": 722,
    "quatre-vingt-dix-neuf": 99,
    "soixante et onze": 71,
    "zweitausenddreihundertfünf": 2305,
    "minus fünf": -5,
    "centoventotto": 128,
    "cento e vinte e um": 121,
    "tweehonderdvijfentwintig": 225,
    "сто двадцать пять": 125,
    "dwieście trzydzieści": 230,
    "tvåhundratrettiofem": 235,
    "yüz yirmi beş": 125,
    "dua puluh lima": 25,
}


@pytest.mark.parametrize(("words", "value"), SPELLED.items(), ids=SPELLED)
def test_numbers_are_read_in_every_language(words: str, value: int) -> None:
    assert number_words(words) == value


@pytest.mark.parametrize(
    "words", ["five twenty", "two six", "hundred", "million", "one thousand and", "two thousand three thousand", "once"]
)
def test_number_words_in_no_order_are_no_number(words: str) -> None:
    assert number_words(words) is None


def test_scales_after_digits_are_written_out() -> None:
    assert in_full("2.5 million people, 3 dozens, 1.5 lakh") == "2500000 people, 36, 150000"
    assert in_full("2.5 hundredths") == "2.5 hundredths"


@pytest.mark.parametrize(
    ("one", "other", "times"),
    [
        ("km/h", "m/s", Fraction(5, 18)),
        ("square feet", "m^2", Fraction("0.09290304")),
        ("кв. км", "平方米", Fraction(10**6)),
        ("ohms", "Ω", Fraction(1)),
        ("小时", "minutos", Fraction(60)),
        ("parts per million", "ppb", Fraction(1000)),
    ],
)
def test_units_of_one_kind_are_multiples_of_each_other(one: str, other: str, times: Fraction) -> None:
    left, right = read_unit(one), read_unit(other)
    assert left is not None
    assert right is not None
    assert left.known
    assert (left.dimension, left.factor) == (right.dimension, right.factor * times)


def test_the_case_of_a_symbol_tells_units_apart() -> None:
    assert read_unit("mW") != read_unit("MW")
    assert read_unit("Kilometer") == read_unit("KM")


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("2h 30", "5/2 hours"),
        ("-86°21'36\"", "-2159/25 °"),
        ("$12 and 50 cents", "25/2 dollars"),
        ("21€18", "1059/50 euros"),
        ("an hour and a half", "3/2 hour"),
        ("2h 75 min", None),
        ("12 pounds 5 cents", None),
    ],
)
def test_quantities_in_two_units_are_one_number(text: str, quantity: str | None) -> None:
    assert one_quantity(text) == quantity


@pytest.mark.parametrize("text", ["quarter to four pm", "3:45 PM", "15h45", "下午3点45分", "1545 hours"])
def test_a_time_of_day_is_one_in_every_spelling(text: str) -> None:
    assert clock(text) == Clock(56700, "pm")


def test_a_ratio_is_no_time() -> None:
    assert clock("three to four") is None


@pytest.mark.parametrize(
    "text", ["Tuesday, March 5th, 2024", "martes 5 de marzo de 2024", "5. März 2024", "2024年3月5日"]
)
def test_a_day_is_one_in_every_spelling(text: str) -> None:
    assert calendar_date(text) == Date(2024, 3, 5)


def test_days_of_the_week_are_numbered_from_monday() -> None:
    assert [weekday(day) for day in ("on a Monday", "el martes", "среда", "木曜日")] == [0, 1, 2, 3]
