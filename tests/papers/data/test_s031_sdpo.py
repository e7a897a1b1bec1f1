"""SDPO: divergences by hand, whose solution and which feedback a teacher reads, the teachers, and a run of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run, weights

import assay
from assay import catalogue
from assay.batch import Batch
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.engines.keywords import Keywords
from assay.engines.recall.remembering import Remembering
from assay.errors import RunError, UsageError
from assay.inference.base import Budget
from assay.inference.until_solved import UntilSolved
from assay.lab.settings.hindsight.feedback import Heeding, Remarking, remark_on
from assay.method import make_method
from assay.objectives.second_view import Distilled
from assay.ops.divergence import bucketed, cross_entropy, divergence
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.rollout.reread.prompts import Hindsight, Revision
from assay.select.shown import Shown
from assay.signals.base import Models
from assay.signals.reread.second_view import AveragedView, SecondView, second_view
from assay.training.ahead.off_policy import off_policy
from assay.types import Ask, Episode, Group, Message, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
S, T = (0.5, 0.3, 0.2), (0.2, 0.7, 0.1)


def log(*p: float) -> torch.Tensor:
    return torch.tensor(p, dtype=torch.float64).log()


@pytest.mark.parametrize(("alpha", "value"), [(1.0, 0.342585), (0.0, 0.340536), (0.5, 0.082844)])
def test_divergences_by_hand(alpha: float, value: float) -> None:
    assert divergence(log(*S), log(*T), alpha).item() == pytest.approx(value, abs=1e-6)
    assert divergence(log(*S), log(*S), alpha).item() == pytest.approx(0, abs=1e-12)


def test_the_gradient_is_that_of_the_divergence() -> None:
    """On the student's logits: s (log s/t - KL) of the reverse, s - t of the forward and of the cross-entropy."""
    logits = log(*S).requires_grad_()
    for loss, want in (
        (divergence(logits.log_softmax(-1), log(*T), 1.0), [0.286853, -0.356965, 0.070112]),
        (divergence(logits.log_softmax(-1), log(*T), 0.0), [0.3, -0.4, 0.1]),
        (cross_entropy(logits.log_softmax(-1), log(*T)), [0.3, -0.4, 0.1]),
    ):
        [slope] = torch.autograd.grad(loss, logits, retain_graph=True)
        assert slope.tolist() == pytest.approx(want, abs=1e-6)


def test_a_tail_bucket_by_hand() -> None:
    s, t = bucketed(log(0.6, 0.25)), bucketed(log(0.3, 0.3))
    assert s.exp().tolist() == pytest.approx([0.6, 0.25, 0.15]) and t.exp()[-1].item() == pytest.approx(0.4)
    found = [divergence(s, t, a).item() for a in (1.0, 0.0, 0.5, 0.25)]
    assert found == pytest.approx([0.223184, 0.239084, 0.056101, 0.043052], abs=1e-6)
    cut = [bucketed(log(*p), "renormalise") for p in ((0.6, 0.25), (0.3, 0.3))]
    assert divergence(cut[0], cut[1], 1.0).item() == pytest.approx(0.087350, abs=1e-6)
    # All of the vocabulary: nothing is left, and an impossible token adds nothing.
    whole = [bucketed(log(*p, 0.0)).requires_grad_() for p in (S, T)]
    value = divergence(whole[0], whole[1].detach(), 1.0)
    assert value.item() == pytest.approx(0.342585, abs=1e-6)
    [slope] = torch.autograd.grad(value, whole[0])
    assert slope.isfinite().all()


def group(scores: list[float | None], texts: list[str] | None = None, feedback: str = "") -> Batch:
    none = np.zeros(1, dtype=np.int64)
    made = [
        Episode(none, none, none == 0, None, text, "eos") for text in (texts or [f"response {i}" for i in range(9)])
    ]
    verdicts = [
        Verdict.abstain("lost") if s is None else Verdict(s, s >= 1, {}, feedback and f"{feedback} {i}")
        for i, s in enumerate(scores)
    ]
    n = len(scores)
    return Batch.from_groups([Group(Ask(Task("t", "Q"), n), tuple(made[:n]), tuple(verdicts))], torch.float64)


@pytest.mark.parametrize(
    ("scores", "which"),
    [
        ([1, 0, 0, 1], [3, 0, 0, 0]),
        ([1, 0, 0, 0], [None, 0, 0, 0]),
        ([0, 0.5, 0.4, None], [1, None, 1, 1]),
        ([0, 0, None], [None, None, None]),
    ],
)
def test_whose_solution_is_shown(scores: list[float | None], which: list[int | None]) -> None:
    batch = group(scores)
    assert Hindsight().solutions(batch) == which
    assert [p is not None for p in Hindsight().prompts(batch)] == [w is not None for w in which]
    assert Hindsight(threshold=0.9, own=True).solutions(group([0.8, 0.95])) == [1, 1]
    assert Hindsight(solution="", feedback="{feedback}").solutions(batch) == [None] * len(scores)


def test_what_the_teacher_reads() -> None:
    words: dict[str, Any] = {"template": "{question}|{shown}", "solution": "S {solution}.", "feedback": "F {feedback}."}
    batch = group([1, 0, 0.5], ["<think>a\nb</think> 4", "5", "<think>never ends"], "no:")
    # The second solution is what is shown to the first; thinking that never ended leaves nothing of it.
    assert Hindsight(**words).prompts(batch) == ["Q|S .", "Q|S 4.", "Q|S 4."]
    assert Hindsight(**words, when="also").prompts(batch) == ["Q|S .", "Q|S 4.F no: 1.", "Q|S 4."]
    assert Hindsight(**words, threshold=0.6).prompts(batch) == [None, "Q|S 4.", "Q|S 4."]
    failed = group([0, 0, None], ["3", "5", "6"], "no:")
    assert Hindsight(**words).prompts(failed) == ["Q|F no: 0.", "Q|F no: 1.", None]
    assert Hindsight(**{**words, "feedback": ""}).prompts(failed) == [None] * 3
    chat = replace(failed.tasks[0], prompt=(Message(role="system", content="s"), Message(role="user", content="Q")))
    failed.tasks = [chat] * 3
    shown = Hindsight(**words).prompts(failed)[0]
    assert shown is not None and [m["content"] for m in shown] == ["s", "Q|F no: 0."]
    for bad in ({"solution": "x"}, {"template": "{question}"}, {"solution": "", "feedback": ""}):
        with pytest.raises(UsageError, match="hindsight"):
            Hindsight(**bad)


def two_views(plain: tuple[float, ...] = S, shown: tuple[float, ...] = T) -> TabularPolicy:
    """A choice among arms after the prompt 0, and with what is shown after the prompt 1."""
    policy = TabularPolicy(Tree.of([[0.0] * len(plain), [0.0] * len(shown)]))
    with torch.no_grad():
        policy.logits[1, : len(plain)], policy.logits[2, : len(shown)] = log(*plain), log(*shown)
    return policy


def told(policy: TabularPolicy, arms: list[int], said: list[str]) -> Batch:
    prompts = [np.array([0])] * len(arms)
    episodes = policy.episodes(torch.tensor(arms)[:, None], torch.ones(len(arms), dtype=torch.int64), prompts=prompts)
    verdicts = tuple(Verdict.wrong(text) for text in said)
    return Batch.from_groups([Group(Ask(Task("t", "0"), len(arms)), tuple(episodes), verdicts)], torch.float64)


def models(policy: TabularPolicy) -> Models:
    return Models(policy, policy.twin(), encode=lambda prompt: np.array([int(prompt)]))


PLAIN: dict[str, Any] = {"template": "{shown}", "feedback": "{feedback}"}


def made(policy: TabularPolicy, batch: Batch, **options: Any) -> tuple[Distilled, torch.Tensor]:
    """The objective and its gradient on the plain view's logits."""
    method = make_method("S031", options={**PLAIN, "teacher": "current", **options})
    [view] = method.needs
    batch.signals[view.name] = view(batch, models(policy))
    method.value(batch)
    output = policy.forward(batch, {"candidate_logprobs"})
    batch.live = output.live
    [slope] = torch.autograd.grad(method.objective(output.logprobs, batch).value, policy.logits)
    return method.objective, slope


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"alpha": 1.0}, [0.286853, -0.356965, 0.070112]),
        ({"alpha": 0.0}, [0.3, -0.4, 0.1]),
        ({"alpha": 1.0, "k": 3}, [0.286853, -0.356965, 0.070112]),
    ],
)
def test_through_the_policy_it_is_that_gradient(options: dict[str, Any], want: list[float]) -> None:
    """By hand above; whatever was sampled, and none of it through the teacher's view."""
    policy = two_views()
    _, slope = made(policy, told(policy, [2, 0], ["1", "1"]), **options)
    assert slope[1].tolist() == pytest.approx(want, abs=1e-5)
    assert not slope[[0, 2]].any()


def test_the_samples_own_tokens_give_it_in_expectation() -> None:
    policy = two_views()
    total = torch.zeros_like(policy.logits)
    for arm, p in enumerate(S):
        total += p * made(policy, told(policy, [arm], ["1"]), alpha=1.0, tokens="own", weight_cap=None)[1]
    assert total[1].tolist() == pytest.approx([0.286853, -0.356965, 0.070112], abs=1e-5)
    with pytest.raises(UsageError, match="alpha must be 1"):
        make_method("S031", options={"tokens": "own"})


def test_the_likeliest_two_and_the_rest() -> None:
    policy = two_views()
    batch = told(policy, [2], ["1"])
    made(policy, batch, k=2, alpha=1.0)
    assert batch.signals["candidates"].tolist() == [[[0, 1]]], "the student's, best first"
    assert batch.signals["teacher_logprobs"].exp().flatten().tolist() == pytest.approx([0.2, 0.7])
    assert batch.live["candidate_logprobs"].exp().flatten().tolist() == pytest.approx([0.5, 0.3])


def test_the_same_prompt_and_weights_teach_nothing() -> None:
    policy = two_views()
    objective, slope = made(policy, told(policy, [0, 1], ["0", "0"]))
    assert slope.abs().max() < 1e-7 and objective.summary["clip"] == "weight at most 2"


def test_weights_of_an_older_policy_are_capped() -> None:
    policy = two_views()
    batch = told(policy, [0, 1, 2], ["1", "1", "1"])
    objective, _ = made(policy, batch)
    here = torch.tensor([[0.9], [0.5], [-30.0]], dtype=torch.float64)
    batch.logprobs = torch.zeros(3, 1, dtype=torch.float64)
    assert objective.weights(here, batch).flatten().tolist() == pytest.approx([2, 1.648721, np.exp(-20)], abs=1e-6)
    plain = replace(objective, weight_cap=None)
    assert plain.weights(here, batch).flatten().tolist() == [1, 1, 1]
    assert objective.weighs_older and not plain.weighs_older
    assert off_policy(replace(make_method("S031"), objective=objective), 1)[1] is None
    assert "no weights for what older" in str(off_policy(replace(make_method("S031"), objective=plain), 1)[1])
    # Of the loss each position's divergence has its weight.
    batch.live = policy.forward(batch, {"candidate_logprobs"}).live
    costs = plain.costs(batch)[:, 0]
    want = (costs * torch.tensor([2, 1.648721, np.exp(-20)])).mean().item()
    assert objective(here, batch).value.item() == pytest.approx(want, rel=1e-5) and costs.min() > 0.01


def test_responses_with_nothing_to_show_do_not_count() -> None:
    """The mean is over the first alone; where nothing is shown there is no loss, and no division by zero."""
    policy = two_views()
    alone, both = (made(policy, told(policy, [2, 0][:n], ["1", ""][:n]), alpha=1.0)[1] for n in (1, 2))
    assert torch.allclose(alone, both)
    batch = told(policy, [0, 1], ["", ""])
    method = make_method("S031", options={**PLAIN, "teacher": "current"})
    [view] = method.needs
    batch.signals[view.name] = view(batch, models(policy))
    method.value(batch)
    assert batch.weights.tolist() == [0, 0] and batch.signals["shown"].tolist() == [0, 0]
    assert method.select.metrics() == {"reread/shown": 0.0}
    batch.signals["shown"][0] = 1.0
    assert method.select(batch).tolist() == [1, 0] and method.select.metrics() == {"reread/shown": 0.5}
    batch.signals["shown"][0] = 0.0
    output = policy.forward(batch, {"candidate_logprobs"})
    batch.live = output.live
    assert method.objective(output.logprobs, batch).value.item() == 0
    with pytest.raises(RunError, match="no second view"):
        Shown(view)(told(policy, [0], [""]))
    policy.context = 1
    assert not view(told(policy, [0], ["1"]), models(policy)).any(), "no room"
    policy.context = 2
    assert view(told(policy, [0], ["1"]), models(policy)).any()


def test_the_trust_region_is_between_two_policies_logits() -> None:
    """Half of (0, 2, 0) and half of log (.2, .7, .1), as a softmax."""
    policy = two_views()
    here = models(policy)
    assert here.reference is not None
    with torch.no_grad():
        here.reference.logits[2, :3] = torch.tensor([0.0, 2.0, 0.0])
    view = second_view(Hindsight(**PLAIN), "trust_region", 3, share=0.25)
    assert view.models == {"reference"} and second_view(Hindsight(), "current").models == frozenset()
    batch = told(policy, [0], ["1"])
    found = view(batch, here).flatten()[batch.signals["candidates"].flatten().argsort()]
    want = (0.75 * torch.tensor([0.0, 2.0, 0.0]).double() + 0.25 * log(*T)).log_softmax(-1)
    assert found.tolist() == pytest.approx(want.tolist(), abs=1e-6)
    initial = second_view(Hindsight(**PLAIN), "initial", 3)(batch, here).exp().max().item()
    assert initial == pytest.approx(np.exp(2) / (np.exp(2) + 2))
    for bad in ({"k": 0}, {"share": 1.5}, {"k": 2, "tokens": "own"}):
        with pytest.raises(UsageError, match="second view"):
            SecondView(Hindsight(), **bad)


def test_the_averaged_teacher_follows_after_every_step() -> None:
    policy = two_views()
    here, batch = models(policy), told(policy, [0], ["1"])
    view = second_view(Hindsight(**PLAIN), "averaged", rate=0.25, every=2)
    assert isinstance(view, AveragedView) and view == second_view(Hindsight(**PLAIN), "averaged", rate=0.25, every=2)
    with pytest.raises(RunError, match="not been started"):
        view(batch, here)
    view.start(here)
    before = view(batch, here).clone()
    with torch.no_grad():
        policy.logits[2, 0] += 4.0
    assert torch.equal(view(batch, here), before), "it has weights of its own"
    assert view.learn(batch, here) == {} and torch.equal(view(batch, here), before)
    view.learn(batch, here)
    teacher = view.by(here)
    assert isinstance(teacher, TabularPolicy)
    assert teacher.logits[2, 0].item() == pytest.approx(float(log(0.2)) + 1.0) and not teacher.logits.requires_grad
    state = view.state_dict()
    other = second_view(Hindsight(**PLAIN), "averaged", rate=0.25, every=2)
    other.start(here)
    other.load_state_dict(state)
    assert state["steps"] == 2 and torch.allclose(other(batch, here), view(batch, here))
    for bad in ({"rate": 1.5}, {"every": 0}):
        with pytest.raises(UsageError, match="averaged teacher"):
            AveragedView(Hindsight(), **bad)


def test_an_averaged_teacher_of_low_precision_moves() -> None:
    """A hundred steps of 1% of the way from 1 to the next bfloat16 number: rounded each time, it would stay at 1."""

    def of(value: float) -> Models:
        return Models(TabularPolicy(Tree.bandit(2), torch.full((1, 2), value), torch.bfloat16))

    view, other = (second_view(Hindsight(**PLAIN), "averaged", rate=0.01) for _ in "ab")
    assert isinstance(view, AveragedView) and isinstance(other, AveragedView)
    view.start(of(1.0))
    for _ in range(100):
        view.learn(told(two_views(), [0], ["1"]), of(1.0078125))
    kept = view._copy._averages[0]
    assert kept.flatten().tolist() == pytest.approx([1.0078125 - 0.0078125 * 0.99**100] * 2, abs=1e-6)
    other.start(of(1.0))
    other.load_state_dict(view.state_dict())
    for one in (view, other):
        assert one.by(of(1.0)).module.logits.flatten().tolist() == [1.0078125] * 2, "the nearest that there is"
        assert torch.equal(one._copy._averages[0], kept)
    view.learn(told(two_views(), [0], ["1"]), of(1.0))
    assert not torch.equal(view._copy._averages[0], other._copy._averages[0])


def test_drawn_tokens_come_from_the_teacher() -> None:
    policy = two_views(S, (1.0, 0.0, 0.0))
    batch = told(policy, [2, 1], ["1", "1"])
    view = second_view(Hindsight(**PLAIN), k=4, tokens="drawn")
    view(batch, models(policy))
    assert batch.signals["candidates"].shape == (2, 1, 4) and not batch.signals["candidates"].any()


def test_defaults() -> None:
    method = make_method("S031")
    assert isinstance(method.objective, Distilled) and isinstance(method.select, Shown)
    view = method.objective.view
    assert isinstance(view, AveragedView) and view.tokens == "likeliest"
    assert (view.k, view.rate, view.every) == (100, 0.05, 1)
    assert (method.objective.alpha, method.objective.weight_cap, method.objective.rest) == (0.5, 2.0, "bucket")
    assert view.view == Hindsight() and Hindsight().threshold == 0.5
    trust = make_method("S031", options={"teacher": "trust_region"}).objective.view  # type: ignore[attr-defined]
    # The released configuration has one number, teacher_update_rate, for the average and for the mixture of logits.
    assert trust == second_view(Hindsight(), "trust_region", 100, share=0.05, rate=0.05)
    for bad in ({"alpha": 1.5}, {"weight_cap": 0.5}):
        with pytest.raises(UsageError, match="second view"):
            make_method("S031", options=bad)
    assert Revision() == Revision()


def test_remarks_and_trust() -> None:
    """Told that 0 is wrong, the policy takes 3 off its logit; the right path gains at both decisions."""
    assert [remark_on(p, (1, 2)) for p in ((0, 2), (1, 0), (1, 2))] == ["wrong 0", "wrong 1/0", "wrong 1/2"]
    policy = Heeding([(1, 2)], 4, np.zeros, 0.0, 3.0)
    p = policy.log_policy().exp()
    first = p[policy.tree.node(policy.path(0, "wrong", (0,))), :4]
    assert first.tolist() == pytest.approx([0.016325, 0.327892, 0.327892, 0.327892], abs=1e-6)
    shown = p[policy.tree.node(policy.path(0, "right", (1, 2))), 1]
    assert shown.item() == pytest.approx(np.exp(3) / (np.exp(3) + 3)) and policy.chance() == pytest.approx(1 / 16)
    assert policy.told() > 1 / 16


def test_in_the_lab_it_moves_towards_what_it_is_told() -> None:
    found = learned("S031", "sdpo", steps=15, lr=30.0)
    assert found["final"] > 2 * found["start"] and found["trust"] == 3.0 and found["rollouts"] == 480


def test_it_trains_a_language_model(tmp_path: Path) -> None:
    """Two steps with feedback on nearly every response; the teacher is in the checkpoint."""
    sections: dict[str, dict[str, Any]] = {
        "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 160}},
        "method": {"name": "S031", "reward": "verdict", "options": {"k": 8}},
        "train": {"steps": 2, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        "evaluate": {"samples": 1},
        "tasks": {"eval_size": 2},
        "run": {"checkpoint_every": 1},
    }
    folder = run(tmp_path / "whole", **sections)
    rows = [row for row in metrics(folder) if "reread/divergence" in row]
    assert len(rows) == 2 and all(row["reread/divergence"] > 0 for row in rows)
    assert all(row["grad_norm"] > 0 for row in rows)
    again = run(tmp_path / "parts", **{**sections, "train": {**sections["train"], "steps": 1}})
    assay.train(resume=again, overrides=["train.steps=2"], quiet=True)
    assert all(torch.equal(v, weights(again)[k]) for k, v in weights(folder).items())


# At test time

WORDS: dict[str, Any] = {"template": "{question} {shown}", "feedback": "{feedback}", "solution": "{solution}", "k": 4}
REMARKS: dict[str, Any] = {"template": "{question} {shown}", "feedback": "{feedback}", "solution": "right {solution}"}
RIGHT = [(1, 2)]


def hard(seed: int) -> tuple[Heeding, Remarking]:
    """A question whose answer the policy gives in about one of five hundred attempts, and a policy that heeds."""
    rng = np.random.default_rng([seed, 31])
    policy = Heeding(RIGHT, 4, lambda shape: 0.3 * rng.standard_normal(shape), 2.0, 3.0)
    return policy, Remarking(policy)


def said_of(task: Task, response: str) -> Verdict:
    path = path_of(response) or ()
    return Verdict.right() if path == RIGHT[0] else Verdict.wrong(remark_on(path, RIGHT[0]))


@pytest.mark.slow
def test_a_hard_task_until_the_first_success() -> None:
    """It is solved in a fraction of the attempts that sampling takes, counted to the first right one."""
    numbers, task = [], Task("0", "0", kind="tabular")
    for seed in range(5):
        policy, engine = hard(seed)
        before = {name: value.clone() for name, value in policy.module.state_dict().items()}
        method = {"name": "S031", "options": {**REMARKS, "alpha": 1.0, "k": 20}}
        strategy = UntilSolved(Sampling(2), method, said_of, group=4, lr=0.5, rank=0)
        [answer] = strategy([task], engine, 200, np.random.default_rng(seed))
        assert answer.text == "1/2" and said_of(task, answer.text).passed
        attempts = answer.meta["attempts"]
        texts = [episode.text for episode in answer.episodes]
        assert texts.index("1/2") == attempts - 1 and len(texts) == 4 * (answer.meta["steps"] + 1)
        assert 4 * answer.meta["steps"] < attempts <= len(texts) and answer.tokens == 2 * len(texts)
        assert all(torch.equal(value, before[name]) for name, value in policy.module.state_dict().items())
        numbers.append((attempts, policy.chance()))
    assert np.mean([attempts for attempts, _ in numbers]) < 0.2 / np.mean([chance for _, chance in numbers])


@pytest.mark.slow
def test_what_an_engine_remembers_is_not_taken_for_attempts_of_other_weights() -> None:
    method = {"name": "S031", "options": {**REMARKS, "alpha": 1.0, "k": 20}}
    others = {"name": "S031", "options": {**REMARKS, "alpha": 0.0, "k": 20}}
    made = [UntilSolved(Sampling(2), m, said_of, group=4, lr=r, rank=0) for m, r in ((method, 0.5), (method, 0.1))]
    made += [UntilSolved(Sampling(2), others, said_of, group=4, lr=0.5, rank=0)]

    def texts(engine: Any, strategy: UntilSolved) -> list[str]:
        [answer] = strategy([Task("0", "0", kind="tabular")], engine, 40, np.random.default_rng(0))
        return [episode.text for episode in answer.episodes]

    shared = Remembering(hard(0)[1])
    for strategy in made:
        assert texts(shared, strategy) == texts(hard(0)[1], strategy)


def test_what_is_not_solved_has_no_answer_and_leaves_nothing() -> None:
    policy, engine = hard(0)
    before = policy.base.detach().clone()
    seen: list[torch.Tensor] = []

    def never(task: Task, response: str) -> Verdict:
        seen.append(policy.base.detach().clone())
        return Verdict.wrong("wrong 0")

    strategy: Any = UntilSolved(Sampling(2), catalogue.make("S031", **REMARKS, k=20), never, group=4, lr=0.5, rank=0)
    answers = strategy([Task(str(i), "0") for i in range(2)], engine, 10, np.random.default_rng(0))
    assert [(a.text, a.meta) for a in answers] == [(None, {"attempts": None, "steps": 2})] * 2
    assert len(seen) == 20 and all(len(a.episodes) == 10 for a in answers)
    for first in (0, 10):
        assert all(torch.equal(b, before) for b in seen[first : first + 4])
        moved = [not torch.equal(b, before) for b in seen[first + 4 : first + 10]]
        assert all(moved), "each batch is of the policy that has learned from the one before"
    assert torch.equal(policy.base, before)
    for tokens, lengths in ((1, [1]), (2, [2]), (11, [2] * 5)):
        [answer] = strategy([Task("0", "0")], engine, Budget(tokens=tokens), np.random.default_rng(0))
        assert [len(e.tokens) for e in answer.episodes] == lengths and answer.tokens <= tokens
    for bad in ({"group": 0}, {"lr": 0.0}, {"rank": -1}, {"token_budget": 0}):
        with pytest.raises(UsageError, match="until_solved"):
            UntilSolved(**bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no weights here"):
        strategy([Task("0", "0")], Keywords([]), 1, np.random.default_rng(0))


def test_a_language_model_at_test_time() -> None:
    """Adapters are put on, learn from what was said of each batch, and are gone afterwards."""
    pytest.importorskip("peft")
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 96, "alphabet": "0123456789+= "}
    policy = CausalLM.load(ModelConfig(source="nano", nano=nano), 0)
    before = {name: value.clone() for name, value in policy.module.state_dict().items()}
    heard: list[str] = []

    def judge(task: Task, response: str) -> Verdict:
        heard.append(response)
        return Verdict.wrong("9") if len(heard) < 7 else Verdict.right()

    strategy = UntilSolved(Sampling(4), {"name": "S031", "options": WORDS}, judge, group=3, lr=0.05, rank=2)
    [answer] = strategy([Task("t", "1+2=")], HFEngine(policy), 12, np.random.default_rng(0))
    assert answer.meta == {"attempts": 7, "steps": 2} and answer.text == heard[6] and len(answer.episodes) == 9
    after = policy.module.state_dict()
    assert after.keys() == before.keys() and all(torch.equal(value, before[name]) for name, value in after.items())
