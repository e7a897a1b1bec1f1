"""World models judged by what they do: hand-made worlds, hand-worked numbers, hostile programs and hostile domains."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandbox.support import needs_sandbox

from assay.registry import build
from assay.sandbox import CallOutcome, Outcome, Sandbox
from assay.types import Task, Verdict
from assay.verify.behaviour import drive, model
from assay.verify.behaviour.components import Counts, compared, macro, micro, pieces
from assay.verify.behaviour.drive import key
from assay.verify.behaviour.model import Case, PddlModel, PythonModel, Reply, agrees, domain_of
from assay.verify.behaviour.returns import normalised_return, planner_return, random_return, true_return, winnable
from assay.verify.behaviour.static import fault
from assay.verify.behaviour.testers import Report, Team, told
from assay.verify.behaviour.truth import Truth, kinds, spread, truth_of
from assay.verify.behaviour.verifier import hidden_share
from assay.verify.code.results import Abstain
from assay.verify.planning import validate
from assay.verify.planning.model import PddlError

WALK = """
def step(state, action):
    x = state["x"] + {"left": -1, "right": 1}.get(action, 0)
    if action == "coin" and state["x"] == 2 and not state["had"]:
        return [{"x": 2, "had": True}, 0.5, False]
    if not 0 <= x <= 5:
        return [state, -1.0, False]
    return [{"x": x, "had": state["had"]}, 2.0 if x == 5 else 0.0, x == 5]
"""
"""Six places in a row, a coin at 2, the end at 5."""
REFERENCE: dict[str, Any] = {
    "language": "python",
    "source": WALK,
    "starts": [{"x": 1, "had": False}, {"x": 3, "had": False}],
    "actions": [["left", "right", "coin"]] * 2,
    "horizon": 8,
    "effort": 200,
}
MOVE = """(define (domain d) (:requirements :strips :typing) (:types place)
  (:predicates (at ?p - place) (way ?p - place ?q - place) (seen ?p - place))
  (:action go :parameters (?p - place ?q - place) :precondition (and (at ?p) (way ?p ?q))
    :effect (and (at ?q) (not (at ?p)) (seen ?q) (when (seen ?p) (not (seen ?p))))))"""
PROBLEM = """(define (problem p) (:domain d) (:objects a b c - place)
  (:init (at a) (way a b) (way b c)) (:goal (at c)))"""
PLANNED = {"language": "pddl", "source": MOVE, "problems": [PROBLEM]}
GROUND = [f"(go {a} {b})" for a in "abc" for b in "abc"]


def judge(source: str, reference: Any = REFERENCE, **options: Any) -> Verdict:
    return build("verify", {"name": "behaviour", **options})(Task("t", "?", reference, "behaviour"), source)


def step_of(source: str) -> drive.Step:
    space: dict[str, Any] = {}
    exec(source, space)
    step: drive.Step = space["step"]
    return step


def test_the_worked_f1() -> None:
    three_of_four = Counts(3, 3, 4)
    assert (three_of_four.precision, three_of_four.recall) == (1, 0.75)
    assert three_of_four.f1 == pytest.approx(0.8571, abs=5e-5)
    every = [Counts(3, 3, 3), Counts(2, 2, 2), three_of_four]
    assert micro(every) == Counts(8, 8, 9)
    assert micro(every).precision == 1 and micro(every).recall == pytest.approx(0.8889, abs=5e-5)
    assert micro(every).f1 == pytest.approx(0.9412, abs=5e-5)
    assert macro(every) == pytest.approx(0.9524, abs=5e-5)
    assert Counts(0, 0, 0).f1 == Counts(0, 0, 0).precision == Counts(0, 0, 0).recall == 1
    assert Counts(0, 0, 2).f1 == Counts(0, 0, 2).precision == 0 == Counts(0, 2, 0).recall
    assert Counts(1, 2, 2).f1 == 0.5 == Counts(1, 2, 4).precision and Counts(1, 2, 4).recall == 0.25


def test_components_of_a_domain() -> None:
    gold = domain_of(MOVE)
    assert {name: len(some) for name, some in pieces(gold).items()} == {
        "predicates": 3,
        "parameters": 2,
        "preconditions": 2,
        "effects": 4,
    }
    assert all(c.f1 == 1 for c in compared(gold, gold).values())
    # One effect of four is missing, nothing else differs.
    found = compared(domain_of(MOVE.replace("(seen ?q) ", "")), gold)
    assert found["effects"] == Counts(3, 3, 4) and found["effects"].f1 == pytest.approx(6 / 7)
    assert [found[name].f1 for name in ("predicates", "parameters", "preconditions")] == [1, 1, 1]
    # Names of variables, their case and hyphens, the order of conjuncts and nested conjunctions say nothing.
    other = (
        MOVE.replace("?p", "?From")
        .replace("?q", "?to_x")
        .replace("(at ?From) (way ?From ?to_x)", "(way ?From ?to_x) (and (at ?From))")
    )
    assert compared(domain_of(other), gold) == compared(gold, gold)
    apart = MOVE.replace("place", "my_place"), MOVE.replace("place", "MY-Place")
    assert compared(*map(domain_of, apart)) == compared(gold, gold)
    # Swapped arguments are another piece; so is a negated one, and a parameter of another type.
    swapped = compared(domain_of(MOVE.replace("(way ?p ?q))\n", "(way ?q ?p))\n")), gold)
    assert swapped["preconditions"] == Counts(1, 2, 2)
    negated = compared(domain_of(MOVE.replace("(not (at ?p))", "(at ?p)")), gold)
    assert negated["effects"] == Counts(3, 4, 4)
    typed = compared(domain_of(MOVE.replace("(?p - place ?q - place) :pre", "(?p - object ?q - place) :pre")), gold)
    assert typed["parameters"] == Counts(1, 2, 2) and typed["preconditions"].f1 == 1
    either = "(exists (?x - place) (or (at ?x) (= ?p ?x)))"
    same = "(exists (?y - place) (or (= ?y ?p) (at ?y)))"
    one, two = (domain_of(MOVE.replace("(and (at ?p) (way ?p ?q))", c)) for c in (either, same))
    assert compared(one, two)["preconditions"] == Counts(1, 1, 1)


def test_plans_by_hand() -> None:
    step, start, actions = step_of(WALK), {"x": 1, "had": False}, ["left", "right", "coin"]
    assert drive.plan(step, start, actions, 8, 1000) == ["right", "coin", "right", "right", "right"]
    # Too short for the end: the coin; too short for anything, or too few steps: nothing.
    assert drive.plan(step, start, actions, 3, 1000) == ["right", "coin"]
    assert drive.plan(step, start, actions, 1, 1000) == drive.plan(step, start, actions, 8, 2) == []
    assert drive.plan(step, {"x": 4, "had": True}, actions, 8, 1000) == ["right"]
    steps = drive.planned(step, start, actions, 8, 1000)
    assert [s[1] for s in steps] == ["right", "coin", "right", "right", "right"]
    assert [s[3] for s in steps] == [0, 0.5, 0, 0, 2] and [s[4] for s in steps] == [False] * 4 + [True]
    assert [s[0]["x"] for s in steps] == [1, 2, 2, 3, 4] and steps[1][2] == {"x": 2, "had": True}
    walked = drive.walk(step, start, actions, 30, 3)
    assert walked == drive.walk(step, start, actions, 30, 3) != drive.walk(step, start, actions, 30, 4)
    assert [s[1] for s in walked] == [random.Random(3).choice(actions)] + [s[1] for s in walked[1:]]
    found = drive.explore(step, [start], [actions], 1000)
    # Eleven states that are no end: the coin is had or not, at 0 to 4, each with three actions; and nothing twice.
    assert len(found) == 30 == len({(key(s[1]), s[2]) for s in found})
    assert found[0] == [0, start, "left", {"x": 0, "had": False}, 0.0, False]
    assert len(drive.explore(step, [start, start], [actions, ["left"]], 4)) == 6 + 2
    # What breaks, is malformed or changes its argument leads nowhere, or does no harm.
    for broken in ("raise ValueError", "return state", "return [state, True, False]", "return [state, 0.0, 1]"):
        bad = step_of(f"def step(state, action):\n    {broken}\n")
        assert drive.follow(bad, start, ["left"]) == []
        assert drive.plan(bad, start, actions, 2, 9) == [] == drive.explore(bad, [start], [actions], 9)
    assert drive.tried(lambda s, a: [s, float("nan"), False], key(start), "left") is None
    assert drive.tried(lambda s, a: [s, float("inf"), False], key(start), "left") is None
    assert drive.tried(lambda s, a: [{1: (2,)}, 1, False], key(start), "left") == ('{"1": [2]}', 1.0, False)

    def spoils(state: Any, action: str) -> Any:
        state["x"] += 1
        return [state, 0, state["x"] == 3]

    assert [s[0]["x"] for s in drive.follow(spoils, start, ["a"] * 9)] == [1, 2] and start["x"] == 1


def test_plans_avoid_losses_and_prefer_the_shortest() -> None:
    def step(state: int, action: str) -> Any:
        worth = {(0, "a"): (-1.0, 1), (0, "b"): (0.0, 2), (1, "a"): (5.0, 3), (2, "b"): (0.0, 1)}
        reward, after = worth.get((state, action), (0.0, state))
        return [after, reward, after == 3]

    # By b, b, a it is 5; by a, a only 4.
    assert drive.plan(step, 0, ["a", "b"], 4, 100) == ["b", "b", "a"]
    assert drive.plan(step, 0, ["a", "b"], 2, 100) == ["a", "a"]
    assert drive.plan(lambda s, a: [s, -1.0, False], 0, ["a"], 3, 100) == []


def test_what_agrees() -> None:
    right = Reply({"x": [1, 2]}, 0.5, False)
    assert agrees(Reply({"x": [1, 2]}, 0.5 + 1e-12, False), right) == (True, True, True)
    assert agrees(Reply({"x": [1, 3]}, 0.5, False), right) == (False, True, True)
    assert agrees(Reply({"x": [1, 2]}, 0.6, True), right) == (True, False, False)
    assert agrees(Reply({"x": [True, 2]}, 0.5, False), right) == (False, True, True)
    assert agrees(Reply(problem="raised"), right) == agrees(right, Reply(problem="x")) == (False,) * 3
    assert str(right) == '[{"x": [1, 2]}, 0.5, false]' and str(Reply(problem="no")) == "no"


@needs_sandbox
def test_what_programs_may_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def replies(body: str, *states: Any) -> list[Reply]:
        return PythonModel(f"def step(state, action):\n    {body}\n").steps([(s, "a") for s in states])

    assert replies("return (state, 1, True)", 4) == [Reply(4, 1.0, True)]
    assert replies("return [{'a': (1, None)}, 0, False]", 4) == [Reply({"a": [1, None]}, 0.0, False)]
    problems = {
        "return state": "step must return [state, reward, done]",
        "return [state, 0]": "step must return [state, reward, done]",
        "return [state, 'much', False]": "the reward must be a number",
        "return [state, True, False]": "the reward must be a number",
        "return [state, float('nan'), False]": "the reward must be a number",
        "return [state, 0, 1]": "done must be true or false",
        "return [{1, 2}, 0, False]": "the state must be plain data, as JSON has it",
        "raise KeyError(state)": "raised KeyError: 4",
    }
    for body, problem in problems.items():
        assert [r.problem for r in replies(body, 4)] == [problem], body
    # A step that ends the program loses itself; after a second the rest is not tried.
    ends = "import os\n    if state % 2: os._exit(0)\n    return [state, 0, False]"
    found = replies(ends, 0, 1, 2)
    assert found[0] == Reply(0) and found[2] == Reply(2) and "ended" in found[1].problem
    found = replies(ends, 0, 1, 2, 3, 4)
    assert [bool(r.problem) for r in found] == [False, True, False, True, True]
    monkeypatch.setattr(model, "LIMITS", replace(model.LIMITS, cpu_seconds=0.3))
    assert "processor time" in replies("while True: pass", 1)[0].problem
    # What is nested too deep to be compared is no state.
    deep = replies("for _ in range(400): state = [state]\n    return [state, 0, False]", 1)
    assert agrees(deep[0], Reply(1))[0] is False
    nested: Any = 1
    for _ in range(400):
        nested = [nested]
    assert "no state" in PythonModel("def step(s, a): return [s, 0, False]").steps([(nested, "a")])[0].problem
    for _ in range(4000):
        nested = [nested]
    assert agrees(Reply(nested), Reply([nested]))[0] is False
    # States are copies.
    found = PythonModel("def step(state, action):\n    state.append(1)\n    return [state, 0, False]").steps(
        [([], "a")] * 2
    )
    assert found == [Reply([1])] * 2


@needs_sandbox
def test_driving_programs() -> None:
    walking = PythonModel(WALK)
    start = REFERENCE["starts"][0]
    [steps] = walking.drive("planned", [[start, ["left", "right", "coin"], 8, 500]])
    assert [s[1] for s in steps] == ["right", "coin", "right", "right", "right"]
    assert PythonModel("import os\nos._exit(0)").drive("planned", [[start, ["left"], 2, 9]] * 2) == [None, None]
    assert PythonModel("x = 1").drive("follow", [[start, ["left"]]]) == [None]


def test_a_failing_sandbox_abstains(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = CallOutcome((), Outcome("infrastructure", reason="gone"))
    monkeypatch.setattr(Sandbox, "call", lambda *a, **k: lost)
    for act in (lambda m: m.steps([({}, "a")]), lambda m: m.drive("follow", [[{}, []]])):
        with pytest.raises(Abstain, match="sandbox failed: gone"):
            act(PythonModel("fails(here)"))
    verdict = judge(WALK, {**REFERENCE, "seed": 77})
    assert verdict.passed is None and verdict.fault == "infrastructure"


def test_domains_by_hand() -> None:
    moves = PddlModel(MOVE, [PROBLEM])
    start = moves.start(0)
    assert start == {"problem": 0, "facts": [["at", "a"], ["way", "a", "b"], ["way", "b", "c"]]}
    first, refused, unknown = moves.steps([(start, "(go a b)"), (start, "(go b c)"), (start, "(fly a)")])
    at_b = [["at", "b"], ["seen", "b"], ["way", "a", "b"], ["way", "b", "c"]]
    assert first == Reply({"problem": 0, "facts": at_b}, 0.0, False)
    assert refused == unknown == Reply(start, 0.0, False)
    [won] = moves.steps([(first.after, "(go b c)")])
    assert won.reward == 1 and won.done and ["seen", "b"] not in won.after["facts"]
    [steps] = moves.drive("planned", [[start, GROUND, 4, 500]])
    assert [s[1] for s in steps] == ["(go a b)", "(go b c)"]
    # What is no state or no action is the asker's fault.
    for state, action in (({}, "(go a b)"), (start, ""), ({"problem": 7, "facts": []}, "x"), ([], "x"), (None, "x")):
        assert "cannot be taken" in moves.steps([(state, action)])[0].problem
    assert "cannot be taken" in moves.steps([({"problem": 0, "facts": [[[]]]}, "(go a b)")])[0].problem
    other = PddlModel(MOVE.replace("(way", "(path"), [PROBLEM])
    assert "cannot be read" in other.steps([(start, "(go a b)")])[0].problem
    with pytest.raises(PddlError, match="cannot be read"):
        other.start(0)


def test_the_work_of_a_domain_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "MAX_WORK", 20_000)
    deep = "(and " + " ".join(f"(forall (?x{i} - place)" for i in range(9)) + " (way ?x0 ?x8)" + ")" * 10
    wide = PROBLEM.replace("a b c - place", "a b c d e f g h - place").replace(
        "(:init", "(:init " + " ".join(f"(way {x} {y})" for x in "abcdefgh" for y in "abcdefgh")
    )
    slow = PddlModel(MOVE.replace("(and (at ?p) (way ?p ?q))", f"(or (not {deep}) (at ?p))"), [wide])
    assert "too long" in slow.steps([(slow.start(0), "(go a b)")])[0].problem
    # All that a domain does counts together; the true one is not counted.
    quick, trusted = (PddlModel(MOVE, [PROBLEM], trust) for trust in (False, True))
    for one in (quick, trusted):
        world = one.worlds[0]
        assert not isinstance(world, str)
        one.steps([(one.start(0), "(go b c)")] * 50)
        assert (world.work > 40) == (one is quick)


@settings(deadline=None)
@given(st.data())
def test_hostile_domains(data: st.DataObject) -> None:
    words = data.draw(st.lists(st.sampled_from(MOVE.replace("(", " ( ").replace(")", " ) ").split()), max_size=40))
    cut = data.draw(st.integers(0, len(MOVE)))
    for text in (
        " ".join(words),
        MOVE[:cut] + " ".join(words[:3]) + MOVE[cut:],
        "(define (domain d) " + " ".join(words) + ")",
    ):
        why = fault(text, "pddl", [PROBLEM])
        for reply in PddlModel(text, [PROBLEM]).steps([({"problem": 0, "facts": [["at", "a"]]}, "(go a b)")]):
            assert reply.problem if why else isinstance(reply.after, dict) or reply.problem
        if not why:
            assert all(0 <= c.f1 <= 1 for c in compared(domain_of(text), domain_of(MOVE)).values())


def test_static_validation_passes_wrong_dynamics() -> None:
    assert fault(WALK, "python") == ""
    assert fault(WALK.replace("2.0", "20"), "python") == "" == fault("def step(*a): 1", "python")
    assert fault("def step(s, a, b=1): 1", "python") == ""
    for text, why in {
        "def step(": "no Python",
        "def stop(state, action): pass": "no function step",
        "class A:\n    def step(state, action): pass": "no function step",
        "def step(state): pass": "must take",
        "def step(a, b, c): pass": "must take",
        "def step(a, b, *, c): pass": "must take",
        "\0": "no Python",
    }.items():
        assert why in fault(text, "python"), text
    assert fault(MOVE, "pddl", [PROBLEM]) == ""
    assert fault(MOVE.replace("(at ?q)", "(at ?p)"), "pddl", [PROBLEM]) == ""
    for text, why in {
        MOVE.replace("(at ?q)", "(by ?q)"): "by",
        MOVE.replace("(at ?q)", "(at ?z)"): "?z",
        MOVE[:-2]: "not closed",
        MOVE.replace("(way ?p - place ?q - place)", "(way ?p - place)").replace(
            "(way ?p ?q)", "(way ?p)"
        ): "cannot be read",
        "": "no PDDL",
    }.items():
        assert why in fault(text, "pddl", [PROBLEM]), text


@needs_sandbox
def test_the_accuracy_of_transitions() -> None:
    right = judge(f"Here it is:\n```python\n{WALK}```\n")
    assert right.passed and right.score == 1 and right.parts["return"] == 1 == right.parts["winnable"]
    truth = truth_of(REFERENCE)
    assert len(truth.cases) == 30 and len(truth.hidden) + len(truth.visible) == 30
    assert {(key(c.state), c.action) for c in truth.hidden}.isdisjoint((key(c.state), c.action) for c in truth.visible)
    assert all(truth.hides(c.state, c.action) for c in truth.hidden)
    # Every kind of step is on the hidden side, and on the other if there are two.
    assert {c.kind for c in truth.hidden} == {
        *("left changes", "left edge", "right changes", "right ends"),
        *("coin changes", "coin edge", "coin stays"),
    }
    assert {c.kind for c in truth.hidden} - {c.kind for c in truth.visible} == {"coin changes"}
    # Rewards of the end alone are wrong: of the hidden steps, those.
    ends = sum(c.right.done for c in truth.hidden)
    wrong = judge(WALK.replace("2.0 if", "20.0 if"), partial=True)
    assert wrong.passed is False and wrong.parts["state"] == 1 == wrong.parts["done"] and ends == 1
    assert (
        wrong.parts["accuracy"] == wrong.parts["reward"] == wrong.score == pytest.approx(1 - ends / len(truth.hidden))
    )
    assert wrong.parts["return"] == 1 and wrong.parts["winnable"] == 0
    assert "1 of 16 hidden steps are wrong" in wrong.feedback and "does not win in the model" in wrong.feedback
    assert judge(WALK.replace("2.0 if", "20.0 if")).score == 0
    assert hidden_share(truth, WALK.replace("2.0 if", "20.0 if")) == wrong.score and hidden_share(truth, "x") == 0
    static = judge("def stop(): pass")
    assert static.passed is False and static.parts == {"static": 0.0} and "step" in static.feedback
    # No hidden step is told.
    still = judge("def step(state, action):\n    return [state, 0.0, False]")
    assert still.passed is False and not any(char in still.feedback for char in '{"')
    assert still.parts["return"] == pytest.approx(
        max(0.0, (0 - random_return(truth)) / (true_return(truth) - random_return(truth)))
    )


@needs_sandbox
def test_returns_in_the_true_world() -> None:
    assert normalised_return(6, 1, 11) == 0.5
    assert (
        normalised_return(11, 1, 11) == 1 and normalised_return(1, 1, 11) == 0 and normalised_return(-4, 1, 11) == -0.5
    )
    assert normalised_return(3, 2, 2) is None and normalised_return(3, 3, 2) is None
    truth = truth_of(REFERENCE)
    # From 1 the coin is on the way, and from 3 the way to it and back takes six of eight steps: 2.5 both.
    assert true_return(truth) == 2.5 == planner_return(truth, truth.true)
    assert random_return(truth) < 1
    # Who does not know of the coin walks to the end, who thinks that left is right walks away from it.
    blind = PythonModel(WALK.replace('action == "coin"', 'action == "koin"'))
    assert planner_return(truth, blind) == 2.0
    # It takes the coin's place for the end: there it stops, from 3 on the true end is nearer by its belief too.
    early = PythonModel(WALK.replace("x == 5", "x == 2"))
    assert planner_return(truth, early) == 0.0
    # It believes in steps of two to the right, and plans anew where they are not: from 1 it turns back for the coin
    # until its time is spent on it, 0.5; from 3 it takes the coin and reaches the end, 2.5.
    leaps = WALK.replace('"right": 1', '"right": 2').replace("not 0 <= x <= 5", "x < 0").replace("x == 5", "x >= 5")
    assert planner_return(truth, PythonModel(leaps)) == 1.5
    # It takes left for right: from 1 it runs into the wall five times, from 3 it comes to the end by mistake.
    mirrored = WALK.replace('"left": -1, "right": 1', '"left": 1, "right": -1')
    assert planner_return(truth, PythonModel(mirrored)) == -1.5
    assert planner_return(truth, PythonModel("x")) == 0
    assert winnable(truth, truth.true) == 1 and winnable(truth, blind) == 0 == winnable(truth, PythonModel("x = 1"))
    # From 3 the plan goes left, to the coin; from 1 it does not.
    assert drive.plan(step_of(WALK), {"x": 3, "had": False}, ["left", "right", "coin"], 8, 500)[0] == "left"
    assert winnable(truth, PythonModel(WALK.replace('"left": -1', '"left": -2'))) == 0.5
    assert winnable(truth, PythonModel(WALK.replace('"right": 1', '"right": 0'))) == 0
    # It earns as much and does not see that it is over; or it is over too soon.
    assert winnable(truth, PythonModel(WALK.replace("0.0, x == 5]", "0.0, False]"))) == 0
    assert winnable(truth, PythonModel(WALK.replace("0.0, x == 5]", "0.0, x > 3]"))) == 0
    # A program that replaces who plays in it says nothing of itself.
    fake = "\nimport sys, types\nm = types.ModuleType('assay_drive')\nsys.modules['assay_drive'] = m\n"
    fake += "m.planned = m.follow = lambda *a: [[0, 'right', 0, 9.0, True]] * 99\n"
    still = "def step(state, action):\n    return [state, 0.0, False]\n"
    assert winnable(truth, PythonModel(still + fake)) == 0
    assert planner_return(truth, PythonModel(still + fake)) <= 2.0


@needs_sandbox
def test_the_simulation_tester() -> None:
    truth = truth_of(REFERENCE)
    team = Team(truth, tests=1, episodes=2)
    wrong = truth.model(WALK.replace("x == 5", "x == 4"))
    found, compared = team.reports(wrong)
    episodes = [r for r in found if r.step is not None]
    assert compared > 4 and episodes and all(r.tester == "episode" for r in episodes)
    # The first step of the planned episode from 1 that a tester may tell of and that is wrong.
    planned = truth.episodes[0][1]
    told_of = [(at, s) for at, s in enumerate(planned, 1) if not truth.hides(s[0], s[1])]
    first = next((at, s) for at, s in told_of if (s[2]["x"] == 4) != s[4] or s[2]["x"] == 5)
    assert (episodes[0].step, episodes[0].case.state, episodes[0].case.action) == (first[0], first[1][0], first[1][1])
    assert all(not truth.hides(r.case.state, r.case.action) for r in found)
    # The same tests, and others, in later rounds: plans and walks take turns.
    assert [len(team._played()) for _ in range(2)] == [2, 2]
    assert team.reports(truth.true)[0] == []


def test_reports_say_step_state_expected_and_got() -> None:
    case = Case(0, {"x": 1, "y": 2}, "go", Reply({"x": 2, "y": 2}, 1.0, False))
    report = Report("episode", case, Reply({"x": 1, "y": 2}, 0.5, True), 3)
    assert str(report) == (
        'episode, step 3: step({"x": 1, "y": 2}, \'go\'): expected state {"x": 2}, reward 1, done false, '
        'got state {"x": 1}, reward 0.5, done true'
    )
    same = Report("unit test", case, Reply({"x": 2, "y": 2}, 0.0, False))
    assert str(same).endswith("expected reward 1, got reward 0") and str(same).startswith("unit test: step(")
    broken = Report("unit test", case, Reply(problem="raised KeyError"))
    assert str(broken).endswith('expected [{"x": 2, "y": 2}, 1, false], got raised KeyError')
    other = Report("unit test", case, Reply([1], 1.0, False))
    assert str(other).endswith('expected state {"x": 2, "y": 2}, got state [1]')
    long = Report("unit test", case, Reply({"x": "long" * 9999, "y": 2}, 1.0, False))
    assert len(str(long)) < 2500 and str(long).endswith("...")
    assert len(str(Reply("long" * 9999))) < 2100
    gone = Report("unit test", case, Reply({"y": 2, "z": 0}, 1.0, False))
    assert str(gone).endswith('expected state {"x": 2}, got state {"z": 0}')
    assert told([], 7, 2) == "All 7 steps that were compared are right."
    lines = told([same, broken, gone, report], 9, 3).split("\n")
    assert lines[0] == "4 of the tests fail (9 steps were compared):" and lines[-1] == "(1 more)"
    # Of each tester in turn.
    assert lines[1:4] == [str(same), str(report), str(broken)]
    assert told([same], 9, 3).count("\n") == 1


@needs_sandbox
def test_unit_tests_follow_the_code_and_are_kept() -> None:
    truth = truth_of(REFERENCE)
    team = Team(truth, tests=4, episodes=1)
    # A fault that shows in one of the visible steps is found by who looks at the code.
    case = next(c for c in truth.visible if c.action == "left" and c.right.after["x"] == 0 and c.right.after != c.state)
    fault_here = f"    if state == {case.state!r} and action == 'left':\n        return [state, 9.0, False]\n"
    sly = truth.model(WALK.replace("action):\n", f"action):\n{fault_here}", 1))
    found, _ = team.reports(sly)
    assert [r.case for r in found if r.step is None] == [case]
    assert len(team.kept) == 4 and case in team.kept.values()
    before = dict(team.kept)
    # Mended elsewhere and broken again: the old test is still there, with new ones beside it.
    assert team.reports(truth.true)[0] == [] and len(team.kept) == 8 and before.items() <= team.kept.items()
    assert case in [r.case for r in team.reports(sly)[0]] and team.round == 3
    for _ in range(4):
        team.reports(truth.true)
    assert len(team.kept) == len(truth.visible) == 14


def test_spreading() -> None:
    cases = [Case(0, {"x": i}, "", Reply(), kind) for i, kind in enumerate(["a"] * 20 + ["b"] * 2 + ["c"])]
    some = spread(cases, 6, 0)
    assert [c.kind for c in some] == ["a", "b", "c", "a", "b", "a"]
    assert spread(cases, 6, 0) == some != spread(cases, 6, 1) and len(spread(cases, 99, 0)) == 23
    assert spread([], 3, 0) == []


def test_kinds_of_steps() -> None:
    """On a line from 1 to 3 a jump can be done at 2 alone, to a place that is named; 3 is the end."""
    after = {(1, "go"): 2, (2, "(jump to 1)"): 1, (2, "go"): 3}
    steps = {
        (key(x), action): Case(0, x, action, Reply(after.get((x, action), x), 0.0, after.get((x, action)) == 3))
        for x in (0, 1, 2)
        for action in ("go", "(jump to 1)", "(jump to 2)")
    }
    assert dict(zip([(c.state, c.action) for c in steps.values()], kinds(steps), strict=True)) == {
        (0, "go"): "go stays",
        (0, "(jump to 1)"): "jump stays",
        (0, "(jump to 2)"): "jump stays",
        (1, "go"): "go changes",
        # It can be done one step away; done here it would be a test of what is needed for it.
        (1, "(jump to 1)"): "jump edge",
        (1, "(jump to 2)"): "jump stays",
        (2, "go"): "go ends",
        (2, "(jump to 1)"): "jump changes",
        (2, "(jump to 2)"): "jump beside",
    }


@needs_sandbox
def test_domains_are_judged() -> None:
    reference = {**PLANNED, "actions": [GROUND], "horizon": 4, "effort": 300}
    right = judge(f"```\n{MOVE}\n```", reference)
    assert right.passed and right.parts["components"] == 1 and right.parts["return"] == 1
    loose = judge(MOVE.replace("(and (at ?p) (way ?p ?q))", "(at ?p)"), reference, partial=True)
    assert loose.passed is False and loose.parts["return"] == 0 and 0 < loose.score < 1
    # 3 + 2 + 1 + 4 pieces of 11.
    assert loose.parts["components"] == pytest.approx(20 / 21)
    # Written otherwise it does the same, and is right.
    other = MOVE.replace("(and (at ?p) (way ?p ?q))", "(not (or (not (at ?p)) (not (way ?p ?q))))")
    assert judge(other, reference).passed and judge(other, reference).parts["components"] == pytest.approx(18 / 21)


@pytest.mark.parametrize(
    "reference",
    [
        None,
        {},
        {**REFERENCE, "language": "prose"},
        {**REFERENCE, "starts": []},
        {**REFERENCE, "actions": [["left"]]},
        {**PLANNED, "actions": [GROUND], "problems": ["(define)"]},
        {**REFERENCE, "horizon": "long"},
        {**REFERENCE, "starts": [{1, 2}]},
    ],
    ids=str,
)
def test_references_that_describe_no_world(reference: Any) -> None:
    verdict = judge(WALK, reference)
    assert verdict.passed is None and verdict.fault == "tests" and "reference" in verdict.feedback


@needs_sandbox
def test_a_reference_that_does_not_run() -> None:
    for source in ("def step(state, action): return 1", "import nothing"):
        verdict = judge(WALK, {**REFERENCE, "source": source})
        assert verdict.passed is None and "the reference" in verdict.feedback
    assert isinstance(truth_of(json.loads(json.dumps(REFERENCE))), Truth)
    assert truth_of(REFERENCE) is truth_of(dict(REFERENCE))
