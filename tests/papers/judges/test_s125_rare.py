"""Rare kinds of answers: what kind an answer is, its other writings and near ones, and how many are made."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import assay
from assay.environments.checking.environment import Checking
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.judging.rare import WRITINGS, answer_kind, bare, rare_items, variants
from assay.tasks.judging.ternary import Item

MATRIX = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"
KINDS = {
    "option": ("B", "(C)", "D."),
    "truth": ("True", "no"),
    "matrix": (MATRIX,),
    "interval": ("(1, 2]", "[0,1]", r"[0, \infty)", r"(-\infty, 3)"),
    "set": (r"\{1, 2\}", "{3, 4, 5}"),
    "tuple": ("(3, 4)", "(1, 2, 3)", "[1, 2, 3]"),
    "list": ("1, 2, 7", "$3, 4$"),
    "inequality": ("x < 3", r"1 \le x < 4", "y ≥ 2"),
    "equation": ("y = 2x + 1",),
    "ratio": ("3:4",),
    "percentage": ("50%", r"$12\%$"),
    "number": ("7", "-2.5", "$0$"),
    "fraction": ("3/8", r"\frac{1}{2}", r"-\dfrac{3}{4}"),
    "compound": ("H2O", "NaCl", "O2", "C6H12O6", "CaCO3"),
    "quantity": ("250 cm", "36 km/h"),
    "expression": ("x^2 + 1", r"2\sqrt{3}", "x", "2(a + b)"),
    "words": ("iron", "New York", "Iron", "He said so"),
}


def texts(reference: str, label: str, **more: list[str]) -> set[str]:
    """The answers of the variants with a label."""
    made = variants(Item("Find it.", reference, "", "A"), **more)
    return {re.sub(r"^The answer is \$?|\$?\.$", "", v.response) for v in made if v.label == label}


@pytest.mark.parametrize(("kind", "answer"), [(k, x) for k, answers in KINDS.items() for x in answers])
def test_what_kind_an_answer_is(kind: str, answer: str) -> None:
    assert answer_kind(answer) == kind


def test_every_kind_is_known() -> None:
    assert set(WRITINGS) == set(KINDS) - {"number", "fraction", "expression"}
    assert bare(r" $12\%$ ") == "12%" and bare("$ x $") == "x"


def test_variants_by_kind() -> None:
    assert texts("36 km/h", "A") == {"36 km/h", "10 m/s"}
    assert {"36 m/s", "360 km/h", "100 m/s", "37 km/h"} <= texts("36 km/h", "B")
    assert texts("250 cm", "A") == {"250 cm", "2.5 m"} and "250 m" in texts("250 cm", "B")
    assert texts("3:4", "A") == {"3:4", "6:8", "9:12"} and "4:3" in texts("3:4", "B")
    assert texts("x < 3", "A") == {"x < 3", "3 > x"} and {"x > 3", r"x \le 3"} <= texts("x < 3", "B")
    assert texts("y = 2x + 1", "A") == {"y = 2x + 1", "2x + 1 = y"} and "y = 2x + 2" in texts("y = 2x + 1", "B")
    assert texts("NaCl", "A") == {"NaCl", r"\mathrm{NaCl}"} and texts("NaCl", "B") == {"Na2Cl", "NaCl2"}
    assert texts("H2O", "B") == {"H3O", "H2O2"} and r"\mathrm{H_{2}O}" in texts("H2O", "A")
    assert texts("CaCO3", "B") == {"Ca2CO3", "CaC2O3", "CaCO2", "CaCO4"}
    assert texts("True", "A") == {"True", "Yes"} and texts("True", "B") == {"False", "No"}
    assert texts("no", "A") == {"no", "False"} and texts("no", "B") == {"True", "Yes"}
    assert texts("B", "A") == {"B", "(B)"} and texts("(B)", "B") == {"A", "C", "D"}
    assert texts("50%", "A") == {"50%"} and texts("50%", "B") == {"49%", "51%", "-50%"}
    assert texts("iron", "A") == {"iron"} and texts("iron", "B", others=["tin", "iron", "zinc"]) == {"tin", "zinc"}
    assert not texts("iron", "B")
    pairs = {(v.label, v.pattern, v.kind) for v in variants(Item("?", "50%", "", "B"))}
    assert pairs == {
        ("A", "percentage in other writing", "percentage"),
        ("B", "percentage nearly the same", "percentage"),
    }


def numbers(text: str) -> list[Fraction]:
    return [Fraction(x) for x in re.findall(r"-?\d+(?:/\d+)?", text)]


@pytest.mark.parametrize("reference", [r"\{1, 2, 3\}", "{4, 5}", "1, 2, 7", "(3, 4)", "(1, 2, 3)"])
def test_sets_and_tuples_are_pythons(reference: str) -> None:
    same = (lambda a, b: a == b) if reference[0] == "(" else (lambda a, b: set(a) == set(b))
    for label in "AB":
        for text in texts(reference, label):
            assert same(numbers(text), numbers(reference)) is (label == "A"), text
    assert texts(reference, "A") and len(texts(reference, "B")) > 6
    assert (len(texts(reference, "A")) == 1) == (reference[0] == "(")


@pytest.mark.parametrize("reference", ["(1, 2]", "[0, 3)", "[-1, 1]", r"[0, \infty)", r"(-\infty, 3)"])
def test_intervals_hold_the_same_points(reference: str) -> None:
    def holds(text: str, x: Fraction) -> bool:
        if "x" in text:
            low, first, second, high = re.fullmatch(r"(\S+) (\S+) x (\S+) (\S+)", text).groups()  # type: ignore[union-attr]
            ends = ("(" if first == "<" else "[") + (")" if second == "<" else "]")
        else:
            low, high = (x.strip() for x in text[1:-1].split(","))
            ends = text[0] + text[-1]
        below, above = (None if "infty" in x else Fraction(x) for x in (low, high))
        right = below is None or x > below or (x == below and ends[0] == "[")
        return right and (above is None or x < above or (x == above and ends[1] == "]"))

    points = [Fraction(k, 2) for k in range(-12, 13)]
    for label in "AB":
        for text in texts(reference, label):
            if r"(\infty" in text or r"-\infty)" in text:  # nothing is there, and that is no interval
                assert label == "B"
                continue
            same = all(holds(text, x) is holds(reference, x) for x in points)
            assert same is (label == "A"), text
    assert len(texts(reference, "A")) == 1 + ("infty" not in reference)


def test_matrices_have_the_same_entries() -> None:
    right = {re.sub("[pb]matrix", "matrix", x) for x in texts(MATRIX, "A")}
    assert len(texts(MATRIX, "A")) == 2 and right == {MATRIX.replace("pmatrix", "matrix")}
    wrong = texts(MATRIX, "B")
    assert r"\begin{pmatrix}3&4\\1&2\end{pmatrix}" in wrong and r"\begin{pmatrix}1&2\\3&5\end{pmatrix}" in wrong
    assert all(numbers(x) != [1, 2, 3, 4] for x in wrong)


def items() -> list[Item]:
    """Eight numbers, three intervals all right, one matrix that is wrong, a unit of physics."""
    out = [Item(f"Sum {i}?", str(i + 10), "so it is", "A" if i % 2 else "B") for i in range(8)]
    out += [Item(f"Where {i}?", f"({i}, {i + 2}]", f"({i}, {i + 2}]", "A") for i in range(3)]
    return [
        *out,
        Item("Which matrix?", MATRIX, "none", "B"),
        Item("How fast?", "36 km/h", "10 m/s", "A", "", "physics"),
    ]


def test_rare_kinds_become_as_many() -> None:
    base = items()
    for share, wanted in ((0.5, 4), (0.6, 5), (1.0, 8)):
        made = rare_items(base, np.random.default_rng(0), share)
        kinds = Counter(i.kind or answer_kind(i.reference) for i in [*base, *made])
        assert kinds == {"number": 8, "interval": wanted, "matrix": wanted, "quantity": wanted}, share
        for kind in ("interval", "matrix", "quantity"):
            labels = Counter(i.label for i in [*base, *made] if (i.kind or answer_kind(i.reference)) == kind)
            assert abs(labels["A"] - labels["B"]) <= max(1, 6 - wanted, 4 * (kind != "interval")), (share, kind, labels)
        assert len({(i.question, i.response) for i in made}) == len(made)
        assert {i.domain for i in made if i.kind == "quantity"} == {"physics"}
        assert made == rare_items(base, np.random.default_rng(0), share)
    assert not rare_items(base, np.random.default_rng(0), 0) and not rare_items([], np.random.default_rng(0), 1)
    assert not rare_items(base, np.random.default_rng(0), 1 / 8)
    for share in (-0.1, 1.1):
        with pytest.raises(UsageError, match=r"share .* must be in \[0, 1\]"):
            rare_items(base, np.random.default_rng(0), share)


def test_labels_even_out_and_what_is_there_is_not_made_again() -> None:
    """Three intervals are right: of five more four are wrong. A matrix has two right writings and one is there."""
    made = rare_items(items(), np.random.default_rng(0), 1)
    assert Counter(i.label for i in made if i.kind == "interval") == {"A": 1, "B": 4}
    assert Counter(i.label for i in made if i.kind == "matrix") == {"A": 2, "B": 5}
    words = [Item(f"Q{i}", x, f"It is {x}.", "A", "words") for i, x in enumerate(("tin", "zinc"))]
    made = rare_items([*words, *[Item(f"Sum {i}?", "7", "7", "A") for i in range(9)]], np.random.default_rng(0), 1)
    found = {(i.question, i.response, i.label) for i in made}
    assert found == {
        (f"Q{i}", f"The answer is {x}.", "A" if i == k else "B")
        for (i, _), (k, x) in itertools.product(enumerate(("tin", "zinc")), repeat=2)
    }, "no more can be made"


def judged(file: Path) -> Path:
    rows = [
        {
            "id": str(k),
            "prompt": i.question,
            "response": i.response,
            "correct": i.label == "A",
            "reference": i.reference,
        }
        for k, i in enumerate(items())
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def test_judged_responses_are_followed_by_rare_ones(tmp_path: Path) -> None:
    path = judged(tmp_path / "samples.jsonl")
    plain, more = (build("environment", {"name": "checking", "path": str(path), "rare": x}).tasks() for x in (0, 1))
    assert plain.size == 13 and more.size == 8 * 4
    assert [more[i] for i in range(13)] == [plain[i] for i in range(13)]
    assert Counter(more[i].meta["kind"] for i in range(32)) == dict.fromkeys(
        ("number", "interval", "matrix", "quantity"), 8
    )
    added = [more[i] for i in range(13, 32)]
    assert all("nearly" in t.meta["pattern"] or t.meta["label"] for t in added) and len({t.id for t in added}) == 19
    [fast] = [t for t in added if "Response: The answer is 36 m/s." in t.question]
    assert fast.meta["label"] is False and "Reference answer: 36 km/h" in fast.question
    other = build("environment", {"name": "checking", "path": str(path), "rare": 1, "seed": 1}).tasks()
    assert {other[i].question for i in range(13, 32)} != {t.question for t in added}
    for options in ({"rare": 0.5}, {"rare": 1.5, "path": path}, {"rare": -1, "path": path}):
        with pytest.raises(UsageError, match="rare is a share in"):
            Checking(**options)  # type: ignore[arg-type]


def test_a_judge_trains_on_them(tmp_path: Path) -> None:
    world = {"name": "checking", "path": str(judged(tmp_path / "samples.jsonl")), "rare": 1.0, "calls": 0}
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    assay.train(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 1800, "alphabet": alphabet}},
            "tasks": {"source": {"name": "environment", "environment": world}, "eval_size": 1},
            "method": {"name": "S125", "options": {"environment": world, "calls": 0}},
            "rollout": {"prompts": 2, "group": 2, "max_tokens": 4},
            "train": {"steps": 1},
            "evaluate": {"samples": 1},
            "run": {"dir": str(tmp_path / "run"), "report": False, "tensorboard": False},
        },
        quiet=True,
    )
    [row] = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    assert row["stage"] == "rl" and row["abstained"] == 0
