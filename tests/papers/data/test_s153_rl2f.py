"""RL2F: who sees the answer, leaks, returns and losses by hand, accuracy by turn, and training in dialogues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run
from scripted import CLOSE, OPEN, Talking

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.keywords import Keywords
from assay.engines.tokens import Tokens
from assay.environments.attempts import Attempts
from assay.environments.teacher import Teacher, leaks
from assay.environments.tools import say
from assay.errors import UsageError
from assay.inference.base import Budget
from assay.inference.sampling.self_critique import SelfCritique
from assay.lab.settings import load
from assay.lab.settings.hindsight.dialogues import Setting
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.papers.data.s153_rl2f import (
    FeedbackPrediction,
    SolvedByTurn,
    accuracy_by_turn,
    plasticity,
    solved_at,
)
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.tabular import TabularPolicy, Tree
from assay.training.preflight import at_first
from assay.types import Ask, Episode, Group, Message, Origin, Task, Turn, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
NOBODY = np.zeros(0, dtype=np.int64)
TASK = Task("t", "6*7=", reference="42", kind="exact")


def hint(task: Task, before: Any, attempt: str, verdict: Verdict) -> str:
    """A teacher in a file: too low, too high, or no number."""
    found = [int(s) for s in "".join(c if c.isdigit() else " " for c in attempt)[:9].split()]
    if not found:
        return "+"
    return "+" if found[-1] < int(task.reference) else "-"


class Speaker:
    """A model that says what it is told to, one thing after another, and notes what it was asked."""

    def __init__(self, *replies: str):
        self.replies, self.asked, self.seeds = list(replies), list[str](), list[int]()

    def encode(self, prompt: Any) -> Any:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> Any:
        raise NotImplementedError

    def decode(self, tokens: Any) -> str:
        raise NotImplementedError

    def generate(self, requests: Any) -> list[list[Episode]]:
        self.asked += [r.prompt for r in requests]
        self.seeds += [r.seed for r in requests]
        said = [self.replies.pop(0) for _ in requests]
        return [[Episode(NOBODY, NOBODY, NOBODY > 0, None, s, "error" if s == "away" else "eos")] for s in said]


def said(step: Any) -> str:
    [message] = step.observation.messages
    return str(message["content"])


def world(*replies: str, most: int = 3, **options: Any) -> tuple[Attempts, Speaker]:
    speaker = Speaker(*replies)
    made = Attempts(most=most, teacher={"speaker": speaker, **options})
    made.reset(TASK, 5)
    return made, speaker


def test_feedback_comes_after_a_wrong_turn_alone() -> None:
    made, speaker = world("Think of six sevens.", "Count on from 35.")
    first = made.step(say("13"))
    assert said(first) == "not right: Think of six sevens." and first.info == {"leaked": False}
    assert said(made.step(say("35"))) == "not right: Count on from 35." and len(speaker.asked) == 2
    last = made.step(say("42"))
    assert last.terminated and said(last) == "right" and len(speaker.asked) == 2 and last.info == {}
    made.reset(TASK, 5)
    assert made.step(say("42")).terminated and len(speaker.asked) == 2
    one, speaker = world(most=1)
    assert one.step(say("13")).terminated and speaker.asked == [], "nobody would read it"


def test_the_teacher_alone_sees_the_answer() -> None:
    made, speaker = world("First.", "Second.")
    shown = made.reset(TASK, 5)
    steps = [made.step(say("13")), made.step(say("14"))]
    for text in [m["content"] for m in shown.messages] + [said(s) for s in steps]:
        assert "42" not in text
    first, second = speaker.asked
    assert "Answer, for you alone:\n42" in first and "The last attempt:\n13" in first and "nothing" in first
    assert "Attempt: 13\nYou: First." in second and len(set(speaker.seeds)) == 2


def test_a_leak_is_said_anew_or_left_out() -> None:
    for text in ("the answer is 42", "It is 42.", "(42)"):
        assert leaks(text, TASK)
    for text in ("421", "4 and 2", "142", "42.5 is too much", "3.42"):
        assert not leaks(text, TASK)
    word = replace(TASK, reference="Paris")
    assert leaks("think of paris", word) and not leaks("comparison", word)
    assert not leaks("anything", replace(TASK, reference={"tests": []})) and not leaks("x", replace(TASK, reference=""))
    made, speaker = world("the answer is 42", "Six sevens.")
    assert said(made.step(say("1"))) == "not right: Six sevens." and len(speaker.asked) == 2
    made, speaker = world("42", "42", "it's 42")
    step = made.step(say("1"))
    assert said(step) == "not right (2 attempts left)" and step.info == {"leaked": True}
    guard = Speaker("Yes, it does.", "no")
    made, speaker = world("Forty-two.", "Six sevens.", guard=guard)
    assert said(made.step(say("1"))) == "not right: Six sevens."
    assert "Hint:\nForty-two." in guard.asked[0] and "42" in guard.asked[0]
    made, _ = world("away")
    with pytest.raises(RuntimeError):
        made.step(say("1"))


def test_a_teacher_may_be_a_function_or_one_in_a_file() -> None:
    for speaker in (hint, f"{__file__}:hint"):
        assert Teacher(speaker).say(TASK, [], "13", Verdict.wrong()) == "+"
    for bad in ({"speaker": hint, "tries": 0}, {"speaker": hint, "template": "{question}"}, {"speaker": 3}):
        with pytest.raises(UsageError, match="teacher"):
            Attempts(teacher=bad)


def dialogue(passed: tuple[bool, ...], texts: tuple[str, ...] = (), length: int = 5) -> Episode:
    """Turns of one token each, and between two of them one that is said."""
    turns = tuple(
        Turn(k, 2 * k, 2 * k + 1, verdict=Verdict(float(p), p), text=texts[k] if texts else str(k))
        for k, p in enumerate(passed)
    )
    n = 2 * len(passed) - 1
    own = np.arange(n) % 2 == 0
    origins = np.where(own, Origin.OWN, Origin.TOOL).astype(np.uint8)
    tokens = np.arange(n, dtype=np.int64) % 2
    logprobs = np.where(own, np.log(0.5), np.nan).astype(np.float32)
    return Episode(NOBODY, tokens, own, logprobs, "", "eos", origins=origins, turns=turns)


def batch_of(*episodes: Episode) -> Batch:
    verdicts = tuple(e.turns[-1].verdict or Verdict.wrong() for e in episodes)
    return Batch.from_groups([Group(Ask(TASK, len(episodes)), episodes, verdicts)], torch.float64)


THIRD = dialogue((False, False, True))
NEVER = dialogue((False, False, False))
FIRST = dialogue((True,))


def test_returns_by_hand() -> None:
    """Solved at turn 3: 1, .81 with gamma .9, .49 with gamma .7; never: 0."""
    batch = batch_of(THIRD, NEVER, FIRST)
    for gamma, third in ((1.0, 1.0), (0.9, 0.81), (0.7, 0.49)):
        assert SolvedByTurn(gamma)(batch).values.tolist() == pytest.approx([third, 0.0, 1.0])
    found = SolvedByTurn(most=2)(batch)
    assert {k: v.tolist() for k, v in found.terms.items()} == {"solved/1": [0, 0, 1], "solved/2": [0, 0, 1]}
    assert solved_at(THIRD, Verdict.right()) == 3 and solved_at(NEVER, Verdict.wrong()) is None
    bare = replace(THIRD, turns=tuple(replace(t, verdict=None) for t in THIRD.turns))
    assert solved_at(bare, Verdict.right()) == 3 and solved_at(replace(bare, turns=()), Verdict.right()) == 1
    lost = batch_of(THIRD, NEVER)
    lost.verdicts = [Verdict.right(), Verdict.abstain("away")]
    valid = SolvedByTurn()(lost).valid
    assert valid is not None and valid.tolist() == [True, False]
    assert set(SolvedByTurn(most=1)(batch).terms) == {"solved/1"}
    for bad in ({"gamma": 0.0}, {"gamma": 1.5}, {"most": 0}):
        with pytest.raises(UsageError, match="S153"):
            SolvedByTurn(**bad)  # type: ignore[arg-type]


def test_accuracy_by_turn() -> None:
    assert accuracy_by_turn([3, None, 1, 1], 4) == [0.5, 0.5, 0.75, 0.75] and accuracy_by_turn([], 1) == [0]
    moving = dialogue((False, False, True), ("4", "4 ", "5"))
    assert plasticity([moving, dialogue((False, True), ("1", "2"))]) == pytest.approx(2 / 3)
    assert plasticity([FIRST]) is None
    assert plasticity([dialogue((False, True), ("", "4"))]) == 1, "to answer after nothing is to change"
    assert plasticity([dialogue((False, False), ("", ""))]) is None


def test_each_token_carries_its_own_loss() -> None:
    """Student's tokens have the gradient of the surrogate alone, said ones that of -lambda log pi / 3, others none."""
    batch = batch_of(THIRD, dialogue((False, True)))
    batch.advantages = torch.where(batch.mask, torch.tensor([[1.0], [-2.0]], dtype=torch.float64), 0.0)
    batch.weights, batch.totals = torch.ones(2, dtype=torch.float64), None
    batch.totals = batch.count()
    logprobs = torch.full(batch.tokens.shape, float(np.log(0.5)), dtype=torch.float64, requires_grad=True)
    objective = FeedbackPrediction(prediction=0.1)
    objective.prepare(batch)
    loss = objective(logprobs, batch)
    [slope] = torch.autograd.grad(loss.value, logprobs)
    tool = -0.1 / 3
    assert slope[0].tolist() == pytest.approx([-0.2, tool, -0.2, tool, -0.2])
    assert slope[1].tolist() == pytest.approx([0.4, tool, 0.4, 0, 0])
    assert loss.metrics["feedback/loss"] == pytest.approx(0.693147, abs=1e-6)
    assert not objective.zero_advantage_is_idle and FeedbackPrediction().zero_advantage_is_idle
    plain = FeedbackPrediction()(logprobs, batch)
    assert plain.value.item() == ClippedSurrogate()(logprobs, batch).value.item()
    # In two micro-batches, the same.
    rows = [batch.rows(torch.tensor([i])) for i in range(2)]
    halves = [objective(logprobs[i : i + 1, : row.tokens.shape[1]], row).value.item() for i, row in enumerate(rows)]
    assert sum(halves) == pytest.approx(loss.value.item())
    with pytest.raises(UsageError, match="S153"):
        FeedbackPrediction(prediction=-1.0)


def test_the_loss_of_a_single_token_that_was_said() -> None:
    """It is -lambda log pi of that one, whatever the student's own tokens are worth."""
    batch = batch_of(dialogue((False, True)))
    batch.totals = batch.count()
    objective = FeedbackPrediction(prediction=0.1)
    objective.prepare(batch)
    logprobs = torch.tensor([[0.9, 0.25, 0.9]], dtype=torch.float64).log()
    loss, plain = objective(logprobs, batch), ClippedSurrogate()(logprobs, batch)
    assert loss.metrics["feedback/loss"] == pytest.approx(1.386294, abs=1e-6)
    assert (loss.value - plain.value).item() == pytest.approx(0.1386294, abs=1e-6)


def test_the_prediction_gradient_by_differences() -> None:
    policy = TabularPolicy.random(Tree.uniform(2, 5), 0)
    batch = batch_of(THIRD, NEVER)
    batch.totals = batch.count()
    objective = FeedbackPrediction(prediction=0.3)
    objective.prepare(batch)

    def value() -> torch.Tensor:
        return objective(policy.forward(batch).logprobs, batch).value

    [slope] = torch.autograd.grad(value(), policy.logits)
    for cell in ((0, 0), (1, 1), (2, 0)):
        sides = []
        for way in (1e-5, -1e-5):
            with torch.no_grad():
                policy.logits[cell] += way
                sides.append(value().item())
                policy.logits[cell] -= way
        assert (sides[0] - sides[1]) / 2e-5 == pytest.approx(slope[cell].item(), abs=1e-7)
    assert slope.abs().max() > 0.01


def test_defaults() -> None:
    method = make_method("S153", options={"prediction": 0.1, "gamma": 0.7})
    assert method.objective == FeedbackPrediction(prediction=0.1) and method.reward == SolvedByTurn(0.7)
    assert make_method("S153").objective == FeedbackPrediction() and make_method("S153").reward == SolvedByTurn()


def test_in_the_lab_chances_are_exact() -> None:
    """Uniform over 3 numbers, two guesses: 1/3, then 1/3 + 2/3 1/3; the halver is right at the second guess at most."""
    setting = load("dialogues", {"most": 3, "asks": 2})
    assert isinstance(setting, Setting)
    policy = TabularPolicy(Tree.of([[[0.0] * 3] * 2] * 3))
    assert setting.chances(policy) == pytest.approx([0.333333, 0.555556], abs=1e-6)
    with torch.no_grad():
        policy.logits[policy.tree.node(())] = torch.tensor([-50.0, 50.0, -50.0])
        policy.logits[policy.tree.node((1, 0))] = torch.tensor([-50.0, -50.0, 50.0])
        policy.logits[policy.tree.node((1, 1))] = torch.tensor([50.0, -50.0, -50.0])
    assert setting.chances(policy) == pytest.approx([1 / 3, 1.0])
    found = learned("S153", "dialogues", steps=6, lr=100.0, most=3, asks=2)
    assert found["final"] > found["start"] + 0.05 and found["by/1"] == pytest.approx(1 / 3)
    with pytest.raises(UsageError, match="dialogues"):
        load("dialogues", {"most": 1})


def test_it_trains_in_dialogues(tmp_path: Path) -> None:
    environment = {
        "name": "attempts",
        "source": {"name": "arithmetic", "operation": "addition", "digits": 1},
        "most": 3,
        "teacher": {"speaker": f"{__file__}:hint"},
    }
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 160}},
        tasks={"source": {"name": "environment", "environment": environment}, "eval_size": 2},
        method={
            "name": "S153",
            "reward": "S153",
            "options": {"prediction": 0.1},
            "rollout": {"name": "multi_turn", "environment": environment, "turns": 3},
        },
        train={"steps": 2, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        evaluate={"samples": 1},
    )
    rows = [row for row in metrics(folder) if "feedback/loss" in row]
    assert len(rows) == 2 and all(row["feedback/loss"] > 0 and row["grad_norm"] > 0 for row in rows)
    assert all(row["environment/turns"] > 1 for row in rows)


def test_a_run_without_dialogues_is_told_of() -> None:
    """Asked in single turns it is GRPO, and nothing is said to anybody."""
    turn = Turn(0, 0, 1, verdict=Verdict.wrong())
    one = Episode(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.ones(1, dtype=bool), None, "", "eos")
    for episode, lines in ((one, 1), (replace(one, turns=(turn,)), 0)):
        batch = Batch.from_groups([Group(Ask(TASK, 2), (episode,) * 2, (Verdict.wrong(),) * 2)], torch.float64)
        method = make_method("S153")
        method.value(batch)
        found = at_first(method, batch)
        assert len([line for line in found if "is of turns, and no response has any" in line]) == lines


class Both(Talking):
    """Takes both parts of a dialogue: says an attempt, or begins as a user and says what is wrong, and more."""

    def __init__(self, attempts: Sequence[str], critiques: Sequence[str]):
        super().__init__(lambda messages, tools: self.attempts[len(messages) // 2])
        self.attempts, self.critiques, self.heard = attempts, critiques, list[str]()

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for asked in requests:
            begun = Tokens(self.opening((Message(role="user", content=asked.prompt),), ()))
            request = replace(asked, prompt=begun) if not hasattr(asked.prompt, "ids") else asked
            said = self.decode(np.concatenate([self.encode(request.prompt), np.array(request.prefix, dtype=np.int64)]))
            if not said.endswith(f"{OPEN}user:"):
                out += super().generate([request])
                continue
            self.heard.append(said)
            self.reply = lambda messages, tools: self.critiques[len(messages) // 2 - 1]
            out += super().generate([request])
            self.reply = lambda messages, tools: self.attempts[len(messages) // 2]
        return out


def test_the_model_says_itself_what_is_wrong() -> None:
    """Two wrong attempts, each criticised by who made it; the third finds no fault. Nobody sees the answer."""
    ended = f"{CLOSE}{OPEN}assistant:"
    engine = Both(["13", "35", "42"], [f"not right: more{ended}99", "not right: more still", f"Right.{ended}"])
    [answer] = SelfCritique(Sampling(60))([TASK], engine, 5, np.random.default_rng(0))
    assert answer.text == "42" and [e.text for e in answer.episodes] == ["13", "35", "42"]
    assert answer.meta["critiques"] == ["not right: more", "not right: more still", "Right."]
    public = f"[]{OPEN}user:6*7={CLOSE}{OPEN}assistant:"
    assert engine.heard[0] == f"{public}13{CLOSE}{OPEN}user:"
    replied = f"13{CLOSE}{OPEN}user:not right: more{ended}"
    assert engine.heard[1] == f"{public}{replied}35{CLOSE}{OPEN}user:", "as environment attempts would have it"
    world = Attempts(most=3, teacher={"speaker": lambda task, before, attempt, verdict: "more"})
    world.reset(TASK, 0)
    assert said(world.step(say("13"))) == "not right: more"
    lengths = [len(text) for text in ("13", "35", "42", *engine.critiques)]
    assert answer.tokens == sum(lengths), "the task's prompt is not counted"
    assert len({r.seed for r in engine.asked}) == 6


def test_a_dialogue_with_oneself_ends_with_its_budget() -> None:
    def talk(budget: Any, window: int = 10_000, **options: Any) -> Any:
        engine = Both(["1", "2", "3", "4"], ["no", "no", options.pop("last", "no"), "no"])
        engine.window = window
        [answer] = SelfCritique(Sampling(10), **options)([TASK], engine, budget, np.random.default_rng(0))
        return answer.text, answer.meta["critiques"]

    assert talk(1) == ("1", []) and talk(3) == ("3", ["no", "no"])
    assert talk(4, last="") == ("3", ["no", "no", ""]), "who says nothing has nothing to say"
    assert talk(4, last="fine", accepts="Fine") == ("3", ["no", "no", "fine"])
    # A critique of ten tokens and an attempt of ten more have to fit.
    assert talk(Budget(tokens=20), words=10) == ("1", []) and talk(Budget(tokens=22), words=10) == ("2", ["no"])
    # The first attempt is shortened to what there is.
    engine = Both(["1", "2"], ["no"])
    SelfCritique(Sampling(10))([TASK], engine, Budget(tokens=3), np.random.default_rng(0))
    assert [r.sampling.max_tokens for r in engine.asked] == [3]
    # The dialogue begins with 24 tokens, is 25 long after an attempt, and after the second 25 + 21 + 1.
    assert talk(4, window=45, words=10) == ("1", []) and talk(4, window=46, words=10) == ("2", ["no"])
    with pytest.raises(UsageError, match="words 0"):
        SelfCritique(words=0)
    with pytest.raises(UsageError, match="takes both parts"):
        SelfCritique()([TASK], Keywords([]), 1, np.random.default_rng(0))


def test_a_language_model_talks_to_itself() -> None:
    """What it says goes on from the very tokens before, as environment attempts would have put them."""
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 96, "alphabet": "0123456789+=\n "}
    engine = HFEngine(CausalLM.load(ModelConfig(source="nano", nano=nano), 0))
    strategy = SelfCritique(Sampling(4), words=6, accepts="never")
    for seed in range(20):
        [answer] = strategy([Task("t", "1+2=")], engine, 2, np.random.default_rng(seed))
        if len(answer.episodes) == 2:
            break
    first, second = answer.episodes
    text = engine.decode(np.concatenate([first.prompt, first.tokens]))
    assert text.startswith("1+2=") and engine.decode(second.prompt) == f"{text}\n{answer.meta['critiques'][0]}\n"
    assert "\n" not in answer.meta["critiques"][0]
    assert answer.tokens >= len(first.tokens) + len(second.tokens) + len(answer.meta["critiques"][0])
