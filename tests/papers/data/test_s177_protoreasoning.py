"""ProtoReasoning: answers that programs give, plans that execute, and how both are learned from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running import metrics, run
from tasks.making.told import Told

from assay.engines.base import Sampling
from assay.errors import RunError, UsageError
from assay.papers.data import s177_protoreasoning as paper
from assay.papers.data.s177_protoreasoning import form, protoreasoning
from assay.registry import build
from assay.sandbox import Limits, Program, SandboxUnavailable
from assay.sandbox.types import Outcome
from assay.tasks.making.maker import Made, Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.procedural.plans import BLANK, Plans
from assay.types import Task, Verdict
from assay.verify.kind import KindVerifier
from assay.verify.logic import json_query
from assay.verify.logic.json_query import Executed, executed

pytestmark = pytest.mark.usefixtures("one_thread")
swipl = pytest.mark.skipif(shutil.which("swipl", path="/usr/bin:/bin") is None, reason="SWI-Prolog is not installed")
FAMILY = """parent(ann, bob).
parent(bob, cem).
older(X, Y) :- parent(X, Y).
older(X, Y) :- parent(X, Z), older(Z, Y).
answer(_{of: "ann", all: L}) :- findall(Y, older(ann, Y), L)."""
HARDER = FAMILY.replace("parent(bob, cem).", "parent(bob, cem).\nparent(cem, dan).")
ASKED = Task("f", "Ann is Bob's mother, Bob is Cem's father. Whose forebear is Ann?", "Bob and Cem", "exact")


def fenced(program: str) -> str:
    return f"So:\n```prolog\n{program}\n```"


def made(writer: Callable[[str, int], str], solver: Callable[[str, int], str], **options: Any) -> tuple[Made, Told]:
    told = Told(writer)
    models = {"writer": Model("writer", told), "solver": Model("solver", Told(solver))}
    return Maker(protoreasoning(**options), models, seed=0).make((ASKED,)), told


def write(prompt: str, number: int) -> str:
    return fenced(HARDER if "Make it harder" in prompt else FAMILY)


def solve(prompt: str, number: int) -> str:
    """Right in all replies but the first."""
    people = '["bob", "cem", "dan"]' if "dan" in prompt else '["bob", "cem"]'
    return f'<answer>{{"all": {people if number else "[]"}, "of": "ann"}}</answer>'


@swipl
def test_the_answer_is_what_runs_out() -> None:
    assert executed(FAMILY).value == {"of": "ann", "all": ["bob", "cem"]}
    for program, why in (
        ("answer(1). answer(2).", "several solutions"),
        ("answer(X) :- member(X, []).", "no solution"),
        ("answer(f(x)).", "exit code 2"),
        ("answer(X", "exit code"),
        ("deep(0, []). deep(N, [X]) :- N > 0, M is N - 1, deep(M, X). answer(X) :- deep(5000, X).", "no JSON"),
    ):
        found = executed(program)
        assert why in found.reason and found.value is None and not found.ours
    assert executed("answer(7). answer(7).").value == 7
    found, writer = made(write, solve, rounds=0)
    [task] = found.tasks
    assert (task.reference, task.kind) == ({"of": "ann", "all": ["bob", "cem"]}, "json")
    assert FAMILY in str(task.prompt) and "Whose forebear" not in str(task.prompt)
    assert ASKED.question in str(writer.asked[0].prompt)


@pytest.mark.slow
@swipl
def test_harder_programs_keep_their_form() -> None:
    found, writer = made(write, solve)
    [task] = found.tasks
    assert task.reference["all"] == ["bob", "cem", "dan"] and len(writer.asked) == 2
    # One whose answer has other keys is asked for again, three times, and the program stays as it was.
    other = fenced(FAMILY.replace("of: ", "who: "))
    found, writer = made(lambda p, j: other if "Make it harder" in p else write(p, j), solve)
    assert found.tasks[0].meta["harder"] == "its answer has another form" and len(writer.asked) == 4
    assert "An earlier program failed: its answer has another form" in str(writer.asked[2].prompt)
    assert found.tasks[0].reference["all"] == ["bob", "cem"]
    found, _ = made(lambda p, j: write("", j), solve)
    assert found.tasks[0].meta["harder"] == "it is the same program"
    found, _ = made(lambda p, j: "I cannot.", solve)
    assert dict(found.counts["prototype"].dropped) == {"there is no block that opens with ```prolog": 1}


def test_what_makes_two_answers_of_one_form() -> None:
    assert form({"a": [1, 2], "b": "x"}) == form({"b": "", "a": [3.5]})
    apart = [{"a": 1}, {"b": 1}, {"a": "1"}, {"a": [1]}, [1], ["1"], [1, "1"], 1, "1", True, None]
    assert len({repr(form(value)) for value in apart}) == len(apart)


def test_answers_are_judged_by_structure() -> None:
    task = Task("t", "", {"a": [1, 2], "b": "x"}, "json")
    said = ['{"b": "x", "a": [1, 2]}', '{"a": [2, 1], "b": "x"}', '{"a": [1, 2]}', "no"]
    assert [KindVerifier()(task, f"<answer>{text}</answer>").passed for text in said] == [True, False, False, False]


HAND = """(define (domain hand) (:predicates (clear ?a) (hand) (hold ?a) (done ?a))
  (:action pick :parameters (?a) :precondition (and (clear ?a) (hand))
    :effect (and (hold ?a) (not (clear ?a)) (not (hand))))
  (:action place :parameters (?a) :precondition (hold ?a)
    :effect (and (clear ?a) (hand) (done ?a) (not (hold ?a)))))"""
ONE = "(define (problem one) (:domain hand) (:objects a) (:init (clear a) (hand)) (:goal (done a)))"


def judged(plan: str, **reference: Any) -> Verdict:
    task = Task("t", "", {"domain": HAND, "problem": ONE, **reference}, "pddl_plan")
    return KindVerifier()(task, f"<answer>{plan}</answer>")


def test_a_completion_keeps_what_is_given() -> None:
    pick, place = "(pick a)", "(place a)"
    assert [judged(p).passed for p in (pick + place, place + pick, pick)] == [True, False, False]
    given = {"given": [None, place]}
    assert judged(pick + place, **given).passed and judged(pick + place, **given).parts["given"] == 1
    longer = judged(pick + place + pick + place, **given)
    assert longer.feedback == "the plan has 4 steps, not 2" and longer.parts["given"] == 0
    moved = judged(pick + place, given=[place, None])
    assert moved.feedback == "step 1 is (pick a), and (place a) is given there"
    # The right steps in the right places are no plan if they cannot be taken.
    assert judged(place + pick, given=[None, None]).feedback.startswith("step 1 (place a) fails")


def test_a_reordering_is_a_permutation() -> None:
    pick, place = "(pick a)", "(place a)"
    given = {"permuted": [place, pick]}
    assert judged(pick + place, **given).passed is True and judged(place + pick, **given).passed is False
    twice = judged(pick + place + pick + place, **given)
    assert twice.feedback == "the plan has (pick a) 2 times, and 1 were given"
    assert judged(pick, **given).feedback == "the plan has (place a) 0 times, and 1 were given"
    assert judged("(PICK a)\n(place A)", permuted=["pick a", "(place a)"]).passed is True


def test_the_three_kinds_of_plans() -> None:
    source, judge = Plans(largest=5), KindVerifier()
    tasks = [source[i] for i in range(24)]
    assert [t.meta["track"] for t in tasks[:3]] == ["plan", "completion", "reordering"]
    assert {t.meta["domain"] for t in tasks} == {"blocks", "ferry"} and tasks == [source[i] for i in range(24)]
    for task in tasks:
        assert judge(task, str(task.solution)).passed is True
        steps = str(task.solution).splitlines()[1:-1]
        assert judge(task, f"<answer>{''.join(steps[:-1])}</answer>").passed is False
        if task.meta["track"] == "completion":
            assert str(task.prompt).count(BLANK) == task.reference["given"].count(None) + 1
            assert 1 <= task.reference["given"].count(None) == max(1, round(0.3 * len(steps)))
        if task.meta["track"] == "reordering":
            assert sorted(task.reference["permuted"]) == sorted(steps)
    for bad in ({"largest": 1}, {"blanks": 0.0}, {"tracks": ["draw"]}, {"domains": []}):
        with pytest.raises(UsageError, match="plans"):
            build("tasks", {"name": "plans", **bad})


@swipl
def test_solutions_are_verified() -> None:
    found, _ = made(write, solve)
    [task] = found.tasks
    assert task.meta["pass_rate"] == 0.9
    assert '["bob", "cem", "dan"]' in str(task.solution) and KindVerifier()(task, str(task.solution)).passed
    found, _ = made(write, lambda p, j: "<answer>{}</answer>")
    assert not found.tasks and dict(found.counts["pass rate"].dropped) == {"solved too seldom": 1}
    found, _ = made(write, lambda p, j: solve(p, 1))
    assert not found.tasks and dict(found.counts["pass rate"].dropped) == {"solved too often": 1}
    found, _ = made(write, lambda p, j: solve(p, int(j == 4)))
    assert [task.meta["pass_rate"] for task in found.tasks] == [0.1]


def test_both_ways_of_training(tmp_path: Path) -> None:
    """Supervised steps on the plans that problems were made with, and steps on the verifier's verdicts."""
    folder = run(
        tmp_path / "run",
        model={
            "nano": {
                "hidden": 16,
                "layers": 1,
                "heads": 2,
                "context": 1400,
                "alphabet": "".join(map(chr, range(32, 127))) + "\n",
            }
        },
        tasks={
            "source": {"name": "plans", "largest": 2, "domains": ["blocks"], "tracks": ["reordering"]},
            "eval_size": 2,
        },
        warmup={"steps": 2, "batch": 2},
        rollout={"prompts": 2, "group": 2, "max_tokens": 8, "max_rows": 4},
        train={"steps": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = metrics(folder)
    assert [row["stage"] for row in rows] == ["warmup", "warmup", "rl"] and rows[0]["loss"] > 0


class Says:
    """A sandbox in which each program ends alike."""

    def __init__(self, outcome: Outcome | SandboxUnavailable) -> None:
        self.outcome = outcome

    def run(self, program: Program, limits: Limits) -> Outcome:
        self.limits = limits
        if isinstance(self.outcome, SandboxUnavailable):
            raise self.outcome
        return self.outcome


def test_how_a_program_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it wrote counts if it ended well; what the sandbox does wrong is not the program's."""

    def ended(outcome: Outcome | SandboxUnavailable, **given: float) -> tuple[Executed, Limits]:
        box = Says(outcome)
        monkeypatch.setattr(json_query, "sandbox", lambda: box)
        return executed("answer(1).", **given), box.limits

    monkeypatch.setattr(json_query, "ready", lambda: None)
    said = b"% a warning\n@@ [1, 2]\n"
    found, limits = ended(Outcome("ok", said))
    assert found == Executed([1, 2])
    assert (limits.cpu_seconds, limits.wall_seconds, limits.memory) == (5, 50, 2**30)
    assert ended(Outcome("ok", said), seconds=2)[1].wall_seconds == 20
    late = Outcome("timeout", said, b"one\ntwo\nthree\n", reason="5 s are over")
    assert ended(late)[0] == Executed(reason="5 s are over; one; two")
    assert ended(Outcome("ok", b"@ 1"))[0].reason == "it gives no JSON"
    assert len(ended(Outcome("error", stderr=b"x" * 400, reason="exit code 1"))[0].reason) == 300
    assert ended(Outcome("infrastructure", reason="no memory"))[0] == Executed(reason="no memory", ours=True)
    assert ended(SandboxUnavailable("no bwrap"))[0] == Executed(reason="no bwrap", ours=True)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *a, **k: None)
    with pytest.raises(UsageError, match="apt-get install swi-prolog-nox"):
        protoreasoning().check([ASKED])
    monkeypatch.setattr(paper, "executed", lambda program: Executed(reason="no sandbox", ours=True))
    monkeypatch.setattr(paper, "ready", lambda: None)
    with pytest.raises(RunError, match="no sandbox"):
        made(write, solve)


def test_it_is_a_recipe_of_the_command() -> None:
    assert [name for name, _ in read_pipeline("S177", {"rounds": 2}).steps] == [
        "prototype",
        "harder 1",
        "harder 2",
        "pass rate",
    ]
    solver = dict(read_pipeline("S177", {}).steps)["pass rate"]
    assert (solver.n, solver.low, solver.high) == (10, 0.1, 0.9) and solver.sampling == Sampling(4096, 1.0)
    with pytest.raises(UsageError, match="rounds -1"):
        protoreasoning(rounds=-1)
