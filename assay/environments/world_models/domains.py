"""Planning domains to be written from a text, with problems drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from assay.environments.world_models.described import Described
from assay.verify.planning.parse import read_domain, read_problem
from assay.verify.planning.validate import World

FERRY = """(define (domain ferry)
  (:requirements :strips :typing :negative-preconditions)
  (:types shore car)
  (:predicates (ferry-at ?s - shore) (at ?c - car ?s - shore) (aboard ?c - car) (empty))
  (:action sail
    :parameters (?from - shore ?to - shore)
    :precondition (and (ferry-at ?from) (not (= ?from ?to)))
    :effect (and (ferry-at ?to) (not (ferry-at ?from))))
  (:action board
    :parameters (?c - car ?s - shore)
    :precondition (and (at ?c ?s) (ferry-at ?s) (empty))
    :effect (and (aboard ?c) (not (at ?c ?s)) (not (empty))))
  (:action leave
    :parameters (?c - car ?s - shore)
    :precondition (and (aboard ?c) (ferry-at ?s))
    :effect (and (at ?c ?s) (empty) (not (aboard ?c)))))
"""
BLOCKS = """(define (domain blocks)
  (:requirements :strips :typing :negative-preconditions)
  (:types block)
  (:predicates (on ?a - block ?b - block) (on-table ?a - block) (clear ?a - block) (held ?a - block) (free))
  (:action pick
    :parameters (?a - block)
    :precondition (and (clear ?a) (on-table ?a) (free))
    :effect (and (held ?a) (not (clear ?a)) (not (on-table ?a)) (not (free))))
  (:action put
    :parameters (?a - block)
    :precondition (held ?a)
    :effect (and (on-table ?a) (clear ?a) (free) (not (held ?a))))
  (:action stack
    :parameters (?a - block ?b - block)
    :precondition (and (held ?a) (clear ?b))
    :effect (and (on ?a ?b) (clear ?a) (free) (not (held ?a)) (not (clear ?b))))
  (:action unstack
    :parameters (?a - block ?b - block)
    :precondition (and (on ?a ?b) (clear ?a) (free))
    :effect (and (held ?a) (clear ?b) (not (on ?a ?b)) (not (clear ?a)) (not (free)))))
"""
LOCKS = """(define (domain locks)
  (:requirements :strips :typing :negative-preconditions :conditional-effects)
  (:types room key)
  (:predicates (here ?r - room) (joined ?r - room ?q - room) (locked ?r - room) (fits ?k - key ?r - room)
    (lies ?k - key ?r - room) (carried ?k - key))
  (:action move
    :parameters (?r - room ?q - room)
    :precondition (and (here ?r) (joined ?r ?q) (not (locked ?q)))
    :effect (and (here ?q) (not (here ?r))))
  (:action take
    :parameters (?k - key ?r - room)
    :precondition (and (lies ?k ?r) (here ?r))
    :effect (and (carried ?k) (not (lies ?k ?r))))
  (:action unlock
    :parameters (?k - key ?r - room ?q - room)
    :precondition (and (here ?r) (joined ?r ?q) (locked ?q) (fits ?k ?q) (carried ?k))
    :effect (not (locked ?q))))
"""
TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ferry": (
        "A ferry carries cars between shores. Domain ferry, types shore and car. Predicates: (ferry-at shore); (at car "
        "shore); (aboard car); (empty), of the ferry. Actions: (sail shore shore), from and to; (board car shore); "
        "(leave car shore).",
        (
            "The ferry sails from the shore where it is to another one; then it is there and no longer here.",
            "A car boards at its shore if the ferry is there and empty: it is aboard, no longer at the shore, and the "
            "ferry not empty.",
            "A car that is aboard leaves at the shore where the ferry is: it is at the shore, no longer aboard, and "
            "the ferry empty.",
        ),
    ),
    "blocks": (
        "A hand moves blocks. Domain blocks, type block. Predicates: (on block block), the first on the second; "
        "(on-table block); (clear block), nothing is on it; (held block); (free), the hand. Actions: (pick block), "
        "from the table; (put block), on the table; (stack block block), the first on the second; (unstack block "
        "block), likewise.",
        (
            "A free hand picks a clear block from the table: it is held, neither clear nor on the table, and the hand "
            "not free.",
            "A held block is put on the table: it is there, clear, no longer held, and the hand free.",
            "A held block is stacked on a clear one: it is on it, clear, no longer held, the hand free, and the other "
            "not clear.",
            "A free hand unstacks a clear block from the one it is on: it is held, neither clear nor on the other, "
            "which is clear, and the hand not free.",
        ),
    ),
    "locks": (
        "Somebody walks through rooms, some of them locked. Domain locks, types room and key. Predicates: (here room), "
        "where one is; (joined room room); (locked room); (fits key room), opens it; (lies key room); (carried key). "
        "Actions: (move room room), from and to; (take key room); (unlock key room room), the room one is in and the "
        "one that is locked.",
        (
            "One moves from where one is to a joined room that is not locked.",
            "A key that lies where one is can be taken: it is carried and lies there no longer.",
            "A locked room that is joined to where one is is unlocked with a carried key that fits it; the key stays "
            "carried.",
        ),
    ),
}


def make_domain(rng: np.random.Generator) -> Described:
    """Return one of the domains, with two problems."""
    name, source, draw = (("ferry", FERRY, _ferry), ("blocks", BLOCKS, _blocks), ("locks", LOCKS, _locks))[
        int(rng.integers(3))
    ]
    about, rules = TEXTS[name]
    drawn = [draw(rng) for _ in range(2)]
    problems = [_problem(name, *one) for one in drawn]
    actions = [grounded(source, problem) for problem in problems]
    last = "An action that cannot be applied changes nothing; whoever plays earns 1 when the goal holds, which ends it."
    return Described(f"{about} {last}", rules, source, actions, problems=problems, horizon=6, effort=1200)


def grounded(source: str, problem: str) -> list[str]:
    """Return every action with every objects of its types, whether it can be applied or not."""
    domain = read_domain(source)
    world = World(domain, read_problem(problem, domain))
    objects = world.problem.objects
    return [
        f"({' '.join((action.name, *chosen))})"
        for action in domain.actions.values()
        for chosen in product(
            *([o for o, kinds in objects.items() if world.is_a(kinds, wanted)] for _, wanted in action.parameters)
        )
    ]


Drawn = tuple[str, list[str], str]
"""Objects, facts, goal."""


def _problem(name: str, objects: str, facts: list[str], goal: str) -> str:
    return f"(define (problem p) (:domain {name}) (:objects {objects}) (:init {' '.join(facts)}) (:goal {goal}))"


def _ferry(rng: np.random.Generator) -> Drawn:
    shores, cars = ["s1", "s2", "s3"], ["c1", "c2"]
    at = {car: str(rng.choice(shores)) for car in cars}
    to = {car: str(rng.choice([s for s in shores if s != at[car]])) for car in cars}
    facts = [f"(ferry-at {rng.choice(shores)})", "(empty)", *(f"(at {c} {s})" for c, s in at.items())]
    return f"{' '.join(shores)} - shore {' '.join(cars)} - car", facts, f"(at c1 {to['c1']})"


def _blocks(rng: np.random.Generator) -> Drawn:
    names = [str(n) for n in rng.permutation(["a", "b", "c"])]
    facts = [f"(on {names[0]} {names[1]})", f"(on-table {names[1]})", f"(on-table {names[2]})", "(free)"]
    facts += [f"(clear {names[0]})", f"(clear {names[2]})"]
    goal = f"(on {names[1]} {names[2]})" if rng.random() < 0.5 else f"(on {names[2]} {names[0]})"
    return "a b c - block", facts, goal


def _locks(rng: np.random.Generator) -> Drawn:
    rooms = [str(r) for r in rng.permutation(["r1", "r2", "r3"])]
    facts = [f"(here {rooms[0]})", f"(locked {rooms[2]})", f"(fits k1 {rooms[2]})"]
    facts += [f"(joined {a} {b})" for x, y in (rooms[:2], rooms[1:]) for a, b in ((x, y), (y, x))]
    facts += [f"(lies k1 {rng.choice(rooms[:2])})", f"(lies k2 {rng.choice(rooms[:2])})"]
    return "r1 r2 r3 - room k1 k2 - key", facts, f"(here {rooms[2]})"


Make = Callable[[np.random.Generator], Described]
