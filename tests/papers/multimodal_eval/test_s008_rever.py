"""REVER: plans matched by hand, what is in form, a drawn table, and plans that are watched as they are carried out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay import catalogue
from assay.audit.environment import audit_environment
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.environments.hosted.worlds import Worlds
from assay.environments.tabletop.environment import PHASE, PLANS, STEP, TABLE, TRIES, TabletopWorld, everything
from assay.environments.tools import say
from assay.errors import UsageError
from assay.lab.settings import load
from assay.tasks.pictures.tabletop import (
    ASKED,
    BLOCKS,
    CLOSE,
    KINDS,
    LIDS,
    OPEN,
    PLACES,
    PUT,
    SKILLS,
    Table,
    Tabletop,
    applied,
    draw,
    laid,
    planned,
    reached,
    said,
)
from assay.types import Ask, Episode, Group, Task, Verdict, pictures
from assay.verify.planning.plan_match import PlanMatch, in_tags
from assay.verify.planning.skills import Line, Skill, in_form, numbered, read_plan, read_skill

TEMPLATES = ["pick [object]", "place [object] [location]", "open [object]", "close [object]"]
RIGHT = ["pick apple", "place apple bowl", "open drawer", "pick spoon"]
G = Task("g", "?", {"skills": TEMPLATES, "plan": RIGHT}, "plan_match")


def answered(*lines: str) -> str:
    return f"<think>hm</think><answer>{numbered(lines)}</answer>"


def test_skills_are_sentences_with_gaps() -> None:
    assert read_skill("place  Apple the bowl", TEMPLATES) == Skill(1, "apple", "the bowl")
    assert read_skill("Pick APPLE.", TEMPLATES) == Skill(0, "apple", "")
    assert read_skill("pick", TEMPLATES) is None and read_skill("pick the pick apple", ["pick apple"]) is None
    assert read_skill("open (it).", ["Open (it)."]) == Skill(0, "", "")
    assert read_skill("Pour A on B in C", ["Pour [x] on [y] in [z]."]) == Skill(0, "a", "b | c")
    assert read_skill("pick can", TEMPLATES, {"can": "tin"}) == Skill(0, "tin", "")
    assert read_skill("pick " + "x" * 295, TEMPLATES) == Skill(0, "x" * 295, "")
    assert read_skill("pick " + "x" * 296, TEMPLATES) is None
    plan = read_plan("1. pick apple\n\n 2) dance\nopen drawer", TEMPLATES)
    assert plan == [Line(1, Skill(0, "apple", "")), Line(2, None), Line(None, Skill(2, "drawer", ""))]


@pytest.mark.parametrize(
    ("plan", "content", "recall", "share"),
    [
        (["pick apple", "open drawer", "place apple bowl", "pick spoon", "close drawer"], 2 / 3, 0.75, 0.6),
        (RIGHT[::-1], 0.25, 0.25, 0.25),
        (RIGHT, 1.0, 1.0, 1.0),
        ([], 0.0, 0.0, 0.0),
        (RIGHT * 2, 2 / 3, 1.0, 0.5),
        (RIGHT[:2], 2 / 3, 0.5, 0.5),
        (["dance", *RIGHT], 8 / 9, 1.0, 0.8),
    ],
)
def test_the_worked_plans(plan: list[str], content: float, recall: float, share: float) -> None:
    """Of five lines three are in order, M = 3: Dice 6 / 9, and of the longer 3 / 5; four turned round leave one."""
    verdict = PlanMatch()(G, answered(*plan))
    assert verdict.score == verdict.parts["content"] == pytest.approx(content)
    assert verdict.parts["recall"] == pytest.approx(recall) and verdict.passed is (plan == RIGHT)
    assert PlanMatch("max")(G, answered(*plan)).score == pytest.approx(share)
    assert verdict.feedback == ("" if plan == RIGHT else f"{recall * 4:g} of 4 skills, in {len(plan)} lines")


def test_the_worked_parts_of_skills() -> None:
    """Sims 1, .8 and .6 make M = 2.4, of three and three lines .8; skills of two words share the empty target."""
    task = replace(G, reference={"skills": TEMPLATES, "plan": RIGHT[:3]})
    plan = answered("pick apple", "place apple plate", "open door")
    judge = PlanMatch(partial=(0.4, 0.4, 0.2))
    assert judge(task, plan).score == pytest.approx(0.8) and judge(task, plan).passed is False
    assert PlanMatch()(task, plan).score == pytest.approx(1 / 3)
    skills = [read_skill(line, TEMPLATES) for line in RIGHT]
    assert skills[1] is not None and judge.like(None, skills[1]) == 0
    for partial in ((0.5, 0.5, 0.5), (1.2, -0.4, 0.2)):
        with pytest.raises(UsageError, match="must be three shares that sum to 1"):
            PlanMatch(partial=partial)
    assert PlanMatch() == PlanMatch("dice", None)


@pytest.mark.parametrize(
    ("response", "form"),
    [
        (answered(*RIGHT), 1),
        (f" {answered('pick apple', 'open drawer')}\n", 1),
        (answered("pick apple", "Pick  apple."), 0),
        (answered("pick apple", "dance"), 0),
        (answered(), 0),
        ("<think></think><answer>1. pick apple\n3. open drawer</answer>", 0),
        ("<think></think><answer>pick apple</answer>", 0),
        ("<think></think>so <answer>1. pick apple</answer>", 0),
        ("hm <think></think><answer>1. pick apple</answer>", 0),
        ("<think></think><answer>1. pick apple</answer>!", 0),
        ("<think><think></think><answer>1. pick apple</answer>", 0),
        ("<answer>1. pick apple</answer>", 0),
        ("</think><think><answer>1. pick apple</answer>", 0),
        ("", 0),
    ],
)
def test_what_is_in_form(response: str, form: int) -> None:
    assert PlanMatch()(G, response).parts["format"] == form
    lines = read_plan(response.partition("<answer>")[2].partition("</answer>")[0], TEMPLATES)
    assert (in_tags(response) and in_form(lines)) == bool(form)


def test_long_plans_and_broken_references() -> None:
    assert PlanMatch()(G, answered(*["pick apple"] * 200)).score == pytest.approx(2 / 204)
    many = PlanMatch()(G, answered(*["pick apple"] * 201))
    assert (many.score, many.passed, many.feedback) == (0, False, "more than 200 lines")
    assert many.parts == {"format": 0, "content": 0, "recall": 0}
    broken: list[Any] = [
        None,
        {},
        {"skills": TEMPLATES},
        {"skills": TEMPLATES, "plan": []},
        {"skills": [], "plan": RIGHT},
    ]
    broken += [
        {"skills": TEMPLATES, "plan": ["dance"]},
        {"skills": "pick", "plan": RIGHT},
        {"skills": [1], "plan": RIGHT},
    ]
    broken += [{"skills": TEMPLATES, "plan": RIGHT, "synonyms": x} for x in (["a"], {"a": 1})]
    for reference in broken:
        verdict = PlanMatch()(replace(G, reference=reference), answered(*RIGHT))
        assert (verdict.passed, verdict.fault) == (None, "tests"), reference
    called = replace(G, reference={"skills": TEMPLATES, "plan": ["pick tin"], "synonyms": {"can": "tin"}})
    assert PlanMatch()(called, answered("pick can")).passed


def test_the_worked_rewards() -> None:
    """Form .1 and nine tenths of the overlap: .7 for three of four skills in five lines, .1 for one in form alone."""
    plans = [
        ["pick apple", "open drawer", "place apple bowl", "pick spoon", "close drawer"],
        RIGHT,
        RIGHT * 2,
        ["close x"],
    ]
    texts = [*(answered(*plan) for plan in plans), "", "broken"]
    one = np.ones(1, dtype=np.int64)
    episodes = tuple(Episode(one, one, one > 0, np.zeros(1, np.float32), text, "eos") for text in texts)
    verdicts = (*(PlanMatch()(G, text) for text in texts[:-1]), Verdict.abstain("broken"))
    batch = Batch.from_groups([Group(Ask(G, len(texts)), episodes, verdicts)], torch.float64)
    made = catalogue.make("S008")
    reward = made.reward(batch)
    assert reward.values.tolist() == pytest.approx([0.7, 1.0, 0.6, 0.1, 0, 0])
    assert reward.valid is not None and reward.valid.tolist() == [True] * 5 + [False]
    other = catalogue.make("S008", form=0.5, content=2.0).reward(batch)
    assert other.values.tolist() == pytest.approx([0.5 + 4 / 3, 2.5, 4 / 3, 0.5, 0, 0])
    assert made.credit == GRPO() and made.objective.aggregation == "sequence_mean"
    made.reward.check_tasks([G])
    with pytest.raises(UsageError, match="task t is of kind 'exact'; what has 'format' is of kind 'plan_match'"):
        made.reward.check_tasks([G, Task("t", "q", "4", "exact")])


TABLE_ = Table(("table", "drawer", "tray", "box"), (False, True))


def test_what_skills_lead_to() -> None:
    """The drawer is closed and has the green block, the box is open and has the yellow one."""
    for skill, leads in (
        (Skill(OPEN, "drawer", ""), TABLE_._replace(open=(True, True))),
        (Skill(OPEN, "box", ""), None),
        (Skill(CLOSE, "box", ""), TABLE_._replace(open=(False, False))),
        (Skill(CLOSE, "drawer", ""), None),
        (Skill(OPEN, "tray", ""), None),
        (Skill(PUT, "red block", "box"), TABLE_._replace(at=("box", "drawer", "tray", "box"))),
        (Skill(PUT, "red block", "drawer"), None),
        (Skill(PUT, "red block", "table"), None),
        (Skill(PUT, "green block", "tray"), None),
        (Skill(PUT, "yellow block", "tray"), TABLE_._replace(at=("table", "drawer", "tray", "tray"))),
        (Skill(PUT, "black block", "tray"), None),
        (Skill(PUT, "red block", "shelf"), None),
    ):
        assert applied(TABLE_, skill) == leads, skill
    goal = (("red block", "drawer"), ("yellow block", "drawer"))
    lines = [said(skill) for skill in planned(TABLE_, goal)]
    put = [f"Put the {block} into the drawer." for block in ("red block", "yellow block")]
    assert lines == ["Open the drawer.", *put, "Close the drawer.", "Close the box."]
    assert [said(s) for s in planned(TABLE_, (("green block", "tray"),))][:2] == [
        "Open the drawer.",
        "Put the green block into the tray.",
    ]
    assert planned(TABLE_, (("blue block", "tray"),)) == [Skill(CLOSE, "box", "")]
    for seed in range(100):
        table, wanted = laid(np.random.default_rng(seed), 3)
        assert not reached(table, wanted) and len({block for block, _ in wanted}) == 3
        for skill in planned(table, wanted):
            after = applied(table, skill)
            assert after is not None and read_skill(said(skill), SKILLS) == skill
            table = after
        assert reached(table, wanted)
    assert len(everything()) == 4 + 16


def test_three_kinds_of_questions_about_a_table() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source, kinds, words = Tabletop(seed=4, pixels=16), Counter[str](), Counter[str]()
    judge = PlanMatch()
    for i in range(90):
        task = source[i]
        kind = task.meta["question"]
        kinds[kind] += 1
        verdict = judge(task, task.solution or "")
        assert verdict.passed and verdict.parts["format"] == 1 and task.kind == "plan_match"
        shown = pictures(task.prompt)
        plan = task.reference["plan"]
        assert len(shown) == (2 if kind == "done" else 1) and task.question.endswith(ASKED[kind])
        assert (len(plan) == 1) if kind != "plan" else 1 <= len(plan) <= 8
        assert task.meta["difficulty"] == len(plan) and task.reference["skills"] == list(
            ("yes", "no") if kind == "done" else SKILLS
        )
        if kind == "done":
            assert (shown[0] == shown[1]) == (plan == ["no"]) or "Put" in task.question
            words.update(plan)
    assert set(kinds) == set(KINDS) and min(kinds.values()) > 15 and min(words["yes"], words["no"]) > 5
    assert source[3] == Tabletop(seed=4, pixels=16)[3] != source[4] and source[3].id == "tabletop/4/3"
    plain = Tabletop()
    assert (plain.seed, plain.kinds, plain.moves, plain.pixels, plain.size) == (0, KINDS, 2, 24, None)
    for wrong in ({"kinds": ()}, {"moves": 0}, {"moves": 5}, {"pixels": 15}, {"pixels": 257}):
        with pytest.raises(UsageError, match="tasks 'tabletop': it needs kinds"):
            Tabletop(**wrong)
    with pytest.raises(UsageError, match="seed -1"):
        Tabletop(seed=-1)
    Tabletop(moves=4, pixels=256)


def test_the_picture_shows_what_is_open() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    image = np.asarray(draw(TABLE_, 24))
    assert image.shape == (24, 96, 3)
    colours = {
        block: np.array([[220, 30, 30], [20, 160, 40], [40, 60, 220], [235, 200, 20]][i])
        for i, block in enumerate(BLOCKS)
    }
    for i, block in enumerate(BLOCKS):
        columns = {int(x) // 24 for _, x in np.argwhere((image == colours[block]).all(-1))}
        place = TABLE_.at[i]
        assert columns == (set() if place == "drawer" else {PLACES.index(place)}), block
    brown = (image == (120, 80, 40)).all(-1)
    assert brown[12, 60] and not brown[12, 84] and brown[2, 74], "a lid lies on the drawer, and stands at the box"


def world(**options: Any) -> TabletopWorld:
    made = TabletopWorld(**options)
    made.reset(made.tasks()[0], 0)
    return made


def test_the_closed_loop() -> None:
    """A hand that always fails: a step is tried three times, then comes another plan, and after two plans the end."""
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    made = world(failure=0.999999, retries=2, plans=2)
    seen = made.reset(made.tasks()[0], 0)
    assert len(seen.messages[0].get("images", ())) == 1 and "is to be in the" in seen.messages[0]["content"]
    plan = made.plan(made.state)[0]
    step = made.step(say(f"<think>a</think><answer>{plan}</answer>"))
    assert "Is this step done?" in step.observation.messages[0]["content"]
    assert len(step.observation.messages[0].get("images", ())) == 2 and made.state[PHASE] == "check"
    for tries in (1, 2):
        made.step(say("<answer>1. no</answer>"))
        assert (made.state[PHASE], made.state[TRIES], made.state[STEP]) == ("check", tries, 0)
    made.step(say("maybe"))
    assert made.state[TRIES] == 2, "what is no answer changes nothing"
    made.step(say("No"))
    assert (made.state[PHASE], made.state[PLANS], made.state[TRIES]) == ("plan", 2, 0)
    assert not made.step(say("dance")).valid and made.state[PHASE] == "plan"
    made.step(say(plan))
    for _ in range(3):
        step = made.step(say("no"))
    assert step.terminated and made.verdict().passed is False and made.verdict().parts["drawer closed"] is not None

    sure = world(failure=0.0)
    steps = sure.plan(sure.state)
    assert steps[1:] == ["yes"] * (len(steps) - 1) and len(steps) == 1 + len(
        planned(Table(*sure.state[TABLE]), sure.goal)
    )
    for line in steps[:-1]:
        assert not sure.step(say(line)).terminated
    assert len(sure.state[-1]) == len(steps) - 2 and sure.state[-1][0] in steps[0]
    assert sure.step(say("yes")).terminated and sure.verdict().passed

    blind = world(failure=0.0, monitor="none")
    assert blind.step(say(blind.plan(blind.state)[0])).terminated and blind.verdict().passed
    lost = world(failure=0.999999, monitor="none")
    assert lost.step(say(lost.plan(lost.state)[0])).terminated and not lost.verdict().passed
    done = world()
    assert done.step(say("Done")).terminated and not done.verdict().passed
    wrong = world(failure=0.0, monitor="true", mistaken=1.0, retries=0, plans=2)
    wrong.step(say(wrong.plan(wrong.state)[0]))
    # It was done, he says it was not: the rest is planned from what the table is like.
    assert wrong.state[PHASE] == "plan" and wrong.state[PLANS] == 2 and wrong.state[-1] == ()
    assert len(planned(Table(*wrong.state[TABLE]), wrong.goal)) == len(steps) - 2


def test_options_of_the_environment_are_checked() -> None:
    for options in (
        {"failure": 1.0},
        {"failure": -0.1},
        {"mistaken": 1.1},
        {"mistaken": -0.1},
        {"retries": -1},
        {"plans": 0},
        {"turns": 0},
    ):
        with pytest.raises(UsageError, match=r"failure .* must be in"):
            TabletopWorld(**options)  # type: ignore[arg-type]
    for other in ({"moves": 0}, {"moves": 5}, {"pixels": 15}, {"pixels": 257}):
        with pytest.raises(UsageError, match="must be 16 to 256"):
            TabletopWorld(**other)  # type: ignore[arg-type]
    plain = TabletopWorld()
    assert (plain.monitor, plain.failure, plain.retries, plain.plans) == ("policy", 0.3, 2, 3)
    assert (plain.mistaken, plain.pixels, plain.moves, plain.tasks().moves) == (0.0, 24, 40, 2)
    with pytest.raises(UsageError, match="task t has no table"):
        plain.reset(Task("t", "?"), 0)


@pytest.mark.slow
def test_its_audit_passes() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    worlds = Worlds({"name": "tabletop"}, workers=2)
    try:
        source = worlds.here().tasks()
        findings = list(audit_environment(worlds, [source[i] for i in range(4)]))
    finally:
        worlds.close()
    assert [(f.name, f.first) for f in findings if not f.passed] == []


def test_the_setting() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    setting = load("watched_plans", {"episodes": 12})
    watched = setting.run({"monitor": "true", "mistaken": 0.1}, 0, Path())
    blind = setting.run({"monitor": "none"}, 0, Path())
    sure = setting.run({"monitor": "true"}, 0, Path())
    assert blind["reached"] < watched["reached"] < sure["reached"] == 1 and blind["met"] < watched["met"] < sure["met"]
    assert watched["rollouts"] == blind["rollouts"] == 12


def test_it_trains(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    letters = "".join(
        sorted({*"<think>/answer 123. ", *"".join(SKILLS), *"".join((*BLOCKS, *LIDS, *PLACES, *ASKED.values()))})
    )
    letters = "".join(
        sorted({*letters, *"Inthis order,d block is to be.In the end drawer and box are closed.;SP?yesno"})
    )
    nano = {"hidden": 32, "layers": 1, "heads": 2, "context": 640, "alphabet": letters}
    folder = run(
        tmp_path / "run",
        model={"nano": {**nano, "vision": {"hidden": 16, "layers": 1, "pixels": 16}}},
        tasks={"source": {"name": "tabletop", "kinds": ["done"], "moves": 1, "pixels": 16}, "eval_size": 2},
        method={"name": "S008", "reward": None},
        warmup={"steps": 30, "batch": 4, "lr": 2e-2},
        rollout={"prompts": 2, "group": 4, "max_tokens": 48},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
        run={"checkpoint_every": 100},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2
    for row in rows:
        assert row["reward/mean"] == pytest.approx(0.1 * row["reward/format"] + 0.9 * row["reward/content"])
    assert rows[0]["reward/format"] > 0, "the warm-up has shown it what responses look like"
