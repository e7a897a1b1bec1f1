"""AlphaGRPO: confidences, forms, drafts, advantages and losses of two kinds by hand, and a run."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from running import metrics, recipe

import assay
from assay.batch import Batch
from assay.credit.drawings.by_kind import ByKind
from assay.engines.base import Sampling, engine_of
from assay.errors import RunError, UsageError
from assay.learning.warmup import demonstrations
from assay.media import Picture
from assay.method import make_method
from assay.objectives.drawings.thought_and_steps import ThoughtAndSteps
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.samples import DRAWN, split, written
from assay.policies.flow.thinking import STEP, response
from assay.policies.loading import ModelConfig
from assay.policies.nano import NanoConfig
from assay.policies.policy import load_policy
from assay.rewards.drawings.decomposed import TEMPLATE, Decomposed, combined
from assay.rewards.drawings.thought_first import ThoughtFirst
from assay.rollout.drawings.redrawn import Redrawn, with_draft
from assay.types import Ask, Episode, Group, Task, Verdict, pictures

CONFIG = ModelConfig(
    source="flow",
    device="cpu",
    nano=NanoConfig(hidden=16, layers=1, heads=2, context=64),
    flow=FlowConfig(hidden=8, layers=1, prompt=4, language="nano", steps=3),
)
NONE = np.zeros(0, np.int64)


class Judge:
    """Says yes with the chance that its table has for a question, no with another."""

    def __init__(self, table):
        self.table, self.asked = table, []

    def encode(self, prompt):
        return NONE

    def encode_response(self, text, end=True):
        return NONE

    def decode(self, tokens):
        return ["yes", "No ", " Yes", "perhaps"][int(tokens[0])]

    def generate(self, requests):
        self.asked += requests
        return [self.reply(request) for request in requests]

    def reply(self, request):
        text = request.prompt if isinstance(request.prompt, str) else request.prompt[0]["content"]
        [chances] = [p for question, p in self.table.items() if question in text]
        if isinstance(chances, str):
            return [Episode(NONE, NONE, NONE > 0, None, chances, "error" if chances == "error" else "eos")]
        ids = [np.array([i]) for i in range(len(chances))]
        logprobs = [np.array([math.log(p)], np.float32) for p in chances]
        return [Episode(NONE, i, np.ones(1, bool), p, "", "eos") for i, p in zip(ids, logprobs, strict=True)]


def shown(groups, dtype=torch.float64) -> Batch:
    """One list a group: (thought tokens, steps, score, meta) each."""
    made = []
    for i, group in enumerate(groups):
        episodes, verdicts = [], []
        for words, steps, score, meta in group:
            tokens = np.concatenate([np.arange(1, words + 1), STEP + np.arange(steps)]).astype(np.int64)
            mask = np.full(words + steps, meta.get("role") != "draft")
            text = response(meta.get("thought", ""), "0 0")
            episodes.append(Episode(NONE, tokens, mask, np.zeros(words + steps, np.float32), text, "eos", meta=meta))
            verdicts.append(Verdict(score, score >= 1))
        made.append(Group(Ask(Task(str(i), ""), len(group)), tuple(episodes), tuple(verdicts)))
    batch = Batch.from_groups(made, dtype)
    batch.totals = batch.count()
    return batch


def test_the_cards_rewards() -> None:
    assert combined([[0.6], [0.9]], "geometric") == pytest.approx(0.734847, abs=1e-6)
    assert combined([[0.6], [0.9]], "mean") == pytest.approx(0.75)
    assert combined([[0.6] * 5, [0.9] * 2], "pooled") == pytest.approx(0.685714, abs=1e-6)
    assert combined([[0.5, 0.7], []], "geometric") == pytest.approx(0.6)
    assert combined([[], [0.4]], "mean") == pytest.approx(0.4)


def test_confidences_of_answers() -> None:
    judge = Judge(
        {
            "red": [0.55, 0.15],
            "round": [0.2, 0.3, 0.1],
            "sharp": "Yes, it is",
            "dull": "no.",
            "odd": "well",
            "gone": "error",
        }
    )
    part = Decomposed(judge)
    ask = [part.request(q, "1 2") for q in ("red", "round", "sharp", "dull", "odd", "gone")]
    assert part.confidences(ask) == [pytest.approx(0.785714, abs=1e-6), pytest.approx(0.5), 1.0, 0.0, None, None]
    assert (ask[0].n, ask[0].beam, ask[0].sampling.max_tokens) == (5, True, 1)
    assert ask[0].prompt == "1 2\nred Answer yes or no, and no where what the question is about is not there."
    batch = shown([[(1, 1, 1.0, {}), (1, 1, 1.0, {})]])
    batch.tasks = [
        Task("a", "", meta={"questions": {"semantic": ["red"], "quality": ["round", "sharp"]}}),
        Task("b", "", meta={"questions": {"quality": ["odd"]}}),
    ]
    found = part(batch)
    assert found.values[0].item() == pytest.approx(math.sqrt(0.785714 * 0.75), abs=1e-6)
    assert found.valid.tolist() == [True, False]
    batch.tasks = [Task("c", "")] * 2
    with pytest.raises(RunError, match="task c has no questions"):
        part(batch)
    with pytest.raises(UsageError, match="must show"):
        Decomposed(judge, template="{question}")


def test_a_picture_is_shown() -> None:
    pytest.importorskip("PIL")
    drawn = written(np.zeros((2, 4, 4, 3), np.float32))
    request = Decomposed(Judge({})).request("red", drawn)
    assert len(pictures(request.prompt)) == 2
    assert request.prompt[0]["content"] == ("<image>\n<image>\n" + TEMPLATE[len("{drawn}\n") :]).replace(
        "{question}", "red"
    )


@pytest.mark.parametrize(
    ("thought", "think"),
    [
        ("<think>a place</think>", 1),
        ("<think>a</think> <think>b</think>\n", 1),
        ("<think>a</think> b", 0),
        ("a <think>b</think>", 0),
        ("place", 0),
        ("", 0),
    ],
)
def test_forms(thought: str, think: float) -> None:
    """Begin and end count, as in the authors' code; the reward is that of thought and drawing alike."""
    assert ThoughtFirst.formed(thought) == think
    batch = shown([[(1, 1, 0.25, {"thought": thought})]])
    found = ThoughtFirst()(batch)
    assert found.values.tolist() == [0.25 + think]
    assert (found.terms["drawing"].tolist(), found.terms["form"].tolist()) == ([0.25], [think])
    assert ThoughtFirst(form=0.5)(batch).values.tolist() == [0.25 + 0.5 * think]


def test_no_worse_than_the_least_draft() -> None:
    over, draft = {"redrawn": True, "thought": "a"}, {"role": "draft"}
    group = [(1, 0, 0.6, draft), (1, 0, 0.4, draft), *((1, 1, s, over) for s in (0.3, 0.4, 0.5, 0.7))]
    batch = shown([group])
    found = ThoughtFirst()(batch)
    assert found.values[2:].tolist() == pytest.approx([0.4, 0.4, 0.5, 0.7])
    assert found.valid.tolist() == [False, False, True, True, True, True]
    batch.rewards, batch.valid, batch.reward_terms = found.values, found.valid, found.terms
    advantages = ByKind()(batch)[2:, 1].tolist()
    assert advantages == pytest.approx([-0.81583, -0.81583, 0, 1.631661], abs=2e-3)
    free = ThoughtFirst(clamp=False)(batch)
    assert free.values[2:].tolist() == pytest.approx([0.3, 0.4, 0.5, 0.7])
    batch.rewards = free.values
    assert ByKind(thoughts=False)(batch)[2:, 1].tolist() == pytest.approx(
        [-1.182416, -0.50675, 0.168917, 1.52025], abs=2e-3
    )
    worse = shown([[(1, 0, 0.4, draft), (1, 1, 0.1, over), (1, 1, 0.3, over)]])
    found = ThoughtFirst()(worse)
    worse.rewards, worse.valid, worse.reward_terms = found.values, found.valid, found.terms
    assert ByKind()(worse).abs().sum() == 0


def test_both_kinds_share_the_advantage() -> None:
    """Rewards 1, 0, 0, 0: less their mean, over the deviation sqrt(3) / 4; what is clipped is a step's alone."""
    batch = shown([[(2, 3, 1.0, {}), *[(1, 3, 0.0, {})] * 3]])
    batch.rewards = torch.tensor([1.0, 0.0, 0.0, 0.0]).double()
    found = ByKind()(batch)
    scale = math.sqrt(3) / 4 + 1e-4
    a, b = 0.75 / scale, 0.25 / scale
    assert found[0].tolist() == pytest.approx([a] * 5) and found[1].tolist() == pytest.approx([-b] * 4 + [0])
    assert batch.rewards.tolist() == [1, 0, 0, 0]
    assert ByKind(thoughts=False)(batch)[0].tolist() == pytest.approx([0, 0, a, a, a])
    assert ByKind(limit=0.5)(batch)[0].tolist() == pytest.approx([a, a, 0.5, 0.5, 0.5])
    assert ByKind(limit=0.5)(batch)[1].tolist() == pytest.approx([-b, -0.5, -0.5, -0.5, 0])
    assert ByKind() == ByKind(5.0, True)
    with pytest.raises(UsageError, match="above 0"):
        ByKind(limit=0)


def test_the_loss_of_both_kinds() -> None:
    batch = shown([[(2, 2, 1.0, {}), (1, 1, 1.0, {})]])
    batch.advantages = torch.tensor([[2.0, 2.0, 1.0, 1.0], [-1.0, 3.0, 0, 0]]).double()
    logprobs = torch.tensor([[0.5, 0.1, 0.2, -0.1], [-0.4, 0.05, 9.0, 9.0]]).double().requires_grad_()
    said, drawn = min(math.exp(0.3), 1.28) * 2, 1.1 + math.exp(-0.1)
    second = max(math.exp(-0.4), 0.8) * -1 + math.exp(0.05) * 3
    # As much as both steps after it together, or as one of them.
    whole = ThoughtAndSteps(0.2, 0.28, 0.1)(logprobs, batch).value.item()
    assert whole == pytest.approx(-(said + drawn / 2 + second) / 2)
    loss = ThoughtAndSteps(0.2, 0.28, 0.1, as_step=True)(logprobs, batch)
    assert loss.value.item() == pytest.approx(-((said + drawn) / 2 + second) / 2)
    assert loss.metrics["ratio/thought"] == pytest.approx((math.exp(0.3) + math.exp(-0.4)) / 2)
    assert loss.metrics["clipped/steps"] == pytest.approx(1 / 3)
    loss.value.backward()
    grad = logprobs.grad
    assert grad[0].tolist() == pytest.approx([0, 0, 0, -math.exp(-0.1) / 4])
    assert grad[1].tolist() == pytest.approx([0, -3 * math.exp(0.05) / 2, 0, 0])
    assert ThoughtAndSteps() == ThoughtAndSteps(0.2, 0.28, 1e-5, False)
    for odd in ({"low": 0.0}, {"high": 0.0}, {"step": 0.0}):
        with pytest.raises(UsageError, match="widths"):
            ThoughtAndSteps(**odd)


def test_the_worst_draft_is_drawn_over() -> None:
    policy = load_policy(CONFIG)
    engine, seen = engine_of(policy, "hf", 16), []

    def judge(groups):
        seen.extend(groups)
        scores = {id(e): s for g in groups for e, s in zip(g.episodes, (0.5, 0.2, 0.9), strict=True)}
        return [g.judged([Verdict(scores[id(e)], False) for e in g.episodes]) for g in groups]

    rollout = Redrawn(Sampling(4), judge, drafts=3, strength=0.5, end=2)
    [group] = rollout.collect([Ask(Task("t", "draw"), 4, hint="well")], engine, np.random.default_rng(0))
    assert [e.meta.get("role") for e in group.episodes] == ["draft"] * 3 + [None] * 4
    assert not any(e.mask.any() for e in group.episodes[:3]) and all(e.mask.all() for e in group.episodes[3:])
    assert all(len(e.drawing.taken) == 0 for e in group.episodes[:3])
    draft = split(seen[0].episodes[1].text)[1]
    for e in group.episodes[3:]:
        assert e.meta["redrawn"] and e.drawing.taken.tolist() == [0, 1]
        assert policy.language.decode(e.prompt) == f"well\ndraw\nDrawn before: {draft}"
        assert e.drawing.levels.tolist() == pytest.approx([0.5, 1 / 3, 1 / 6, 0])
    starts = np.stack([e.drawing.states[0] for e in group.episodes[3:]])
    noise = 2 * starts - np.array([float(x) for x in draft.split()])
    assert len({tuple(row) for row in noise.tolist()}) == 4 and np.abs(noise).max() < 5
    batch = Batch.from_groups([replace(group, verdicts=(Verdict.right(),) * 7)])
    assert torch.allclose(policy.forward(batch).logprobs[3:], batch.logprobs[3:], atol=1e-5)
    for odd in ({"drafts": 0}, {"strength": 0.0}, {"strength": 1.5}):
        with pytest.raises(UsageError, match="redrawn"):
            Redrawn(Sampling(4), judge, **odd)
    with pytest.raises(UsageError, match="draws with a flow"):
        rollout.check(object())


def test_a_flow_that_edits_sees_the_draft() -> None:
    policy = load_policy(CONFIG.model_copy(update={"flow": CONFIG.flow.model_copy(update={"edits": True})}))
    engine = engine_of(policy, "hf", 16)
    judge = lambda groups: [g.judged([Verdict.wrong()] * len(g.episodes)) for g in groups]  # noqa: E731
    [group] = Redrawn(Sampling(4), judge, drafts=1, strength=1.0).collect(
        [Ask(Task("t", "draw"), 3)], engine, np.random.default_rng(0)
    )
    draft = np.array([float(x) for x in split(group.episodes[0].text)[1].split()], np.float32)
    assert group.episodes[0].drawing.draft is None
    assert all(np.array_equal(e.drawing.draft, draft) for e in group.episodes[1:])
    batch = Batch.from_groups([replace(group, verdicts=(Verdict.right(),) * 4)])
    usual = policy.forward(batch).logprobs
    assert torch.allclose(usual[1:], batch.logprobs[1:], atol=1e-5)
    blind = [replace(e, drawing=replace(e.drawing, draft=None)) for e in batch.episodes]
    assert not torch.allclose(policy.forward(replace(batch, episodes=blind)).logprobs[1:], usual[1:])
    shown = [Task("a", "x", solution="1 1", meta={"draft": "3 3"}), Task("b", "x", solution="1 1")]
    learned = demonstrations(shown, policy)
    learned.signals["noised"] = torch.tensor([[0.5, 0.1, 0.2]] * 2)
    one, two = policy.forward(learned).logprobs[:, -1].tolist()
    assert one != two


@pytest.mark.parametrize("mode", ["reason", pytest.param("refine", marks=pytest.mark.slow)])
def test_it_trains_both(mode: str, tmp_path: Path) -> None:
    made = recipe(
        tmp_path / "run",
        model=CONFIG.model_dump() | {"device": "auto"},
        tasks={"source": {"name": "ring"}},
        warmup={"steps": 1},
        train={"steps": 2},
        evaluate={"samples": 1, "every": 0},
    )
    made["model"]["nano"]["context"] = 128
    made["method"] = {"name": "S164", "options": {"mode": mode, "step": 0.01}}
    start: list[dict[str, torch.Tensor]] = []

    class Keep:
        def on_rollouts(self, running, batch) -> None:
            start.append({k: v.clone() for k, v in running.policy.module.state_dict().items()})

    assay.train(made, quiet=True, callbacks=[Keep()])
    rows = [row for row in metrics(tmp_path / "run") if "reward/mean" in row]
    assert len(rows) == 2 and all("ratio/thought" in row for row in rows)
    moved = {k.partition(".")[0] for k in start[0] if not torch.equal(start[0][k], start[1][k])}
    assert moved == {"language", "flow"}


def test_the_methods_own_numbers() -> None:
    made = make_method("S164")
    assert made.rollout == {"name": "denoise", "trained": None, "end": None}
    assert made.objective == ThoughtAndSteps() and made.credit == ByKind() and made.reward.form == 1.0
    refine = make_method("S164", options={"mode": "refine", "judge": Judge({}), "combine": "mean", "thoughts": False})
    assert refine.rollout == {"name": "redrawn", "drafts": 7, "trained": None, "end": None}
    assert refine.reward.form == 0.0 and refine.objective == ThoughtAndSteps(as_step=True)
    assert make_method("S164", options={"form": 0.3}).reward.form == 0.3
    assert refine.reward.members[0].combine == "mean" and not refine.credit.thoughts
    assert DRAWN in response("a", "b")


def test_a_draft_is_shown_where_it_can_be_read() -> None:
    pytest.importorskip("PIL")

    def engine(sighted: bool) -> SimpleNamespace:
        return SimpleNamespace(policy=SimpleNamespace(language=SimpleNamespace(sighted=sighted)))

    chat = ({"role": "system", "content": "s"}, {"role": "user", "content": "q"})
    assert with_draft("q", "1 2", engine(False)) == "q\nDrawn before: 1 2"
    said = with_draft(chat, "1 2", engine(False))
    assert [m["content"] for m in said] == ["s", "q\nDrawn before: 1 2"]
    drawn = written(np.zeros((4, 4, 3), np.float32))
    assert with_draft(chat, drawn, engine(False)) == chat
    assert with_draft("q", drawn, SimpleNamespace(policy=SimpleNamespace())) == "q"
    [only] = with_draft("q", drawn, engine(True))
    assert only["role"] == "user" and only["content"] == "<image>\nq" and only["images"][0].url == drawn
    old = Picture.from_url(written(np.ones((4, 4, 3), np.float32)))
    seen = with_draft((chat[0], {**chat[1], "content": "<image>q", "images": (old,)}), drawn, engine(True))
    assert seen[0] == chat[0] and seen[1]["content"] == "<image>\n<image>q"
    assert [p.url for p in seen[1]["images"]] == [drawn, old.url]
    blank = Redrawn(Sampling(4), list)
    assert (blank.drafts, blank.strength, blank.begin) == (7, 0.6, 0)


def test_the_loss_where_a_kind_is_missing() -> None:
    batch = shown([[(2, 0, 1.0, {}), (1, 0, 1.0, {}), (3, 0, 1.0, {})]])
    batch.advantages = torch.tensor([[1.0, 1.0, 0], [2.0, 0, 0], [5.0, 5.0, 5.0]]).double()
    batch.weights[2] = 0
    batch.totals = batch.count()
    logprobs = torch.full((3, 3), 0.1).double()
    found = ThoughtAndSteps()(logprobs, batch)
    assert found.value.item() == pytest.approx(-math.exp(0.1) * (1 + 2) / 2)
    assert found.metrics == {"ratio/thought": pytest.approx(math.exp(0.1)), "clipped/steps": 0.0}
    batch.totals = None
    assert ThoughtAndSteps()(logprobs, batch).value.item() == pytest.approx(found.value.item())
    drawn = shown([[(0, 2, 1.0, {})]])
    drawn.advantages = torch.ones(1, 2).double()
    alone = ThoughtAndSteps()(torch.zeros(1, 2).double(), drawn)
    assert alone.value.item() == -1 and alone.metrics == {"ratio/thought": 1.0, "clipped/steps": 0.0}
    drawn.weights[:] = 0
    drawn.totals = None
    assert ThoughtAndSteps()(torch.zeros(1, 2).double(), drawn).value.item() == 0


def test_what_is_not_told_and_whose_draft_counts() -> None:
    judge = Judge({"red": [0.55, 0.15], "odd": "well"})
    batch = shown([[(1, 1, 1.0, {})]])
    batch.tasks = [Task("a", "", meta={"questions": {"semantic": ["red", "odd"]}})]
    assert Decomposed(judge)(batch).valid.tolist() == [False]
    two = shown([[(1, 0, 0.9, {"role": "draft"}), (1, 1, 0.2, {"redrawn": True})], [(1, 1, 0.1, {"redrawn": True})]])
    assert ThoughtFirst()(two).terms["drawing"].tolist() == [0.9, 0.9, 0.1]
    two.valid[2] = False
    assert ThoughtFirst()(two).valid.tolist() == [False, True, False]
    assert ByKind.group_relative and ByKind.level == "token"
