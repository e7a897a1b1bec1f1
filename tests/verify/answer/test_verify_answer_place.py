"""Where an answer stands: each verifier says it of the text that it judges, and nobody else has to know its marks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.tasks.arithmetic import Arithmetic
from assay.types import Task, Verdict
from assay.verify.answer.extract import RULES, extract
from assay.verify.answer.place import marked
from assay.verify.base import Locates, answer_place
from assay.verify.make import make_verifier

PIECES = ["<answer>", "</answer>", r"\boxed{", "}", "#### ", "the answer is ", "a", "7", " ", "\n", "{", "."]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(["line", "whole", "none"]))
def test_the_place_is_that_of_what_is_extracted(pieces, fallback) -> None:
    text = "".join(pieces)
    place, read = marked(text, RULES, fallback), extract(text, RULES, fallback)
    assert (text[place.start : place.end] if place else "") == (read or "")
    if place is not None:
        assert 0 <= place.begin <= place.start < place.end <= place.over <= len(text)


@pytest.mark.parametrize(
    ("kind", "reference", "response", "opening", "answer"),
    [
        ("exact", "143", "7+6=13\n5+8+1=14\n143", "", "143"),
        ("exact", "5", "so <answer>5</answer>, I think", "<answer>", "5"),
        ("text", "Paris", "It is\nParis", "", "Paris"),
        ("number", "1234", "2 + 2\n#### 1,234 apples", "#### ", "1,234"),
        ("number", "3", "a 2 and a 3 b", "", "3"),
        ("number", "none", "no digits", None, None),
        ("number", "-5", "it is \N{MINUS SIGN}5 m", "", "\N{MINUS SIGN}5"),
        ("math", "4", r"So $\boxed{4}$.", r"\boxed{", "4"),
        ("math", "4", "The answer is 4.", "answer is ", "4"),
        ("math", "4", "<think>\\boxed{3}</think> #### 4", "#### ", "4"),
        ("math", "4", r"it is \boxed{", None, None),
        ("choice", "B", "Surely.\nThe answer is B.", "answer is ", "B"),
        ("countdown", {"numbers": [1, 2], "target": 3}, "try\n1+2", "", "1+2"),
    ],
)
def test_each_kind_says_where_it_reads(kind, reference, response, opening, answer) -> None:
    task, verifier = Task("t", "Which? A) x B) y" if kind == "choice" else "?", reference, kind), make_verifier()
    place = answer_place(verifier, task, response)
    if answer is None:
        assert place is None
    else:
        assert place is not None
        assert (response[place.begin : place.start], response[place.start : place.end]) == (opening, answer)


@given(st.integers(0, 10**6), st.booleans())
def test_what_stands_at_the_place_decides_the_verdict(index, steps) -> None:
    """Of worked solutions: another text there is wrong, other reasoning before it is not."""
    task = Arithmetic(digits=3, min_digits=3, scratchpad=float(steps))[index]
    verifier, text = make_verifier(), str(task.solution)
    place = answer_place(verifier, task, text)
    assert place is not None
    assert verifier(task, text[: place.start] + "1" + text[place.start :]).passed is False
    assert verifier(task, "9\n" + text[place.begin :]).passed is True


def test_one_made_of_several_asks_them_and_a_stranger_is_read_by_marks() -> None:
    task = Task("t", "?", "5", "exact")
    checks = {"form": {"name": "format", "max_repeats": 3}, "answer": "exact"}
    composed = make_verifier({"name": "all_of", "checks": checks})
    place = answer_place(composed, task, "a\n5")
    assert isinstance(composed, Locates) and place is not None and place.start == 2

    def own(task: Task, response: str) -> Verdict:
        return Verdict.right()

    assert answer_place(own, task, "a\n5") is None
    found = answer_place(own, task, "a #### 5")
    assert found is not None and found.start == 7
