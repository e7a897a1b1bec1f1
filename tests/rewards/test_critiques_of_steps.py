"""Critiques of steps: how they are asked for and read, and their votes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marked import Critic, critique

from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.rewards.process.critiques import BESIDE_THE_REFERENCE, Critics, Critique, Voted, flawed, read
from assay.types import Task

TASK = Task("t", "What is {1}+1?", reference="2")


@given(st.lists(st.booleans(), max_size=6), st.sampled_from([None, True, False]), st.text("abc :\n", max_size=20))
def test_what_is_written_is_read(marks, final, before) -> None:
    text = f"{before}\n{critique(marks, final)}"
    assert read(text, len(marks)) == Critique(tuple(marks), final, text)
    assert read(text, len(marks) + 1) is None, "a step without a verdict"


@pytest.mark.parametrize(
    ("reply", "marks", "final"),
    [
        ("**Step 0:** Correct.\n- step 1 - INCORRECT, since\nVerdict: Incorrect", (True, False), False),
        (
            "Step 0: correct\nStep 1: correct\nStep 0: incorrect\nVerdict: correct\nVerdict: incorrect",
            (False, True),
            False,
        ),
        ("Step 1: correct\nStep 0: incorrect\nStep 7: correct", (False, True), None),
    ],
)
def test_forms_of_reply(reply, marks, final) -> None:
    found = read(reply, 2)
    assert found is not None and (found.marks, found.final) == (marks, final)


@pytest.mark.parametrize("reply", ["", "Step 0: correctly", "Step 0: right", "the step 0: correct", "Step: correct"])
def test_no_verdict_on_a_step(reply) -> None:
    assert read(reply, 1) is None


def test_votes_by_hand() -> None:
    """Critiques that call {1}, {1} and nothing wrong of three steps; ties of an even number are flawed."""
    three = [Critique(marks, None) for marks in ((True, False, True), (True, False, True), (True, True, True))]
    found = {vote: flawed(three, vote) for vote in ("intersection", "majority", "union", "average")}
    assert found["intersection"] == [0, 0, 0]
    assert found["majority"] == [0, 1, 0] and found["union"] == [0, 1, 0]
    assert found["average"] == pytest.approx([0, 2 / 3, 0])
    assert flawed(three[1:], "majority") == [0, 1, 0] and flawed(three[:2], "intersection") == [0, 1, 0]


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=6))
def test_votes_are_ordered(rows) -> None:
    many = [Critique(tuple(row), None) for row in rows]
    of = {vote: flawed(many, vote) for vote in ("intersection", "majority", "union", "average")}
    for k in range(3):
        assert of["intersection"][k] <= of["majority"][k] <= of["union"][k]
        assert of["intersection"][k] <= of["average"][k] <= of["union"][k]


def test_each_solution_is_asked_about_once_and_failures_are_told_apart() -> None:
    replies = {"good": critique([True, True], True), "mute": "no idea", "down": None}
    critic = Critic(lambda prompt, k: next(v for word, v in replies.items() if word in prompt))
    critics = Critics(critic, 2, max_tokens=7, temperature=0.5, template=BESIDE_THE_REFERENCE)
    good = (TASK, ["good {steps}", "b"])
    solutions = [good, (TASK, ["mute", "b"]), (TASK, ["down", "b"]), (TASK, []), good]
    found = critics.critiques(solutions)
    assert found[0] == found[4] and found[0] is not None and len(found[0]) == 2 and found[0][0].final is True
    assert found[1:4] == [[], None, []] and len(critic.asked) == 3
    prompt = str(critic.asked[0].prompt)
    assert "What is {1}+1?" in prompt and "wrong steps:\n2\n" in prompt
    assert "<step 0>\ngood {steps}\n</step 0>\n<step 1>\nb\n</step 1>" in prompt
    assert {(r.n, r.sampling) for r in critic.asked} == {(2, Sampling(7, 0.5))}
    assert len({r.seed for r in critic.asked}) == 3
    alone = critics.critiques(solutions[:1])
    assert alone == found[:1] and critic.asked[-1].seed == critic.asked[0].seed
    assert Voted(critics, "union").scores(solutions) == [[1, 1], None, None, [], [1, 1]]


def test_one_failed_request_of_several_leaves_the_others() -> None:
    critic = Critic(lambda prompt, k: None if k else critique([False]))
    [found] = Critics(critic, 3).critiques([(TASK, ["a"])])
    assert found is not None and [c.marks for c in found] == [(False,)]


def test_options() -> None:
    for bad in ({"n": 0}, {"template": "{problem}"}):
        with pytest.raises(UsageError, match="at least 1"):
            Critics(Critic(lambda p, k: ""), **bad)
    with pytest.raises(UsageError, match="critics of steps"):
        Critics(object())
