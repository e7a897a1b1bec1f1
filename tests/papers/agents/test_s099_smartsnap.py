"""SmartSnap: submissions and what is none, judges that see cited turns alone, votes, the worked rewards, and a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run
from scripted import Scripted

from assay import catalogue
from assay.audit.environment import audit_environment
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.environments.base import Action
from assay.environments.hosted.worlds import Worlds
from assay.environments.opinion import Cited, EngineJudge, Opinion, Votes, judge_from, read_opinion, verdict_of, voted
from assay.environments.screens.shown import ScreenJudge, sights_of
from assay.environments.submitted import RULES, SUBMIT, Submitted
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.evidence import EvidenceReward, verified
from assay.types import Ask, Episode, Group, Task, ToolCall, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

CORRIDOR = {"name": "corridor", "rooms": 2, "moves": 3}
TOOLS = {"name": "screens", "names": ["settings"], "interface": "tool"}


def submit(evidences: Any, message: Any = "done") -> Action:
    return say("submit " + json.dumps({"message": message, "evidences": evidences}))


def corridor(**options: Any) -> Submitted:
    world = Submitted(CORRIDOR, **{"judge": "corridor", **options})
    world.reset(world.tasks()[0], 0)  # from room 1 to room 2
    return world


def after(*actions: Action, **options: Any) -> tuple[Submitted, Verdict]:
    world = corridor(**options)
    for action in actions:
        world.step(action)
    return world, world.verdict()


RIGHT, STOP = say("right"), say("stop")


def test_a_submission_ends_the_episode() -> None:
    world = corridor()
    first = world.step(RIGHT)
    assert first.observation.messages[0]["content"].startswith("[turn 0]\n") and not first.terminated
    last = world.step(STOP)
    # The world within has ended; what is left is to submit.
    assert not last.terminated and last.observation.messages[0]["content"].startswith("[turn 1]\n")
    late = world.step(RIGHT)
    assert not late.valid and "but submit" in late.error
    step = world.step(submit([1]))
    assert step.terminated and step.tag == "submit"
    found = world.verdict()
    assert found.passed and found.parts["state"] == 1 and found.parts["concise"] == 1
    with pytest.raises(RuntimeError, match="reset"):
        world.step(submit([1]))


def test_as_a_tool() -> None:
    world = Submitted(TOOLS)
    shown = world.reset(world.tasks()[0], 0)
    assert [t.name for t in shown.tools] == ["act", "submit"] and shown.tools[1] == SUBMIT
    *actions, last = world.gold()
    for action in actions:
        assert world.step(action).valid
    assert last.calls[0].name == "submit" and world.step(last).terminated and world.verdict().passed
    # In words it is no submission, and a call that does not fit is none either.
    world.reset(world.tasks()[0], 0)
    assert not world.step(submit([0])).terminated
    assert not world.step(Action("", (ToolCall("submit", {"message": "x"}, 0, 0, "bad_arguments"),))).terminated
    assert world.step(call("submit", message="x", evidences=[0])).terminated


def test_the_judge_sees_cited_turns_alone() -> None:
    seen: list[tuple[str, str, Sequence[Cited]]] = []

    def judge(task: Task, message: str, cited: Sequence[Cited]) -> Opinion:
        seen.append((task.id, message, list(cited)))
        return Opinion(True, True)

    world, found = after(say("left"), RIGHT, STOP, submit([2, 0, 2], "there"), judge=judge, votes=2)
    assert found.passed and len(seen) == 2 and seen[0] == seen[1]
    task, message, cited = seen[0]
    assert (task, message) == (world.task.id, "there")
    # What was done in it, and what was observed right after; once each.
    assert [(c.turn, c.action) for c in cited] == [(2, "stop"), (0, "left")]
    assert cited[0].observation == "Stopped in room 2." and cited[1].observation.startswith("Room 1, 2 moves")
    assert found.parts["submitted | cited"] == 3 and found.parts["submitted | actions"] == 3


def test_turns_that_are_not_cited_change_nothing() -> None:
    rng = np.random.default_rng(0)
    for index in range(6):
        world = Submitted()
        task = world.tasks()[index]
        world.reset(task, 0)
        for action in world.gold():
            world.step(action)
        whole = world.verdict()
        assert whole.passed
        for turn in world.turns:
            if turn.turn not in world.evidences:
                world.turns[turn.turn] = Cited(turn.turn, "x", str(rng.random()))
        assert world.verdict() == whole


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ([RIGHT], "submitted 0 times"),
        ([submit([])], "no evidence"),
        ([submit([1])], "no turn 1"),
        ([submit([-1])], "no turn -1"),
        ([submit([0, "0"])], "no turn '0'"),
        ([submit([True])], "no turn True"),
        ([submit([0.0])], "no turn 0.0"),
        ([say(f"{submit([0]).text}\n{submit([0]).text}")], "submitted 2 times"),
        ([say("submit {[0]}")], "submitted 0 times"),
        ([say('submit {"message": 1, "evidences": [0]}')], "submitted 0 times"),
        ([say(f"<think>{submit([0]).text}</think> stop")], "submitted 0 times"),
    ],
)
def test_what_is_no_submission(last: list[Action], reason: str) -> None:
    def judge(task: Task, message: str, cited: Sequence[Cited]) -> Opinion:
        raise AssertionError("nobody is asked")

    _, found = after(RIGHT, *last, judge=judge)
    assert found.passed is False and found.feedback == reason and found.parts["submitted"] == 0
    assert reward(found).values.tolist() == [-1]


def voting(*votes: Any, n: int = 3) -> Votes:
    said = iter(votes)

    def judge(task: Task, message: str, cited: Sequence[Cited]) -> Opinion:
        vote = next(said)
        if isinstance(vote, Exception):
            raise vote
        return Opinion(*vote)

    return voted(judge, n, Task("t", "?"), "", [])


YES, NO, NONE = (True, True), (True, False), (False, False)


def test_votes() -> None:
    assert voting(YES, NO, NONE) == Votes(1, 2, 3, 0)
    assert voting(YES, OSError("away"), YES) == Votes(2, 2, 2, 1, "OSError: away")
    # Evidence that is not valid proves nothing.
    assert voting((False, True), YES, n=2) == Votes(1, 1, 2, 0)
    found = verdict_of(voting(YES, OSError("away"), YES), 2, 5)
    assert found.passed and found.parts["submitted | told"] == 2 and found.parts["submitted | failed"] == 1
    assert verdict_of(voting(YES, NO, n=2), 1, 1).passed is False, "a tie"
    lost = voting(*[OSError("away")] * 3)
    assert verdict_of(lost, 1, 1).passed is None and verdict_of(lost, 1, 1).fault == "infrastructure"
    failed = verdict_of(lost, 1, 1, "fail")
    assert failed.passed is False and verified(failed) == -1
    assert failed.parts["submitted | failed"] == 3 and failed.parts["success"] == 0


def reward(*verdicts: Verdict, **options: Any) -> Any:
    none = np.zeros(0, dtype=np.int64)
    one = Episode(none, np.zeros(1, dtype=np.int64), np.ones(1, dtype=bool), None, "", "eos")
    group = Group(Ask(Task("t", "?"), len(verdicts)), (one,) * len(verdicts), verdicts)
    return EvidenceReward(**options)(Batch.from_groups([group], dtype=torch.float64))


def judged(s: int, v: int, told: int, cited: int, actions: int = 1) -> Verdict:
    return verdict_of(Votes(s, v, told, 3 - told), cited, actions)


def test_the_worked_rewards() -> None:
    found = reward(judged(2, 3, 3, 2), judged(2, 3, 3, 5), judged(1, 2, 3, 3), judged(0, 1, 3, 4), judged(1, 1, 2, 2))
    assert found.values.tolist() == pytest.approx([1.0, 0.8, 0.0, -1.1, -1.0])
    assert found.terms["proven"].tolist() == [1, 1, 0, -1, -1]
    assert found.terms["brevity"].tolist() == pytest.approx([0, -0.2, 0, -0.1, 0])
    twice = Verdict(0.0, False, {"submitted": 0.0, "submitted | cited": 9.0})
    lost = Verdict.abstain("away", "infrastructure")
    found = reward(twice, lost)
    assert found.values[0] == -1 and found.valid.tolist() == [True, False]
    assert reward(judged(2, 3, 3, 5), cost=0.5, free=4).values.tolist() == [0.5]
    for options in ({"cost": -1}, {"free": -1}, {"bonus": -1}, {"decay": 0}):
        with pytest.raises(UsageError, match="reward 'evidence'"):
            EvidenceReward(**options)  # type: ignore[arg-type]


def test_the_bonus_for_acting() -> None:
    verdicts = (judged(3, 3, 3, 1, 0), judged(3, 3, 3, 1, 7), judged(0, 3, 3, 1, 7), judged(0, 3, 3, 1, 20))
    assert reward(*verdicts).values.tolist() == [1, 1, 0, 0]
    assert reward(*verdicts, bonus=0.5).values.tolist() == pytest.approx([1, 1.5, 0.35, 0.5])
    part = EvidenceReward(bonus=1.0, decay=200)
    assert part.weight == 1
    other = EvidenceReward(bonus=1.0, decay=200)
    for step, weight in ((100, 0.5), (200, 0.0), (300, 0.0), (50, (1 + np.cos(np.pi / 4)) / 2)):
        other.load_state_dict({"step": step})
        assert other.weight == pytest.approx(weight)
    part(Batch.from_groups([Group(Ask(Task("t", "?"), 0), (), ())]))
    assert part.state_dict() == {"step": 1} and part.weight < 1
    fresh = EvidenceReward(bonus=1.0, decay=200)
    assert part == fresh and repr(part) == repr(fresh), "a part is known by its options"
    with pytest.raises(TypeError):
        EvidenceReward(_step=1)  # type: ignore[call-arg]
    assert EvidenceReward(cost=0.0, free=0, bonus=0.0, decay=1).weight == 0


def test_the_worked_advantages(make_batch: Any) -> None:
    batch = make_batch([1, 2, 1, 3], [1.0, 0.8, 0.0, -1.1])
    found = GRPO()(batch)
    assert found[:, 0].tolist() == pytest.approx([0.8652, 0.6555, -0.1835, -1.3372], abs=5e-5)


def test_the_papers_numbers() -> None:
    method = catalogue.make("S099")
    assert isinstance(method, Method)
    assert method.reward == EvidenceReward(0.1, 3, 0.0, None) and method.credit == GRPO()
    assert method.objective == ClippedSurrogate(clip_low=0.2, clip_high=0.2, dual_clip=10.0)
    assert Submitted().votes == 3 and Submitted().unjudged == "abstain"


def test_what_the_policy_is_told() -> None:
    world = Submitted(CORRIDOR, judge="corridor")
    first, *others = world.reset(world.tasks()[0], 0).messages
    assert first["role"] == "system" and first["content"].startswith(RULES) and "submit {" in first["content"]
    assert all(word in RULES for word in ("Completeness", "one to three", "Creativity"))
    assert world.task.question in others[0]["content"]


# The judge of screens


def screens(index: int = 0) -> tuple[Submitted, Task]:
    world = Submitted()
    task = world.tasks()[index]
    world.reset(task, 0)
    return world, task


def test_screens_prove_what_they_show_and_nothing_else() -> None:
    judge = ScreenJudge()
    for index in range(8):
        world, task = screens(index)
        start = Cited(0, "", world.inner.show(world.inner.state))  # type: ignore[attr-defined]
        *plan, last = world.gold()
        for action in plan:
            world.step(action)
        proof = [world.turns[e] for e in json.loads(last.text[7:])["evidences"]]
        assert judge(task, "It is done.", proof) == Opinion(True, True)
        assert not judge(task, "I failed.", proof).success and not judge(task, "It is impossible.", proof).success
        assert judge(task, "It is done.", [start]) == Opinion(False, False)
        assert judge(task, "Trust me: it is done.", [Cited(0, "", "The switch is on.")]) == Opinion(False, False)
        assert not judge(task, "It is done.", []).valid
        # A part of the evidence proves a part, if it takes more than one.
        for k in range(len(proof)):
            assert len(proof) == 1 or not judge(task, "It is done.", proof[:k] + proof[k + 1 :]).success


def test_a_screen_from_before_shows_a_failure() -> None:
    world, task = screens(next(i for i in range(20) if screens(i)[1].meta["instruction"].startswith("Turn")))
    judge = ScreenJudge()
    *plan, _ = world.gold()
    clicks = [a for a in plan if a.text.startswith("click")]
    page = world.step(clicks[0])
    before = Cited(0, "", page.observation.messages[0]["content"])
    found = judge(task, "It is done.", [before])
    assert not found.success and found.valid is (len(list(_due(task))) == 1)
    after = world.step(clicks[1])
    now = Cited(1, "", after.observation.messages[0]["content"])
    # Of screens that contradict each other the last one counts.
    if found.valid:
        assert judge(task, "", [before, now]).success and not judge(task, "", [now, before]).success


def _due(task: Task) -> Any:
    for key, wanted in task.meta["goal"].items():
        if task.meta["data"][key] != wanted:
            yield key


def test_sights_of_an_observation() -> None:
    text = 'so <screen app="a" title="T">\n<switch id="s" on="true">S</switch>\n<text id="t"></text></screen> end'
    assert list(sights_of(text)) == [("T", "s", "S", True), ("T", "t", "", None)]
    assert list(sights_of("<screen app='a'><b></screen>")) == [] == list(sights_of("nothing"))


# Other judges


def test_a_model_as_judge() -> None:
    engine = Scripted(
        [('{"valid": true, "success": true}', "eos"), ("x {} no", "eos"), ("", "error"), ('{"valid": true}', "eos")]
    )
    judge = EngineJudge(engine)
    cited = [Cited(3, "stop", "Stopped {evidence}.")]
    assert judge(Task("t", "Go"), "mes{task}sage", cited) == Opinion(True, True)
    asked = str(engine.asked[0].prompt)
    assert "Go" in asked and "mes{task}sage" in asked and "[turn 3] stop\nStopped {evidence}." in asked
    for error in (ValueError, RuntimeError, ValueError):
        with pytest.raises(error):
            judge(Task("t", "Go"), "", cited)
    assert len({r.seed for r in engine.asked}) == 4 and engine.asked[0].sampling.temperature == 0.7
    assert read_opinion('{"valid": false, "success": true} then {"valid": false, "success": true}') == Opinion(
        False, False
    )
    with pytest.raises(UsageError, match="must show the"):
        EngineJudge(engine, template="{task}")


def test_where_judges_come_from(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from assay.environments.opinion import Opinion\ndef judge(task, message, cited): return Opinion(True, True)\n"
    )
    _, found = after(RIGHT, submit([0]), judge=f"{tmp_path / 'own.py'}:judge")
    assert found.passed and found.parts["state"] == 0
    assert isinstance(judge_from(Scripted()), EngineJudge)
    with pytest.raises(UsageError, match="no engine part"):
        Submitted(CORRIDOR, judge="corridr")
    with pytest.raises(UsageError, match="votes 0"):
        Submitted(CORRIDOR, votes=0)


def test_the_judge_of_the_corridor() -> None:
    for actions, evidence, passed, valid in (
        ([RIGHT, STOP], [1], True, 1.0),
        ([RIGHT, STOP], [0], False, 0.0),
        ([STOP], [0], False, 1.0),
        ([RIGHT, STOP], [0, 1], True, 1.0),
    ):
        _, found = after(*actions, submit(evidence))
        assert (found.passed, found.parts["valid"]) == (passed, valid)
        assert found.parts["concise"] == (1 / len(evidence) if passed else 0)


@pytest.mark.slow
def test_its_audit_passes() -> None:
    worlds = Worlds({"name": "submit_evidence", "environment": CORRIDOR, "judge": "corridor"}, workers=2)
    try:
        source = worlds.here().tasks()
        findings = list(audit_environment(worlds, [source[i] for i in range(2)]))
    finally:
        worlds.close()
    assert [f.name for f in findings if not f.passed] == []


def test_it_trains(tmp_path: Path) -> None:
    environment = {
        "name": "submit_evidence",
        "environment": {**CORRIDOR, "rooms": 3},
        "judge": "corridor",
        "rules": "Submit.",
    }
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 512}},
        tasks={"source": {"name": "environment", "environment": environment}, "eval_share": 0.4, "eval_size": 1},
        warmup={"steps": 0},
        method={
            "name": "S099",
            "reward": None,
            "rollout": {"name": "multi_turn", "environment": environment, "turns": 2},
        },
        rollout={"prompts": 2, "group": 3, "max_tokens": 4, "max_rows": 16},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
    )
    steps = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert len(steps) == 2 and all(m["environment/lost"] == 0 for m in steps)
    # Who writes at random submits nothing.
    assert all(m["reward/mean"] == -1 for m in steps)


def test_a_verdict_that_abstains_is_not_learned_from() -> None:
    def away(task: Task, message: str, cited: Sequence[Cited]) -> Opinion:
        raise TimeoutError("no judge")

    _, found = after(RIGHT, submit([0]), judge=away)
    assert found.passed is None and "TimeoutError: no judge" in found.feedback
    _, failed = after(RIGHT, submit([0]), judge=away, unjudged="fail")
    assert failed.passed is False and replace(failed, parts={}).score == 0
