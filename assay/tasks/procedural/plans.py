"""Planning problems in PDDL: a plan is to be made, completed, or put into order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

Track = Literal["plan", "completion", "reordering"]
Domain = Literal["blocks", "ferry"]
TRACKS: tuple[Track, ...] = get_args(Track)
DOMAINS: tuple[Domain, ...] = get_args(Domain)
BLANK = "____"

_BLOCKS = """(define (domain blocks)
  (:predicates (on ?x ?y) (table ?x) (clear ?x) (empty) (holding ?x))
  (:action pick-up :parameters (?x) :precondition (and (clear ?x) (table ?x) (empty))
    :effect (and (not (table ?x)) (not (clear ?x)) (not (empty)) (holding ?x)))
  (:action put-down :parameters (?x) :precondition (holding ?x)
    :effect (and (not (holding ?x)) (clear ?x) (empty) (table ?x)))
  (:action stack :parameters (?x ?y) :precondition (and (holding ?x) (clear ?y))
    :effect (and (not (holding ?x)) (not (clear ?y)) (clear ?x) (empty) (on ?x ?y)))
  (:action unstack :parameters (?x ?y) :precondition (and (on ?x ?y) (clear ?x) (empty))
    :effect (and (holding ?x) (clear ?y) (not (clear ?x)) (not (empty)) (not (on ?x ?y)))))"""
_FERRY = """(define (domain ferry)
  (:predicates (place ?p) (car ?c) (at ?c ?p) (ferry ?p) (aboard ?c) (free))
  (:action sail :parameters (?from ?to) :precondition (and (place ?from) (place ?to) (ferry ?from) (not (= ?from ?to)))
    :effect (and (not (ferry ?from)) (ferry ?to)))
  (:action board :parameters (?c ?p) :precondition (and (car ?c) (place ?p) (at ?c ?p) (ferry ?p) (free))
    :effect (and (aboard ?c) (not (at ?c ?p)) (not (free))))
  (:action debark :parameters (?c ?p) :precondition (and (car ?c) (place ?p) (aboard ?c) (ferry ?p))
    :effect (and (at ?c ?p) (free) (not (aboard ?c)))))"""
_ASKED = {
    "plan": "Find a plan that reaches the goal.",
    "completion": "Complete this plan: put an action in the place of each " + BLANK + ", and change nothing else.\n\n",
    "reordering": "Put these actions into an order in which they are a plan that reaches the goal.\n\n",
}


@part("tasks", "plans")
@dataclass(frozen=True, slots=True)
class Plans:
    """Endless random problems of small planning domains, judged by executing the plan (verifier ``pddl_plan``).

    - ``plan``: any plan that reaches the goal is right;
    - ``completion``: a share of a plan's actions is blank; right is a plan with the others in their places;
    - ``reordering``: a plan's actions are shuffled; right is a plan with the same actions, each as often.

    Tracks and domains take turns. The solution is the plan that the problem was made with.

    Source: the PDDL prototypes of ProtoReasoning (arXiv 2506.15211).

    Args:
        seed: >= 0.
        tracks: which of the three.
        domains: ``blocks``, towers to be built anew; ``ferry``, cars to be brought to places, one at a time.
        largest: most blocks or cars, 2 to 20; the number is uniform over ``[2, largest]``.
        blanks: share of a completion's actions that are blank, at least one.

    Raises:
        UsageError: an option out of range.
    """

    seed: int = 0
    tracks: tuple[Track, ...] = TRACKS
    domains: tuple[Domain, ...] = DOMAINS
    largest: int = 4
    blanks: float = 0.3

    def __post_init__(self) -> None:
        check_seed("tasks 'plans'", self.seed)
        for name, given, known in (("tracks", self.tracks, TRACKS), ("domains", self.domains, DOMAINS)):
            if not given or set(given) - set(known):
                raise UsageError(f"tasks 'plans': {name} {list(given)} must be some of {', '.join(known)}")
        if not 2 <= self.largest <= 20 or not 0 < self.blanks <= 1:
            raise UsageError(
                f"tasks 'plans': largest {self.largest} must be in [2, 20], blanks {self.blanks:g} in (0, 1]"
            )

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        check_index(index, None)
        rng = generator(self.seed, index)
        track = self.tracks[index % len(self.tracks)]
        name = self.domains[index // len(self.tracks) % len(self.domains)]
        count = int(rng.integers(2, self.largest + 1))
        domain = _BLOCKS if name == "blocks" else _FERRY
        problem, plan = _blocks(rng, count) if name == "blocks" else _ferry(rng, count)
        reference: dict[str, Any] = {"domain": domain, "problem": problem}
        asked = _ASKED[track]
        if track == "completion":
            blank = set(rng.permutation(len(plan))[: max(1, round(self.blanks * len(plan)))].tolist())
            reference["given"] = [None if i in blank else step for i, step in enumerate(plan)]
            asked += "\n".join(step or BLANK for step in reference["given"])
        elif track == "reordering":
            reference["permuted"] = [plan[i] for i in rng.permutation(len(plan)).tolist()]
            asked += "\n".join(reference["permuted"])
        prompt = (
            f"{domain}\n\n{problem}\n\n{asked}\n\nPut the plan, an action such as (name object) on each line, between "
            "<answer> and </answer>."
        )
        return Task(
            f"plans/{self.seed}/{index}",
            prompt,
            reference,
            "pddl_plan",
            "<answer>\n" + "\n".join(plan) + "\n</answer>",
            meta={"source": "plans", "track": track, "domain": name, "difficulty": len(plan)},
        )


def _towers(rng: np.random.Generator, blocks: Sequence[str]) -> list[list[str]]:
    """Blocks in towers at random, each from the bottom up."""
    towers: list[list[str]] = []
    for i in rng.permutation(len(blocks)).tolist():
        where = int(rng.integers(len(towers) + 1))
        if where == len(towers):
            towers.append([])
        towers[where].append(blocks[i])
    return towers


def _facts(towers: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
    """What stands on what or on the table, and what is clear."""
    on = [f"(on {x} {y})" for t in towers for x, y in zip(t[1:], t, strict=False)] + [f"(table {t[0]})" for t in towers]
    return on, [f"(clear {t[-1]})" for t in towers]


def _blocks(rng: np.random.Generator, count: int) -> tuple[str, list[str]]:
    """A problem and its plan: towers are taken apart, then built."""
    names = [f"b{i + 1}" for i in range(count)]
    before, after = _towers(rng, names), _towers(rng, names)
    while sorted(before) == sorted(after):
        after = _towers(rng, names)
    stands, clear = _facts(before)
    problem = (
        f"(define (problem towers) (:domain blocks) (:objects {' '.join(names)})\n"
        f"  (:init {' '.join([*stands, *clear, '(empty)'])})\n  (:goal (and {' '.join(_facts(after)[0])})))"
    )
    plan = [
        step
        for tower in before
        for x, y in reversed(list(zip(tower[1:], tower, strict=False)))
        for step in (f"(unstack {x} {y})", f"(put-down {x})")
    ]
    for tower in after:
        for y, x in pairwise(tower):
            plan += [f"(pick-up {x})", f"(stack {x} {y})"]
    return problem, plan


def _ferry(rng: np.random.Generator, count: int) -> tuple[str, list[str]]:
    """A problem and its plan: each car in turn."""
    cars, places = [f"c{i + 1}" for i in range(count)], [f"p{i + 1}" for i in range(max(3, count))]
    start = [places[i] for i in rng.integers(len(places), size=count).tolist()]
    goal = [str(rng.choice([p for p in places if p != at])) for at in start]
    ferry = str(rng.choice(places))
    kinds = [*(f"(place {p})" for p in places), *(f"(car {c})" for c in cars)]
    stands = [f"(at {c} {p})" for c, p in zip(cars, start, strict=True)]
    wanted = [f"(at {c} {p})" for c, p in zip(cars, goal, strict=True)]
    problem = (
        f"(define (problem crossing) (:domain ferry) (:objects {' '.join([*cars, *places])})\n"
        f"  (:init {' '.join([*kinds, *stands, f'(ferry {ferry})', '(free)'])})\n  (:goal (and {' '.join(wanted)})))"
    )
    plan = []
    for car, there, to in zip(cars, start, goal, strict=True):
        plan += [f"(sail {ferry} {there})"] if ferry != there else []
        plan += [f"(board {car} {there})", f"(sail {there} {to})", f"(debark {car} {to})"]
        ferry = to
    return problem, plan
