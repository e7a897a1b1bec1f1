"""OPRL: a preference of trajectories, what turns earn by it, their advantages and the loss by turn, by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics

import assay
from assay.batch import Batch
from assay.catalogue.claim import claim_of
from assay.errors import UsageError
from assay.lab.settings import load
from assay.lab.settings._tabular import Training, train
from assay.method import make_method
from assay.objectives.gspo import TurnRatio
from assay.ops.outcome_losses import outcome_loss
from assay.papers.process.s134_oprl import TurnPreference
from assay.policies.tabular import TabularPolicy, Tree
from assay.signals.base import Models
from assay.signals.implicit_reward import ImplicitReward, labelled
from assay.types import Ask, Episode, Group, Task, Turn, Verdict
from assay.verify.none import NoVerifier

pytestmark = pytest.mark.usefixtures("one_thread")


def episode(turns: int, score: float, valid: bool = True, size: int = 2) -> tuple[Episode, Verdict]:
    """Turns of ``size`` tokens, and one of the environment's, which is masked, between them."""
    mask = ([True] * size + [False]) * turns
    noted = tuple(Turn(k, (size + 1) * k, (size + 1) * k + size, valid=valid) for k in range(turns))
    ids = np.zeros(len(mask), dtype=np.int64)
    made = Episode(ids[:0], ids, np.array(mask), np.zeros(len(mask), np.float32), "", "eos", turns=noted)
    return made, Verdict(score, score >= 1)


def batch_of(*rows: tuple[Episode, Verdict]) -> Batch:
    episodes, verdicts = zip(*rows, strict=True)
    batch = Batch.from_groups([Group(Ask(Task("t", ""), len(rows)), episodes, verdicts)], torch.float64)
    batch.signals["implicit_reward"] = torch.zeros_like(batch.logprobs)
    return batch


def worked() -> Batch:
    """A success with q = .4, -.2 by turn and a failure with -.6, .2, .1; on both tokens of a turn half of it."""
    batch = batch_of(episode(2, 1.0), episode(3, 0.0))
    for i, row in enumerate(([0.4, -0.2], [-0.6, 0.2, 0.1])):
        for k, q in enumerate(row):
            batch.signals["implicit_reward"][i, 3 * k : 3 * k + 2] = q / 2
    return batch


def by_turn(values: torch.Tensor, batch: Batch) -> list[list[float]]:
    rows = []
    for i, e in enumerate(batch.episodes):
        found = [values[i, t.start : t.end].unique().tolist() for t in e.turns]
        assert all(len(x) == 1 for x in found)
        rows.append([round(x[0], 6) for x in found])
    return rows


def advantages(batch: Batch, **options: Any) -> list[list[float]]:
    method = make_method("S134", options=options)
    method.worth(batch)
    return by_turn(method.credit(batch), batch)


def test_the_loss_of_trajectories_by_hand() -> None:
    """-log sigmoid(beta (.2 + .3)) with sums, and of (.1 + .1) with means over turns."""
    batch = worked()
    right, where = labelled(batch.verdicts)
    q = torch.where(batch.mask, batch.signals["implicit_reward"], 0).sum(-1)
    loss = outcome_loss(q, right, batch.group, where, 0.05, "dpo")
    assert loss.item() == pytest.approx(0.6807253, abs=1e-7)
    means = outcome_loss(q / torch.tensor([2.0, 3.0]), right, batch.group, where, 0.05, "dpo")
    assert means.item() == pytest.approx(0.6881597, abs=1e-7)
    # All pairs of a task: two successes and a failure.
    three = torch.tensor([0.2, 0.5, -0.3], dtype=torch.float64)
    found = outcome_loss(
        three, torch.tensor([True, True, False]), torch.zeros(3, dtype=torch.int64), three > -1, 0.05, "dpo"
    )
    expected = [math.log1p(math.exp(-0.05 * gap)) for gap in (0.5, 0.8)]
    assert found.item() == pytest.approx(sum(expected) / 2)


def learner(per_turn: bool = False) -> tuple[ImplicitReward, Batch, Models]:
    """A model over two tokens, a success of one turn and a failure of two, sampled with probability a half each."""
    tree = Tree.of([[0.0, 0.0], [0.0, 0.0]])
    policy = TabularPolicy(tree)
    rows = []
    for tokens, turns, score in (((0, 0), 1, 1.0), ((1, 1), 2, 0.0)):
        noted = tuple(Turn(k, k, k + 1) for k in range(turns)) if turns > 1 else (Turn(0, 0, 2),)
        ids, mask = np.array(tokens, dtype=np.int64), np.ones(2, dtype=bool)
        sampled = np.full(2, math.log(0.5), np.float32)
        rows.append((Episode(ids[:0], ids, mask, sampled, "", "eos", turns=noted), Verdict(score, score >= 1)))
    made = ImplicitReward("dpo", 0.05, 1.0, reference="behaviour", per_turn=per_turn, max_grad_norm=1e9)
    models = Models(policy, optimizer=torch.optim.SGD)
    made.start(models)
    batch = batch_of(*rows)
    batch.signals["implicit_reward"] = made(batch, models)
    return made, batch, models


def test_the_reference_is_the_old_policy() -> None:
    """At first it is what was sampled: q = 0, the loss log 2; then the success is likelier, the failure less likely."""
    made, batch, models = learner()
    assert made.models == () and batch.signals["implicit_reward"].abs().max() < 1e-6
    assert made.learn(batch, models)["implicit/loss"] == pytest.approx(math.log(2), abs=1e-6)
    after = made(batch, models).sum(-1)
    assert after[0] > 0 > after[1]
    # The slope is beta / 2 by h; a mean over two turns halves that of the failure alone.
    halved, batch, models = learner(per_turn=True)
    halved.learn(batch, models)
    other = halved(batch, models).sum(-1)
    root, child = (m.model.logits.detach() for m in (made, halved))  # type: ignore[union-attr]
    gone = lambda logits: (logits[0, 0].item(), logits[1, 0].item(), logits[2, 1].item())  # noqa: E731
    assert gone(root) == pytest.approx((0.05 / 2, 0.05 / 4, -0.05 / 4)) and other[1] > after[1]
    assert gone(child) == pytest.approx((0.05 / 4 * 1.5, 0.05 / 4, -0.05 / 8))


def test_observations_are_masked() -> None:
    batch = worked()
    batch.signals["implicit_reward"][:, 2] = 99.0
    assert advantages(batch) == advantages(worked())
    made, plain, models = learner()
    plain.mask[:, 1] = False
    assert made(plain, models)[:, 1].tolist() == [0, 0]


def test_advantages_by_hand() -> None:
    """.02, -.01 | -.03, .01, .005 over five turns and 1 | 0 over two episodes, by the unbiased deviation.

    A_S = 1.077278, -.461690 | -1.487669, .564288, .307794, and A_E = .707107, -.707107.
    """
    expected = [[1.784384, 0.245416], [-2.194776, -0.142819, -0.399313]]
    assert advantages(worked()) == [pytest.approx(row, abs=3e-3) for row in expected]
    # A std + 1e-6 divides: exact where the rewards are not as small as these.
    larger = worked()
    larger.signals["implicit_reward"] *= 1e4
    assert advantages(larger) == [pytest.approx(row, abs=1e-5) for row in expected]
    half = worked()
    half.signals["implicit_reward"] *= 1e4
    assert advantages(half, alpha=0.5)[0] == pytest.approx([0.707107 + 1.077278 / 2, 0.707107 - 0.461690 / 2], abs=1e-5)


def test_it_comes_down_to_grpo_of_episodes() -> None:
    expected = [pytest.approx([math.sqrt(0.5)] * 2, abs=1e-5), pytest.approx([-math.sqrt(0.5)] * 3, abs=1e-5)]
    assert advantages(worked(), alpha=0.0) == expected
    assert advantages(batch_of(episode(2, 1.0), episode(3, 0.0))) == expected, "phi = pi_old"
    left = advantages(batch_of(episode(2, 1.0), episode(3, 0.0)), kind="leave_one_out")
    assert left == [pytest.approx([1, 1]), pytest.approx([-1, -1, -1])]


def test_the_merged_control() -> None:
    """R + r of five turns, 1.02, .99 | -.03, .01, .005, compared all together."""
    values = np.array([1.02, 0.99, -0.03, 0.01, 0.005])
    want = (values - values.mean()) / values.std(ddof=1)
    found = advantages(worked(), form="merged")
    assert [x for row in found for x in row] == pytest.approx(want, abs=1e-4)


def test_invalid_actions_cost() -> None:
    batch = batch_of(episode(2, 1.0, valid=False), episode(3, 0.0))
    found = TurnPreference()(batch)
    assert found.values.tolist() == pytest.approx([0.8, 0.0]) and found.terms["episode"].tolist() == pytest.approx(
        [0.8, 0]
    )
    assert TurnPreference(invalid=0.25)(batch).values.tolist() == pytest.approx([0.5, 0.0])
    assert TurnPreference(invalid=0.0, merged=0.0)(batch).values.tolist() == [0, 0]
    for bad in ({"invalid": -0.1}, {"merged": -0.1}, {"invalid": 1.0, "merged": -0.1}):
        with pytest.raises(UsageError, match="turn_preference"):
            TurnPreference(**bad)


def test_what_turns_earn() -> None:
    """0.05 of the summed log-ratios, .2 and -.3; merged, the outcome is on each turn's last token that is learned."""
    found = TurnPreference()(worked())
    assert found.terms["turns"].tolist() == pytest.approx([0.01, -0.015])
    assert found.tokens is not None and found.tokens[0].tolist() == pytest.approx(
        [0.01, 0.01, 0, -0.005, -0.005, 0, *[0] * 3]
    )
    batch = worked()
    batch.mask[0, 1] = batch.mask[1, 0] = batch.mask[1, 1] = False
    merged = TurnPreference(merged=2.0)(batch)
    assert merged.tokens is not None and not bool(merged.values.any())
    assert merged.tokens[0].tolist() == pytest.approx([1.02, 0, 0, -0.01, 0.99, 0, *[0] * 3])
    assert merged.tokens[1].tolist() == pytest.approx([0, 0, 0, 0.01, 0.01, 0, 0.005, 0.005, 0])
    made = make_method("S134").reward
    assert (made.implicit.beta, made.implicit.per_turn, made.invalid, made.merged) == (0.05, False, 0.1, None)
    assert make_method("S134", options={"form": "merged", "alpha": 2.0}).reward.merged == 2


def test_a_threshold_on_scores() -> None:
    verdicts = [Verdict(0.7, False), Verdict(0.6, False), Verdict.abstain("?")]
    right, told = labelled(verdicts, 0.6)
    assert right.tolist() == [True, False, False] and told.tolist() == [True, True, False]
    assert labelled(verdicts)[0].tolist() == [False] * 3


def test_the_loss_of_turns_by_hand() -> None:
    """A success of two turns with ratios 1.5 (clipped at 1.2) and .9, a failure of one turn of three tokens with .7.

    Their advantages are 2, 1 and -1: the mean over a row's turns, and over rows.
    """
    batch = batch_of(episode(2, 1.0), episode(1, 0.0, size=3))
    gaps = torch.zeros_like(batch.logprobs)
    gaps[0, 0], gaps[0, 1], gaps[0, 3] = math.log(1.25), math.log(1.2), math.log(0.9)
    gaps[1, :3] = torch.tensor([math.log(0.7), 0.3, -0.3], dtype=torch.float64)
    batch.advantages[0, :2], batch.advantages[0, 3:5], batch.advantages[1, :3] = 2.0, 1.0, -1.0
    batch.totals = batch.count()
    logprobs = (batch.logprobs + gaps).requires_grad_(True)
    loss = TurnRatio()(logprobs, batch)
    # A < 0 and a ratio below .8: the clipped one is the larger loss.
    assert loss.value.item() == pytest.approx((-(1.2 * 2 + 0.9 * 1) / 2 + 0.8) / 2)
    [slope] = torch.autograd.grad(loss.value, logprobs)
    assert slope[0].tolist() == pytest.approx([0, 0, 0, -0.9 / 4, -0.9 / 4, 0]) and not slope[1].any()
    assert make_method("S134").objective == TurnRatio() and TurnRatio().needs == frozenset()
    with pytest.raises(UsageError, match="turn_ratio"):
        TurnRatio(clip_low=-0.1)


def test_a_response_without_turns_is_one() -> None:
    ids = np.zeros(2, dtype=np.int64)
    plain = Episode(ids[:0], ids, ids == 0, np.zeros(2, np.float32), "", "eos")
    batch = batch_of((plain, Verdict.right()))
    batch.advantages[:] = 1.0
    batch.totals = batch.count()
    logprobs = batch.logprobs + torch.tensor([[0.1, -0.2]], dtype=torch.float64)
    assert TurnRatio()(logprobs, batch).value.item() == pytest.approx(-math.exp(-0.1))


@pytest.mark.slow
def test_the_door_earns_more_than_the_wall() -> None:
    """Beside a closed door, with three moves and the goal behind it: only the first turn that opens it helps."""
    claim, world = claim_of("S134"), {"name": "corridor", "rooms": 3, "doors": 1, "moves": 3}
    setting: Any = load(claim.setting, {**claim.options, "environment": world, "turns": 3})
    engine, tasks = setting.player(0)
    earned: dict[str, list[float]] = {}

    def watch(step: int, batch: Batch, found: Any) -> None:
        if step < 15:
            return
        for i, e in enumerate(batch.episodes):
            turn = e.turns[0]
            value = float(batch.signals["implicit_reward"][i, turn.start : turn.end].sum())
            earned.setdefault(str(turn.tag), []).append(value)

    rollout = {"name": "multi_turn", "environment": setting.environment, "turns": setting.turns}
    method = {**claim.arms["oprl"], "rollout": rollout}
    [task] = [t for t in tasks if (t.meta["start"], t.meta["goal"]) == (2, 3)]
    training = Training(30, 1, 32, 1e-9, max_tokens=1)  # the policy stays as it is
    train(engine.policy, [task], NoVerifier(), method, training, 0, watch, engine)
    means = {kind: float(np.mean(values)) for kind, values in earned.items()}
    assert means["open"] > 0.1 and all(means["open"] > means[kind] + 0.3 for kind in ("left", "right", "stop")), means


def test_a_whole_run(tmp_path: Path) -> None:
    table = {
        "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 512}},
        "tasks": {"source": {"name": "environment", "environment": "corridor"}, "eval_share": 0.2},
        "warmup": {"steps": 0},
        "method": {
            "name": "S134",
            "options": {"update": "before", "per_turn": True},
            "rollout": {"name": "multi_turn", "environment": "corridor", "turns": 2},
        },
        "rollout": {"prompts": 2, "group": 2, "max_tokens": 4, "max_rows": 8},
        "train": {"steps": 2, "lr": 1e-3, "mini_batches": 1},
        "evaluate": {"every": 0, "samples": 1},
        "run": {"dir": str(tmp_path / "run"), "report": False, "tensorboard": False},
    }
    assay.train(table, quiet=True)
    rows = [row for row in metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert len(rows) == 2 and all(math.isfinite(row["loss"]) for row in rows)
    assert all("reward/turns" in row and "reward/episode" in row for row in rows)


@pytest.mark.slow
def test_turns_learned_from_outcomes_lead_there_sooner() -> None:
    found = {arm: learned("S134", arm, steps=40, lr=10.0) for arm in ("oprl", "episodes")}
    assert found["oprl"]["area"] > found["episodes"]["area"] > found["oprl"]["start"] == pytest.approx(0.0938, abs=1e-4)
