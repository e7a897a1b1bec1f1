"""GDRO: worked losses, shared levels, the best alone, a run on what is on record, the corrected score."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from running import metrics, run

from assay.batch import Batch
from assay.errors import UsageError
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.objectives.drawings.group_ranking import GroupRanking, ranking_loss
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.networks import network
from assay.policies.flow.policy import FlowPolicy
from assay.rewards.outcome.corrected import Corrected
from assay.signals.base import Models
from assay.signals.drawings.noised import Noised
from assay.types import Ask, Drawing, Episode, Group, Task, Verdict

SCORES, REWARDS = torch.tensor([0.4, 0.1, -0.2]).double(), torch.tensor([1.0, 0.9, 0.0]).double()


def shown(groups: list[list[tuple[str, float]]]) -> Batch:
    made = []
    for i, group in enumerate(groups):
        episodes = [
            Episode(np.zeros(0, np.int64), np.zeros(1, np.int64), np.ones(1, bool), None, t, "eos") for t, _ in group
        ]
        verdicts = [Verdict(score, score >= 1) for _, score in group]
        made.append(Group(Ask(Task(str(i), ""), len(group)), tuple(episodes), tuple(verdicts)))
    batch = Batch.from_groups(made)
    batch.rewards = torch.tensor([v.score for v in batch.verdicts])
    batch.totals = batch.count()
    return batch


def flow(seed: int = 0) -> FlowPolicy:
    config = FlowConfig(hidden=8, layers=1)
    return FlowPolicy(config, network(config, seed))


@pytest.mark.parametrize(("tau", "wanted"), [(0.05, 1.418506), (0.5, 1.592552), (1e-4, 1.382745)])
def test_the_worked_examples(tau: float, wanted: float) -> None:
    assert ranking_loss(SCORES, REWARDS, tau).item() == pytest.approx(wanted, abs=1e-6)
    assert ranking_loss(0 * SCORES, REWARDS, tau).item() == pytest.approx(math.log(6))
    assert ranking_loss(SCORES[:1], REWARDS[:1], tau).item() == 0


def test_two_samples_are_a_pair() -> None:
    found = ranking_loss(SCORES[:2], REWARDS[:2], 1e-4).item()
    assert found == pytest.approx(0.554355, abs=1e-6)
    assert found == pytest.approx(-math.log(1 / (1 + math.exp(-0.3))))


def test_levels_are_shared_and_noise_is_not() -> None:
    policy, reference = flow(0), flow(1)
    batch = shown([[("1 0", 1.0), ("0 1", 0.0)], [("2 0", 0.5), ("0 2", 0.7), ("1 1", 0.1)]])
    compute_signals(batch, {Noised()}, Models(policy, reference))
    found = batch.signals["noised"]
    assert found.shape == (5, 3)
    assert found[0, 0] == found[1, 0] and found[2, 0] == found[3, 0] == found[4, 0] != found[0, 0]
    assert len({tuple(row) for row in found[:, 1:].tolist()}) == 5
    assert torch.allclose(batch.signals["reference_logprobs"], reference.forward(batch).logprobs)
    assert not torch.allclose(batch.signals["reference_logprobs"], policy.forward(batch).logprobs)
    part = batch.rows(torch.tensor([3, 4]))
    assert torch.equal(part.signals["noised"], found[3:])


def test_scores_are_of_errors_that_are_summed_and_the_order_is_that_of_rewards() -> None:
    batch = shown([[("1 0", 0.9), ("0 1", 1.0), ("1 1", 0.0)]])
    batch.signals["noised"] = torch.zeros(3, 3)
    batch.signals["reference_logprobs"] = torch.tensor([[-0.1], [-0.2], [-0.3]])
    # beta * 2 * (0.05, 0.2, -0.1) in the batch's order: .4, .1, -.2 in the order of rewards.
    logprobs = batch.signals["reference_logprobs"] + torch.tensor([[0.05], [0.2], [-0.1]])
    loss = GroupRanking(beta=1.0, gamma=0.0)(logprobs, batch)
    assert loss.value.item() == pytest.approx(1.418506, abs=1e-5)
    assert loss.metrics["best_above_worst"] == 1 and loss.metrics["error"] == pytest.approx(0.3)
    mean = GroupRanking(beta=2.0, gamma=0.0, reduce="mean")(logprobs, batch)
    assert mean.value.item() == pytest.approx(1.418506, abs=1e-5)
    # The best has an error of 2 * .0 = 0 here; the worst is left out.
    again = GroupRanking(beta=1.0, gamma=0.5)(logprobs - 0.3, batch)
    assert again.value.item() == pytest.approx(1.418506 + 0.5 * 2 * 0.3, abs=1e-5)
    assert GroupRanking() == GroupRanking(12.0, 0.05, 0.5, "sum")
    two = shown([[("1 0", 0.9), ("0 1", 1.0)], [("1 0", 0.2), ("0 1", 0.2)]])
    two.signals = {"noised": torch.zeros(4, 3), "reference_logprobs": torch.zeros(4, 1)}
    found = GroupRanking(gamma=0.0)(torch.zeros(4, 1), two)
    assert found.value.item() == pytest.approx(math.log(2)) and found.metrics["best_above_worst"] == 0


def test_the_best_alone_is_shown() -> None:
    batch = shown([[("1 0", 0.2), ("0 1", 0.7)]])
    batch.signals = {"noised": torch.zeros(2, 3), "reference_logprobs": torch.zeros(2, 1)}
    logprobs = torch.tensor([[-0.5], [-0.25]], requires_grad=True)
    GroupRanking(beta=0.0, gamma=2.0)(logprobs, batch).value.backward()
    assert logprobs.grad.tolist() == [[0.0], [-4.0]]
    assert GroupRanking(beta=0.0)(logprobs, batch).value.item() == pytest.approx(math.log(2) + 0.5 * 0.5)


def test_it_trains_on_what_is_on_record(tmp_path: Path) -> None:
    rows = [
        {
            "prompt": f"point {i}",
            "answer": [2, 0],
            "responses": [{"text": f"{i % 3} {k}", "reward": k / 5} for k in range(4)],
        }
        for i in range(12)
    ]
    (tmp_path / "drawn.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = run(
        tmp_path / "run",
        model={"source": "flow", "flow": {"hidden": 8, "layers": 1}},
        tasks={
            "source": {"name": "recorded", "path": str(tmp_path / "drawn.jsonl")},
            "eval_size": 1,
            "eval_share": 0.5,
        },
        warmup={"steps": 0},
        method={"name": "S133", "reward": "verdict"},
        rollout={"group": 4, "prompts": 3},
        train={"steps": 2},
        evaluate={"samples": 0},
    )
    rows = metrics(made)
    assert all(0 <= row["best_above_worst"] <= 1 and row["error"] > 0 for row in rows)
    assert rows[0]["loss"] != rows[1]["loss"]


def test_a_score_counts_as_far_as_it_is_any_good() -> None:
    batch = shown([[("2 0", 0.8), ("2 0", 0.5), ("9 9", 0.8)]])
    batch.tasks = [Task("0", "", reference=[2, 0])] * 3
    found = Corrected([{"name": "near"}, {"name": "right"}])(batch)
    # near says 1, right says .5: u = 1 + 4 * .75 = 4.
    assert found.values[:2].tolist() == pytest.approx([0.8 * 1 + 0.2, 0.5 * 1 + 0.2])
    right = 1 / (1 + math.exp(-3.5))
    assert found.values[2].item() == pytest.approx(0.8 * (1 + 2 * right - 3) + 0.2, abs=1e-6)
    assert found.terms["quality"][0].item() == 4
    batch.verdicts = [Verdict.abstain("none"), *batch.verdicts[1:]]
    assert Corrected(["right"])(batch).valid.tolist() == [False, True, True]
    with pytest.raises(UsageError, match="name the verifiers"):
        Corrected([])


def test_what_it_cannot_learn_from_is_said() -> None:
    assert make_method("S133").objective == GroupRanking()
    for odd in ({"beta": -1.0}, {"gamma": -0.1}, {"tau": 0.0}):
        with pytest.raises(UsageError, match="group_ranking"):
            GroupRanking(**odd)
    with pytest.raises(UsageError, match=r"set model.source=flow"):
        Noised().check(object())
    Noised().check(flow())


def test_the_share_of_groups_whose_best_is_above_their_worst() -> None:
    batch = shown(
        [
            [("1 0", 1.0)],
            [("1 0", 0.5), ("0 1", 1.0), ("1 1", 0.2)],
            [("1 0", 0.5), ("0 1", 1.0), ("1 1", 0.2)],
            [("1 0", 0.9), ("0 1", 0.1)],
        ]
    )
    batch.signals = {"noised": torch.zeros(9, 3), "reference_logprobs": torch.zeros(9, 1)}
    # Best, middle, worst: .3 .5 .1, .3 .0 .1; best and worst: .1 .2.
    logprobs = torch.tensor([0.0, 0.5, 0.3, 0.1, 0.0, 0.3, 0.1, 0.1, 0.2])[:, None]
    objective = GroupRanking(beta=1.0, gamma=0.0)
    found = objective(logprobs, batch)
    assert found.metrics["best_above_worst"] == pytest.approx(2 / 3)
    batch.totals = None
    assert objective(logprobs, batch).value.item() == pytest.approx(found.value.item())
    batch.weights[:] = 0
    nothing = objective(logprobs, batch)
    assert nothing.value.item() == 0 and nothing.metrics == {"error": 0.0}
    assert GroupRanking.reads == "nothing" and GroupRanking.whole_groups and Noised.whole


def test_a_drawing_of_its_own_is_no_record() -> None:
    batch = shown([[("1 0", 1.0), ("0 1", 0.0)]])
    drawing = Drawing(np.zeros((2, 2), np.float32), np.array([1, 0], np.float32), np.arange(1), 0.7, "sde")
    batch.episodes = [batch.episodes[0], replace(batch.episodes[1], drawing=drawing)]
    with pytest.raises(UsageError, match="not from its own"):
        Noised()(batch, Models(flow(0), flow(1)))


def test_one_judge_who_abstains_leaves_no_quality() -> None:
    batch = shown([[("2 0", 0.8)]])
    batch.tasks = [Task("0", "", reference=[2, 0])]
    found = Corrected(["near", "none"])(batch)
    assert found.valid.tolist() == [False] and found.values.tolist() == [0]
