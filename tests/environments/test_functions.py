"""Functions with known answers: what a question takes, what is found, and what is not."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from acted import plans_hold, played, share

from assay.audit.environment import audit_environment
from assay.environments.base import Action
from assay.environments.calls import find_calls
from assay.environments.functions.environment import Functions, contains
from assay.environments.functions.library import ARITHMETIC, UNITS
from assay.environments.functions.questions import Problem
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import call, calls, say
from assay.errors import UsageError
from assay.types import Task

KINDS: list[dict[str, Any]] = [
    {},
    {"complexity": 1, "shapes": ("multi", "both"), "hops": 4},
    {"complexity": 2, "distractors": 0, "seed": 3},
    {"style": "compact", "width": 4},
]


@pytest.mark.parametrize("options", KINDS)
def test_the_plan_passes_and_repeats(options: dict[str, Any]) -> None:
    plans_hold(lambda: Functions(**options), 60, 20)


def guessing(world: Functions, shown: Any, rng: np.random.Generator) -> Action:
    """Calls what there is with names it was shown, and then answers with something it was shown."""
    seen = " ".join(m["content"] for m in shown.messages)
    names = re.findall(r"[A-Z]\w+(?: [A-Z]\w+)?|\d+", seen) or ["?"]
    word = str(rng.choice(names))
    if rng.random() < 0.2:
        return say(f"<answer>{word}</answer>")
    tool = world.available()[int(rng.integers(len(world.available())))]
    return call(tool.name, **dict.fromkeys(tool.parameters["properties"], word))


def test_at_random_hardly_anything_passes() -> None:
    assert (
        share(Functions, Functions().tasks(), guessing) <= 0.1
    )  # .055 of 200: single calls with the one name there is


def worked(world: Functions, problem: Problem) -> list[str]:
    """Answer from the facts of the world alone, by what the question says."""

    def value(asked: str) -> Any:
        if match := re.fullmatch(r"the (sum|difference|product) of (the .*) and (the .*)", asked):
            a, b = value(match[2]), value(match[3])
            return {"sum": a + b, "difference": abs(a - b), "product": a * b}[match[1]]
        if not (match := re.fullmatch(r"the ([a-z ]+?)(?: in (\w+))? of (.*)", asked)):
            return asked.removeprefix("the book ")
        entity = value(match[3])
        found = [
            fact * (UNITS[r.value][match[2]] if match[2] else 1)
            for (i, e), fact in library.facts.items()
            if e == entity and (r := library.relations[i]).noun == match[1]
        ]
        assert len(found) == 1, (asked, found)
        return found[0]

    from assay.environments.functions.library import make_library
    from assay.tasks.seeded import generator

    library = make_library(generator(world.made.seed, world.task.meta["index"]), "words", world.made.complexity)
    return [str(value(problem.subs[i].asked)) for i in problem.roots]


@pytest.mark.parametrize("complexity", [0, 1, 2])
def test_answers_follow_from_the_facts(complexity: int) -> None:
    """Every question is read again, by its words alone, and worked out; each part's call is one of its function."""
    world, shapes = Functions(complexity=complexity, seed=complexity), Counter[tuple[bool, bool, bool]]()
    for index in range(60):
        task = world.tasks()[index]
        world.reset(task, 0)
        problem = world.problem
        assert task.reference == ", ".join(worked(world, problem))
        assert all(problem.subs[i].asked in task.prompt for i in problem.roots)
        assert task.meta["answers"] == {
            name: [s.value for s in problem.subs if s.function == name] for name in task.meta["answers"]
        }
        for place, sub in enumerate(problem.subs):
            assert world.problem.functions[sub.function].value(sub.arguments) == sub.value
            assert all(i < place and problem.subs[i].value in sub.arguments.values() for i in sub.after)
        joined = problem.subs[-1].function in ARITHMETIC
        shapes[len(problem.roots) > 1, any(s.after for s in problem.subs), joined] += 1
        extra = set(problem.functions) - {s.function for s in problem.subs}
        assert len(extra) <= 2 and (complexity or len(extra) == 2)
    assert set(shapes) == {(False, False, False), (True, False, False), (False, True, False), (True, True, False)} | {
        (False, True, True)
    }


def test_compact_questions_are_nested_permutations() -> None:
    world = Functions(style="compact")
    for index in range(50):
        task = world.tasks()[index]
        world.reset(task, 0)
        of = {
            name: [world.problem.functions[name].value({"x": x}) for x in range(10)] for name in world.problem.functions
        }
        assert all(sorted(table) == list(range(10)) for table in of.values())
        functions = {name: table.__getitem__ for name, table in of.items()}
        values = eval(f"[{task.question.rstrip('?')}]", functions)
        assert task.reference == ",".join(map(str, values))


def begun(shape: Any = "multi", **options: Any) -> tuple[Functions, Task, list[Action]]:
    world = Functions(shapes=(shape,), **options)
    task = world.tasks()[0]
    world.reset(task, 0)
    return world, task, list(world.gold())


def test_what_is_found_and_what_it_cost() -> None:
    """A chain of two: a call that finds nothing, the right one twice, two at once, and the end; by hand."""
    world, task, plan = begun(hops=2)
    first, second = world.problem.subs
    assert [len(a.calls) for a in plan] == [1, 1, 0]
    other = next(e for e in ("Nobody", "None") if e != first.arguments)
    lost = world.step(call(first.function, **dict.fromkeys(first.arguments, other)))
    assert not lost.valid and "there is no" in lost.error
    assert world.state_json() == {"found": {}, "answer": None} and world.state_key() == f"{task.id}: "
    world.step(plan[0])
    assert world.state_json()["found"] == {first.asked: first.value}
    assert world.gold() == plan[1:]
    twice = calls((first.function, first.arguments), (second.function, second.arguments))
    assert world.step(twice).info == {"calls": 2, "unread": 0, "found": 1, "left": 0}
    parts = dict(world.verdict().parts)
    assert parts == {
        "rate": 1.0,
        "precision": 0.5,  # two answers by four calls
        "f1": 2 * 2 / (4 + 2),
        "answer": 0.0,
    }
    assert world.verdict().passed is False and world.verdict().score == 2 / 3
    assert world.step(plan[2]).terminated and world.verdict().passed and world.verdict().score == 1


def test_what_cannot_be_read_is_no_call() -> None:
    world, _, plan = begun("single")
    text = (
        plan[0].text
        + "\n<tool_call>\n{oops}\n</tool_call><tool_call>\n"
        + '{"name": "zip", "arguments": {}}</tool_call>'
    )
    notes = world.step(Action(text, find_calls(text, world.available()))).info
    assert notes == {"left": 0, "calls": 2, "unread": 1, "found": 1}
    notes = world.step(say("I know.")).info
    assert notes == {"left": 0, "calls": 0, "unread": 0, "found": 0} and world.verdict().parts["precision"] == 0.5


def test_who_knows_the_answer_without_calling_has_not_found_it() -> None:
    world, task, plan = begun("both")
    verdict = played(world, task, [plan[-1]])[-1]
    assert not verdict.passed and verdict.parts["answer"] == 1 and verdict.parts["rate"] == 0
    told = played(world, task, [*plan[:-1], say("<answer>nothing</answer>")])[-1]
    assert not told.passed and told.parts["rate"] == 1 and told.parts["answer"] == 0
    # An answer that was said before its parts were found, or that nobody has said, is none.
    assert played(world, task, plan[:-1])[-1].parts["answer"] == 0


def test_calls_are_counted() -> None:
    world, _, plan = begun("multi", hops=2, max_calls=1)
    assert world.step(plan[0]).valid
    refused = world.step(plan[1])
    assert not refused.valid and "no calls are left" in refused.error and len(world.found) == 1


def test_units_are_asked_for() -> None:
    """The depth of a river in its unit, in another, and in none."""
    world = Functions(complexity=2, shapes=("single",))
    task = next(t for i in range(200) if "depth" in (t := world.tasks()[i]).prompt)
    world.reset(task, 0)
    [sub] = world.problem.subs
    depth = world.problem.functions["river_facts"].value({**sub.arguments, "unit": "metres"})
    for unit, times in (("metres", 1), ("centimetres", 100), ("millimetres", 1000)):
        assert world.problem.functions["river_facts"].value({**sub.arguments, "unit": unit}) == times * depth
    refused = world.step(call("river_facts", **{**sub.arguments, "unit": "none"}))
    assert refused.error == "the depth has the unit metres or centimetres or millimetres"
    assert "is none of" in world.step(call("river_facts", **{**sub.arguments, "unit": "miles"})).error


def test_matching_by_what_is_contained() -> None:
    """FTRL's rule: every piece of the answer, whatever its case and commas."""
    assert contains('{"mayor": "Ada KOLM", "since": 1,822}', "ada kolm, 1822")
    assert not contains("Ada Kolm", "Ada Kolm, 1822") and contains("12", "1") and not contains("1", "12")
    task = Functions(style="compact").tasks()[0]
    for match, found in (("value", 0), ("contains", 1)):
        world = Functions(match=match)  # type: ignore[arg-type]
        world.reset(world.tasks()[3], 0)  # the product of 29 and 731
        world.step(call("product", a=21199, b=10))
        assert len(world.found) == found
    assert task.kind == "exact"


def test_options_out_of_range() -> None:
    for options in (
        {"hops": 1},
        {"width": 1},
        {"complexity": 3},
        {"shapes": ()},
        {"max_calls": 0},
        {"distractors": -1},
    ):
        with pytest.raises(UsageError, match="environment 'functions'"):
            Functions(**options)
    with pytest.raises(UsageError, match="one at least"):
        Functions(style="compact", shapes=("joined",))


@pytest.mark.slow
def test_the_audit_passes() -> None:
    worlds = Worlds({"name": "functions", "shapes": ["both", "joined"]}, 1)
    source = worlds.here().tasks()
    try:
        findings = {f.name: f for f in audit_environment(worlds, [source[i] for i in range(3)])}
    finally:
        worlds.close()
    assert all(f.passed and f.of for f in findings.values()) and findings["gold passes"].of == 3
