"""GTR: turns weighed by hand, thoughts corrected where they were thought, cards, and a run that sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run
from scripted import Talking

from assay import catalogue
from assay.audit.environment import audit_environment
from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.environments.hosted.worlds import Worlds
from assay.environments.points import Points, formulas
from assay.environments.tools import say
from assay.errors import UsageError
from assay.lab.settings import load
from assay.objectives.turns.thoughts import GuidedThought, thought_tokens
from assay.rewards.outcome.thought_form import ThoughtForm
from assay.rollout.turns.corrected import CORRECT, THOUGHT, Corrected, thought_of
from assay.rollout.turns.labelling import LABEL, label_of
from assay.select.labels import Labels, relabelled
from assay.types import Ask, Episode, Group, Origin, Span, Task, Turn, Verdict


def played(turns: Sequence[tuple[int, int]], length: int, thoughts: Sequence[tuple[int, int]], old: float) -> Episode:
    """An episode whose turns and thoughts stand at those tokens, each with that log-probability when sampled."""
    tokens = np.arange(length, dtype=np.int64) + 4
    own = np.zeros(length, dtype=bool)
    for start, end in turns:
        own[start:end] = True
    made = tuple(Turn(k, start, end) for k, (start, end) in enumerate(turns))
    spans = tuple(Span(THOUGHT, start, end) for start, end in thoughts)
    logs = np.where(own, old, np.nan).astype(np.float32)
    return Episode(np.array([1]), tokens, own, logs, "", "eos", turns=made, spans=spans)


def batch_of(*episodes: Episode) -> Batch:
    task = Task("t", "?")
    groups = [Group(Ask(replace(task, id=str(i)), 1), (e,), (Verdict.right(),)) for i, e in enumerate(episodes)]
    batch = Batch.from_groups(groups, torch.float64)
    batch.totals = batch.count()
    return batch


def test_the_worked_turn() -> None:
    """Thoughts of log-probability -4.2, an action of -.9: with lambda .5 it is -3.0.

    Two turns of three and two tokens, thoughts of two and one. Log-ratios .1 a token: .5 * .2 + .1 = .2 and .15.
    """
    objective = GuidedThought(clip_low=0.5, clip_high=0.5)
    batch = batch_of(played([(0, 3), (4, 6)], 6, [(0, 2), (4, 5)], -1.0))
    assert thought_tokens(batch).tolist() == [[True, True, False, False, True, False]]
    logs = torch.tensor([[-2.0, -2.2, -0.9]], dtype=torch.float64)
    assert float((torch.where(thought_tokens(batch)[:, :3], 0.5, 1.0) * logs).sum()) == pytest.approx(-3.0)
    batch.advantages = torch.tensor([[2.0, 2, 2, 0, -1, -1]], dtype=torch.float64)
    new = torch.where(batch.mask, -0.9, 0.0).double().requires_grad_()
    loss = objective(new, batch).value
    assert loss.item() == pytest.approx(-2 * np.exp(0.2) + np.exp(0.15))
    loss.backward()
    assert new.grad is not None
    wanted = [-np.exp(0.2), -np.exp(0.2), -2 * np.exp(0.2), 0, 0.5 * np.exp(0.15), np.exp(0.15)]
    assert new.grad[0].tolist() == pytest.approx(wanted)
    # At the first pass ratios are 1; beyond the clip there is no gradient.
    same = torch.where(batch.mask, -1.0, 0.0).double()
    assert float(objective(same, batch).value) == pytest.approx(-2 + 1)
    far = torch.where(batch.mask, 0.5, 0.0).double().requires_grad_()
    clipped = GuidedThought()(far, batch)
    assert clipped.value.item() == pytest.approx(-2 * 1.1 + np.exp(0.5 * 1.5 + 1.5))
    clipped.value.backward()
    assert far.grad is not None and far.grad[0, :3].abs().max() == 0 < far.grad[0, 4]
    assert clipped.metrics["clip_fraction"] == pytest.approx(3 / 5)
    whole = GuidedThought(thought=1.0, clip_low=0.9, clip_high=0.9)(new.detach(), batch).value
    assert float(whole) == pytest.approx(-2 * np.exp(0.3) + np.exp(0.2))


def test_labels_are_imitated() -> None:
    """Minus the mean log-probability of a label's tokens, whatever its advantage; what was played has no such term."""
    label = label_of(np.array([1]), np.array([5, 6, 7, 8]))
    both = batch_of(played([(0, 2)], 2, [(0, 1)], -1.0), label)
    both.advantages = torch.full_like(both.advantages, 7.0)
    both.advantages[0] = 0
    new = torch.tensor([[-1.0, -1, 0, 0], [-0.5, -1.0, -1.5, -2.0]], dtype=torch.float64, requires_grad=True)
    loss = GuidedThought(imitation=2.0)(new, both).value
    assert loss.item() == pytest.approx(2.0 * 1.25 / 2), "a mean over two responses"
    loss.backward()
    assert new.grad is not None and new.grad.tolist() == [[0, 0, 0, 0], [-0.25] * 4]
    assert not GuidedThought.zero_advantage_is_idle
    plain = GuidedThought()
    assert (plain.thought, plain.imitation, plain.clip_low, plain.clip_high) == (0.5, 1.0, 0.1, 0.1)
    assert plain.words() == ("turn, thoughts weighed", "[0.9, 1.1]")
    for wrong in ({"thought": 1.1}, {"thought": -0.1}, {"imitation": -1.0}, {"aggregation": "token_mean"}):
        with pytest.raises(UsageError, match=r"thought .* must be in"):
            GuidedThought(**wrong)


def test_labels_are_kept() -> None:
    """The buffer grows step by step; what was played has weight 1, labels are replayed, this step's with them."""
    rng = np.random.default_rng(0)
    select = Labels("played", replayed=3)
    for step in range(1, 4):
        label = label_of(np.array([step]), np.array([5, 6]))
        batch = batch_of(played([(0, 2)], 2, [], -1.0), label)
        assert select(batch).tolist() == [1, 0]
        [old] = select.replay(batch, rng)
        assert len(select.known) == step and len(old) == step
    assert {int(e.prompt[0]) for e in old.episodes} == {1, 2, 3} and all(e.meta[LABEL] for e in old.episodes)
    again = Labels("played", replayed=2)
    again.load_state_dict(select.state_dict())
    assert len(again.replay(batch, rng)[0]) == 2 and len(again.known) == 4
    latest = Labels("played", "latest")
    assert [int(e.prompt[0]) for e in latest.replay(batch, rng)[0].episodes] == [3]
    assert Labels("played", replayed=0).replay(batch, rng) == [] and Labels("labels")(batch).tolist() == [0, 1]
    plain = Labels()
    assert (plain.weigh, plain.aggregate, plain.replayed, plain.solved) == ("labels", "union", 256, False)
    assert plain.replay(batch, rng) == [] and len(plain.known) == 1 and len(plain.replay(batch, rng)[0]) == 1
    batch.verdicts = (*batch.verdicts[:1], Verdict.wrong())  # type: ignore[assignment]
    solved = Labels(solved=True)
    assert solved(batch).tolist() == [0, 0] and solved.replay(batch, rng) == [] and not solved.known
    assert relabelled([([1], [2, 3])], batch).episodes[0].tokens.tolist() == [2, 3]
    with pytest.raises(UsageError, match="replayed -1"):
        Labels(replayed=-1)


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("<think>a b</think> 3", "a b"),
        (" <think> a </think>\n+", "a"),
        ("<think></think>", ""),
        ("so <think>a</think>", None),
        ("<think>a", None),
        ("<think>a</think>b</think>", None),
        ("<think>a<think>b</think>", None),
        ("3", None),
    ],
)
def test_what_is_a_thought(text: str, thought: str | None) -> None:
    assert thought_of(text) == thought


def test_form_is_paid_by_turn() -> None:
    episode = played([(0, 2), (3, 5), (5, 5), (6, 7)], 7, [], -1.0)
    texts = [("<think>a</think>3", True), ("3", True), ("", True), ("<think>a</think>9", False)]
    turns = tuple(replace(t, text=x, valid=v) for t, (x, v) in zip(episode.turns, texts, strict=True))
    reward = ThoughtForm(0.2)(batch_of(replace(episode, turns=turns)))
    assert reward.values.tolist() == [1] and reward.tokens is not None
    assert reward.tokens.tolist() == [[0, 0.2, 0, 0, -0.2, 0, -0.2]] and reward.terms["form"].tolist() == [-0.2]
    assert ThoughtForm() == ThoughtForm(0.1)


WORLD = {"name": "points", "cards": 2, "target": 8, "frames": "text"}
SAID = "<think>I see 3</think>"


def test_thoughts_are_corrected_where_they_were() -> None:
    """Each label is what the environment would have thought there, after all that came before, without an action."""
    source = Points(cards=2, target=8, frames="text").tasks()
    task = replace(source[0], meta={"cards": [2, 6]})
    made = Corrected(WORLD, Sampling(64), turns=3)
    turns = iter([f"{SAID}2", "6", "<think>b</think>+"])
    engine = Talking(lambda said, tools: next(turns))
    played_, labels = made.collect([Ask(task, 1)], engine, np.random.default_rng(0))
    texts = [engine.decode(e.tokens) for e in labels.episodes]
    assert texts == [
        "<think>cards 2 6, formula empty, next 2</think>",
        "<think>cards 2 6, formula 2, next +</think>",
        "<think>cards 2 6, formula 2, next +</think>",
    ]
    [episode] = played_.episodes
    assert [turn.valid for turn in episode.turns] == [True, False, True]
    for label, turn in zip(labels.episodes, episode.turns, strict=True):
        assert label.prompt.tolist() == [*episode.prompt.tolist(), *episode.tokens[: turn.start].tolist()]
        assert label.meta[LABEL] and label.logprobs is None and set(label.origins.tolist()) == {Origin.TEACHER}
    assert labels.derived and labels.task.parent == task.id and len(labels.verdicts) == 3
    spans = [(s.start, s.end) for s in episode.spans]
    first, _, last = episode.turns
    assert spans == [(first.start, first.end - 1), (last.start, last.end - 1)] and episode.spans[0].kind == THOUGHT
    assert engine.decode(episode.tokens[spans[0][0] : spans[0][1]]) == SAID
    found = made.metrics()
    assert found["thoughts/distinct"] == pytest.approx(2 / 3) == found["thoughts/formed"]
    assert found["corrected/labels"] == 3
    # An evaluation has no labels.
    turns = iter(["2", "+", "6"])
    assert len(made.play([Ask(task, 1)], [1], engine)) == 1
    with pytest.raises(UsageError, match="environment 'corridor' has no thoughts of its own"):
        Corrected("corridor", Sampling(8))


class Corrector:
    """A model that quotes the thought it is shown, and fails at some."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def encode(self, prompt: Any) -> Any:
        raise NotImplementedError

    encode_response = decode = encode

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        none, out = np.zeros(0, dtype=np.int64), []
        for request in requests:
            told = request.prompt[-1]["content"]
            fails = "fail" in told
            out.append([Episode(none, none, none > 0, None, "<think> better</think>", "error" if fails else "eos")])
        return out


def test_a_model_corrects() -> None:
    corrector = Corrector()
    made = Corrected({**WORLD, "frames": "text"}, Sampling(64), turns=2, corrector=corrector, tokens=33)
    turns = iter([f"{SAID}(", "fail"])
    engine = Talking(lambda said, tools: next(turns))
    _, labels = made.collect([Ask(made.worlds.here().tasks()[0], 1)], engine, np.random.default_rng(0))
    assert [engine.decode(e.tokens) for e in labels.episodes] == ["<think>better</think>"]
    first, second = corrector.asked
    assert "formula empty" in first.prompt[0]["content"]
    assert first.prompt[-1]["content"] == CORRECT.replace("{thought}", "I see 3")
    assert second.prompt[-1]["content"] == CORRECT.replace("{thought}", "fail") and len(second.prompt) > len(
        first.prompt
    )
    assert (first.sampling.max_tokens, first.sampling.temperature) == (33, 0.0)


def test_points_by_hand() -> None:
    world = Points(frames="text")
    task = Task("t", "?", meta={"cards": [3, 3, 8, 8]})
    shown = world.reset(task, 0)
    assert "cards 3 3 8 8, formula empty" in shown.messages[0]["content"] and shown.admissible == ("3", "8", "(")
    plan = list(world.plan(world.state))
    assert "".join(plan) == "8/(3-8/3)=", "the only way to 24"
    for sign in ("8", "/", "(", "3"):
        assert world.step(say(sign)).valid
    assert set(world.actions(world.state)) == {"+", "-", "*", "/", ")"} and world.thought().endswith("next -")
    assert not world.step(say("3")).valid and not world.step(say("=")).valid and not world.step(say("9")).valid
    for sign in ("-", "8", "/", "3", ")"):
        world.step(say(sign))
    assert set(world.actions(world.state)) == {"+", "-", "*", "/", "="}
    assert world.step(say("=")).terminated and world.verdict().passed and world.actions(world.state) == []
    for formula, why in (
        (("3", "+", "8", "="), "of cards"),
        (("3", "+", "3", "+", "8", "+", "8", "="), "it makes 22, not 24"),
        (("3", "/", "(", "8", "-", "8", ")", "*", "3", "="), "zero"),
        (("3", "+"), "not ended"),
    ):
        verdict = world.judged(((3, 3, 8, 8), formula))
        assert not verdict.passed and why in verdict.feedback
    assert world.plan(((3, 3, 8, 8), ("3", "+", "3"))) == () and world.plan(((3, 3, 8, 8), ("=",))) == []
    world.state = ((3, 3, 8, 8), ("3", "+", "3"))
    assert world.thought() == "cards 3 3 8 8, formula 3+3, no way"
    assert formulas((2, 6), 8) == (("2", "+", "6"), ("6", "+", "2")) and formulas((2, 4), 2) == (
        ("4", "-", "2"),
        ("4", "/", "2"),
    )
    # Parentheses stand where they have to, and nowhere else.
    assert {"".join(f) for f in formulas((1, 2, 7), 4)} == {
        "7-1-2",
        "7-2-1",
        "7-(1+2)",
        "7-(2+1)",
        "(1+7)/2",
        "(7+1)/2",
    }


def test_hands_can_make_the_target() -> None:
    source = Points(seed=3, frames="text").tasks()
    for i in range(5):
        cards = source[i].meta["cards"]
        assert len(cards) == 4 and min(cards) >= 1 and max(cards) <= 10 and formulas(tuple(sorted(cards)), 24)
    assert source[2] == Points(seed=3, frames="text").tasks()[2] != source[3] and source.size is None
    plain = Points()
    assert (plain.target, plain.frames, plain.moves, plain.interface) == (24, "picture", 20, "text")
    assert (plain.tasks().cards, plain.tasks().highest, plain.tasks().seed) == (4, 10, 0)
    for wrong in ({"cards": 1}, {"cards": 5}, {"highest": 1}, {"highest": 14}, {"target": 0}, {"moves": 0}):
        with pytest.raises(UsageError, match="environment 'points': cards"):
            Points(**wrong)
    with pytest.raises(UsageError, match="target 101"):
        Points(cards=2, target=101)
    with pytest.raises(UsageError, match="task t has no cards"):
        plain.reset(Task("t", "?"), 0)


def test_cards_are_drawn() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    world = Points(cards=2, target=8)
    shown = world.reset(Task("t", "?", meta={"cards": [2, 6]}), 0).messages[0]
    assert shown["content"].endswith("<image>") and len(shown["images"]) == 1
    image = np.asarray(shown["images"][0].open())
    assert image.shape == (36, 96, 3) and (image[5, 2] == (250, 245, 220)).all() and (image[24:] == 255).all()
    dark = [(image[1:22, 24 * i + 1 : 24 * i + 22] < 120).all(-1).sum() for i in range(4)]
    assert min(dark[:2]) > 3 and dark[2:] == [0, 0]
    after = np.asarray(world.step(say("6")).observation.messages[0]["images"][0].open())
    assert (after[24:] < 120).any() and (after[:24] == image[:24]).all()


@pytest.mark.slow
def test_its_audit_passes() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    worlds = Worlds({"name": "points"}, workers=2)
    try:
        source = worlds.here().tasks()
        findings = list(audit_environment(worlds, [source[i] for i in range(4)]))
    finally:
        worlds.close()
    assert [(f.name, f.first) for f in findings if not f.passed] == []


def test_the_method() -> None:
    made = catalogue.make("S207", environment="points", corrector="x", turns=7, thought=0.2, imitation=3.0, form=0.5)
    assert made.rollout == {"name": "corrected", "environment": "points", "corrector": "x", "turns": 7}
    assert (made.credit.discount, made.credit.decay, made.credit.whitened) == (0.9, 0.95, False)
    assert (made.objective.thought, made.objective.imitation, made.reward.form) == (0.2, 3.0, 0.5)
    plain = catalogue.make("S207")
    assert plain.rollout == "single_turn" and (plain.select.weigh, plain.select.replayed) == ("played", 256)
    assert (plain.objective, plain.reward) == (GuidedThought(), ThoughtForm(0.1))


def test_it_trains(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    world = {"name": "points", "cards": 2, "target": 8, "highest": 9}
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 700}
    folder = run(
        tmp_path / "run",
        model={"nano": {**nano, "vision": {"hidden": 16, "layers": 1, "pixels": 32}}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_size": 2},
        method={"name": "S207", "reward": None, "options": {"environment": world, "turns": 2}},
        warmup={"steps": 0},
        rollout={"prompts": 2, "group": 2, "max_tokens": 6, "max_rows": 16},
        train={"steps": 2, "mini_batches": 1, "epochs": 1, "lr": 1e-2},
        evaluate={"every": 0},
        run={"checkpoint_every": 100},
    )
    first, second = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert first["corrected/labels"] > 0 and "replay/loss" in first and "critic/loss" in first
    assert first["reward/form"] < 0 and first["thoughts/formed"] == 0
    assert second["replay/loss"] < first["replay/loss"], "thoughts are learned"


def test_the_setting() -> None:
    setting = load("thoughts", {"states": 3, "steps": 40, "lr": 1.0})
    guided, alone = (setting.run({"imitation": x}, 0, Path()) for x in (1.0, 0.0))
    assert guided["start"] == alone["start"] < guided["distinct"] <= 1 and alone["distinct"] < guided["distinct"]
    assert guided["right"] > alone["right"] and guided["rollouts"] == alone["rollouts"] == 40 * 3 * 8
    assert 0 < alone["reward"] <= 1
