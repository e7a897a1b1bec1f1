"""SynLogic's families that are answered in a line: rules by hand, all answers there are, and damaged tables mended."""

from __future__ import annotations

import itertools
import re
import statistics
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from assay.tasks.procedural.belongings import after
from assay.tasks.procedural.buggy_tables import BUGS
from assay.tasks.procedural.rule_puzzles import RulePuzzles
from assay.types import Task, Verdict
from assay.verify.kind import KindVerifier
from assay.verify.puzzles.lines import chain_value, cousins, open_brackets

JUDGE = KindVerifier()
TREE = {"a": ["b", "c", "d"], "b": ["e"], "c": ["f", "g"], "d": [], "e": ["h"], "f": ["i", "j"], "g": ["k"]}


def judged(family: str, answer: str, **data: Any) -> Verdict:
    return JUDGE(Task("t", "", {"family": family, "data": data}, "rule_puzzle"), f"<answer>{answer}</answer>")


def test_chains_are_pythons() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        numbers = rng.integers(0, 13, size=5).tolist()
        operators = rng.choice(list("+-*/%"), size=4).tolist()
        text = "".join(f"{n}{o}" for n, o in zip(numbers, [*operators, ""], strict=True))
        try:
            value = eval(re.sub(r"(\d+)", r"Fraction(\1)", text))
        except ZeroDivisionError:
            value = None
        assert chain_value(text) == value, text
    assert chain_value("7") == 7 and chain_value("9-4/2%3") == 7


def test_all_digits_that_make_it_true_are_right() -> None:
    equation = "? + 3 * ? = 17"
    right = {(a, b) for a, b in itertools.product(range(10), repeat=2) if a + 3 * b == 17}
    found = {
        (a, b)
        for a, b in itertools.product(range(10), repeat=2)
        if judged("math_path", f"{a}+3*{b}", equation=equation).passed
    }
    assert found == right == {(8, 3), (5, 4), (2, 5)}
    for answer in ("8 + 3 × 3 = 17", "[[5+3*4=17]]", r"$2 + 3 \times 5 = 17$."):
        assert judged("math_path", answer, equation=equation).passed is True, answer


@pytest.mark.parametrize(
    ("family", "answer", "data", "complaint"),
    [
        ("math_path", "1+3*1", {"equation": "? + 3 * ? = 17"}, "the left side is 4, not 17"),
        ("math_path", "8+4*3", {"equation": "? + 3 * ? = 17"}, "'8+4*3=17' is not ?+3*?=17 with a digit for each ?"),
        ("math_path", "8+3*10", {"equation": "? + 3 * ? = 17"}, "'8+3*10=17' is not ?+3*?=17 with a digit for each ?"),
        ("math_path", "a+3*3", {"equation": "? + 3 * ? = 17"}, "'a+3*3=17' is not ?+3*?=17 with a digit for each ?"),
        ("math_path", "8+3*3=18", {"equation": "? + 3 * ? = 17"}, "'8+3*3=18' is not ?+3*?=17 with a digit for each ?"),
        ("math_path", "3/0", {"equation": "3 / ? = 1"}, "there is a division by zero"),
        ("mathador", "2 * 2", {"numbers": [2, 3], "target": 4}, "2 is used more often than it is given"),
        ("mathador", "2 * 3", {"numbers": [2, 3], "target": 5}, "it comes to 6, not 5"),
        (
            "mathador",
            "two",
            {"numbers": [2, 3], "target": 5},
            "'two' is not an arithmetic expression: unexpected 'two'",
        ),
        ("space_reasoning_tree", "f, g, d", {"children": TREE, "of": "e"}, "'d' is no cousin of e"),
        ("space_reasoning_tree", "f", {"children": TREE, "of": "e"}, "'g' is a cousin of e too"),
        ("dyck_reasoning_errors", "2", {"sequence": "()", "stacks": ["[", ""]}, "1 is missing"),
        ("dyck_reasoning_errors", "1, 2", {"sequence": "()", "stacks": ["[", ""]}, "2 is not to be named"),
        ("dyck_reasoning_errors", "0", {"sequence": "()", "stacks": ["[", ""]}, "0 is not to be named"),
        ("buggy_tables", "2.14", {"value": "17/8"}, "it is 2.12"),
        ("buggy_tables", "much", {"value": "17/8"}, "'much' is no number"),
    ],
)
def test_rules_say_what_is_wrong(family: str, answer: str, data: dict[str, Any], complaint: str) -> None:
    found = judged(family, answer, **data)
    assert (found.passed, found.feedback) == (False, complaint)


def test_any_order_and_any_expression_will_do() -> None:
    for answer in ("(8 - 2) * 4", "4 * (8-2) = 24", "8 * (4 - 1)", r"8 \times (4 - 1)"):
        assert judged("mathador", answer, numbers=[1, 2, 4, 8], target=24).passed is True, answer
    assert judged("mathador", "8 / (2 / 4) + 8", numbers=[2, 4, 8, 8], target=24).passed is True
    for answer in ("g, f", "F and G", "[g, f]"):
        assert judged("space_reasoning_tree", answer, children=TREE, of="e").passed is True, answer
    for answer in ("3, 1", "Thoughts 1 and 3"):
        assert judged("dyck_reasoning_errors", answer, sequence="([]", stacks=["[", "([", "(["]).passed is True, answer
    assert judged("dyck_reasoning_errors", "0", sequence="()", stacks=["(", ""]).passed is True
    assert [judged("buggy_tables", x, value="17/8").passed for x in ("2.12", "2.13", "2.125", "2.11")] == [
        True,
        True,
        True,
        False,
    ]


def test_kin_and_stacks_by_hand() -> None:
    assert cousins(TREE, "e") == {"f", "g"} and cousins(TREE, "f") == {"e"} and cousins(TREE, "i") == {"k"}
    assert cousins(TREE, "h") == set()
    assert [open_brackets("([]{<>}"[: i + 1]) for i in range(7)] == ["(", "([", "(", "({", "({<", "({", "("]


def test_things_change_by_hand() -> None:
    things = [("small", "red", "glass"), ("huge", "blue", "glass"), ("small", "blue", "steel")]
    assert after(things, "lost", "small", "red") == things[1:2]
    assert after(things, "turned", "blue", "paper") == [
        ("small", "red", "glass"), ("huge", "blue", "paper"), ("small", "blue", "paper")
    ]  # fmt: skip
    assert after(things, "twin", "glass", "green") == [*things, ("small", "green", "glass"), ("huge", "green", "glass")]


def things_told(text: str) -> int:
    """Play what is told of belongings, read from the text alone, and count what is asked."""
    first, *rest = re.split(r"(?<=\.) ", text.partition("\n")[0])
    things = [dict(zip(("size", "colour", "of"), x.split()[:3], strict=True)) for x in first[8:-1].split(", a ")]
    sorts = {"small": "size", "large": "size", "huge": "size", "red": "colour", "blue": "colour", "green": "colour"}
    sorts |= {"white": "colour", "wooden": "of", "glass": "of", "steel": "of", "paper": "of"}
    for line in rest[:-1]:
        words = [x for x in re.findall(r"\w+", line) if x in sorts]
        met = [thing for thing in things if words[0] in thing.values()]
        if line.startswith("I lose"):
            things = [thing for thing in things if thing not in met]
        elif "is made" in line:
            for thing in met:
                thing[sorts[words[1]]] = words[1]
        else:
            things += [{**thing, sorts[words[1]]: words[1]} for thing in met]
    yes, no = [x for x in re.findall(r"\w+", rest[-1]) if x in sorts]
    return sum(yes in thing.values() or no not in thing.values() for thing in things)


def test_belongings_are_counted_as_they_are_told() -> None:
    source = RulePuzzles(families=("object_properties",), levels=(1, 10))
    for i in range(60):
        assert source[i].reference["answer"] == str(things_told(str(source[i].prompt))), source[i].prompt


def how_told(text: str) -> str:
    return text.partition(": ")[2].partition("\n")[0]


def mended(text: str) -> tuple[list[str], list[list[str]]]:
    """The heads and rows that a table had, from what is told of how it was damaged."""
    how = how_told(text)
    head, *rows = [line.split(" | ") for line in text.splitlines() if " | " in line]
    width = len(rows[0])
    if "ERROR" in how:
        said = iter(re.findall(r"\d+|null", how.rpartition("they said")[2]))
        for c, r in itertools.product(range(width), range(len(rows))):
            rows[r][c] = next(said) if rows[r][c] == "ERROR" else rows[r][c]
        assert next(said, None) is None
    elif "&&" in how:
        rows = [list(part) for row in rows for part in zip(*(cell.split(" && ") for cell in row), strict=True)]
    elif "moved down" in how:
        for c in range(width):
            column = [row[c] for row in rows]
            for r in range(len(rows)):
                rows[r][c] = column[(r + c) % len(rows)]
    elif "moved right" in how:
        rows = [row[r % width :] + row[: r % width] for r, row in enumerate(rows)]
    elif "last row" in how:
        rows.pop()
    else:
        assert "first column" in how
        head, rows = head[:-1], [row[1:] for row in rows]
    return head, rows


def test_damaged_tables_can_be_mended() -> None:
    """The answer, from the text alone; each kind of damage occurs."""
    source, seen = RulePuzzles(families=("buggy_tables",), levels=(1, 10)), set()
    asked = re.compile(
        r"which (\w+) is (\w+) (\d+), what .* the (mean|median|sum|largest|smallest).* of (\w+) and .* of (\w+)\?"
    )
    measures = {"mean": statistics.mean, "median": statistics.median, "sum": sum, "largest": max, "smallest": min}
    for i in range(80):
        text = str(source[i].prompt)
        head, rows = mended(text)
        match = asked.search(text)
        assert match is not None
        where, side, bound, measure, *pair = match.groups()
        table = [dict(zip(head, row, strict=True)) for row in rows]
        sign = 1 if side == "above" else -1
        kept = [row for row in table if row[where] != "null" and sign * (int(row[where]) - int(bound)) > 0]
        a, b = (measures[measure]([Fraction(row[name]) for row in kept if row[name] != "null"]) for name in pair)
        assert Fraction(source[i].reference["data"]["value"]) == abs(a - b), text
        seen.add(how_told(text)[:25])
    assert len(seen) == len(BUGS) == 6


def test_data_that_rules_cannot_read_are_no_verdict() -> None:
    for family, data in (("mathador", {"numbers": [1]}), ("buggy_tables", {"value": "x"}), ("math_path", {})):
        assert judged(family, "1", **data).passed is None
    assert JUDGE(Task("t", "", {"family": "math_path"}, "rule_puzzle"), "<answer>1</answer>").passed is None


def test_more_of_a_level_is_more_to_do() -> None:
    def drawn(family: str, level: int) -> list[Task]:
        source = RulePuzzles(families=(family,), levels=(level, level))
        return [source[i] for i in range(10)]

    assert {len(t.reference["data"]["equation"].split()) for t in drawn("math_path", 4)} == {13}, "six digits"
    assert {len(t.reference["data"]["numbers"]) for t in drawn("mathador", 4)} == {5}
    for task in drawn("space_reasoning_tree", 3):
        children = task.reference["data"]["children"]
        assert len({x for born in children.values() for x in born}) == 17, "and the first"
        assert max(map(len, children.values())) <= 4
    assert {len(t.reference["data"]["sequence"]) for t in drawn("dyck_reasoning_errors", 5)} <= set(range(18, 30))
