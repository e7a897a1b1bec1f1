"""Word problems of two steps: what is told is what is asked, by stories read anew and by hand."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from assay.registry import build
from assay.types import Task
from assay.verify.kind import KindVerifier

VERIFIER = KindVerifier()
TELLINGS = {
    r"has (\d+) \w+ with (\d+) \w+ in each": "*",
    r"has (\d+) \w+ and finds (\d+) more": "+",
    r"has (\d+) \w+ and gives (\d+) of them": "-",
    r"^(\d+) \w+ are put into (\d+) ": "/",
    r"brings (\d+) more\. How many \w+ does": "+",
    r"Then (\d+) of the \w+ get lost": "-",
    r"has (\d+) times as many": "*",
    r"for (\d+) dollars each": "*",
    r"among (\d+) children": "/",
}
"""How a step is told, in a reader's words, and which it is."""


def read(task: Task) -> list[str]:
    """Return the two steps of a story, from its words alone."""
    found = [(m, sign) for telling, sign in TELLINGS.items() if (m := re.search(telling, task.question))]
    (first, one), (second, two) = found
    value = solved(f"{first[1]}{one}{first[2]}")
    return [f"{first[1]}{one}{first[2]}={value}", f"{value}{two}{second[1]}={solved(f'{value}{two}{second[1]}')}"]


def solved(step: str) -> int:
    value = eval(step)
    assert value == int(value) >= 1, step
    return int(value)


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.sampled_from([4, 9, 30]))
def test_the_words_say_what_the_solution_does(seed: int, index: int, high: int) -> None:
    task = build("tasks", {"name": "word_problems", "seed": seed, "high": high})[index]
    *steps, answer = task.solution.split("\n")
    assert steps == read(task) == task.meta["steps"] and steps[-1].endswith(f"={answer}")
    assert task.reference == answer and VERIFIER(task, task.solution).passed is True
    assert VERIFIER(task, f"{int(answer) + 1}").passed is False


def test_every_pair_of_steps_is_told() -> None:
    source = build("tasks", "word_problems")
    signs = Counter("".join(re.sub(r"\d|=", "", step) for step in source[i].meta["steps"]) for i in range(400))
    assert len(signs) == 16, "each of + - * / before each"


def test_a_solution_may_hide_its_steps() -> None:
    mixed, shown = (build("tasks", {"name": "word_problems", "scratchpad": s}) for s in (0.4, 1.0))
    hidden = build("tasks", {"name": "word_problems", "scratchpad": 0.0})
    count = 0
    for i in range(400):
        steps, whole = mixed[i].solution.split("\n"), shown[i].solution.split("\n")
        count += len(steps) > 1
        assert steps in (whole, whole[-1:]) and mixed[i].question == shown[i].question
        assert hidden[i].solution == whole[-1] and hidden[i].question.endswith("Reply with the number only.")
    assert abs(count - 160) < 5 * 10, "of 400 with a standard deviation of 10"
