"""Rubrics as data: what a task's rubric may be, what marks come to, and labels in ten forms."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.types import Task
from assay.verify.rubric.aggregate import Rubicon, aggregate_of, clipped, every, mean, signed
from assay.verify.rubric.criteria import Criterion, Rubric, unmet
from assay.verify.rubric.forms import FORMS, after_reasoning, form_of


def rubric(*weights: float) -> Rubric:
    return Rubric.read([{"text": f"c{k}", "weight": w} for k, w in enumerate(weights)])


def test_texts_and_tables() -> None:
    """The keys of public sets are read too; tiers are a highest one or what each means."""
    rows = [
        "says why",
        {"criterion": "names a doctor", "points": -6, "id": "x"},
        {"text": "tone", "tiers": ["rude", "plain", "warm"], "veto": True},
        {"text": "depth", "tiers": 4},
        {"text": "met", "tiers": 1},
    ]
    found = Rubric.of(Task("t", "q", meta={"rubric": rows}))
    assert found.criteria[0] == Criterion("says why", "1") and found.criteria[1] == Criterion("names a doctor", "x", -6)
    assert found.criteria[2] == Criterion("tone", "3", 1.0, ("rude", "plain", "warm"), True)
    assert [c.top for c in found.criteria] == [1, 1, 2, 4, 1] and found.criteria[4].levels == ()
    assert Rubric.read(found) is found and [c.id for c in found.kept([True, False, True, False, False]).criteria] == [
        "1",
        "3",
    ]
    both = found.joined([Criterion("more", "1"), Criterion("yet more", "1"), Criterion("new", "n")])
    assert [c.id for c in both.criteria[5:]] == ["1'", "1''", "n"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (None, "task t7 has no rubric"),
        ("be good", "task t7 has to be a list"),
        ([], "task t7 has to be a list"),
        ([3], "criterion 1 is a int"),
        (["a", {"text": "b", "wieght": 1}], "criterion 2 has no key 'wieght'; did you mean 'weight'"),
        ([{"weight": 1}], "criterion 1 has no text"),
        ([{"text": "a", "weight": "1"}], "criterion 1 has the weight '1'"),
        ([{"text": "a", "weight": float("inf")}], "has the weight inf"),
        ([{"text": "a", "tiers": 0}], "tiers '0'"),
        ([{"text": "a", "tiers": ["x"]}], "tiers"),
        ([{"text": "a", "tiers": "xyz"}], "tiers"),
        ([{"text": "a", "veto": 1}], "the veto 1"),
        ([{"text": "a", "id": "x | y"}], "cannot have the id"),
        ([{"text": "a", "id": "x"}, {"text": "b", "id": "x"}], "two criteria are called 'x'"),
    ],
)
def test_what_is_no_rubric_is_said_in_a_line(rows: object, said: str) -> None:
    meta = {} if rows is None else {"rubric": rows}
    with pytest.raises(UsageError, match=said) as error:
        Rubric.of(Task("t7", "q", meta=meta))
    assert "t7" in str(error.value) and "\n" not in str(error.value)


def test_aggregates_by_hand() -> None:
    """S062's and S113's numbers; HealthBench's clip of 11, -6 and 18 points of 16."""
    assert mean(rubric(2, 1, 1), (0.9, 0.5, 1)) == pytest.approx(0.825)
    assert mean(rubric(1, 1, 2), (1, 0.5, 0)) == pytest.approx(0.375) and mean(rubric(1, 0), (0.5, 1)) == 0.5
    points = rubric(8, 5, -6, 3)
    rows = [(1, 0, 0, 1), (1, 1, 1, 0), (0, 0, 1, 0), (1, 1, 0, 1)]
    assert [signed(points, row) for row in rows] == [11, 7, -6, 16]
    assert [clipped(points, row) for row in rows] == pytest.approx([0.6875, 0.4375, 0, 1])
    assert [every(points, row) for row in rows] == [0, 0, 0, 1] and every(points, (1, 1, 0, 0.5)) == 0


def test_an_unread_mark_is_no_zero() -> None:
    """It leaves a number open, unless what is known decides."""
    points, known = rubric(1, 1), (1, None)
    for aggregate in (mean, signed, clipped, every, Rubicon()):
        assert aggregate(points, known) is None
    assert every(points, (0, None)) == 0
    vetoed = Rubric((Criterion("a", "a"), Criterion("b", "b", veto=True)))
    assert Rubicon()(vetoed, (None, 0)) == 0 and Rubicon()(vetoed, (0, None)) is None
    assert not unmet(points.criteria[0], None) and unmet(points.criteria[0], 0.5)


def test_aggregates_that_do_not_fit() -> None:
    for weights in ((1, -1), (0, 0)):
        for aggregate in (mean, Rubicon()):
            with pytest.raises(UsageError, match="needs weights of at least 0"):
                aggregate(rubric(*weights), (1, 1))
    with pytest.raises(UsageError, match="needs a criterion with a weight above 0"):
        clipped(rubric(-1), (1,))
    for name, said in (("maen", "did you mean 'mean'"), (3, "called 3"), ({"name": "sum", "q": 1}, "no option 'q'")):
        with pytest.raises(UsageError, match=said):
            aggregate_of(name)
    assert aggregate_of({"name": "rubicon", "kappa": 0}) == Rubicon(kappa=0) and aggregate_of("clip") is clipped
    assert aggregate_of(mean) is mean
    for bad in ({"kappa": -1}, {"q": 1.5}, {"b": 0.0}, {"pairs": [["a", "b"]]}, {"pairs": [["a", "b", "1"]]}):
        with pytest.raises(UsageError, match="aggregate 'rubicon'"):
            Rubicon(**bad)  # type: ignore[arg-type]


LABELS = st.lists(st.sampled_from(["support", "partial_support", "not_support", "0", "12"]), min_size=1, max_size=10)


@given(LABELS, st.sampled_from(list(FORMS)))
def test_what_is_written_is_read(labels: list[str], form: str) -> None:
    written = FORMS[form].write(labels)
    assert FORMS[form].read(written) == labels
    if form != "tsv" or len(labels) == 1:  # a tab at the end of a line would be stripped
        assert after_reasoning(f"<reasoning>why</reasoning>\n{written}\n") == ("why", written)


@given(st.text("<>label/s[]\"'{}:,| \n\t1.-*ab", max_size=40), st.sampled_from(list(FORMS)))
def test_no_reply_breaks_a_form(text: str, form: str) -> None:
    found = FORMS[form].read(text)
    assert found is None or all(isinstance(x, str) for x in found)


def test_forms_are_strict() -> None:
    wrong = {
        "json": ['["a", null]', '{"a": 1}', "a", '["a"] or so', "[" * 100_000],
        "python": ["('a',)", "[a]", "__import__('os')", "[" * 100_000],
        "csv": ["a\nb", '["a", "b"]'],
        "yaml": ["- a\nb", "* a"],
        "markdown": ["- a"],
        "numbered": ["1. a\n3. b", "a"],
        "xml": ["<labels>a</labels>", "<labels><label>a</labels>", "<label>a</label>", "<labels></label></labels>"],
    }
    for form, texts in wrong.items():
        assert [form_of(form).read(text) for text in texts] == [None] * len(texts), form
    assert form_of("json").read(json.dumps({"labels": ["a", 2]})) == ["a", "2"]
    assert form_of("json").read("[true]") is None and form_of("comma").read("a, b") == ["a", "b"]
    with pytest.raises(UsageError, match="did you mean 'json'"):
        form_of("jsn")


def test_reasons_stand_in_one_pair_of_tags() -> None:
    assert after_reasoning("a, b") == ("", "a, b") and after_reasoning("```json\n[1]\n```") == ("", "[1]")
    assert after_reasoning("<reasoning></reasoning> x ") == ("", "x")
    for broken in ("<reasoning>a", "a</reasoning>b", "<reasoning>a</reasoning>b<reasoning>c</reasoning>d"):
        assert after_reasoning(broken) is None
    assert (
        after_reasoning("</reasoning>a<reasoning>b") is None and after_reasoning("x<reasoning>a</reasoning>b") is None
    )
