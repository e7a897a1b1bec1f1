"""Verifiers made of verifiers: their logic against tables worked by hand, scores, parts and feedback."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.compose import AllOf

TASK = Task("t", "q", "5")


@dataclass(frozen=True)
class Says:
    """Always the same verdict."""

    verdict: object

    def __call__(self, task: Task, response: str) -> Verdict:
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict  # type: ignore[return-value]


RIGHT, WRONG, ABSTAINS = (
    Verdict(0.75, True, {"x": 1.0}, "fine"),
    Verdict(0.25, False, {}, "bad"),
    Verdict.abstain("why"),
)
WORDS = {"r": RIGHT, "w": WRONG, "a": ABSTAINS}


def judged(name: str, said: str, **options: object) -> Verdict:
    checks = {f"{letter}{i}": Says(WORDS[letter]) for i, letter in enumerate(said)}
    return build("verify", {"name": name, "checks": checks, **options})(TASK, "5")


def outcome(verdict: Verdict) -> str:
    return {True: "r", False: "w", None: "a"}[verdict.passed]


# Rows: the first check, columns: the second; right, wrong, abstains.
TABLES = {
    "all_of": {"rr": "r", "rw": "w", "ra": "a", "ww": "w", "wa": "w", "aa": "a"},
    "any_of": {"rr": "r", "rw": "r", "ra": "r", "ww": "w", "wa": "a", "aa": "a"},
}


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_of_three_values(name: str) -> None:
    for said in map("".join, itertools.product("rwa", repeat=2)):
        expected = TABLES[name].get(said) or TABLES[name][said[::-1]]
        assert outcome(judged(name, said)) == expected, said


@settings(max_examples=40)
@given(st.text("rwa", min_size=1, max_size=5))
def test_all_and_any_mirror_each_other_and_do_not_depend_on_order(said: str) -> None:
    mirrored = said.translate(str.maketrans("rw", "wr"))
    opposite = {"r": "w", "w": "r", "a": "a"}[outcome(judged("any_of", mirrored))]
    assert outcome(judged("all_of", said)) == opposite == outcome(judged("all_of", said[::-1]))


@settings(max_examples=40)
@given(st.text("rwa", min_size=1, max_size=5))
def test_an_abstention_could_have_been_either(said: str) -> None:
    # What is said with abstentions holds however they would have been decided; what abstains, does not.
    for name in ("all_of", "any_of"):
        spots = said.count("a")
        outcomes = set()
        for filling in itertools.product("rw", repeat=spots):
            filled, fill = "", iter(filling)
            for letter in said:
                filled += next(fill) if letter == "a" else letter
            outcomes.add(outcome(judged(name, filled)))
        assert outcome(judged(name, said)) == ("a" if len(outcomes) > 1 else outcomes.pop())


def test_scores_parts_and_feedback() -> None:
    verdict = judged("all_of", "rwa")
    assert verdict == Verdict(0.25, False, {"r0": 0.75, "r0/x": 1.0, "w1": 0.25, "a2": None}, "w1: bad")
    assert judged("any_of", "rwa") == Verdict(0.75, True, verdict.parts, "r0: fine")
    assert judged("all_of", "ra") == Verdict(0.0, None, {"r0": 0.75, "r0/x": 1.0, "a1": None}, "a1: why")
    assert judged("any_of", "ww").feedback == "w0: bad; w1: bad"
    assert judged("any_of", "ww").score == 0.25
    assert str(verdict) == "wrong, score 0.25 [r0 0.75, r0/x 1, w1 0.25, a2 ?]: w1: bad"


def test_weights() -> None:
    verdict = judged("weighted", "rw", weights={"r0": 3})
    assert verdict.score == pytest.approx((3 * 0.75 + 0.25) / 4)
    assert verdict.passed is False
    assert judged("weighted", "rw", weights={"r0": 3}, threshold=0.625).passed is True
    assert judged("weighted", "rw", weights={"r0": 3}, threshold=0.63).passed is False
    abstained = judged("weighted", "rwa")
    assert (abstained.score, abstained.passed, abstained.feedback) == (0.0, None, "a2: why")
    assert judged("weighted", "rwa", on_abstain="renormalise").score == pytest.approx(0.5)
    assert judged("weighted", "aa", on_abstain="renormalise").passed is None
    # What weighs nothing decides nothing, and is reported.
    free = judged("weighted", "ra", weights={"a1": 0}, threshold=0.75)
    assert (free.score, free.passed, free.parts["a1"]) == (0.75, True, None)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6))
def test_all_perfect_passes_whatever_the_weights(weights: list[float]) -> None:
    checks = {str(i): Says(Verdict.right()) for i in range(len(weights))}
    table = {"name": "weighted", "checks": checks, "weights": {str(i): w for i, w in enumerate(weights)}}
    assert build("verify", table)(TASK, "") == Verdict(1.0, True, dict.fromkeys(checks, 1.0), "")


def test_a_gate() -> None:
    def gated(gate: object, then: object) -> Verdict:
        return build("verify", {"name": "gated", "gate": gate, "then": then})(TASK, "5")

    never = Says(AssertionError("was run"))
    assert gated(Says(WRONG), never) == Verdict(0.0, False, {"gate": 0.25, "then": None}, "gate: bad")
    assert gated(Says(ABSTAINS), never) == Verdict(0.0, None, {"gate": None, "then": None}, "gate: why")
    assert gated(Says(RIGHT), Says(WRONG)) == Verdict(
        0.25, False, {"gate": 0.75, "gate/x": 1.0, "then": 0.25}, "then: bad"
    )
    assert gated(Says(RIGHT), Says(ABSTAINS)).passed is None
    assert gated("exact", "number").passed is True


def test_the_first_that_can_tell() -> None:
    assert judged("first", "awr") == Verdict(0.25, False, {"a0": None, "w1": 0.25}, "w1: bad")
    assert judged("first", "aa") == Verdict(0.0, None, {"a0": None, "a1": None}, "a0: why; a1: why")


def test_nested_specs_lists_and_names() -> None:
    verifier = build(
        "verify",
        {
            "name": "all_of",
            "checks": ["exact", {"name": "exact", "numeric": False}, {"name": "any_of", "checks": {"n": "number"}}],
        },
    )
    assert verifier(TASK, "5.0").parts == {"exact": 1.0, "exact-2": 0.0, "any_of": 1.0, "any_of/n": 1.0}
    assert isinstance(verifier, AllOf) and pickle.loads(pickle.dumps(verifier))(TASK, "5").passed is True
    by_kind = build("verify", {"name": "gated", "gate": "exact", "then": "by_kind"})
    assert by_kind(TASK, "5").passed is True


@pytest.mark.parametrize("name", ["all_of", "any_of", "weighted", "first"])
def test_a_check_that_misbehaves_abstains(name: str) -> None:
    for bad, words in [
        (ValueError("no\n luck"), "raised ValueError: no luck"),
        ("text", "returned a str, not a Verdict"),
        (Verdict(float("nan"), True), "score nan"),
        (Verdict(2.0, True), "score 2.0"),
    ]:
        verdict = build("verify", {"name": name, "checks": [Says(bad)]})(TASK, "5")
        assert verdict.passed is None
        assert words in verdict.feedback
        assert "\n" not in verdict.feedback


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"name": "all_of", "checks": []}, "needs checks"),
        ({"name": "all_of", "checks": "exact"}, "needs checks"),
        ({"name": "all_of"}, "needs checks"),
        ({"name": "any_of", "checks": ["exatc"]}, "did you mean 'exact'"),
        ({"name": "first", "checks": [{"name": "exact", "numerc": 1}]}, "did you mean 'numeric'"),
        ({"name": "weighted", "checks": ["exact"], "weights": {"exat": 1}}, "did you mean 'exact'"),
        ({"name": "weighted", "checks": ["exact"], "weights": {"exact": -1}}, "not a number >= 0"),
        ({"name": "weighted", "checks": ["exact"], "weights": {"exact": 0}}, "every weight is 0"),
        ({"name": "weighted", "checks": ["exact"], "weights": {"exact": float("inf")}}, "not a number >= 0"),
        ({"name": "weighted", "checks": ["exact"], "threshold": 0}, "in (0, 1]"),
        ({"name": "weighted", "checks": ["exact"], "threshold": 1.1}, "in (0, 1]"),
        ({"name": "weighted", "checks": ["exact"], "on_abstain": "skip"}, "on_abstain"),
        ({"name": "gated", "gate": "exact"}, "needs then"),
        ({"name": "all_of", "checks": [5]}, "not a int"),
    ],
)
def test_mistakes_are_said_when_it_is_made(table: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as error:
        build("verify", table)
    assert words in str(error.value)


@given(st.text(), st.text())
def test_any_response_gets_a_verdict_in_one_line(reference: str, response: str) -> None:
    verifier = build("verify", {"name": "all_of", "checks": ["exact", "number", "countdown"]})
    verdict = verifier(Task("t", "q", reference), response)
    assert len(str(verdict).splitlines()) == 1
