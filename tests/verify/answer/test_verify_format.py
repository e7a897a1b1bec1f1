"""Each requirement of a format met and missed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict

TAGS = {"tags": ["think", "answer"]}


def judge(response: str, reference: object = None, **options: object) -> Verdict:
    return build("verify", {"name": "format", **options})(Task("t", "?", reference), response)


@pytest.mark.parametrize(
    ("response", "missed"),
    [
        ("<think>a</think><answer>b</answer>", set()),
        ("\n<think>\na\n</think>\n\n<answer>b < c</answer>\n", set()),
        ("<think>a</think> so <answer>b</answer>", {"tags:outside"}),
        ("<think>a</think><answer>b</answer>.", {"tags:outside"}),
        ("<think> </think><answer>b</answer>", {"tag:think"}),
        ("<answer>b</answer><think>a</think>", {"tags:order", "tags:outside"}),
        ("<think>a<answer>b</answer></think>", {"tags:order", "tags:outside"}),
        ("<think>a<think>b</think><answer>c</answer>", {"tag:think", "tags:order", "tags:outside"}),
        ("<think>a</think><answer>b", {"tag:answer", "tags:order", "tags:outside"}),
        ("a</think><answer>b</answer>", {"tag:think", "tags:order", "tags:outside"}),
        ("</think>a<think><answer>b</answer>", {"tag:think", "tags:order", "tags:outside"}),
        ("", {"tag:think", "tag:answer", "tags:order", "tags:outside"}),
    ],
)
def test_tags(response, missed):
    verdict = judge(response, **TAGS)
    assert {name for name, met in verdict.parts.items() if not met} == missed
    assert set(verdict.parts) == {"tag:think", "tag:answer", "tags:order", "tags:outside"}
    assert verdict.passed is (not missed) and verdict.score == float(not missed)
    assert judge(response, **TAGS, score="fraction").score == 1 - len(missed) / 4


def test_text_outside_tags_and_a_prefilled_tag():
    response = "<think>a</think> so <answer>b</answer>"
    assert judge(response, **TAGS, outside=2).passed is True
    assert judge(response, **TAGS, outside=1).passed is False
    assert judge(response, **TAGS, outside=None).passed is True
    assert judge("a</think><answer>b</answer>", **TAGS, prefilled=True).passed is True
    assert judge("<think>a</think><answer>b</answer>", **TAGS, prefilled=True).passed is True


@pytest.mark.parametrize(
    ("options", "good", "bad"),
    [
        ({"min_chars": 2, "max_chars": 3}, ["ab", "abc"], ["a", "abcd"]),
        ({"max_words": 3}, ["a b c", "東京 x"], ["a b c d", "東京都市"]),
        ({"min_words": 2}, ["a b"], ["a", ""]),
        ({"max_tokens": 1}, ["東京都市"], ["a b"]),
        ({"contain": ["yes"]}, ["yes!"], ["Yes"]),
        ({"contain": ["yes"], "ignore_case": True}, ["YES"], ["no"]),
        ({"avoid": ["as an AI"]}, ["As an ai"], ["so as an AI"]),
        ({"max_repeats": 2, "ngram": 2}, ["a b a b", "a a a"], ["a b A b a b", "a a a a"]),
        (
            {"sections": ["Method", "Method notes", "Result"]},
            ["# Method\nx\n## Method notes\ny\n**Result**: z", "Method: a\n2. Method notes b\nResult c\nd"],
            ["Method\nx\nResult\ny\nMethod notes\nz", "Method\nx\nResult\ny", "Method\nMethod notes\nx\nResult\ny",
             "Methods\nx\nMethod notes\ny\nResult\nz", "Method\nx\nMethod notes\ny\nResult\n",
             "Method\na\nMethod\nb\nMethod notes\nc\nResult\nd"],
        ),
    ],
)  # fmt: skip
def test_requirements(options, good, bad):
    for text in good:
        assert judge(text, **options).passed is True, text
    for text in bad:
        verdict = judge(text, **options)
        assert verdict.passed is False and verdict.feedback, text


def test_a_task_can_change_the_requirements():
    assert judge("a b", {"format": {"max_words": 1}}).passed is False
    assert judge("a b", {"format": {"max_words": 2}}, max_words=1).passed is True
    assert judge("a b", {"numbers": [1]}, max_words=1).passed is False
    for bad in ({"max_wrds": 1}, {"max_words": "x"}, {"max_words": -1}, 3, {"tags": ["<a>"]}):
        assert judge("a b", {"format": bad}).passed is None, bad
    assert judge("anything").passed is None, "nothing was asked for"


def test_options_are_checked():
    for options in (
        {"tags": ["<think>"]}, {"tags": ["a", "a"]}, {"min_chars": 3, "max_chars": 2}, {"max_words": -1},
        {"ngram": 0}, {"max_repeats": 0}, {"contain": [""]}, {"sections": [""]},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            build("verify", {"name": "format", **options})


ALL = {
    **TAGS, "sections": ["A"], "max_chars": 9, "min_words": 2, "max_tokens": 5, "contain": ["b"], "avoid": ["c"],
    "max_repeats": 1, "ngram": 2,
}  # fmt: skip


@given(
    st.text()
    | st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "a", " ", "\nA"])).map("".join)
)
def test_no_text_raises(text):
    for prefilled in (False, True):
        verdict = judge(text, **ALL, prefilled=prefilled)
        assert verdict.passed in (True, False)
        assert len(verdict.parts) == 11


@pytest.mark.parametrize("piece", ["<think>", "</think>", "a ", "A\n", "\n", "#"])
def test_a_megabyte_is_judged_in_bounded_time(piece):
    start = time.process_time()
    assert judge(piece * (1_000_000 // len(piece)), **ALL).passed is False
    assert time.process_time() - start < 5
