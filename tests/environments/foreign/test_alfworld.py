"""ALFWorld's games: things are named as it names them, plans reach the goal, and nothing else does."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from acted import ends, gold_passes, idle_fails, played, repeats

from assay.environments.base import EnvironmentFailure
from assay.environments.foreign.alfworld import AlfWorld, names
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.types import Task

DOMAIN = """
(define (domain house)
 (:requirements :adl :action-costs :typing)
 (:types agent place thing)
 (:predicates (at ?a - agent ?p - place) (on ?t - thing ?p - place) (holds ?a - agent ?t - thing) (busy ?a - agent)
  (there ?p - place))
 (:functions (total-cost) - number)
 (:action gotolocation
  :parameters (?a - agent ?from - place ?r - place)
  :precondition (and (at ?a ?from))
  :effect (and (not (at ?a ?from)) (at ?a ?r) (increase (total-cost) 1)))
 (:action take
  :parameters (?a - agent ?t - thing ?p - place)
  :precondition (and (at ?a ?p) (on ?t ?p) (not (busy ?a)))
  :effect (and (holds ?a ?t) (busy ?a) (not (on ?t ?p)) (increase (total-cost) 1)))
 (:action put
  :parameters (?a - agent ?t - thing ?p - place)
  :precondition (and (at ?a ?p) (holds ?a ?t))
  :effect (and (not (holds ?a ?t)) (not (busy ?a)) (on ?t ?p) (increase (total-cost) 1)))
)
"""
GRAMMAR = '''
grammar :: """
 {
  "intro": [{"rhs": "A house. Your task is to: put a mug on a desk."}],
  "goto.feedback": [{"rhs": "You arrive at {r.name}."}],
  "take.feedback": [{"rhs": "You pick up the {t.name}."}],
  "put.feedback": [{"rhs": "You put the {t.name} on the {p.name}."}]
 }
""";

action gotolocation { template :: "go to [{r.name | there(r:place)}]"; feedback :: "#goto.feedback#"; }
action take { template :: "take {t} from {p}"; feedback :: "#take.feedback#"; }
action put { template :: "move {t} to {p}"; feedback :: "#put.feedback#"; }
'''
PROBLEM = """
(define (problem errand) (:domain house)
 (:objects agent1 - agent desk_bar__plus_01 - place shelf_bar__plus_01 shelf_bar__plus_02 - place
  mug_bar__plus_03 - thing)
 (:init (at agent1 desk_bar__plus_01) (on mug_bar__plus_03 shelf_bar__plus_0{shelf}) (= (total-cost) 0)
  (there desk_bar__plus_01) (there shelf_bar__plus_01) (there shelf_bar__plus_02))
 (:goal (and (on mug_bar__plus_03 desk_bar__plus_01)))
 (:metric minimize (total-cost)))
"""


def game(folder: Path, name: str, shelf: int = 1, **more: object) -> Path:
    """Write a game in which a mug is to be brought from a shelf to the desk."""
    file = folder / name / "trial_1" / "game.tw-pddl"
    file.parent.mkdir(parents=True)
    problem = PROBLEM.replace("{shelf}", str(shelf))
    whole = {"pddl_domain": DOMAIN, "grammar": GRAMMAR, "pddl_problem": problem, "solvable": True, **more}
    file.write_text(json.dumps(whole))
    return file


def test_things_are_named_as_alfworld_names_them() -> None:
    """The first by id has the highest number; sinks and their basins are counted apart, places are no part of names."""
    ids = ["mug_bar__plus_02", "agent1", "sink_bar__minus_01", "mug_bar__plus_01", "sink_bar__minus_01_bar_sinkbasin"]
    assert names(ids) == {
        "agent1": "agent1",
        "mug_bar__plus_01": "mug 2",
        "mug_bar__plus_02": "mug 1",
        "sink_bar__minus_01": "sink 1",
        "sink_bar__minus_01_bar_sinkbasin": "sinkbasin 1",
    }


def test_what_is_not_installed_or_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="commands 0 must be at least 1"):
        AlfWorld("*", commands=0)
    for module in ("textworld", "fast_downward"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, module, None)
            with pytest.raises(UsageError, match=r"pip install 'assay\[alfworld\]'"):
                AlfWorld("*")


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    pytest.importorskip("textworld", reason="TextWorld is not installed: pip install 'assay[alfworld]'")
    pytest.importorskip("fast_downward", reason="Fast Downward is not installed: pip install 'assay[alfworld]'")
    game(tmp_path, "a", shelf=1)
    game(tmp_path, "b", shelf=2)
    game(tmp_path, "c", solvable=False)
    game(tmp_path, "pick_movable")
    game(tmp_path, "AppleSliced")
    return str(tmp_path / "**" / "game.tw-pddl")


def test_plans_reach_the_goal_and_words_do_not(pattern: str) -> None:
    def make() -> AlfWorld:
        return AlfWorld(pattern)

    tasks = make().tasks()
    assert tasks.size == 2 and [tasks[i].id for i in range(2)] == ["alfworld/a/trial_1", "alfworld/b/trial_1"]
    plans = gold_passes(make, tasks, 2)
    assert [a.text for a in plans[0]] == [
        "go to shelf 2",
        "take mug 1 from shelf 2",
        "go to desk 1",
        "move mug 1 to desk 1",
    ]
    assert plans[1][0].text == "go to shelf 1"
    repeats(make, tasks, plans)
    ends(make, tasks[0], plans[0])
    idle_fails(make, tasks, n=1)
    world = AlfWorld(pattern, interface="tool", listed=True)
    first, *steps, verdict = played(world, tasks[0], [call("act", action=a.text) for a in plans[0]])
    assert verdict.passed and [step.reward for step in steps] == [0, 0, 0, 1]
    assert "put a mug on a desk.\nCommands: go to shelf 1, go to shelf 2" in first.messages[0]["content"]
    world.reset(tasks[0], 0)
    assert [a.calls[0].arguments for a in world.gold()] == [{"action": a.text} for a in plans[0]]


def test_a_walkthrough_is_the_plan_while_it_is_followed(pattern: str, tmp_path: Path) -> None:
    """One that is said otherwise, as older files have it, is none."""
    shortest = ["go to shelf 2", "take mug 1 from shelf 2", "go to desk 1", "move mug 1 to desk 1"]
    longer = ["go to shelf 1", "go to desk 1", *shortest]
    world = AlfWorld(str(game(tmp_path, "walked", walkthrough=longer)))

    def plan(*commands: str) -> list[str]:
        world.reset(world.tasks()[0], 0)
        for command in commands:
            world.step(say(command))
        return [action.text for action in world.gold()]

    assert plan() == longer
    assert plan(longer[0], "fly") == longer[1:]
    assert plan(longer[0], "go to shelf 2") == shortest[1:]
    assert plan(*longer[:2], "go to shelf 1") == shortest
    gold_passes(lambda: AlfWorld(pattern.replace("**", "walked/**")), world.tasks(), 1)
    world = AlfWorld(str(game(tmp_path, "older", walkthrough=[*longer[:-1], "put mug 1 in/on desk 1"])))
    assert plan() == shortest


def test_a_game_is_translated_once(pattern: str) -> None:
    import fast_downward

    world = AlfWorld(pattern)
    first = world.reset(world.tasks()[0], 0)
    done = fast_downward.pddl2sas.cache_info().misses
    assert [AlfWorld(pattern).reset(world.tasks()[0], seed) for seed in (0, 1)] == [first, first]
    assert fast_downward.pddl2sas.cache_info().misses == done > 0


def test_what_cannot_be_done_changes_nothing(pattern: str) -> None:
    world = AlfWorld(pattern, commands=4)
    opened = world.reset(world.tasks()[0], 0)
    assert opened.admissible == ("go to shelf 1", "go to shelf 2")
    before = world.state_json()
    for words in ("take mug 1 from shelf 2", "restart", ""):
        step = world.step(say(words))
        assert (step.valid, step.error, step.reward, step.truncated) == (False, "Nothing happens.", 0, False)
        assert step.observation.messages[0]["content"] == "Nothing happens." and world.state_json() == before
    step = world.step(say("I look.\n<action>Go  to SHELF 2</action>"))
    assert step.valid and step.truncated and step.observation.messages[0]["content"] == "You arrive at shelf 2."
    assert step.observation.state != opened.state and "take mug 1 from shelf 2" in (step.observation.admissible or ())
    assert not world.verdict().passed
    with pytest.raises(RuntimeError, match="call reset first"):
        world.step(say("look"))
    world.close()


def test_games_are_played_in_threads(pattern: str) -> None:
    """Also, what the translator does to the process's arguments and output is undone."""
    arguments, output = list(sys.argv), sys.stdout

    def play(index: int) -> bool:
        world = AlfWorld(pattern)
        world.reset(world.tasks()[index % 2], index)
        return bool([world.step(action) for action in world.gold()] and world.verdict().passed)

    with ThreadPoolExecutor(4) as beside:
        assert all(beside.map(play, range(8)))
    assert sys.argv == arguments and sys.stdout is output


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process has loaded is read from /proc")
def test_episodes_leave_no_planner_behind(pattern: str) -> None:
    """Each has its copy of Fast Downward's library, of 34 MB in a file that is gone; the next episode takes it over."""

    def loaded() -> int:
        lines = Path("/proc/self/maps").read_text().splitlines()
        return len({line.split()[4] for line in lines if "libdownward" in line})

    one, two = AlfWorld(pattern), AlfWorld(pattern)
    first = [played(one, one.tasks()[i], one.gold() if i else [say("look")])[0].state for i in (0, 1)]
    two.reset(two.tasks()[0], 0)
    before = loaded()
    one.close()
    for i in (0, 1, 0, 1):
        world = AlfWorld(pattern)
        assert world.reset(world.tasks()[i], 0).state == first[i] and len(world.gold()) == 4
        world.close()
    assert two.step(two.gold()[0]).valid and loaded() == before
    two.close()


def test_games_that_are_none_are_named(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no game that can be solved is at"):
        AlfWorld(str(tmp_path / "c" / "**" / "game.tw-pddl"))
    for text, why in (
        ("{", "Expecting property name"),
        ("[]", "it has no pddl_domain"),
        ("7", "it has no pddl_domain"),
    ):
        (tmp_path / "wrong.tw-pddl").write_text(text)
        with pytest.raises(UsageError, match=rf"wrong\.tw-pddl is no game: {why}"):
            AlfWorld(str(tmp_path / "wrong.tw-pddl"))
    world = AlfWorld(pattern)
    with pytest.raises(UsageError, match="task other has no game"):
        world.reset(Task("other", "?"), 0)


def test_what_is_left_out_is_said_by_the_folders_of_a_game(pattern: str, tmp_path: Path) -> None:
    """Not by where all of them are kept."""
    game(tmp_path / "movable_robots" / "train", "d")
    tasks = AlfWorld(str(tmp_path / "movable_robots" / "**" / "*.tw-pddl")).tasks()
    assert [tasks[i].id for i in range(tasks.size)] == ["alfworld/d/trial_1"]
    assert AlfWorld(pattern).tasks().size == 3


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"pddl_problem": "(define"}, "Error"),
        # What Fast Downward cannot read ends the program that asks it.
        ({"pddl_domain": DOMAIN.replace("(total-cost) - number", "(total-cost) - thing")}, "SystemExit"),
    ],
)
def test_games_that_cannot_be_read_fail(pattern: str, tmp_path: Path, wrong: dict[str, str], why: str) -> None:
    file = game(tmp_path, "broken", **wrong)
    world = AlfWorld(str(file))
    with pytest.raises(EnvironmentFailure, match=rf"broken/trial_1/game\.tw-pddl cannot be played: .*{why}"):
        world.reset(world.tasks()[0], 0)
    world.close()
    others = AlfWorld(pattern.replace("**", "a/**"))
    assert others.reset(others.tasks()[0], 0).admissible == ("go to shelf 1", "go to shelf 2")
