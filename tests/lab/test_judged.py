"""What records say: why nothing follows from some, and the verdict on a paper."""

from __future__ import annotations

from typing import Any

import pytest

from assay.lab.judged import summary, unsettled, verdict


def rates(*pairs: tuple[float, float]) -> list[dict[str, float]]:
    return [{"lr": rate, "mean": mean} for rate, mean in pairs]


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


@pytest.mark.parametrize(("apart", "said"), [(0.0, True), (0.0014, True), (0.0016, False)])
def test_arms_that_no_seed_tells_apart_say_nothing(apart: float, said: bool) -> None:
    """At a ceiling of 1.5: a difference of a thousandth of it, on one seed of six, is one."""
    within = rates((0.1, 0.2), (1, 0.9), (10, 0.3))
    runs = [{"seed": s, "arm": a, "m": 1.5 - apart * (a == "a" and s == 3)} for s in range(6) for a in "ab"]
    found = unsettled(record(runs=runs, tried={"a": within, "b": within}))
    assert found == (["no seed tells the arms apart"] if said else [])


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
