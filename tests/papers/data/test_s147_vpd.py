"""VPD: the E-step's loss by hand, through which prompt it goes, its cadence, and a run of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run, weights
from scripted import Told, operated

import assay
from assay.batch import Batch
from assay.errors import RunError, UsageError
from assay.learning.step import learn
from assay.learning.update import update
from assay.method import Method, make_method
from assay.objectives.second_view import Distilled
from assay.papers.data.s147_vpd import TaughtView, unpaired_loss
from assay.policies.tabular import TabularPolicy, Tree
from assay.rollout.reread.prompts import Hindsight
from assay.signals.base import Models
from assay.signals.reread.second_view import SecondView
from assay.types import Ask, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
WORDS: dict[str, Any] = {"template": "{shown}", "feedback": "{feedback}", "solution": ""}


def test_the_loss_by_hand() -> None:
    """Log-ratios 2, -1 of right and .5, -3 of wrong responses, times .1: the shift is -.0375."""
    rewards = (0.1 * torch.tensor([2.0, -1.0, 0.5, -3.0], dtype=torch.float64)).requires_grad_()
    right = torch.tensor([True, True, False, False])
    loss = unpaired_loss(rewards, right)
    assert loss.item() == pytest.approx(1.307328, abs=1e-6)
    [slope] = torch.autograd.grad(loss, rewards)
    # -s(d - r) / 2 and s(r - d) / 2: the shift is constant.
    assert slope.tolist() == pytest.approx([-0.220411, -0.257810, 0.260935, 0.217362], abs=1e-4)
    same = unpaired_loss(torch.full((4,), 0.7, dtype=torch.float64), right)
    assert same.item() == pytest.approx(1.386294, abs=1e-6)


def test_one_side_alone() -> None:
    """Of .2 and -.1 the mean is .05: -(log s(.15) + log s(-.15)) / 2, whether right or wrong."""
    rewards = torch.tensor([0.2, -0.1], dtype=torch.float64)
    for side in (True, False):
        assert unpaired_loss(rewards, torch.tensor([side, side])).item() == pytest.approx(0.695957, abs=1e-6)


def views() -> TabularPolicy:
    """Two decisions of two choices after the prompt 0, and after the prompt 1 the same with feedback."""
    return TabularPolicy.random(Tree.of([[[0.0, 1.0], [0.0, 1.0]]] * 2), 3)


def responses(
    policy: TabularPolicy, feedback: str = "1", right: tuple[bool, ...] = (True, False, True, False)
) -> Batch:
    """Four responses, the last cut off after its first token."""
    paths = torch.tensor([[0, 0], [1, 1], [1, 0], [0, 1]])
    episodes = policy.episodes(paths, torch.tensor([2, 2, 2, 1]), prompts=[np.array([0])] * 4)
    verdicts = tuple(Verdict(0.4 * p, p, {}, feedback) for p in right)
    return Batch.from_groups([Group(Ask(Task("t", "0"), 4), tuple(episodes), verdicts)], torch.float64)


def models(policy: TabularPolicy, lr: float = 0.5) -> Models:
    def sgd(parameters: Any, lr: float) -> torch.optim.Optimizer:
        return torch.optim.SGD(list(parameters), lr=lr)

    return Models(policy, encode=lambda prompt: np.array([int(prompt)]), lr=lr, optimizer=sgd)


def log_ratios(policy: TabularPolicy) -> torch.Tensor:
    log_p = policy.log_policy()

    def along(view: int, path: tuple[int, ...]) -> torch.Tensor:
        return sum((log_p[policy.tree.node((view, *path[:t])), a] for t, a in enumerate(path)), torch.tensor(0.0))

    return torch.stack([along(1, p) - along(0, p).detach() for p in ((0, 0), (1, 1), (1, 0), (0,))])


def test_the_gradient_is_through_the_longer_prompt_alone() -> None:
    """The E-step is a step of plain descent along the loss's gradient; the plain view's logits stay."""
    policy = views()
    view = TaughtView(make_method("S147", options=WORDS).objective.view.view, k=2, lr=0.25, max_grad_norm=1e9)  # type: ignore[attr-defined]
    here, batch = models(policy), responses(policy)
    view.start(here)
    before = policy.logits.detach().clone()
    right = torch.tensor([True, False, True, False])
    rewards = 0.1 * log_ratios(policy)
    loss = unpaired_loss(rewards, right)
    [slope] = torch.autograd.grad(loss, policy.logits)
    found = view.learn(batch, here)
    assert found["vpd/loss"] == pytest.approx(loss.item()) and found["vpd/grad_norm"] == pytest.approx(
        slope.norm().item()
    )
    torch.testing.assert_close(policy.logits.detach(), before - 0.25 * slope)
    plain = [policy.tree.node((0, *p)) for p in ((), (0,), (1,))]
    assert torch.equal(policy.logits.detach()[plain], before[plain]) and slope.abs().max() > 0.01
    means = [rewards[side].mean().item() for side in (right, ~right)]
    assert found["vpd/gap"] == pytest.approx(means[0] - means[1])
    gap = log_ratios(policy).detach() * 0.1
    again = view.learn(batch, here)
    assert again == {}, "the next E-step is four steps away"
    assert gap[right].mean() - gap[~right].mean() > found["vpd/gap"]


def test_scaled_down_and_finite() -> None:
    policy = views()
    view = TaughtView(make_method("S147", options=WORDS).objective.view.view, k=2, lr=1.0, max_grad_norm=1e-3)  # type: ignore[attr-defined]
    here, batch, before = models(policy), responses(policy), policy.logits.detach().clone()
    view.start(here)
    view.learn(batch, here)
    assert (policy.logits.detach() - before).norm().item() == pytest.approx(1e-3, rel=1e-3)
    assert view.learn(responses(policy, ""), here) == {} and view._kept["steps"] == 2
    nothing = TaughtView(view.view, k=2, every=1)
    nothing.start(here)
    assert nothing.learn(responses(policy, ""), here) == {}, "nothing is shown"
    assert "vpd/gap" not in nothing.learn(responses(policy, right=(True,) * 4), here), "nothing is wrong"
    with torch.no_grad():
        policy.logits[:] = torch.nan
    with pytest.raises(RunError, match="E-step"):
        nothing.learn(batch, here)


def test_weights_of_low_precision_are_refused() -> None:
    """Each optimiser's float32 copies would undo what the other has done."""
    policy, view = views(), TaughtView(make_method("S147", options=WORDS).objective.view.view, k=2)  # type: ignore[attr-defined]
    view.check(policy)
    low = TabularPolicy(policy.tree, policy.logits.detach(), torch.bfloat16)
    with pytest.raises(UsageError, match="undoes the other's steps"):
        view.check(low)
    low.module.register_parameter("more", torch.nn.Parameter(torch.zeros(1)))
    with pytest.raises(UsageError, match="undoes the other's steps"):
        view.check(low)
    low.module.requires_grad_(False)
    view.check(low)


def stepped(method: Method, policy: TabularPolicy, steps: int, lr: float = 0.0) -> list[dict[str, float]]:
    here, rng = models(policy), np.random.default_rng(0)
    optimizer = torch.optim.SGD(policy.module.parameters(), lr=lr)
    for learner in method.learners:
        learner.start(here)

    def apply(objective: Any, batch: Batch) -> dict[str, float]:
        return update(policy, objective, batch, optimizer, live=method.live, max_grad_norm=1e9)[0]

    out = []
    for _ in range(steps):
        batch = responses(policy)
        for need in method.needs:
            batch.signals[need.name] = need(batch, here)  # type: ignore[operator,union-attr]
        out.append(learn(method.value(batch), method, here, rng, apply))
    return out


def test_the_cadence() -> None:
    """An E-step at the first of every three steps; the M-step's divergence is from the teacher as it is after it."""
    policy = views()
    method = make_method("S147", options={**WORDS, "every": 3, "k": 2, "lr": 0.5})
    found = stepped(method, policy, 7)
    assert [i for i, row in enumerate(found) if "vpd/loss" in row] == [0, 3, 6]
    values = [row["reread/divergence"] for row in found]
    assert values[0] == pytest.approx(values[1]) and values[2] == pytest.approx(values[1])
    assert values[3] != pytest.approx(values[2], abs=1e-6)
    never = make_method("S147", options={**WORDS, "every": 0, "k": 2})
    same = make_method("S031", options={**WORDS, "k": 2, "alpha": 1.0, "teacher": "current", "weight_cap": None})
    assert type(never.objective.view) is SecondView and never.learners == []  # type: ignore[attr-defined]
    assert never.objective == same.objective


def test_both_steps_move_one_network() -> None:
    policy = views()
    before = policy.logits.detach().clone()
    stepped(make_method("S147", options={**WORDS, "k": 2, "lr": 0.5}), policy, 1, lr=1.0)
    moved = (policy.logits.detach() - before).abs().sum(-1) > 1e-6
    assert all(moved[policy.tree.node((view,))] for view in (0, 1))


def test_defaults() -> None:
    method = make_method("S147")
    assert isinstance(method.objective, Distilled) and isinstance(method.objective.view, TaughtView)
    view = method.objective.view
    assert (view.every, view.beta, view.k, method.objective.alpha) == (5, 0.1, 100, 1.0)
    assert view.lr is None and view.teacher == "current" and method.early == [view]
    assert method.rollout == "single_turn" and view.trains_model, "where weights are shared out, it has to be refused"
    assert (view.max_grad_norm, view) == (1.0, TaughtView(view.view, k=100)) and "_kept" not in repr(view)
    with pytest.raises(TypeError):
        TaughtView(view.view, _kept={})  # type: ignore[call-arg]
    for bad in ({"beta": 0.0}, {"lr": 0.0}, {"every": -1}):
        with pytest.raises(UsageError, match="S147"):
            make_method("S147", options=bad)
    with pytest.raises(UsageError, match="max_grad_norm 0 must be above 0"):
        TaughtView(view.view, max_grad_norm=0.0)


@pytest.mark.slow
def test_in_the_lab_the_teacher_learns_to_heed_feedback() -> None:
    taught, untaught = (learned("S147", arm, steps=12, lr=10.0)["trust"] for arm in ("vpd", "untrained"))
    assert taught > 0.1 and untaught == 0.0


def test_the_policy_says_what_is_wrong() -> None:
    """Of five responses the critic is asked about the wrong ones that nothing was said of; what it says is shown."""
    texts = ["5", "6", "7", "8", "4"]
    known = [Verdict.wrong(), Verdict.right(), Verdict.wrong("too much"), Verdict.abstain("away"), Verdict.wrong()]

    def judge(groups: Any) -> list[Group]:
        return [replace(g, verdicts=tuple(known)) for g in groups]

    def says(prompt: str, n: int) -> str:
        return texts[n] if "failed" not in prompt else " Count again. " if "\n5\n" in prompt else "  "

    for over, asked in ((False, "54"), (True, "574")):
        engine = Told(says)
        rollout = {"name": "self_critiqued", "max_tokens": 30, "over": over}
        group, made = operated(rollout, engine, Task("t", "2+1="), n=5, judge=judge)
        critic = engine.asked[1:]
        assert [r.prompt.split("failed:\n")[1][0] for r in critic] == list(asked) and len({r.seed for r in critic}) > 1
        assert all("2+1=" in r.prompt and r.sampling.max_tokens == 30 for r in critic)
        assert [v.feedback for v in group.verdicts] == ["Count again.", "", "too much", "away", ""]
        assert [v.passed for v in group.verdicts] == [False, True, False, None, False]
        assert [e.text for e in group.episodes] == texts and group.before is not None
        assert made.metrics()["surgery/sampled"] == len(asked) and made.metrics()["surgery/mended"] == 1
    prompts = Hindsight("{shown}", "", "said: {feedback}").prompts(Batch.from_groups([group]))
    assert prompts == ["said: Count again.", None, "said: too much", None, None]
    assert make_method("S147", options={"critique": True}).rollout == "self_critiqued"
    for bad in ({"max_tokens": 0}, {"when": "always"}, {"share": 0.1}, {"template": "{question}"}):
        with pytest.raises(UsageError, match="self_critiqued"):
            operated({"name": "self_critiqued", **bad}, Told(says), Task("t", "q"))


def test_it_trains_a_language_model(tmp_path: Path) -> None:
    sections: dict[str, dict[str, Any]] = {
        "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 160}},
        "method": {"name": "S147", "reward": "verdict", "options": {"k": 8, "every": 1}},
        "train": {"steps": 2, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        "evaluate": {"samples": 1},
        "tasks": {"eval_size": 2},
        "run": {"checkpoint_every": 1},
    }
    sections["method"]["rollout"] = {"name": "self_critiqued", "over": True, "max_tokens": 4}
    folder = run(tmp_path / "whole", **sections)
    rows = [row for row in metrics(folder) if "vpd/loss" in row]
    assert all(row["surgery/sampled"] > 0 and row["surgery/mended"] > 0 for row in rows), "it reads its own words"
    assert len(rows) == 2 and all(row["vpd/grad_norm"] > 0 and row["reread/divergence"] > 0 for row in rows)
    again = run(tmp_path / "parts", **{**sections, "train": {**sections["train"], "steps": 1}})
    assay.train(resume=again, overrides=["train.steps=2"], quiet=True)
    assert all(torch.equal(v, weights(again)[k]) for k, v in weights(folder).items())
