"""The PDDL validator against hand-made cases and against unified-planning's simulator."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_cases import BLOCKS, DAY, ERRANDS, OFFICE, PLAN, REFERENCE, TOWER

from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.planning.model import PddlError
from assay.verify.planning.parse import read_domain, read_problem
from assay.verify.planning.plan import steps_of
from assay.verify.planning.validate import Step, World


def judge(reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": "pddl_plan", **options})(Task("t", "?", reference, "pddl_plan"), response)


# Everything else that is read: constants, either, subtypes, conditional and quantified effects, or, imply, exists,
# equality, negation, numbers.


@pytest.mark.parametrize(
    "answer",
    [
        "\n".join(PLAN),
        " ".join(PLAN),
        "Here is the plan (six steps):\n```pddl\n" + "\n".join(PLAN) + "\n; cost = 6 (unit cost)\n```",
        "\n".join(f"{i}. {step}" for i, step in enumerate(PLAN, 1)),
        "\n".join(f"{i}.000: {step} [1.0]" for i, step in enumerate(PLAN)),
        "\n".join(step.upper() for step in PLAN),
        "\n".join(f"- {step.strip('()')}" for step in PLAN),
        "\n".join(
            f"Step {i}: {step.strip('()').replace(' ', '(', 1).replace(' ', ', ')})" for i, step in enumerate(PLAN)
        ),
    ],
)
def test_a_plan_that_reaches_the_goal_is_right_however_it_is_written(answer: str) -> None:
    assert len(steps_of(answer, read_domain(BLOCKS).actions)) == 6 or "```" in answer
    verdict = judge(REFERENCE, f"<answer>{answer}</answer>")
    assert verdict.passed is True and verdict.parts == {"format": 1.0, "executable": 1.0, "goal": 1.0}


@pytest.mark.parametrize(
    ("plan", "feedback"),
    [
        (PLAN[1:], "step 1 (put-down c) fails: (holding c) does not hold"),
        ([*PLAN[:2], "(pick-up a)", "(stack a c)", "(pick-up c)"], "step 5 (pick-up c) fails: (clear c) does not hold"),
        (PLAN[:4], "the goal (on a b) does not hold"),
        (["(fly a)"], "step 1 (fly a) fails: there is no action 'fly'"),
        (["(f\x00ly a\ud800)"], "step 1 (f\ufffdly a\ufffd) fails: there is no action 'f\\x00ly'"),
        (["(pick-up d)"], "step 1 (pick-up d) fails: there is no object 'd'"),
        (["(pick-up a b)"], "step 1 (pick-up a b) fails: pick-up takes 1 objects, not 2"),
    ],
)
def test_the_step_that_fails_and_the_false_precondition_are_named(plan: list[str], feedback: str) -> None:
    verdict = judge(REFERENCE, "\n".join(plan))
    assert verdict.passed is False and verdict.feedback == feedback and verdict.score == 0.0


def test_progress_counts_goals_that_were_open() -> None:
    assert judge(REFERENCE, "\n".join(PLAN[:4]), partial=True).score == 0.5
    assert judge(REFERENCE, "()", partial=True).score == 0.0
    failing = judge(REFERENCE, "\n".join([*PLAN[:5], "(stack a c)"]), partial=True)
    assert failing.score == 0.5 and failing.parts["executable"] == pytest.approx(5 / 6)


def test_bounds_on_steps_and_cost() -> None:
    assert judge({**REFERENCE, "max_steps": 6}, "\n".join(PLAN)).passed is True
    long = ["(pick-up b)", "(put-down b)", *PLAN]
    assert (
        judge({**REFERENCE, "max_steps": 6}, "\n".join(long)).feedback == "the plan has 8 steps, at most 6 are allowed"
    )
    assert judge({**REFERENCE, "max_cost": 7}, "\n".join(long)).passed is False
    plan = "(take ann red)(rest ann)(take bob blue)(rest bob)(toggle red)"
    assert judge(ERRANDS, plan).passed is True
    assert judge({**ERRANDS, "max_cost": 6}, plan).passed is True
    assert judge({**ERRANDS, "max_cost": 5}, plan).feedback == "the plan costs 6, at most 5 are allowed"


def test_conditional_effects_quantifiers_and_numbers() -> None:
    cases = {
        "(take ann red)(take ann blue)(take ann red)": "(not (tired ann)) does not hold",  # 5 > 4 before the second
        "(take bob red)(take bob blue)": "(<= (+ (load bob) (weight blue)) 10) does not hold",
        "(take ann red)(take bob red)": "(imply (has ann red) (= ann bob)) does not hold",
        "(rest ann)": "(or (tired ann) (exists (?t - thing) (has ann ?t))) does not hold",
        "(take ann desk)": "desk is no bag or box, as ?t has to be",
        "(toggle desk)": "(not (= desk desk)) does not hold",
    }
    for plan, why in cases.items():
        assert judge(ERRANDS, plan).feedback.endswith(why), judge(ERRANDS, plan)
    # An effect's condition is that of the state before, so toggling changes, once.
    world = World(domain := read_domain(OFFICE), read_problem(DAY, domain))
    state, _ = world.apply(world.initial, Step("toggle", ("red",)))
    assert state is not None and ("open", "red") in state.facts
    state, _ = world.apply(state, Step("toggle", ("red",)))
    assert state is not None and ("open", "red") not in state.facts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(clear ?y))", "(clear ?z))"),
        ("(holding ?x)", "(holding ?x ?x)"),
        ("(empty)", "(full)"),
        ("- block)", "- brick)"),
        (":action put-down", ":durative-action put-down"),
        ("(define (domain blocks)", "(define (domain blocks"),
        (":action stack", ":action put-down"),
    ],
)
def test_a_bad_domain_is_abstained_on(old: str, new: str) -> None:
    domain = BLOCKS.replace(old, new, 1)
    with pytest.raises(ValueError, match=r"\w"):
        read_problem(TOWER, read_domain(domain))
    assert judge({"domain": domain, "problem": TOWER}, "\n".join(PLAN)).passed is None


@pytest.mark.parametrize(
    "reference", [None, 1, {}, {"domain": BLOCKS}, {"domain": BLOCKS, "problem": "(x)"}, {"domain": 1, "problem": 2}]
)
def test_a_bad_reference_is_abstained_on(reference: object) -> None:
    assert judge(reference, "(a)").passed is None


def test_types_with_a_cycle_are_refused() -> None:
    domain = read_domain("(define (domain d) (:types a - b b - a) (:predicates (p)))")
    with pytest.raises(PddlError, match="its own ancestor"):
        World(domain, read_problem("(define (problem q) (:domain d) (:init) (:goal (p)))", domain))


def test_unsolvable_problems_are_denied() -> None:
    assert judge({**REFERENCE, "solvable": False}, "<answer>no plan exists</answer>").passed is True
    assert judge(REFERENCE, "<answer>no plan</answer>").passed is False


SWITCHES = """(define (domain s) (:requirements :adl) (:types k) (:predicates (on ?a - k) (linked ?a ?b - k))
  (:action flip :parameters (?a - k) :precondition (exists (?b - k) (and (linked ?a ?b) (not (= ?a ?b)) (not (on ?b))))
    :effect (and (forall (?c - k) (when (and (linked ?a ?c) (on ?c)) (not (on ?c)))) (when (not (on ?a)) (on ?a))))
  (:action swap :parameters (?a ?b - k) :precondition (and (on ?a) (or (not (on ?b)) (= ?a ?b)))
    :effect (and (not (on ?a)) (on ?b))))"""
ROOM = """(define (problem r) (:domain s) (:objects x y z - k)
  (:init (on x) (linked x y) (linked y z) (linked z x)) (:goal (and (on z) (not (on x)))))"""


@pytest.mark.parametrize(("domain", "problem"), [(BLOCKS, TOWER), (SWITCHES, ROOM)])
def test_random_walks_agree_with_unified_planning(domain: str, problem: str) -> None:
    pytest.importorskip("unified_planning")
    from unified_planning.engines import UPSequentialSimulator
    from unified_planning.io import PDDLReader
    from unified_planning.shortcuts import get_environment

    get_environment().credits_stream = None
    theirs = PDDLReader().parse_problem_string(domain, problem)
    simulator = UPSequentialSimulator(theirs)
    read = read_domain(domain)
    world = World(read, read_problem(problem, read))
    rng = random.Random(0)
    names = list(world.problem.objects)
    for _ in range(10):
        state, peer = world.initial, simulator.get_initial_state()
        for _ in range(25):
            action = rng.choice(list(read.actions.values()))
            objects = tuple(rng.choice(names) for _ in action.parameters)
            after, _why = world.apply(state, Step(action.name, objects))
            arguments = [theirs.object(name) for name in objects]
            peer_after = simulator.apply(peer, theirs.action(action.name), arguments)
            assert (after is None) == (peer_after is None), (action.name, objects)
            if after is None:
                continue
            state, peer = after, peer_after
            goal = all(world.holds(c, state, b) for c, b in world.conjuncts(world.problem.goal, {}))
            assert goal == simulator.is_goal(peer)
            for fluent in theirs.fluents:
                for atom in _groundings(fluent.name, fluent.arity, names):
                    value = peer.get_value(fluent(*(theirs.object(name) for name in atom[1:])))
                    assert (atom in state.facts) == value.bool_constant_value()


def _groundings(name: str, arity: int, names: list[str]) -> list[tuple[str, ...]]:
    atoms: list[tuple[str, ...]] = [(name,)]
    for _ in range(arity):
        atoms = [(*atom, o) for atom in atoms for o in names]
    return atoms


PIECES = [
    "(",
    ")",
    "stack",
    "a",
    "b",
    "\n",
    " ",
    "pick-up",
    "1.",
    ":",
    ";",
    ",",
    "```",
    "- ",
    "[",
    "\ud800",
    "(pick-up b)",
]


@settings(deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=30).map("".join)))
def test_no_text_raises_or_is_abstained_on(text: str) -> None:
    for response in (text, f"<answer>{text}</answer>"):
        assert judge(REFERENCE, response).passed is not None


@pytest.mark.parametrize("piece", ["(", "(pick-up b)(put-down b)", "pick-up b\n", "1. ", "a(", "((a) ", "- - ", "[1]"])
def test_long_texts_take_bounded_time(piece: str) -> None:
    start = time.process_time()
    for size in (1_000_000, 95_000):
        assert judge(REFERENCE, piece * (size // len(piece))).passed is False
    assert time.process_time() - start < 3
