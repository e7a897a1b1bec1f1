"""World models: the worlds are those of their environments, testers find faults, hidden tests are hidden."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from acted import comes_back, ends, gold_passes, idle_fails, played, repeats
from sandbox.support import needs_sandbox

from assay.audit.environment import audit_environment
from assay.environments.base import EnvironmentFailure
from assay.environments.hosted.worlds import Worlds
from assay.environments.household.house import Home, House
from assay.environments.shop.database import Database, image
from assay.environments.shop.explore import explore
from assay.environments.shop.themes import THEMES
from assay.environments.tools import ToolError, call, say
from assay.environments.world_models.attacks import STILL, attacks_on
from assay.environments.world_models.domains import BLOCKS, FERRY, LOCKS, make_domain
from assay.environments.world_models.environment import WorldModels
from assay.environments.world_models.grids import make_grid
from assay.environments.world_models.homes import _state, make_home
from assay.environments.world_models.ledgers import make_ledger
from assay.environments.world_models.made import number
from assay.environments.world_models.mutants import mutants
from assay.errors import UsageError
from assay.sandbox import CallOutcome, Outcome, Sandbox
from assay.types import Task, Verdict
from assay.verify.behaviour.model import agrees
from assay.verify.behaviour.static import fault
from assay.verify.behaviour.testers import Team
from assay.verify.behaviour.truth import truth_of
from assay.verify.behaviour.verifier import hidden_share, judged_model

pytestmark = needs_sandbox
FAST = "grid", "domain"
SLOW = pytest.param("home", marks=pytest.mark.slow), pytest.param("ledger", marks=pytest.mark.slow)
LINE: dict[str, Any] = {
    "language": "python",
    "source": "def step(state, action):\n    x = min(state + 1, 9) if action == 'up' else max(state - 2, 0)\n"
    "    return [x, 1.0 if x == 9 else 0.0, x == 9]\n",
    "starts": [3],
    "actions": [["up", "down"]],
    "horizon": 9,
    "effort": 60,
}
LINED = Task("line", "Ten places.", LINE, "behaviour")


def make(**options: Any) -> WorldModels:
    return WorldModels(**options)


def shown(world: WorldModels, name: str, **arguments: Any) -> str:
    return world.step(call(name, **arguments)).observation.messages[0]["content"]


@pytest.mark.parametrize("kind", [*FAST, *SLOW])
def test_the_plan_passes_and_repeats(kind: Any) -> None:
    def one(**options: Any) -> WorldModels:
        return make(kinds=(kind,), seed=3, **options)

    tasks = one().tasks()
    plans = gold_passes(one, tasks, 2)
    repeats(one, tasks, plans)
    ends(one, tasks[0], plans[0])
    idle_fails(one, tasks, n=1)


def test_tasks_are_drawn_from_a_seed() -> None:
    tasks = make(kinds=("grid", "domain"), seed=2).tasks()
    assert [tasks[i].meta["kind"] for i in range(4)] == ["grid", "domain", "grid", "domain"]
    assert tasks.size is None and tasks[3] == make(kinds=("grid", "domain"), seed=2).tasks()[3]
    assert tasks[0].prompt != make(kinds=("grid", "domain"), seed=3).tasks()[0].prompt
    assert len({tasks[i].prompt for i in range(12)}) == 12 or len({str(tasks[i].reference) for i in range(12)}) == 12
    assert tasks[2].reference["seed"] == number(2, 2) == 200_008
    # The true world stands in no prompt.
    assert all(
        "def step(" not in str(tasks[i].prompt) and ":precondition" not in str(tasks[i].prompt) for i in range(4)
    )
    assert tasks[0].solution == f"```python\n{tasks[0].reference['source']}```"


def test_the_worlds_are_those_of_their_environments() -> None:
    """The programs that are true of a task do what the environment it was taken from does."""
    rng = np.random.default_rng(0)
    # A household: every line in every state of a walk, against the house itself.
    world = make_home(np.random.default_rng(5))
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(world.source, space)
    house = House.of(space["SETUP"])
    home = Home(*map(_tuple, space["read"](world.starts[0])))
    assert _state(house, home) == world.starts[0]
    changed = 0
    for _ in range(15):
        deeds = house.deeds(home)
        for line in world.actions[0]:
            after, reward, done = space["step"](_state(house, home), line)
            expected = house.done(home, deeds[line]) if line in deeds else home
            assert after == _state(house, expected) and reward == float(done)
            changed += after != _state(house, home)
        moves = [line for line in deeds if line in world.actions[0] and not space["step"](_state(house, home), line)[2]]
        home = house.done(home, deeds[str(rng.choice(moves))])
    assert changed > 20 and "go to garden" in world.actions[0]
    # A database, against one that the environment opens.
    world = make_ledger(np.random.default_rng(1))
    space = {"__name__": "__main__"}
    exec(world.source, space)
    found = explore(int(np.random.default_rng(1).integers(2**31)), 0, tuple(THEMES), 3, 2)
    state = world.starts[0]
    accepted = 0
    for _ in range(5):
        numbered = {t: [dict(row) for row in rows] for t, rows in state.items()}
        for line in world.actions[0]:
            database = Database(found.domain, image(found.domain, numbered))
            verb, _, rest = line.partition("_")
            table, _, arguments = rest.partition(" ")
            try:
                database.call(verb, table, json.loads(arguments))  # type: ignore[arg-type]
                said = 1.0
            except ToolError:
                said = -1.0
            after, reward, done = space["step"](state, line)
            kept = {
                t: [{c: v for c, v in row.items() if c != "number"} for row in rows]
                for t, rows in database.tables().items()
            }
            assert (after, reward, done) == (kept, said, False)
            accepted += reward > 0
            database.close()
        state = next(
            s for line in rng.permutation(world.actions[0]) if (s := space["step"](state, str(line))[0]) != state
        )
    assert 5 < accepted < 5 * len(world.actions[0])


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def test_gridworlds_by_hand() -> None:
    world = make_grid(np.random.default_rng(0))

    def grid(**constants: Any) -> Any:
        space: dict[str, Any] = {}
        exec(world.source, space)
        space |= {"ROWS": 3, "COLUMNS": 4, "WRAPS": False, "BUMP": 0.5, "WALLS": [[1, 1]], "GOAL": [2, 3]}
        space |= {"ICE": [], "PITS": [], "DOOR": None, "KEY": None} | constants
        return lambda at, action, key=False, coins=(): space["step"](
            {"at": at, "key": key, "coins": list(coins)}, action
        )

    def at(cell: list[int], key: bool = False, coins: Any = ()) -> Any:
        return {"at": cell, "key": key, "coins": list(coins)}

    step = grid()
    assert step([0, 0], "south") == [at([1, 0]), 0, False] and step([1, 0], "north") == [at([0, 0]), 0, False]
    assert step([0, 0], "east") == [at([0, 1]), 0, False] and step([0, 1], "west") == [at([0, 0]), 0, False]
    assert step([0, 0], "north") == step([0, 0], "west") == [at([0, 0]), -0.5, False]
    assert step([0, 1], "south") == [at([0, 1]), -0.5, False] and step([0, 1], "wait") == [at([0, 1]), 0, False]
    assert step([2, 2], "east") == [at([2, 3]), 2, True] and step([2, 0], "south")[1] == -0.5 == step([0, 3], "east")[1]
    assert step([0, 0], "east", coins=[[0, 1], [2, 2]]) == [at([0, 1], coins=[[2, 2]]), 1, False]
    wraps = grid(WRAPS=True)
    assert wraps([0, 0], "north") == [at([2, 0]), 0, False] and wraps([0, 0], "west") == [at([0, 3]), 0, False]
    assert wraps([0, 3], "north") == [at([2, 3]), 2, True] and wraps([0, 1], "south")[1] == -0.5
    ice = grid(ICE=[[0, 1], [0, 2], [1, 2], [2, 2]])
    assert ice([0, 0], "east", coins=[[0, 2]]) == [at([0, 3]), 1, False] and ice([0, 3], "west") == [
        at([0, 0]),
        0,
        False,
    ]
    # It slides to the edge, and from ice onto the goal.
    assert ice([0, 2], "south") == [at([2, 2]), 0, False] and ice([2, 1], "east") == [at([2, 3]), 2, True]
    assert grid(PITS=[[0, 1]], ICE=[[0, 1]])([0, 0], "east") == [at([0, 1]), -1, True]
    door = grid(DOOR=[2, 3], KEY=[1, 2])
    assert door([2, 2], "east") == [at([2, 2]), -0.5, False] and door([2, 2], "east", True) == [
        at([2, 3], True),
        2,
        True,
    ]
    assert door([1, 3], "west") == [at([1, 2], True), 0, False]
    seen = " ".join(rule for seed in range(12) for rule in make_grid(np.random.default_rng(seed)).rules)
    for word in ("ice", "pit", "door", "coin is worth", "opposite edge", "stays where it is", "reward is -0.5"):
        assert word in seen


@pytest.mark.parametrize(
    "source",
    [FERRY, BLOCKS, LOCKS],
    ids=["ferry", "blocks", "locks"],
)
@pytest.mark.slow
def test_each_fault_of_a_domain_is_reported(source: str) -> None:
    """A precondition is missing, an effect is negated, two arguments are swapped: testers say so of each kind."""
    worlds = (make_domain(np.random.default_rng(seed)) for seed in range(20))
    world = next(w for w in worlds if w.source == source)
    truth = truth_of(world.reference(400, 1))
    found: dict[str, list[bool]] = {}
    refused = 0
    for what, text in mutants(source, "pddl"):
        assert fault(text, "pddl", world.problems) == ""
        got = truth.model(text).steps([(c.state, c.action) for c in truth.cases])
        if all(all(agrees(g, c.right)) for g, c in zip(got, truth.cases, strict=True)):
            assert not Team(truth).reports(truth.model(text))[0] and judged_model(truth, text).passed
            continue
        team = Team(truth)
        reports = [team.reports(truth.model(text))[0] for _ in range(3)]
        found.setdefault(what, []).append(any(reports))
        refused += judged_model(truth, text).passed is False
    kinds = {"a precondition is missing", "an effect is negated"} | (
        {"two arguments are swapped"} if source != BLOCKS else set()
    )
    every = [one for some in found.values() for one in some]
    assert kinds <= set(found) and all(sum(some) > 1 for some in found.values())
    # A precondition that is missing may show in a few steps alone, all of them on the other side.
    assert sum(every) >= 0.9 * len(every) and refused >= 0.9 * len(every)


def test_faults_of_programs_are_reported() -> None:
    world = make_grid(np.random.default_rng(3))
    truth = truth_of(world.reference(400, 1))
    every = mutants(world.source, "python")
    assert len(every) > 30 and {"a comparison is wrong", "a branch is missing"} <= {what for what, _ in every}
    caught = 0
    for _, text in every[::9]:
        assert fault(text, "python") == ""
        shares = hidden_share(truth, text), bool(Team(truth).reports(truth.model(text))[0])
        caught += shares[0] < 1 and shares[1]
        assert (shares[0] < 1) == (judged_model(truth, text).passed is False)
    assert caught >= 3


def test_mutants_of_a_domain() -> None:
    text = """(define (domain d) (:predicates (p ?a ?b) (q)) (:action go :parameters (?a ?b)
      :precondition (and (p ?a ?b) (not (q))) :effect (not (p ?b ?a))))"""
    made = mutants(text, "pddl")
    assert [what for what, _ in made] == [
        "a precondition is missing",
        "two arguments are swapped",
        "a precondition is missing",
        "an effect is negated",
        "two arguments are swapped",
    ]
    pieces = [t.partition(":precondition ")[2] for _, t in made]
    assert pieces == [
        "(and (not (q))) :effect (not (p ?b ?a))))",
        "(and (p ?b ?a) (not (q))) :effect (not (p ?b ?a))))",
        "(and (p ?a ?b)) :effect (not (p ?b ?a))))",
        "(and (p ?a ?b) (not (q))) :effect (and (p ?b ?a))))",
        "(and (p ?a ?b) (not (q))) :effect (and (not (p ?a ?b)))))",
    ]


@pytest.mark.parametrize("kind", ["grid", "home"])
@pytest.mark.slow
def test_special_cases_gain_nothing_hidden(kind: Any) -> None:
    """Who knows every visible step by heart passes all that testers tell, and of the hidden ones what anybody would."""
    world = make(kinds=(kind,), seed=1)
    task = world.tasks()[0]
    world.reset(task, 0)
    truth = truth_of(task.reference)
    table, *_ = attacks_on(truth)
    told = truth.visible
    known = truth.model(table).steps([(c.state, c.action) for c in told])
    learned = np.mean(
        [g.after == c.right.after and g.reward == c.right.reward for g, c in zip(known, told, strict=True)]
    )
    still = np.mean([c.right.after == c.state and c.right.reward == 0 for c in told])
    assert learned > still and (learned == 1 or kind == "home")
    assert hidden_share(truth, table) == hidden_share(truth, STILL) < 0.8
    assert judged_model(truth, table).parts["static"] == 1


@pytest.mark.slow
def test_cheats_do_not_pay() -> None:
    world = make(kinds=("grid", "domain"), seed=4)
    for index in range(2):
        task = world.tasks()[index]
        world.reset(task, 0)
        for attack in world.attacks():
            verdict = played(world, task, attack)[-1]
            assert verdict.passed is False and verdict.parts["static"] == 1


def test_turns_earn_the_increase_of_the_hidden_share(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {"a": 0.25, "b": 0.5, "c": 0.5, "d": 1.0}
    monkeypatch.setattr(
        "assay.environments.world_models.environment.hidden_share", lambda truth, source: shares.get(source, 0)
    )

    def rewards(task: Task, *written: str, **options: Any) -> list[float | None]:
        world = make(kinds=("grid",), **options)
        world.reset(task, 0)
        return [world.step(call("write", source=source)).reward for source in written]

    # From a draft of a quarter: a half, a half again, all.
    drafted = Task("d", "?", LINE, "behaviour", meta={"draft": "a"})
    assert rewards(drafted, "b", "c", "d") == [0.25, 0, 0.5]
    assert rewards(LINED, "a", "b", "c", "d") == [0.25, 0.25, 0, 0.5]
    assert rewards(LINED, "d", "a") == [1, -0.75]
    assert rewards(LINED, "d", "a", turn_rewards=False) == [None, None]
    # What is no version earns nothing.
    world = make(kinds=("grid",))
    world.reset(drafted, 0)
    assert [world.step(a).reward for a in (call("write", source="d"), call("read"), say("done"))] == [0.75, 0, 0]


def test_versions_are_tested_and_mended() -> None:
    world = make(versions=3, shown=2)
    right = LINE["source"]
    opening = world.reset(LINED, 0)
    assert "there are 3 versions" in opening.messages[0]["content"]
    assert {t.name for t in opening.tools} == {"write", "edit", "read", "run", "submit"}
    assert shown(world, "read") == "(nothing is written)"
    assert shown(world, "write", source="def step(").startswith("Static validation: it is no Python")
    found = shown(world, "write", source=right.replace("- 2", "- 1"))
    assert "of the tests fail" in found and "unit test: step(" in found and "'down'): expected" in found
    assert world.left == 1 and not world.over()
    assert shown(world, "run", state="5", action="down") == "[4, 0, false]"
    step = world.step(call("edit", old="- 1", new="- 2"))
    assert step.terminated and step.observation.messages[0]["content"].endswith("are right.")
    assert world.verdict() == Verdict(1.0, True, world.verdict().parts) and world.state_json()["versions"] == 0
    # Spent versions end it; a partial verdict scores the accuracy.
    world = make(versions=1, partial=True)
    world.reset(LINED, 0)
    last = world.step(call("write", source=right.replace("- 2", "- 1")))
    assert last.terminated and world.verdict().passed is False and 0.3 < world.verdict().score < 1
    assert last.reward == pytest.approx(world.verdict().score)


def test_what_is_refused() -> None:
    world = make(calls=3)
    world.reset(LINED, 0)

    def error(name: str, **arguments: Any) -> str:
        step = world.step(call(name, **arguments))
        assert not step.valid
        return step.error

    assert error("run", state="1", action="up") == "it defines no function step(state, action)" and world.spare == 2
    world.step(call("write", source=LINE["source"].replace("- 2", "- 1")))
    assert error("edit", old="state", new="x") == "the text stands there 3 times, not once"
    assert error("edit", old="", new="x") == "old must be some text"
    assert error("edit", old="nowhere", new="x") == "the text stands there 0 times, not once"
    assert "no JSON" in error("run", state="{", action="up")
    assert "at most 100000 characters" in error("write", source="#" * 100_001) and world.left == 3
    assert world.step(call("read")).valid and "no calls are left" in error("read")
    assert "submit" in world.step(say("done")).error
    assert "there is no tool" in error("look_up", question="?")
    assert world.step(call("submit")).terminated and world.state_json()["submitted"]
    with pytest.raises(UsageError, match="of kind 'none'"):
        world.reset(Task("n", "?", None, "none"), 0)
    for wrong in ({"kinds": []}, {"kinds": ["grid", "grid"]}, {"kinds": ["moon"]}):
        with pytest.raises(UsageError, match="kinds"):
            make(**wrong)
    for name in ("versions", "tests", "episodes", "shown", "hidden"):
        with pytest.raises(UsageError, match=f"{name} 0"):
            make(**{name: 0})
    for name in ("calls", "gaps"):
        make(**{name: 0})
        with pytest.raises(UsageError, match=f"{name} -1"):
            make(**{name: -1})


def test_gaps_are_looked_up() -> None:
    world = make(kinds=("grid", "domain"), gaps=2, seed=6)
    task = world.tasks()[0]
    rules = make_grid(np.random.default_rng([6, 0])).rules
    gone = [rule for rule in rules if rule not in task.prompt]
    assert len(gone) == 2 and set(gone) < set(task.meta["facts"]) and len(task.meta["facts"]) > 3
    assert all(f"- {rule}\n" in task.prompt for rule in rules if rule not in gone)
    tools = {t.name for t in world.reset(task, 0).tools}
    assert "look_up" in tools
    for rule in gone:
        assert rule in shown(world, "look_up", question=rule).split("\n")
    assert shown(world, "look_up", question="zzz") == "nothing found"
    assert world.spare == world.calls - 3
    # At least one rule is told, and without gaps there is nothing to look up.
    bare = make(kinds=("domain",), gaps=99, seed=6).tasks()[0]
    assert bare.prompt.count("\n- ") == 1 and make(kinds=("grid",)).tasks()[0].meta["facts"] == ()


def test_a_draft_has_a_fault_that_only_play_finds() -> None:
    world = make(kinds=("grid", "domain"), draft=True, seed=2)
    for index in range(2):
        task = world.tasks()[index]
        world.reset(task, 0)
        assert shown(world, "read") == task.meta["draft"] != task.reference["source"]
        assert 0 < world.share < 1 and world.verdict().passed is False and world.verdict().parts["static"] == 1
        before = world.share
        assert world.step(world.gold()[0]).reward == pytest.approx(1 - before)
        assert world.verdict().passed
    assert make(kinds=("grid",), seed=2).tasks()[0].meta["draft"] == ""


def test_it_comes_back() -> None:
    def one(**options: Any) -> WorldModels:
        return make(kinds=("grid",), draft=True, seed=2, **options)

    tasks = one().tasks()
    plans = []
    for index in range(2):
        source = tasks[index].reference["source"]
        wrong = tasks[index].meta["draft"]
        plans.append(
            [
                call("write", source=wrong),
                call("read"),
                call("write", source=STILL),
                call("write", source=source),
            ]
        )
    comes_back(one, tasks, plans)


def test_a_failing_sandbox_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make()
    world.reset(LINED, 0)
    monkeypatch.setattr(Sandbox, "call", lambda *a, **k: CallOutcome((), Outcome("infrastructure", reason="gone")))
    for act in (
        lambda: world.step(call("write", source="def step(s, a): return [s, 0, False] # new")),
        lambda: world.reset(Task("x", "?", {**LINE, "seed": 99}, "behaviour", meta={"draft": STILL}), 0),
        lambda: make(kinds=("grid",), draft=True, seed=991).tasks()[0],
    ):
        with pytest.raises(EnvironmentFailure, match="gone"):
            act()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*FAST, *SLOW])
def test_its_audit_passes(kind: str) -> None:
    worlds = Worlds({"name": "world_models", "kinds": [kind], "draft": kind == "domain"}, 2)
    tasks = worlds.here().tasks()
    try:
        findings = list(audit_environment(worlds, [tasks[i] for i in range(2)]))
    finally:
        worlds.close()
    assert {f.name for f in findings} > {"gold passes", "attacks fail", "kill is no zero"}
    assert [f"{f.name}: {f.first}" for f in findings if not f.passed] == []
