"""Settings in which a policy is told something after a failure, or learns from tasks that forgive."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from assay.lab.settings.bandits.forgiving import Setting as Forgiving
from assay.lab.settings.guidance.told_repairs import Heeding, Repairs, tasks_of
from assay.lab.settings.guidance.told_repairs import Setting as ToldRepairs
from assay.rollout.turns.guidance import KINDS, facts, guidance
from assay.types import Episode, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


def test_guidance_names_the_choices_that_it_helps_with() -> None:
    made = ToldRepairs(spread=0.0, options=3, problems=2)
    policy = made.policy(0)
    engine, repairs = Heeding(policy), Repairs()
    [_, task] = tasks_of(policy.answers)
    told = {}
    for kind in KINDS:
        failed = Episode(*[torch.zeros(0, dtype=torch.int64).numpy()] * 4, "", "eos")
        text = guidance(facts(task, failed, Verdict.wrong(f"the test wants {task.reference[-1]}")), kind)
        seen = repairs.reset(task.__class__(task.id, f"{text}\n{task.prompt}", task.reference, "none"), 0)
        told[kind] = engine.opening(seen.messages, ()).tolist()
    assert told == {"interaction": [1, 1], "plan": [1, 2], "feedback": [1, 3]}
    assert engine.opening(repairs.reset(task, 0).messages, ()).tolist() == [1, 0]
    # The chance of a choice that is named is e^bonus / (e^bonus + 2), of any other a third.
    named = float(torch.tensor([made.bonus, 0.0, 0.0]).softmax(-1)[0])
    assert [policy.solved(k) for k in range(4)] == pytest.approx([3**-4, named**2 / 9, named / 27, named / 27])


def test_what_was_guided_is_learned_without_guidance(tmp_path: Path) -> None:
    arm = {"name": "S084", "rollout": {"name": "guided_attempt", "options": {"turns": 4}}}
    found = ToldRepairs(options=2, rollouts=48, group=4).run(arm, 0, tmp_path)
    assert found["solved"] > found["start"] and 48 <= found["rollouts"] < 56
    assert found["told/start"] > found["start"]


def test_tasks_that_forgive(tmp_path: Path) -> None:
    setting = Forgiving(length=2, options=2, chance=0.5, spread=0.0, steps=1, prompts=1)
    policy = setting.policy(0)
    assert policy.solved().tolist() == pytest.approx([0.75, 0.25])
    # Exact chances are those of the tree's leaves.
    chance, first = policy.leaf_logprobs().detach().exp(), policy.tree.tokens[:, 0]
    sums = [float((chance * policy.tree.rewards)[first == k].sum() / chance[first == k].sum()) for k in (0, 1)]
    assert sums == pytest.approx(policy.solved().tolist())
    runs = [setting.run({"name": "S172", **arm}, 5, tmp_path) for arm in ({}, {"select": {"name": "verdict"}})]
    assert runs[0]["rollouts"] == runs[1]["rollouts"] == 8 and runs[0]["learned"] <= runs[1]["learned"]
    assert runs[0]["start"] == 0.5
