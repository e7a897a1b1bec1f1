"""Universal Verifier: points by hand, evidence and claims, errors charged once, and what becomes of it in training."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acted import played
from claimed import learned
from marked import Critic
from running import metrics

import assay
from assay.audit.environment import audit_environment
from assay.engines.base import Request
from assay.environments.corridor import Corridor
from assay.environments.hosted.worlds import Worlds
from assay.environments.opinion import Cited
from assay.environments.tools import say
from assay.environments.verified.credit import Aim, Mark, process
from assay.environments.verified.environment import TrajectoryVerified
from assay.environments.verified.prompts import read_json
from assay.environments.verified.verifier import TrajectoryVerifier, Unjudged, account_of, aim_of
from assay.errors import UsageError
from assay.media import Picture
from assay.method import make_method
from assay.papers.judges.s189_universal_verifier import agreement, universal_verifier
from assay.types import Episode

pytestmark = pytest.mark.usefixtures("one_thread")

AIMS = (Aim("opens the form", 2.0), Aim("sets the date", 3.0), Aim("pays", 1.0, "if there is a fee"))
TURNS = [Cited(0, "open", "a form"), Cited(1, "set the date", "date 5"), Cited(2, "done", "a receipt")]
RULES = {
    "Write a rubric": [{"text": "opens the form", "points": 2}, "sets the date"],
    "how much does this tell": [0, 10, 5],
    "Taking it at its word": [2, 3, 1],
    "does the criterion apply?": {"applies": True, "points": 1, "controllable": True},
    "An error is charged once": [],
    "Has the user got": {"success": True},
}


def critic(**replies: Any) -> Critic:
    """A judge who replies by what it is asked; replies by a word of the request come before the rules."""

    def reply(prompt: str, k: int) -> str | None:
        for words, said in [*replies.items(), *RULES.items()]:
            if words in prompt:
                found = said(prompt) if callable(said) else said
                return None if found is None else f"So: {json.dumps(found)}"
        raise AssertionError(prompt)

    return Critic(reply)


def judged(judge: Critic, turns: Sequence[Cited] = TURNS, **options: Any) -> Any:
    return TrajectoryVerifier(judge, **options).judged("book it", list(turns), "It is booked.", AIMS)


def test_pictures_are_shown() -> None:
    """A screen's pictures go with what shows it, at their places, and with nothing else; words hold no place."""
    one, two, three = (Picture(bytes([k])) for k in range(3))
    turns = [
        Cited(0, "look at <image>", "a form\n<image>", (one,)),
        Cited(1, "write <image>", "the word <image>"),
        Cited(2, "done", "<image> and <image>", (two, three)),
    ]
    judge = critic(**{"how much does this tell": lambda p: [10, 0, 10] if "[1]" in p else [0, 5, 9]})
    TrajectoryVerifier(judge, top=2).judged("book <image>", turns, "Booked <image>.", AIMS)
    asked: dict[str, list[Any]] = {}
    for request in judge.asked:
        prompt: Any = request.prompt
        text, images = (prompt, []) if isinstance(prompt, str) else (prompt[0]["content"], prompt[0]["images"])
        assert not images or text.count("<image>") == len(images)
        words = next(words for words in RULES if words in text)
        asked.setdefault(words, []).append(images)
    assert asked["how much does this tell"] == [[one], [], [two, three]]
    assert asked["does the criterion apply?"] == [[two, three], [one, two, three], [two, three]]
    assert asked["Has the user got"] == [[one, two, three]] and asked["Taking it at its word"] == [[]]


SHOT = Picture(b"png")


class Seen(Corridor):
    """A corridor that shows a picture of itself."""

    def step(self, action: Any) -> Any:
        step = super().step(action)
        [message, *rest] = step.observation.messages
        shown = {**message, "content": f"<image>\n{message['content']}", "images": [SHOT]}
        return replace(step, observation=replace(step.observation, messages=(shown, *rest)))


def test_pictures_of_an_environment_are_kept() -> None:
    world = TrajectoryVerified(critic(), environment=f"{__file__}:Seen")
    task = world.tasks()[0]
    world.reset(task, 0)
    world.step(say("right"))
    assert world.turns[0].images == (SHOT,) and world.turns[0].observation.startswith("<image>\n")


def test_process_by_hand() -> None:
    """(3 + 1 + 1) / (3 + 2 + 1) of what applies, where all points would be 5 / 10; what was blocked earns all."""
    marks = [Mark(3, 3), Mark(1, 2), Mark(0, 4, applies=False), Mark(1, 1)]
    assert process(marks) == pytest.approx(0.833333, abs=1e-6)
    assert process([Mark(2, 2), Mark(1, 3, blocked=True)]) == 1.0
    assert process([Mark(2, 2), Mark(1, 3)]) == pytest.approx(0.6)
    assert process([Mark(0, 4, applies=False)]) is None and process([]) is None
    assert process([Mark(0, 2), Mark(1, 4, first=0, as_if=3)]) == 0.5
    assert process([Mark(0, 2), Mark(2, 4, first=0, as_if=1)]) == pytest.approx(1 / 3), "never less than it has earned"


def test_the_rubric_knows_the_task_alone() -> None:
    """It is asked for once, by the task's text, before and whatever an agent does."""
    judge = critic()
    verifier = TrajectoryVerifier(judge)
    assert verifier.rubric("book it") == (Aim("opens the form", 2.0), Aim("sets the date", 1.0))
    rubric = str(judge.asked[0].prompt)
    assert "marked:\nbook it\n" in rubric and "receipt" not in rubric
    judge.asked.clear()
    assert verifier.rubric("book it") and not judge.asked and judge.asked == []
    for bad in ([], [{"text": "x"}], [{"text": "x", "points": 0}], [3], {"a": 1}, None):
        with pytest.raises(Unjudged):
            TrajectoryVerifier(critic(**{"Write a rubric": bad})).rubric("x")
    assert aim_of({"text": "pays", "points": "2", "condition": "if due"}) == Aim("pays", 2.0, "if due")


def test_evidence_by_criterion() -> None:
    """Turn 1 tells most of the date; of equal ones the later is looked at, and screens stand in their order."""
    told = {"a form": [9, 0, 1], "date 5": [0, 10, 1], "a receipt": [9, 3, 1]}

    def relevant(prompt: str) -> list[int]:
        return next(row for seen, row in told.items() if seen in prompt)

    judge = critic(**{"how much does this tell": relevant})
    found = judged(judge, top=1)
    assert found.relevance == ((9.0, 0.0, 1.0), (0.0, 10.0, 1.0), (9.0, 3.0, 1.0))
    seen = [str(r.prompt) for r in judge.asked if "does the criterion apply?" in str(r.prompt)]
    shown = [p.partition("showed:\n")[2].partition("\n\nBy what")[0] for p in seen]
    assert shown == ["[2] done\na receipt", "[1] set the date\ndate 5", "[2] done\na receipt"]
    assert "Criterion: pays (1 points; if there is a fee)\n" in seen[2]
    [outcome] = [str(r.prompt) for r in judge.asked if "Has the user got" in str(r.prompt)]
    assert "[1] set the date\ndate 5\n\n[2] done\na receipt" in outcome and "a form" not in outcome
    looked = [r for r in judge.asked if "how much does this tell" in str(r.prompt)]
    assert len(looked) == 3, "every screen is looked at"
    last = TrajectoryVerifier(critic(), top=2, evidence="last")
    assert last.chosen((), 0, 3) == [1, 2] and last.relevance("t", AIMS, TURNS) == ()
    assert TrajectoryVerifier(critic()).chosen([[1.0]] * 9, 0, 9) == [4, 5, 6, 7, 8], "five of a criterion"


def test_claims_are_contradicted() -> None:
    """The account would earn 2, 3 and 1; screens show 1 each."""
    judge = critic()
    found = judged(judge)
    assert [(m.earned, m.claimed, m.contradicted) for m in found.marks] == [(1, 2, True), (1, 3, True), (1, 1, False)]
    [claims] = [str(r.prompt) for r in judge.asked if "Taking it at its word" in str(r.prompt)]
    assert account_of(TURNS, "It is booked.") in claims and "receipt" not in claims
    assert account_of(TURNS, "Yes.") == "[0] open\n[1] set the date\n[2] done\nLast words: Yes."
    word = judged(critic(), evidence="account")
    assert word.process == 1.0 and not any(m.contradicted for m in word.marks)
    assert judged(critic(**{"Taking it at its word": [9, 9, 9]}), evidence="account").process == 1.0


def test_what_applies_and_what_could_not_be_helped() -> None:
    """Only a criterion with a condition may not apply; what was lost by a wall is not charged."""
    said = {"applies": False, "points": 0, "controllable": False}
    found = judged(critic(**{"does the criterion apply?": said}))
    assert [(m.applies, m.blocked, m.credit) for m in found.marks] == [
        (True, True, 2),
        (True, True, 3),
        (False, True, 1),
    ]
    assert found.process == 1.0
    full = judged(critic(**{"does the criterion apply?": {"applies": True, "points": 9, "controllable": False}}))
    assert [(m.earned, m.blocked) for m in full.marks] == [(2, False), (3, False), (1, False)]
    bare = judged(critic(**{"does the criterion apply?": lambda p: {"applies": "fee" not in p, "points": 1}}))
    assert [m.applies for m in bare.marks] == [True, True, False] and bare.process == pytest.approx(0.4)


def test_an_error_is_charged_once() -> None:
    """A wrong date loses 2 points of its criterion, and no more of the next, which would have earned all."""
    rows = [{"criterion": 2, "first": 1, "points": 3}, {"criterion": 1, "first": 2, "points": 2}]
    judge = critic(**{"An error is charged once": rows})
    found = judged(judge)
    assert [m.first for m in found.marks] == [None, 0, None]
    assert found.process == pytest.approx((1 + 3 + 1) / 6)
    [asked] = [str(r.prompt) for r in judge.asked if "An error is charged once" in str(r.prompt)]
    assert (
        "1. opens the form (2 points): earned 1\n2. sets the date (3 points): earned 1\n" in asked
        and "pays" not in asked
    )
    one = critic(
        **{
            "does the criterion apply?": lambda p: {
                "applies": True,
                "points": 9 * ("date" not in p.split("All that")[0]),
            }
        }
    )
    assert judged(one).process == 0.5 and not any("charged once" in str(r.prompt) for r in one.asked)


def test_process_and_outcome_are_apart() -> None:
    blocked = critic(
        **{
            "Has the user got": {"success": False},
            "does the criterion apply?": {"applies": True, "points": 0, "controllable": False},
        }
    )
    found = judged(blocked)
    assert found.process == 1.0 and found.success is False
    shortcut = judged(critic())
    assert shortcut.success is True and shortcut.process == pytest.approx(0.5)
    [asked] = [str(r.prompt) for r in blocked.asked if "Has the user got" in str(r.prompt)]
    assert "points" not in asked and "It is booked." in asked


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("Taking it at its word", [1, 2]),
        ("Taking it at its word", [1, 2, True]),
        ("Taking it at its word", None),
        ("how much does this tell", {"a": 1}),
        ("does the criterion apply?", {"points": 1}),
        ("does the criterion apply?", {"applies": True}),
        ("An error is charged once", [{"criterion": 2}]),
        ("An error is charged once", ["x"]),
        ("Has the user got", {"success": "yes"}),
        ("Has the user got", []),
    ],
)
def test_a_judge_that_fails_abstains(words: str, said: Any) -> None:
    with pytest.raises(Unjudged):
        judged(critic(**{words: said}))
    task = Corridor(rooms=2).tasks()[0]
    task = type(task)(
        task.id,
        task.prompt,
        task.reference,
        task.kind,
        meta={**task.meta, "rubric": [{"text": x, "points": 2} for x in "abc"]},
    )
    world = TrajectoryVerified(critic(**{words: said}), {"name": "corridor", "rooms": 2})
    *_, verdict = played(world, task, [say("stop")])
    assert verdict.passed is None and verdict.fault == "infrastructure" and "state" in verdict.parts


def test_what_a_reply_ends_with() -> None:
    assert read_json('well {"a": [1]} so') == {"a": [1]} and read_json("x [1, 2]") == [1, 2]
    for bad in ("nothing", "} {", "[1", "[" * 100_000 + "]"):
        with pytest.raises(ValueError):  # noqa: PT011
            read_json(bad)


def test_agreement_with_people() -> None:
    """Gold 1111110000, verdicts 1111111000: kappa .7826, one failure in four passes; 1111000000 misses two of six."""
    people = [True] * 6 + [False] * 4
    found = agreement([True] * 7 + [False] * 3, people)
    assert found.kappa.value == pytest.approx(0.7826, abs=1e-4) and (found.false, found.missed) == (0.25, 0.0)
    found = agreement([True] * 4 + [False] * 6, people)
    assert found.kappa.value == pytest.approx(0.6154, abs=1e-4) and found.false == 0.0
    assert found.missed == pytest.approx(1 / 3) and agreement([True], [True]).false is None
    assert agreement([True], [False]).missed is None


class Walls:
    """A judge of corridors: who has stopped in the room that is asked for has done it."""

    def encode(self, prompt: Any) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def decode(self, tokens: Any) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        none, out = np.zeros(0, dtype=np.int64), []
        for request in requests:
            text = json.dumps(self.said(str(request.prompt)))
            out.append([Episode(none, none, none > 0, None, text, "eos")])
        return out

    def said(self, prompt: str) -> Any:
        room = re.search(r"room (\d+)", re.split(r"[Ss]top in", prompt, maxsplit=1)[-1])
        there = room is not None and f"Stopped in room {room[1]}." in prompt
        if "Write a rubric" in prompt:
            return ["gets there"]
        if "how much does this tell" in prompt:
            return [10 * ("Stopped" in prompt)]
        if "Taking it at its word" in prompt:
            return [1]
        if "does the criterion apply?" in prompt:
            return {"applies": True, "points": int(there)}
        return {"success": there}


WALLS = {"name": f"{Path(__file__)}:Walls"}
WORLD = {"name": "corridor", "rooms": 2, "moves": 3}


def test_a_world_is_judged_by_a_model() -> None:
    world = TrajectoryVerified(WALLS, WORLD)
    for task in (world.tasks()[0], world.tasks()[1]):
        world.reset(task, 0)
        *_, right = played(TrajectoryVerified(WALLS, WORLD), task, list(world.gold()))
        assert right.passed and right.parts["process"] == right.parts["well"] == right.parts["state"] == 1.0
        *_, wrong = played(TrajectoryVerified(WALLS, WORLD), task, [say("left")])
        assert wrong.passed is False and wrong.parts["process"] == wrong.parts["well"] == 0.0
        assert [v for k, v in wrong.parts.items() if "contradictions" in k] == [1.0] and wrong.feedback == "gets there"
    for bad in ({"threshold": 1.1}, {"top": 0}, {"max_tokens": 0}):
        with pytest.raises(UsageError):
            TrajectoryVerified(WALLS, WORLD, **bad)
    odd = type(task)(task.id, task.prompt, task.reference, task.kind, meta={**task.meta, "rubric": [3]})
    with pytest.raises(UsageError, match="the rubric of task"):
        played(TrajectoryVerified(WALLS, WORLD), odd, [say("stop")])


def test_a_good_process_begins_at_its_threshold() -> None:
    """0.5 of the points: well from a threshold of 0.5 on."""
    task = Corridor(rooms=2).tasks()[0]
    rubric = [{"text": a.text, "points": a.points, "condition": a.condition} for a in AIMS]
    task = type(task)(task.id, task.prompt, task.reference, task.kind, meta={**task.meta, "rubric": rubric})
    for threshold, well in ((0.5, 1.0), (0.51, 0.0)):
        *_, found = played(TrajectoryVerified(critic(), WORLD, threshold=threshold), task, [say("stop")])
        assert found.parts["process"] == 0.5 and found.parts["well"] == well
        assert [found.parts[f"criterion {k}"] for k in (1, 2, 3)] == [0.5, pytest.approx(1 / 3), 1.0]


@pytest.mark.slow
def test_the_audit_passes() -> None:
    worlds = Worlds({"name": "trajectory_verified", "judge": WALLS, "environment": WORLD}, 1)
    source = worlds.here().tasks()
    try:
        findings = list(audit_environment(worlds, [source[i] for i in range(2)]))
    finally:
        worlds.close()
    assert [f.name for f in findings if not f.passed] == []


def test_the_method() -> None:
    made = universal_verifier(WALLS)
    world = {"name": "trajectory_verified", "judge": WALLS, "environment": "screens", "top": 5, "threshold": 0.8}
    assert made.rollout == {"name": "multi_turn", "environment": world, "turns": 30}
    assert make_method("S189", options={"judge": WALLS, "process_weight": 0.25}).reward is not None
    with pytest.raises(UsageError, match="process_weight -1"):
        universal_verifier(WALLS, process_weight=-1)


def test_screens_tell_lies() -> None:
    arms = {
        arm: learned("S189", arm, trajectories=40) for arm in ("relevant screens", "last screens", "the agent's word")
    }
    relevant, last, word = arms.values()
    assert relevant["false"] == relevant["missed"] == relevant["process"] == 0.0 and relevant["right"] == 1.0
    assert word["false"] == 1.0 >= last["false"] > 0.2 and last["missed"] == 0.0 and last["honest"] == 1 - last["false"]


def test_it_trains(tmp_path: Path) -> None:
    world = {"name": "corridor", "rooms": 4, "moves": 3}
    assay.train(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 600}},
            "tasks": {"source": {"name": "environment", "environment": world}, "eval_size": 1, "eval_share": 0.3},
            "warmup": {"steps": 8, "batch": 4, "lr": 0.01},
            "method": {"name": "S189", "options": {"judge": WALLS, "environment": world, "turns": 3}},
            "rollout": {"prompts": 2, "group": 3, "max_tokens": 6},
            "train": {"steps": 2},
            "evaluate": {"samples": 1},
            "run": {"dir": str(tmp_path / "run"), "report": False, "tensorboard": False},
        },
        quiet=True,
    )
    rows = [row for row in metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert len(rows) == 2 and all("reward/process" in row for row in rows)
