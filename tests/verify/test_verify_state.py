"""States as facts: the distance and the potential by hand, whatever the order of rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.types import NOTE, Task
from assay.verify.make import make_verifier
from assay.verify.structured.state import distance, facts, potential

KEYS = {"event": ["id"], "booking": ["usr", "ev"]}


def state(booked: dict[int, int], *bookings: tuple[str, int, str]) -> dict[str, list[dict[str, Any]]]:
    events = [{"id": i, "cap": {1: 2, 2: 5}[i], "booked": n} for i, n in booked.items()]
    return {"event": events, "booking": [{"usr": u, "ev": e, "status": s} for u, e, s in bookings]}


START, GOAL = state({1: 1, 2: 0}), state({1: 2, 2: 0}, ("bob", 1, "ok"))


@pytest.mark.parametrize(
    ("reached", "cell", "row"),
    [
        (START, (5, 0.0), (3, 0.0)),
        (GOAL, (0, 1.0), (0, 1.0)),
        (state({1: 1, 2: 1}, ("bob", 2, "ok")), (10, -1.0), (6, -1.0)),
        (state({1: 2, 2: 1}, ("bob", 1, "ok"), ("bob", 2, "ok")), (5, 0.0), (3, 0.0)),
        (state({1: 2, 2: 0}, ("bob", 1, "hold")), (2, 0.6), (2, 1 / 3)),
        (state({1: 2, 2: 0}), (3, 0.4), (1, 2 / 3)),
    ],
)
def test_distance_and_potential_by_hand(reached: Any, cell: Any, row: Any) -> None:
    for granularity, (wanted, phi) in (("cell", cell), ("row", row)):
        of = [facts(s, KEYS, granularity) for s in (reached, START, GOAL)]  # type: ignore[arg-type]
        assert distance(of[0], of[2]) == wanted and potential(*of) == pytest.approx(phi, abs=1e-12)
        task = Task("t", "?", {"start": START, "goal": GOAL, "keys": KEYS}, "state")
        found = make_verifier({"name": "state", "granularity": granularity})(task, json.dumps(reached))
        assert found.passed == (wanted == 0) and found.score == pytest.approx(min(1, max(0, phi)))
        assert found.parts[f"state{NOTE}distance"] == wanted
        assert found.parts[f"state{NOTE}potential"] == pytest.approx(phi)


def test_a_goal_that_is_the_start_is_left_by_any_change() -> None:
    of = facts(START, KEYS)
    assert potential(of, of, of) == 1 and potential(facts(state({1: 1, 2: 1}), KEYS), of, of) == -1


rows = st.lists(
    st.fixed_dictionaries(
        {"a": st.integers(0, 2), "b": st.sampled_from([None, True, 1, "x", [1], {"y": 2}]), "n": st.integers()}
    ),
    max_size=5,
)


@given(rows, st.randoms(use_true_random=False), st.sampled_from(["cell", "row"]), st.sampled_from([[], ["a"], None]))
def test_the_order_of_rows_and_running_numbers_are_no_facts(
    table: Any, random: Any, granularity: Any, key: Any
) -> None:
    keys = {} if key is None else {"t": key}
    shuffled = [dict(reversed(row.items())) | {"n": random.random()} for row in random.sample(table, len(table))]
    one, other = (facts({"t": t}, keys, granularity, ["n"]) for t in (table, shuffled))
    assert one == other
    assert len(one) == (len(table) * 2 if granularity == "cell" else len(table))


@given(rows, rows)
def test_facts_are_equal_just_where_rows_are(one: Any, other: Any) -> None:
    def plain(table: Any) -> list[str]:
        return sorted(json.dumps({"a": r["a"], "b": r["b"]}) for r in table)

    for granularity in ("cell", "row"):
        equal = facts({"t": one}, {"t": ["a"]}, granularity, ["n"]) == facts(
            {"t": other}, {"t": ["a"]}, granularity, ["n"]
        )
        assert equal == (plain(one) == plain(other))


def test_a_number_is_what_it_is_worth_and_an_object_what_it_holds() -> None:
    one = facts({"t": [{"id": 1, "price": 2, "tags": {"a": 1, "b": 2}}]}, {"t": ["id"]})
    other = facts({"t": [{"id": 1, "price": 2.0, "tags": {"b": 2, "a": 1}}]}, {"t": ["id"]})
    assert one == other and len(one) == 3


def test_who_is_wrong_is_told_by_how_much() -> None:
    task, judge = Task("t", "?", {"start": START, "goal": GOAL, "keys": KEYS}, "state"), make_verifier("state")
    assert judge(task, json.dumps(START)).feedback == "5 facts differ from the goal"
    assert judge(task, json.dumps(GOAL)).feedback == ""


def test_what_is_no_state_is_wrong_and_a_task_without_one_abstains() -> None:
    judge = make_verifier("state")
    task = Task("t", "?", {"start": START, "goal": GOAL}, "state")
    for response in ("", "[]", "3", '{"event": 3}', '{"event": [3]}', "[" * 100_000, '{"event": {"id": 1}}'):
        assert judge(task, response).passed is False
    assert judge(Task("t", "?", {"goal": GOAL}, "state"), json.dumps(GOAL)).passed is None
    assert judge(task, json.dumps({**GOAL, "more": []})).passed and not judge(task, '{"event": []}').passed
