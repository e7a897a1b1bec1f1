"""InfiGUI-R1: the worked rewards, bottlenecks, ways back from real mistakes, and a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run
from scripted import Scripted, Shared

from assay import catalogue
from assay.batch import Batch
from assay.credit.rloo import RLOO
from assay.engines.base import Sampling
from assay.environments.screens.environment import Screens
from assay.environments.screens.steps import StepTasks, subgoal
from assay.environments.screens.widgets import Screen, Widget
from assay.environments.tools import say
from assay.errors import UsageError
from assay.lab.settings.reasoning.subgoals import Setting
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.sft import SFT
from assay.registry import build
from assay.rewards.process.subgoal import SubgoalReward, read_score, shared_words, thought_of
from assay.rollout.single_turn import SingleTurn
from assay.rollout.turns.bottleneck import Bottleneck
from assay.rollout.turns.recovering import Recovering, prone_to_error, wrong_of
from assay.types import Ask, Episode, Group, Origin, Task, Verdict
from assay.verify.episodes import judge_groups
from assay.verify.gestures.gesture import Gesture
from assay.verify.make import by_kind, make_verifier

pytestmark = pytest.mark.usefixtures("one_thread")

GESTURE = make_verifier("gesture")
AGENT = Task(
    "t", "?", {"gesture": "click a", "box": [100, 100, 200, 200], "target": "a"}, "gesture", meta={"subgoal": "open A"}
)


def judge(groups: Sequence[Group]) -> list[Group]:
    return judge_groups(by_kind(), groups)


def batch_of(*responses: str, task: Task = AGENT, verdicts: Sequence[Verdict] | None = None) -> Batch:
    none = np.zeros(0, dtype=np.int64)
    made = [Episode(none, np.zeros(2, dtype=np.int64), np.ones(2, dtype=bool), None, r, "eos") for r in responses]
    found = verdicts or [by_kind()(task, r) for r in responses]
    return Batch.from_groups([Group(Ask(task, len(made)), tuple(made), tuple(found))], torch.float64)


def scored(thought: str, goal: str) -> float:
    return {"seven": 7.0, "five": 5.0, "much": 99.0, "less": -3.0}.get(thought, 0.0)


RESPONSES = ("<think>x</think>click a", "<think>seven</think>click b", "<think>five</think>swipe up", "click a")


def test_the_worked_rewards() -> None:
    found = SubgoalReward(scorer=scored)(batch_of(*RESPONSES))
    assert found.values.tolist() == pytest.approx([1.0, 0.406, 0.19, 0.0])
    assert found.terms["subgoal"].tolist() == [0, 7, 5, 0] and found.terms["form"].tolist() == [1, 1, 1, 0]
    assert found.terms["answer"].tolist() == pytest.approx([1, 0.34, 0.1, 0])
    bounds = SubgoalReward(scorer=scored)(batch_of("<think>much</think>click b", "<think>less</think>click b"))
    assert bounds.values.tolist() == pytest.approx([0.1 + 0.9 * 0.4, 0.1 + 0.9 * 0.2])
    own = SubgoalReward(form=0.0, answer=1.0, type=0.5, param=0.5, subgoal=1.0, scorer=scored)(batch_of(*RESPONSES))
    assert own.values.tolist() == pytest.approx([1.0, 1.2, 0.5, 0.0])
    without = Task("u", "?", AGENT.reference, "gesture")
    assert SubgoalReward(scorer=scored)(batch_of(RESPONSES[1], task=without)).values.tolist() == pytest.approx([0.28])
    lost = batch_of(RESPONSES[0], verdicts=[Verdict.abstain("away", "infrastructure")])
    assert SubgoalReward()(lost).valid.tolist() == [False]  # type: ignore[union-attr]


def test_the_form() -> None:
    reward = SubgoalReward(form=1.0, answer=0.0)
    texts = (
        "<think>a</think>click a",
        " <think>a\nb</think>\n click a",
        "<think></think>click a",
        "<think>a</think> ",
        "a<think>b</think>c",
    )
    assert reward(batch_of(*texts)).values.tolist() == [1, 1, 0, 0, 0]
    assert thought_of("<think> so\nthen </think> a") == "so\nthen" and thought_of("a") == ""
    for options in ({"form": -1}, {"subgoal": -0.1}, {"pattern": "("}, {"scorer": "wrds"}):
        with pytest.raises(UsageError):
            SubgoalReward(**options)  # type: ignore[arg-type]


def test_right_parameters_leave_the_thought_unread() -> None:
    asked: list[str] = []

    def noting(thought: str, goal: str) -> float:
        asked.append(thought)
        return 10.0

    found = SubgoalReward(scorer=noting)(
        batch_of(
            "<think>seven</think>click a", "<think>five</think>click 0.15 0.15", "<think>q</think>click b", "click b"
        )
    )
    assert asked == ["q"] and found.values.tolist() == pytest.approx([1.0, 1.0, 0.1 + 0.9 * 0.4, 0.0])


def test_points_and_boxes() -> None:
    """Right in the box; IoU over tau below it. These verdicts have no parts of agents, and count by their score."""
    assert GESTURE(AGENT, "<think>x</think>click 0.2 0.2").passed and not GESTURE(AGENT, "click 0.2001 0.2").passed
    box = build("verify", {"name": "box", "threshold": 0.7, "score": "ramp"})
    task = Task("b", "?", {"box": [0, 0, 100, 100]}, "box")
    # Of 100 x 100: three quarters of it; 35 x 100.
    verdicts = [box(task, f"[0, 0, {x}, 100]") for x in (75, 35)]
    assert [v.score for v in verdicts] == pytest.approx([1, 0.5]) and [v.passed for v in verdicts] == [True, False]
    found = SubgoalReward()(batch_of("<think>a</think>b", "<think>a</think>b", task=task, verdicts=verdicts))
    assert found.values.tolist() == pytest.approx([1.0, 0.55])


@pytest.mark.parametrize(
    ("wanted", "said", "kind", "right"),
    [
        ("click a", "click a", 1, True),
        ("click a", "<think>click b</think>\n<action>click a</action> so", 1, True),
        ("click a", "click b", 1, False),
        ("click a", "press back", 0, False),
        ("click a", "first\nclick a", 1, True),
        ("click 0.15 0.15", "click a", 1, True),
        ("click 0.15 0.15", "click 0.11 0.19", 1, True),
        ('type f "Ada"', 'type f "Ada "', 1, True),
        ('type f "Ada"', 'type g "Ada"', 1, False),
        ('type f "Ada"', 'type "Ada"', 1, True),
        ('type "Ada"', 'type f "ada"', 1, False),
        ("swipe up", "swipe down", 1, False),
        ("press back", "press back", 1, True),
        ("wait", "wait", 1, True),
        ("terminate success", "terminate failure", 1, False),
    ],
)
def test_gestures_by_kind_and_parameters(wanted: str, said: str, kind: int, right: bool) -> None:
    spec = {"gesture": wanted, "focus": "f"}
    spec |= {"box": [100, 100, 200, 200], "target": "a"} if wanted.startswith("click") else {}
    found = GESTURE(Task("t", "?", spec, "gesture"), said)
    assert (found.parts["type"], found.passed, found.score) == (kind, right, float(right)) and found.parts["read"] == 1


def test_what_is_no_gesture() -> None:
    for said in ("", "jump", "<think>click a</think>", "<action></action>"):
        found = GESTURE(AGENT, said)
        assert found.passed is False and set(found.parts.values()) == {0.0}
    for reference in (None, {}, {"gesture": "jump"}, "click a"):
        found = GESTURE(Task("t", "?", reference, "gesture"), "click a")
        assert found.passed is None and found.fault == "tests"
    assert GESTURE(Task("t", "?", {"gesture": "click a"}, "gesture"), "click 0.1 0.1").passed is False


def test_a_model_scores_thoughts() -> None:
    engine = Scripted([("7", "eos"), ("11", "eos"), ("", "error")])
    thoughts = ("<think>one</think>click b", "<think>two</think>click b", "<think>three</think>click b")
    found = SubgoalReward(scorer=engine)(batch_of(*thoughts))
    assert found.valid is not None and found.valid.tolist() == [True, False, False]
    assert found.values[0] == pytest.approx(0.406)
    asked = [str(r.prompt) for r in engine.asked]
    assert "Thought: one\nWhat the step is for: open A" in asked[0] and engine.asked[0].sampling.temperature == 0
    assert not SubgoalReward(scorer=Scripted())(batch_of("<think>a</think>click a")).terms["subgoal"].any()
    assert (read_score("10."), read_score(" 7.5 of 10"), read_score("none"), read_score("10.5")) == (
        10,
        7.5,
        None,
        None,
    )


def test_words_that_are_shared(tmp_path: Path) -> None:
    assert shared_words("I open the Network", "open Network") == 10
    assert shared_words("I open it", "open Network") == 5 and shared_words("", "open") == 0 == shared_words("a", "")
    (tmp_path / "own.py").write_text("def score(thought, subgoal): return 7\n")
    found = SubgoalReward(scorer=f"{tmp_path / 'own.py'}:score")(batch_of(RESPONSES[1]))
    assert found.values.tolist() == pytest.approx([0.406])


def test_the_worked_advantages(make_batch: Any) -> None:
    found = RLOO()(make_batch([1, 1, 1, 1], [1.0, 0.406, 0.19, 1.0]))
    assert found[:, 0].tolist() == pytest.approx([0.468, -0.324, -0.612, 0.468], abs=5e-4)


# Steps, and the way back


def steps(names: Sequence[Any] = ("settings",)) -> StepTasks:
    return Screens(names).steps()


def first(source: StepTasks, step: int, least: int = 4) -> Task:
    """The first task that is this step of a plan of at least so many."""
    found = (source[i] for i in range(200))
    return next(t for t in found if t.meta["step"] == step and len(t.prompt) and _length(source, t) >= least)


def _length(source: StepTasks, task: Task) -> int:
    world = source.make()
    world.reset(world.tasks()[task.meta["episode"]], 0)
    return len(world.gold())


def test_a_step_is_one_of_its_plan() -> None:
    source = steps(("settings", "mail", "shop"))
    for index in range(12):
        task, world = source[index], Screens(["settings", "mail", "shop"])
        world.reset(world.tasks()[index], 0)
        lines = [a.text for a in world.gold()]
        at = task.meta["step"]
        for line in lines[:at]:
            world.step(say(line))
        assert task.reference["gesture"] == lines[at] and world.show(world.state) in task.prompt
        assert "\n".join(lines[:at]) in task.prompt and world.task.meta["instruction"] in task.prompt
        assert by_kind()(task, lines[at]).passed and task.hints == (f"Next: {task.meta['subgoal']}",)
        assert source[index] == task
    assert len({source[i].meta["step"] for i in range(12)}) > 3


def test_sub_goals_in_words() -> None:
    widgets = (
        Widget("s", "switch", "Wi-Fi", False, box=(0, 0, 10, 10)),
        Widget("o", "switch", "VPN", True),
        Widget("i", "item", "Network"),
        Widget("b", "button", "Save"),
        Widget("f", "field", ""),
    )
    seen = Screen("a", "Page", widgets, focus="f")
    for gesture, words in (
        (Gesture("click", "s"), "turn on Wi-Fi"),
        (Gesture("click", "o"), "turn off VPN"),
        (Gesture("click", point=(0.005, 0.005)), "turn on Wi-Fi"),
        (Gesture("click", "i"), "open Network"),
        (Gesture("click", "b"), "press Save"),
        (Gesture("click", "f"), "select the field f"),
        (Gesture("type", text="Ada"), "enter Ada into f"),
        (Gesture("swipe", text="up"), "look further down the page Page"),
        (Gesture("press", text="home"), "go back to the first page"),
        (Gesture("terminate", text="success"), "say that the task is done"),
    ):
        assert subgoal(gesture, seen) == words


def test_ways_back_by_hand() -> None:
    source = steps()
    task = first(source, 1)
    world = Screens(["settings"])
    world.reset(world.tasks()[task.meta["episode"]], 0)
    lines = [a.text for a in world.gold()]
    world.step(say(lines[0]))
    before = world.show(world.state)
    escape, again = source.recovery(task, "click back")
    world.step(say("click back"))
    # A real mistake: what is seen is what it has led to.
    assert world.show(world.state) in escape.prompt and before not in escape.prompt
    assert escape.reference["gesture"] == "press back" and f"{lines[0]}\nclick back\nOn" in escape.prompt
    assert before in again.prompt and again.reference == task.reference
    assert f"{lines[0]}\nclick back\npress back\nOn" in again.prompt
    assert [t.meta["recovery"] for t in (escape, again)] == ["escape", "again"]
    assert len({t.id for t in (task, escape, again)}) == 3 and again.meta["subgoal"] == task.meta["subgoal"]
    # What cannot be made is no mistake to come back from.
    assert source.recovery(task, "click nothing_there") == [] == source.recovery(task, "jump")


class Says:
    """An engine that says the same responses to every prompt, and what it was asked."""

    def __init__(self, *responses: str):
        self.responses, self.asked = responses, list[str]()

    def encode(self, prompt: Any) -> np.ndarray:
        return np.array([ord(c) for c in str(prompt)], dtype=np.int64)

    encode_response = encode

    def decode(self, tokens: Any) -> str:
        return "".join(map(chr, tokens))

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        out = []
        for request in requests:
            self.asked.append(str(request.prompt))
            texts = [self.responses[i % len(self.responses)] for i in range(request.n)]
            tokens = [self.encode(t) for t in texts]
            out.append(
                [
                    Episode(self.encode(request.prompt), t, t > 0, None, x, "eos")
                    for t, x in zip(tokens, texts, strict=True)
                ]
            )
        return out


def recovering(task: Task, *responses: str, n: int = 4, **options: Any) -> tuple[list[Group], Recovering]:
    rollout = Recovering(Sampling(8), judge, {"name": "screens", "names": ["settings"]}, **options)
    return rollout.collect([Ask(task, n)], Says(*responses), np.random.default_rng(0)), rollout  # type: ignore[arg-type]


def test_ways_back_are_asked_beside_the_step() -> None:
    task = first(steps(), 1)
    right = task.reference["gesture"]
    groups, rollout = recovering(task, right, "jump", "click back")
    assert [len(g.episodes) for g in groups] == [4, 4, 4]
    assert [g.task.meta.get("recovery") for g in groups] == [None, "escape", "again"]
    # The first wrong one that can be made is "click back"; "jump" is none.
    assert groups[1].task.id.endswith("/escape/click back")
    assert [v.passed for v in groups[2].verdicts] == [True, False, False, True]
    assert rollout.metrics() == {"recovery/prone": 1, "recovery/tasks": 2, "recovery/escape": 0, "recovery/again": 0.5}
    assert len(recovering(task, right, "click back", most=0)[0]) == 1
    assert len(recovering(task, right, "jump")[0]) == 1


def test_no_way_back_where_all_or_nothing_is_right() -> None:
    task = first(steps(), 1)
    for said in (task.reference["gesture"], "click back"):
        groups, rollout = recovering(task, said)
        assert len(groups) == 1 and rollout.metrics() == {"recovery/prone": 0, "recovery/tasks": 0}
    other = Task("o", "1+1", "2", "exact")
    assert len(recovering(other, "2", "3")[0]) == 1
    ask, none = Ask(task, 2), np.zeros(0, dtype=np.int64)
    one = Episode(none, none, none > 0, None, "", "eos")
    for verdicts, prone in (
        ((True, False), True),
        ((True, True), False),
        ((False, None), False),
        ((True, None), False),
    ):
        group = Group(ask, (one, one), tuple(Verdict(0.0, v) for v in verdicts))
        assert prone_to_error(group) is prone
    assert wrong_of("<think>x</think>\nclick a\n") == "click a"
    for options in ({"environment": "guess"}, {"most": -1}):
        with pytest.raises(UsageError, match="recovering"):
            Recovering(**{"sampling": Sampling(8), "judge": judge, "environment": "screens", **options})
    for name in ("_inner", "_steps", "_seen"):
        with pytest.raises(TypeError):
            Recovering(**{"sampling": Sampling(8), "judge": judge, "environment": "screens", name: {}})


# The teacher


class Hinted(Says):
    """Right once it is told what to aim at."""

    def __init__(self, right: str, always: bool = False, never: bool = False):
        super().__init__("")
        self.right, self.always, self.never = right, always, never

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        out = []
        for request in requests:
            told = (str(request.prompt).startswith("Next: ") or self.always) and not self.never
            self.responses = (self.right if told else "wait",)
            out += super().generate([request])
        return out


def distilled(policy: Any, teacher: Any, task: Task | None = None, **options: Any) -> tuple[Group, Bottleneck]:
    task = task or first(steps(), 0)
    rollout = Bottleneck(Sampling(8), judge, teacher, **options)
    [group] = rollout.collect([Ask(task, 4)], policy, np.random.default_rng(0))
    return group, rollout


def test_bottlenecks_are_wrong_alone_and_right_with_a_hint() -> None:
    task = first(steps(), 0)
    right = task.reference["gesture"]
    for policy, narrow in ((Hinted(right), 1), (Hinted(right, always=True), 0), (Hinted(right, never=True), 0)):
        teacher = Scripted([(f"<think>so</think>{right}", "eos")] * 4)
        group, rollout = distilled(policy, teacher)
        assert len(group.episodes) == narrow and rollout.metrics() == {
            "bottleneck/tasks": narrow,
            "bottleneck/taught": narrow,
        }
        assert len(teacher.asked) == narrow
        assert policy.asked == [task.prompt, f"{task.hints[0]}\n{task.prompt}"]
    unhinted = Task("u", task.prompt, task.reference, "gesture")
    assert distilled(Hinted(right), Scripted(), unhinted)[1].metrics()["bottleneck/tasks"] == 0


class SharedHinted(Shared, Hinted):
    pass


def test_processes_ask_the_teacher_together() -> None:
    task = first(steps(), 0)
    right = task.reference["gesture"]
    policy = SharedHinted(right)
    group, _ = distilled(policy, Scripted([(f"<think>so</think>{right}", "eos")] * 4))
    assert policy.divisions == 1 and len(group.episodes) == 1


def test_shares_are_of_all_tasks_and_the_teacher_is_asked_as_said() -> None:
    task = first(steps(), 0)
    right = task.reference["gesture"]
    for options, most in (({}, 8), ({"tries": 1, "max_tokens": 1}, 1)):
        teacher = Scripted([(right, "eos")] * 4)
        rollout = Bottleneck(Sampling(8), judge, teacher, **options)
        asks = [Ask(task, 4), Ask(Task("u", task.prompt, task.reference, "gesture"), 4)]
        assert [len(g.episodes) for g in rollout.collect(asks, Hinted(right), np.random.default_rng(0))] == [1, 0]
        assert rollout.metrics() == {"bottleneck/tasks": 0.5, "bottleneck/taught": 0.5}
        assert teacher.asked[0].sampling.max_tokens == most and teacher.asked[0].seed > 2**32
    rollout.collect([], Hinted(right), np.random.default_rng(0))
    assert rollout.metrics() == {"bottleneck/tasks": 0, "bottleneck/taught": 0}


def test_the_first_right_response_of_the_teacher_is_kept() -> None:
    task = first(steps(), 0)
    right = f"<think>so</think>{task.reference['gesture']}"
    teacher = Scripted([("wait", "eos"), (right, "length"), (right, "eos"), (f"{right} ", "eos")])
    group, _ = distilled(Hinted(task.reference["gesture"]), teacher)
    [episode] = group.episodes
    assert episode.text == right and episode.logprobs is None and (episode.origins == Origin.TEACHER).all()
    assert episode.prompt.tolist() == [ord(c) for c in task.prompt], "without the hint"
    assert str(teacher.asked[0].prompt) == task.prompt and teacher.asked[0].n == 4
    none, rollout = distilled(Hinted(task.reference["gesture"]), Scripted([("wait", "eos")] * 2), tries=2)
    assert none.episodes == () and rollout.metrics() == {"bottleneck/tasks": 1, "bottleneck/taught": 0}
    for options in ({"tries": 0}, {"max_tokens": 0}, {"teacher": None}):
        with pytest.raises(UsageError):
            Bottleneck(**{"sampling": Sampling(8), "judge": judge, "teacher": Scripted(), **options})
    with pytest.raises(TypeError):
        Bottleneck(Sampling(8), judge, Scripted(), _seen={})  # type: ignore[call-arg]
    assert "bottleneck/taught" not in repr(rollout)


def test_the_papers_numbers() -> None:
    method = catalogue.make("S217", environment="screens")
    assert isinstance(method, Method) and isinstance(method.objective, ClippedSurrogate) and method.credit == RLOO()
    assert method.rollout == {"name": "recovering", "environment": "screens", "most": None}
    r = method.reward
    assert isinstance(r, SubgoalReward)
    assert (r.form, r.answer, r.type, r.param, r.subgoal, r.scorer) == (0.1, 0.9, 0.2, 0.8, 0.2, "words")
    assert catalogue.make("S217").rollout == "single_turn"
    distil = catalogue.make("S217", stage="distil", teacher="hf")
    assert distil.rollout == {"name": "bottleneck", "teacher": "hf"} and isinstance(distil.objective, SFT)


def test_it_trains(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 1600}},
        tasks={
            "source": {"name": "environment", "environment": SMALL, "steps": True},
            "eval_share": 0.2,
            "eval_size": 2,
        },
        warmup={"steps": 0},
        method={"name": "S217", "options": {"environment": SMALL}, "reward": None},
        rollout={"prompts": 2, "group": 2, "max_tokens": 4, "max_rows": 8},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
    )
    steps = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert len(steps) == 2 and all(m["recovery/prone"] == 0 for m in steps)
    assert all(np.isfinite(v) for m in steps for v in m.values() if isinstance(v, float))
    with pytest.raises(UsageError, match="no single steps"):
        build("tasks", {"name": "environment", "environment": "guess", "steps": True})


SMALL = {"name": "screens", "names": ["settings"]}


def test_the_labs_setting_is_exact() -> None:
    """What it says of the policy is what many samples say, and both arms pay by the same thoughts."""
    setting = Setting(names=3, tasks=2)
    engine, tasks = setting.player(1)
    groups = judge(SingleTurn(Sampling(2)).collect([Ask(t, 4000) for t in tasks], engine, np.random.default_rng(0)))
    measured = setting.measure(engine, tasks)
    shares = [np.mean([v.passed is True for v in g.verdicts]) for g in groups]
    assert np.mean(shares) == pytest.approx(measured["right"], abs=0.02)
    said = [e.text for g in groups for e in g.episodes]
    assert all(text.startswith("<think>") and "</think>\n" in text for text in said)
    aims = [np.mean([g.task.meta["subgoal"] in thought_of(e.text) for e in g.episodes]) for g in groups]
    assert np.mean(aims) == pytest.approx(measured["aim"], abs=0.02)
    paid = SubgoalReward()(Batch.from_groups(groups, torch.float64)).terms["subgoal"]
    assert set(paid.tolist()) == {0.0, 10.0}
