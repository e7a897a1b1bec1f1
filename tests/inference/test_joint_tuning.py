"""Outputs for reward and length trained with the model under them: what it learns, and what keeps it as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from assay import api, cli
from assay.config import ModelConfig
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.errors import UsageError
from assay.inference.heads.fit import measure
from assay.inference.heads.joint import Bins, JointHead
from assay.inference.heads.joint_training import JointTraining, outcomes
from assay.inference.heads.joint_tuning import JointTuning, Original
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Ask, Group, Task, Verdict

NANO: dict[str, Any] = {"hidden": 16, "layers": 1, "heads": 2, "context": 32, "alphabet": "0123456789+=\n"}
BINS = Bins(2, (0, 1, 2))


def model(seed: int = 0) -> CausalLM:
    return CausalLM.load(ModelConfig(source="nano", nano=NANO), seed)


def sampled(policy: CausalLM, prompts: int, n: int = 4) -> list[Group]:
    """Responses of two tokens, right where the first one's number is even."""
    asked = [Request(f"{i}+{i % 7}=", n, Sampling(2), i) for i in range(prompts)]
    groups = []
    for i, episodes in enumerate(HFEngine(policy).generate(asked)):
        ended = [type(e)(**{**{f: getattr(e, f) for f in e.__slots__}, "stop": "eos"}) for e in episodes]
        right = [int(e.tokens[0]) % 2 == 0 for e in ended]
        groups.append(Group(Ask(Task(str(i), ""), n), tuple(ended), tuple(Verdict(float(r), r) for r in right)))
    return groups


def test_the_divergence_is_of_the_likeliest_tokens_among_themselves() -> None:
    """By hand from the logits of both models: sum q log(q / p), q over the three likeliest, p over all."""
    one, other = model(0), model(1)
    episodes, _ = outcomes(sampled(one, 3, 2))
    original = Original(one, episodes, top=3)
    total, many = 0.0, 0
    with torch.no_grad():
        for i, e in enumerate(episodes):
            row = torch.tensor([i])
            [(mine, _)] = original.passed(one, row)
            [(theirs, apart)] = original.passed(other, row)
            logits, p = one.head.logits(mine[:-1]), other.head.logits(theirs[:-1]).log_softmax(-1)
            for t in range(len(e.tokens)):
                top = logits[t].topk(3)
                q = top.values.softmax(-1)
                by_hand = float((q * (q.log() - p[t][top.indices])).sum())
                assert float(apart[t]) == pytest.approx(by_hand, abs=1e-5)
                total, many = total + by_hand, many + 1
    assert original.divergence(other) == pytest.approx(total / many, abs=1e-5)
    # Over the whole vocabulary the original is at no distance from itself.
    assert Original(one, episodes, top=10_000).divergence(one) == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_a_tuned_model_predicts_what_its_frozen_states_do_not_and_stays_what_it_was() -> None:
    """Which token came first is no linear function of a random model's last states."""
    base = model()
    groups = sampled(base, 96)
    fitted, kept = groups[:64], groups[64:]
    alone = JointTraining(BINS, stages=1, epochs=200).fit(base, fitted)
    frozen = measure(alone, base, fitted, kept)
    original = Original(base, [e for g in kept for e in g.episodes])
    own = original.divergence(base)
    found: dict[float, tuple[float, float]] = {}
    for kl in (0.0, 10.0):
        tuned, rng = base.twin(), np.random.default_rng(0)
        tuning = JointTuning(BINS, stages=1, kl=kl, epochs=16, batch=64, lr=0.05, backbone_lr=0.01)
        head = tuning.fit(tuned, fitted, rng)
        found[kl] = measure(head, tuned, fitted, kept).reward.head, original.divergence(tuned) - own
        # Nothing reserved can be drawn: the vocabulary is what it was.
        assert tuned.head.weight.shape == base.head.weight.shape
    assert max(error for error, _ in found.values()) < 0.8 * frozen.reward.head
    assert found[10.0][1] < 0.1 * found[0.0][1] and found[10.0][1] < 0.05


@pytest.mark.slow
def test_the_second_stage_begins_from_the_original_with_the_first_one_s_expectations() -> None:
    """Equal responses of which half are right: the first expects one half, and that is the second's label."""
    base = model()
    [group] = sampled(base, 1, 1)
    same = Group(Ask(Task("t", ""), 4), group.episodes * 4, tuple([Verdict.right()] * 2 + [Verdict.wrong()] * 2))
    before = {k: v.clone() for k, v in base.module.state_dict().items()}
    bins = Bins(3, (0, 2, 9))
    options: dict[str, Any] = {"epochs": 60, "lr": 0.1, "backbone_lr": 1e-6, "batch": 4}
    tables = {
        stages: JointTuning(bins, stages=stages, **options)
        .fit(policy := base.twin(), [same], np.random.default_rng(0))
        .tables(policy, list(same.episodes[:1]))[0]
        for stages in (1, 2)
    }
    assert tables[1].sum(1) == pytest.approx([0.5, 0, 0.5], abs=0.05)
    assert tables[2].sum(1) == pytest.approx([0, 1, 0], abs=0.05)
    assert all(torch.equal(before[k], v) for k, v in base.module.state_dict().items()), "a twin is changed, not this"


def test_refusals() -> None:
    with pytest.raises(UsageError, match="not a language model"):
        Original(TabularPolicy(Tree.uniform(2, 2)), [])
    with pytest.raises(UsageError, match="1 or 2 stages"):
        JointTuning(stages=3)
    with pytest.raises(UsageError, match="nothing to learn"):
        JointTuning().fit(model(), [], np.random.default_rng(0))


@pytest.mark.slow
def test_the_command_writes_a_model_that_strategies_run_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run, out = tmp_path / "run", tmp_path / "tuned"
    api.train(
        {
            "model": {"source": "nano", "nano": {**NANO, "hidden": 32}},
            "tasks": {"eval_size": 4, "source": {"name": "arithmetic", "operation": "addition", "digits": 1}},
            "warmup": {"steps": 60, "batch": 32, "lr": 5e-3},
            "rollout": {"prompts": 4, "group": 2, "max_tokens": 4},
            "train": {"steps": 0},
            "evaluate": {"samples": 1},
            "run": {"report": False, "dir": str(run)},
        },
        quiet=True,
    )

    def called(*arguments: str) -> str:
        with pytest.raises(SystemExit) as end:
            cli.main(list(arguments))
        text, error = capfd.readouterr()
        assert end.value.code == 0, error
        return text

    size = ("--tasks", "16", "--samples", "4", "--epochs", "2")
    found = json.loads(called("train-head", str(run), "--tune", "--out", str(out), *size, "--json"))
    now, before = found["divergence"]
    assert found["fit"]["length"] is not None and abs(now - before) < 0.1
    head = out / "head.safetensors"
    assert JointHead.load(head).bins.rewards == 7
    names = f"sample,S038(head={head},every=1)"
    points = json.loads(called("eval", str(out), "--strategy", names, "--budgets", "2", "--json"))["points"]
    assert [len(p["outcomes"]) for p in points] == [4, 4]
    with pytest.raises(SystemExit) as end:
        cli.main(["train-head", str(run), "--tune", "--out", str(out)])
    assert end.value.code == 2 and "is there already" in capfd.readouterr().err
