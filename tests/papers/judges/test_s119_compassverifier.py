"""S119: three verdicts, how they are read, cases labelled by construction, the training mix, and the tables."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import assay
from assay import catalogue
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings.judges.boundary_cases import Setting
from assay.papers.judges.s119_compassverifier import benchmark, compassverifier, sorted_by_votes, tables
from assay.registry import build
from assay.tasks.judging.boundary import PATTERNS, boundary_case, boundary_cases
from assay.tasks.judging.formulas import altered, formula_variants, rewritten
from assay.tasks.judging.ternary import CUTS, DIRECT, PARAPHRASES, REASONED, Item, letter, rethought
from assay.tasks.judging.ternary_tasks import TernaryJudging, ternary_items
from assay.types import Task
from assay.verify.math.verifier import Math

SUM = Task("t", "What is 40 + 2?", "42", "number")
JUDGE = Keywords([("Response: 42", "A"), ("Response: 43", "B"), ("Response: 4$", "C"), ("Response: 4\n", "C")], "hmm")


def test_c_is_no_b() -> None:
    judge = compassverifier(JUDGE)
    said = judge.map([(SUM, "42"), (SUM, "43"), (SUM, "4"), (SUM, "?"), (Task("n", "q"), "42")])
    assert [v.passed for v in said] == [True, False, False, None, None]
    assert [v.score for v in said] == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert [v.parts.get("invalid") for v in said] == [0.0, 0.0, 1.0, None, None]
    assert "hmm" in said[3].feedback and "no reference" in said[4].feedback
    assert compassverifier(JUDGE, invalid="abstain")(SUM, "4").passed is None
    assert compassverifier(JUDGE, unread="wrong")(SUM, "?").passed is False
    assert (judge.max_tokens, judge.template) == (8, DIRECT)
    thinks = compassverifier(JUDGE, reasoned=True)
    assert (thinks.max_tokens, thinks.template) == (8192, REASONED)
    assert compassverifier(JUDGE, reasoned=True, max_tokens=99).max_tokens == 99
    for template in (*PARAPHRASES, REASONED):
        shown = type(judge)(JUDGE, template).question(SUM, "{reference}")
        assert "What is 40 + 2?" in shown and "Reference answer: 42" in shown and "Response: {reference}" in shown
    assert len(set(PARAPHRASES)) == 3
    with pytest.raises(UsageError, match="must show"):
        type(judge)(JUDGE, "{question}")
    assert catalogue.find("S119").factory is compassverifier


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (r"so \boxed{B}, no: \boxed{A}", "A"),
        (r"\boxed{\text{C}} is B", "C"),
        ("C", "C"),
        (" B.\n", "B"),
        ("It may be (A).\nFinal Judgment: (A) or rather (B)", "B"),
        ("Final Judgment: C - INVALID", "C"),
        ("Final Judgment: BAD", None),
        ("hmm", None),
        ("A or B", None),
        (r"\boxed{D}", None),
        ("", None),
    ],
)
def test_where_the_letter_stands(reply: str, said: str | None) -> None:
    assert letter(reply) == said


def case(name: str) -> Item:
    return boundary_case(name, np.random.default_rng(3))


def test_every_pattern_has_its_label() -> None:
    assert Counter(p.label for p in PATTERNS.values()) == {"A": 10, "B": 16, "C": 8}
    assert {p.kind for p in PATTERNS.values()} == {
        *("multiple_choice", "sequence", "numerical", "short_text", "formula", "multi_subproblem", "boolean")
    }
    made = boundary_cases(2, np.random.default_rng(0))
    assert len(made) == 68 and len({(i.question, i.response) for i in made}) > 60
    assert all(i.label == PATTERNS[i.pattern].label and i.kind == PATTERNS[i.pattern].kind for i in made)
    assert all("<think>" in i.response and "\n" in i.response for i in made if not PATTERNS[i.pattern].whole)
    with pytest.raises(UsageError, match="'nearly equal'"):
        boundary_case("nearly equals", np.random.default_rng(0))


def test_algebra_agrees_with_labels() -> None:
    """Of patterns about values the verifier of mathematics is a second opinion."""
    judge = Math()
    for name in ("unit converts", "form not asked for", "number for a power", "corrected itself"):
        assert judge(Task("t", (i := case(name)).question, i.reference), i.response).passed is True, name
    for name in ("nearly equal", "ends of an interval", "another huge power", "one of all required"):
        assert judge(Task("t", (i := case(name)).question, i.reference), i.response).passed is False, name


def test_what_cases_are_about() -> None:
    simple = case("not simplified")
    (a, b), (c, d) = (map(int, text.split("/")) for text in (simple.reference, simple.response.split()[-1].strip("$.")))
    assert a * d == b * c and d > b and d % b == 0 and "Simplify" in simple.question
    words, swapped = case("swapped in a long list").reference.split(), case("swapped in a long list").response
    assert words == sorted(words) and len(words) == 9 and sum(w in swapped for w in words) == 9
    cut = case("reference of other parts")
    assert cut.reference.count("(3)") == 1 and "(3)" not in cut.question and cut.label == "C"
    assert case("question is cut").question[-1].isalpha() and case("reference is cut").reference.endswith("{")
    twice = case("number used twice")
    assert eval(twice.reference) == eval(twice.response.rpartition(" is ")[2].rpartition(": ")[2].strip("$.{} ") or "0")
    assert "</think>" not in case("breaks off").response and case("goes round in circles").response.count("Now") >= 12


def test_formulas_are_labelled_by_algebra() -> None:
    rng = np.random.default_rng(0)
    item = Item("What is it?", "3/8", "", "A")
    assert list(rewritten("3/8")) == [r"\frac{6}{16}", "3/8", "0.375", "0.3750"]
    assert list(rewritten("-1/3")) == [r"-\frac{2}{6}", "-1/3"]  # no digits would do
    assert list(rewritten("x^2-3x+1")) == ["+1-3x+x^2".removeprefix("+"), "-(-x^2+3x-1)"]
    assert list(altered("3/8")) == ["2/8", "4/8", "3/7", "3/9", "-3/8", "8/3"]
    assert list(altered("x-2")) == ["x-3", "x-1", "-x-2", "x+2"]
    made = formula_variants(item, rng, 9)
    by_label = {label: {i.response for i in made if i.label == label} for label in "AB"}
    assert by_label["A"] == {rf"The answer is ${x}$." for x in (r"\frac{6}{16}", "0.375", "0.3750")}
    assert len(by_label["B"]) == 6 and {i.kind for i in made} == {"formula"}
    assert Counter(i.label for i in formula_variants(item, rng, 1)) == {"A": 1, "B": 1}
    assert Counter(i.label for i in formula_variants(item, rng)) == {"A": 3, "B": 3}
    # Where a form may be asked for, another writing has no certain label.
    assert {i.label for i in formula_variants(Item("Simplify 6/16.", "3/8", "", "A"), rng)} == {"B"}
    # 2/4 is a half again, so that it is no answer nearly the same.
    assert "2/4" not in " ".join(i.response for i in formula_variants(Item("?", "1/2", "", "A"), rng, 9))
    assert formula_variants(Item("?", "blue", "", "A"), rng) == []


def test_thinking_changes_no_verdict() -> None:
    text = "<think>0123456789</think>\nThe answer is 42."
    found = {rethought(text, np.random.default_rng(k)) for k in range(60)}
    assert found == {
        *(f"<think>{kept}</think>\nThe answer is 42." for kept in ("23456789", "456789", "6789")),
        *(f"<{tag}>0123456789</{tag}>\nThe answer is 42." for tag in ("reasoning", "thought")),
        "0123456789\nThe answer is 42.",
    }
    assert CUTS == (0.2, 0.4, 0.6) and rethought("no thought", np.random.default_rng(0)) == "no thought"
    judge, rng = Math(), np.random.default_rng(0)
    for item in boundary_cases(1, rng):
        task = Task("t", item.question, item.reference)
        assert judge(task, rethought(item.response, rng)).passed == judge(task, item.response).passed, item.pattern


def base(n: int) -> list[Item]:
    return [Item(f"What is {k}/7 + 1/7?", f"{k + 1}/7", f"It is {k + 1}/7.", "A") for k in range(n)]


def test_the_mix() -> None:
    rng = np.random.default_rng(0)
    made = ternary_items(base(54), rng, thinking=False)
    names = Counter(i.pattern if "formula" in i.pattern else "boundary" if i.pattern else "judged" for i in made)
    assert names["judged"] == 54 and names["boundary"] == 24
    assert names["formula in other writing"] + names["formula nearly the same"] == 18 and len(made) == 96
    assert len(ternary_items(base(3), rng, 0.0, 0.0)) == 3
    more = ternary_items(base(34), rng, 1.0, 0.0)
    assert {i.pattern for i in more[34:68]} == set(PATTERNS)
    # What thinks is there twice.
    thinks = sum("</think>" in i.response for i in more[:68])
    assert len(more) == 68 + thinks and thinks > 15
    assert Counter(i.label for i in more[68:]) == Counter(i.label for i in more[:68] if "</think>" in i.response)
    with pytest.raises(UsageError, match="formulas -1"):
        ternary_items(base(1), rng, formulas=-1)


def test_votes_sort_responses() -> None:
    asked: list[int] = []

    def strong(i: int) -> list[Any]:
        asked.append(i)
        return {1: ["B", "B"], 2: ["B", "C"], 3: [None, None]}[i]

    found = sorted_by_votes([["A", "A", "A"], ["A", "B", "A"], ["C", None, "C"], [None, None, None]], strong)
    assert (found.trivial, found.agreed, found.contested) == ((0,), ((1, "B"),), (2, 3)) and asked == [1, 2, 3]


def test_its_benchmark_is_read(tmp_path: Path) -> None:
    """Items of VerifierBench as its page lists their fields, with three labels."""
    shown = {"question": "q", "gold_answer": "3", "data_source": "s", "domain": "Math", "answer_type": "Formula"}
    rows = [{**shown, "llm_response": f"r{x}", "gold_judgment": x} for x in "CAB"]
    path = tmp_path / "verifierbench.json"
    path.write_text(json.dumps(rows))
    found = benchmark(str(path))
    assert found[0] == Item("q", "3", "rC", "C", "Formula", "Math") and [x.label for x in found] == list("CAB")
    table = tables(found, ["C", "A", "A"])
    assert table["domain"]["Math"].ternary == table["kind"]["Formula"].ternary == pytest.approx(2 / 3)
    path.write_text(json.dumps([{**rows[0], "gold_judgment": "D"}]))
    with pytest.raises(UsageError, match="the judgment is 'D'"):
        benchmark(str(path))
    path.write_text(json.dumps([shown]))
    with pytest.raises(UsageError, match="lacks 'llm_response'"):
        benchmark(str(path))


def test_tables_by_hand() -> None:
    """Ten items, A A A A B B B C C B, said to be A A B ? B A B C B C."""
    truth, said = "AAAABBBCCB", ["A", "A", "B", "?", "B", "A", "B", "C", "B", "C"]
    items = [Item("", "", "", t, "numerical" if k < 5 else "formula", "math") for k, t in enumerate(truth)]  # type: ignore[arg-type]
    found = tables(items, said)
    row = found["all"]["all"]
    assert (row.items, row.unread, row.ternary) == (10, 1, 0.5)
    # Merged, C for B and B for C are right: 2 of A, all but one of the six others.
    assert row.accuracy == 0.7 and row.f1 == pytest.approx(2 * 2 / (4 + 3))
    # F1 of A 4/7, of B 2*2/(4+4), of C 2*1/(2+2).
    assert row.macro_f1 == pytest.approx((4 / 7 + 1 / 2 + 1 / 2) / 3)
    assert found["kind"]["numerical"].accuracy == 0.6 and found["kind"]["formula"].accuracy == 0.8
    assert found["domain"]["math"] == row and set(found["pattern"]) == {""}
    assert np.isnan(tables(items[4:5], ["B"])["all"]["all"].f1)


def test_a_judge_is_fine_tuned(tmp_path: Path) -> None:
    lines = [
        {"id": f"{i}", "prompt": f"{i}+1", "response": f"{n}", "correct": n == i + 1, "reference": f"{i + 1}"}
        for i in range(12)
        for n in (i + 1, i + 3)
    ]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    source: dict[str, Any] = {"name": "ternary_judging", "path": str(tmp_path / "samples.jsonl"), "boundary": 0.5}
    made = build("tasks", source)
    assert isinstance(made, TernaryJudging) and {made[k].reference for k in range(made.size)} == {"A", "B", "C"}
    assert all(made[k].solution == made[k].reference and made[k].kind == "exact" for k in range(made.size))
    tails = {made[k].prompt[-20:] for k in range(made.size)}
    assert len(tails) == 3 and {build("tasks", {**source, "paraphrases": False})[0].prompt[-20:]} < tails
    with pytest.raises(UsageError, match="must show the judge"):
        build("tasks", {**source, "template": "{question} {response}"})
    plain = {"boundary": 0.0, "formulas": 0.0, "template": "{question}={reference}:{response}"}
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    assay.train(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 48, "alphabet": alphabet}},
            "tasks": {"source": {**source, **plain}, "eval_size": 2},
            "warmup": {"steps": 8, "batch": 16, "lr": 0.1},
            "rollout": {"prompts": 2, "group": 2, "max_tokens": 2},
            "train": {"steps": 1},
            "evaluate": {"samples": 1},
            "run": {"dir": str(tmp_path / "run"), "report": False, "tensorboard": False},
        },
        quiet=True,
    )
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if line["stage"] == "warmup"]
    assert len(losses) > 1 and losses[0] > 2.5 and losses[-1] < 1.5


def test_boundary_cases_teach_what_is_invalid() -> None:
    setting = Setting(items=120, each=1, steps=80)
    full, alone = (setting.run(arm, 0, Path()) for arm in ({}, {"boundary": 0.0, "formulas": 0.0, "thinking": False}))
    assert full["boundary"] > 0.75 > alone["boundary"] and alone["taught"] == 120
    assert full["macro_f1"] > alone["macro_f1"] and full["sums"] >= 0.9
