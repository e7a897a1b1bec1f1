"""What records say: optima at the end of a sweep, runs that fell, and the verdict on a paper."""

from __future__ import annotations

from typing import Any

import pytest

from assay.lab.judged import collapsed, summary, unsettled, verdict
from assay.lab.sweep import around, best, beyond, open_ends


def rates(*pairs: tuple[float, float]) -> list[dict[str, float]]:
    return [{"lr": rate, "mean": mean} for rate, mean in pairs]


@pytest.mark.parametrize(
    ("tried", "effect", "expected"),
    [
        (rates((0.1, 0.2), (1, 0.9), (10, 0.3)), 0.1, []),
        (rates((0.1, 0.2), (1, 0.8), (10, 0.9)), 0.1, [("lr", "highest")]),
        (rates((0.1, 0.9), (1, 0.8), (10, 0.2)), 0.1, [("lr", "lowest")]),
        # Flat: the neighbour is within a tenth of the effect, here 0.1, and just outside it.
        (rates((0.1, 0.2), (1, 0.8), (10, 0.9)), 1.0, []),
        (rates((0.1, 0.2), (1, 0.8), (10, 0.9)), -1.0, []),
        (rates((0.1, 0.2), (1, 0.79), (10, 0.9)), 1.0, [("lr", "highest")]),
        # Tried in another order, one value alone, and a run that came to no number.
        (rates((1, 0.8), (10, 0.9), (0.1, 0.2)), 0.1, [("lr", "highest")]),
        (rates((1, 0.8)), 0.1, [("lr", "lowest"), ("lr", "highest")]),
        (rates((0.1, 0.2), (1, 0.8), (10, float("nan"))), 0.1, []),
    ],
)
def test_ends_where_an_arm_did_best(
    tried: list[dict[str, float]], effect: float, expected: list[tuple[str, str]]
) -> None:
    assert open_ends(tried, effect) == expected


def test_of_two_knobs_each_is_looked_at_where_the_other_is_best() -> None:
    means = {(1, 0.1): 0.1, (1, 0.2): 0.2, (1, 0.3): 0.1, (2, 0.1): 0.3, (2, 0.2): 0.5, (2, 0.3): 0.4}
    tried = [{"lr": lr, "clip": clip, "mean": mean} for (lr, clip), mean in means.items()]
    assert best(tried) == {"lr": 2, "clip": 0.2, "mean": 0.5}
    assert open_ends(tried, 0.1) == [("lr", "highest")]
    assert open_ends([{"kind": "a", "mean": 1.0}, {"kind": "b", "mean": 0.0}], 0.1) == [], "no number, no end"


def test_what_lies_beyond_an_end() -> None:
    assert beyond([0.1, 0.3, 1.0], (0.1, 0.3, 1.0), "highest") == 3.33
    assert beyond([0.1, 0.3, 1.0], (0.1, 0.3, 1.0), "lowest") == 0.0333
    assert beyond([1.0, 99.0], (1.0,), "highest") is None
    assert beyond([0.0, 1.0], (0.0, 1.0), "highest") is None
    assert around(0.3) == (0.1, 0.3, 0.9)


def test_runs_far_below_the_others_of_their_arm() -> None:
    # Quartiles 0.80 and 0.82: far is below 0.80 - 3 * 0.02 = 0.74.
    assert collapsed([0.73, 0.80, 0.81, 0.82, 0.83]) == 1
    assert collapsed([0.75, 0.80, 0.81, 0.82, 0.83]) == 0
    assert collapsed([0.9, 0.80, 0.81, 0.82, 0.83]) == 0, "above is not fallen"
    assert collapsed([1.0] * 9 + [0.2]) == 1 and collapsed([1.0, 1.0]) == 0


def record(**more: Any) -> dict[str, Any]:
    runs = [{"seed": s, "arm": a, "m": s / 10 + (a == "b")} for s in range(6) for a in "ab"]
    return {
        "claim": "b is better",
        "better": "b",
        "baseline": "a",
        "measure": "m",
        "arms": {"a": {}, "b": {}},
        "setting": {"name": "tree", "lr": 1.0},
        "seeds": list(range(6)),
        "runs": runs,
        "means": {"a": 0.25, "b": 1.25},
        "effect": {"value": 1.0, "low": 0.9, "high": 1.1, "seeds": 6},
        "verdict": "shown",
        **more,
    }


def test_a_summary_says_why_nothing_follows() -> None:
    found = summary(record(), "claim")
    assert found["verdict"] == "inconclusive" and found["unsettled"] == ["its learning rate was not swept"]
    assert found["sign_flip"] == pytest.approx(2 / 2**6), "all six differences have one sign"
    assert summary(record(setting={"name": "alike"}), "claim")["verdict"] == "shown"
    within = rates((0.1, 0.2), (1, 0.9), (10, 0.3))
    assert unsettled(record(tried={"a": within, "b": within})) == []
    edge = record(tried={"a": within, "b": rates((0.1, 0.2), (1, 0.9), (10, 1.1))})
    assert unsettled(edge) == ["b did best at the highest lr that was tried"]
    assert summary(record(earlier=[{}]), "claim")["runs"] == 2


def told(verdict: str, value: float = 1.0, evidence: str = "claim") -> dict[str, Any]:
    return {"verdict": verdict, "value": value, "evidence": evidence}


@pytest.mark.parametrize(
    ("many", "expected"),
    [
        ([told("shown")], "shown"),
        ([told("shown"), told("not shown", 0.1)], "shown"),
        ([told("shown"), told("not shown", -0.1)], "not shown"),
        ([told("shown"), told("opposite", -1)], "not shown"),
        ([told("not shown"), told("shown")], "not shown"),
        ([told("opposite", -1), told("shown", 1, "mechanism")], "opposite"),
        ([told("not shown"), told("shown", 1, "mechanism")], "mechanism"),
        ([told("inconclusive"), told("shown", 1, "mechanism")], "mechanism"),
        ([told("inconclusive"), told("inconclusive", 1, "mechanism")], "inconclusive"),
        ([told("shown", 1, "construction")], "by construction"),
        ([told("shown", 1, "construction"), told("opposite", -1, "construction")], "not shown"),
        ([told("inconclusive", 1, "construction")], "inconclusive"),
    ],
)
def test_the_verdict_on_a_paper(many: list[dict[str, Any]], expected: str) -> None:
    assert verdict(many) == expected
