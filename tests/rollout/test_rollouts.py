"""Rollouts that ask more than once, and responses that go on from a prefix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from running import metrics, run
from tiny import TOKENIZER, tiny

from assay.batch import Batch
from assay.credit.remax import ReMax
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rollout.dynamic import Dynamic, mixed
from assay.rollout.greedy_baseline import GreedyBaseline
from assay.types import Ask, Group, Task, Verdict
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")

TASK = Task("tree", "")
SAMPLING = Sampling(8)


def arms(p: float) -> TabularPolicy:
    """A bandit whose right arm has probability ``p``."""
    return TabularPolicy(Tree.bandit(2, [1, 0]), torch.tensor([[np.log(p), np.log(1 - p)]]))


def dynamic(policy: TabularPolicy, size: int, **options: int) -> tuple[Dynamic, list[int]]:
    asked: list[int] = []

    def more() -> Sequence[Ask]:
        asked.append(1)
        return [Ask(TASK, size)] * 4

    judge = partial(judge_groups, TabularVerifier(policy.tree))
    made = build("rollout", {"name": "dynamic", **options}, sampling=SAMPLING, judge=judge, more=more)
    return made, asked


def test_it_asks_until_the_batch_is_full_of_mixed_groups() -> None:
    policy = arms(0.1)
    rollout, asked = dynamic(policy, 4)
    groups = rollout.collect([Ask(TASK, 4)] * 4, TabularEngine(policy), np.random.default_rng(0))
    assert len(groups) == 4 and all(mixed(g) for g in groups)
    assert rollout.metrics() == {"dynamic/rounds": len(asked) + 1, "dynamic/kept": 4 / (4 * (len(asked) + 1))}
    assert asked, "a mixed group of 4 has a chance of one in three here: the first round cannot be enough"


def test_it_gives_up_after_its_rounds_with_what_it_has() -> None:
    policy = arms(1 - 1e-12)
    rollout, asked = dynamic(policy, 4, rounds=3)
    assert rollout.collect([Ask(TASK, 4)] * 4, TabularEngine(policy), np.random.default_rng(0)) == []
    assert len(asked) == 2 and rollout.metrics() == {"dynamic/rounds": 3, "dynamic/kept": 0.0}
    with pytest.raises(UsageError, match="rounds = 0"):
        dynamic(policy, 4, rounds=0)


@pytest.mark.parametrize(
    ("passed", "expected"),
    [((True, False), True), ((True, True), False), ((None, True), False), ((False,), False), ((), False)],
)
def test_mixed_counts_verdicts_and_not_abstentions(passed: tuple[bool | None, ...], expected: bool) -> None:
    [episode] = TabularEngine(arms(0.5)).generate([Request("", 1, SAMPLING, 0)])[0]
    verdicts = tuple(Verdict(float(bool(p)), p) for p in passed)
    assert mixed(Group(Ask(TASK, len(passed)), (episode,) * len(passed), verdicts)) is expected


def test_a_step_left_without_groups_is_skipped_and_said(tmp_path: Path) -> None:
    """Every response of an untrained model is wrong: no optimiser step is taken, and the metrics say so."""
    method = {"reward": "verdict", "rollout": {"name": "dynamic", "rounds": 2}}
    folder = run(tmp_path / "run", method=method, warmup={"steps": 0}, tasks={"verify": "exact"})
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 4 and all(row["skipped"] == 1.0 and row["dynamic/rounds"] == 2 for row in rows)
    assert not any("loss" in row for row in rows)


def test_the_greedy_response_is_the_baseline_and_is_not_learned_from() -> None:
    policy = TabularPolicy(Tree.of([[0.0, 1.0], 0.5]), torch.tensor([[1.0, 0.0], [2.0, 0.0]]))
    groups = GreedyBaseline(SAMPLING).collect([Ask(TASK, 3)], TabularEngine(policy), np.random.default_rng(0))
    [group] = judge_groups(TabularVerifier(policy.tree), groups)
    assert [e.text for e in group.episodes][-1] == "0/0" and not group.episodes[-1].mask.any()
    batch = Batch.from_groups([group], torch.float64)
    batch.rewards = torch.tensor([v.score for v in group.verdicts], dtype=torch.float64)
    advantages = ReMax()(batch)
    for i, verdict in enumerate(group.verdicts[:-1]):
        assert advantages[i, 0].item() == verdict.score - 0.0
    assert not advantages[-1].any() and batch.count().sequences == 3


def test_a_response_goes_on_from_a_prefix_of_a_tree() -> None:
    policy = TabularPolicy.random(Tree.of([[0, 1], [1, [0, 1]]]), seed=0)
    engine = TabularEngine(policy)
    [made] = engine.generate([Request("", 50, SAMPLING, 0, prefix=(1,))])
    assert {e.text for e in made} == {"0", "1/0", "1/1"}
    assert all(e.prompt.tolist() == [1] for e in made)
    [same] = engine.generate([Request("1", 50, SAMPLING, 0)])
    assert [e.text for e in same] == [e.text for e in made]
    batch = Batch.from_groups([Group(Ask(TASK, 50), tuple(made))], torch.float64)
    np.testing.assert_allclose(policy.forward(batch).logprobs.detach(), batch.logprobs, atol=1e-6)
    verdicts = {TabularVerifier(policy.tree)(Task("t", "1"), e.text).score for e in made if e.text in ("0", "1/1")}
    assert verdicts == {1.0}
    with pytest.raises(UsageError, match="leads to no node"):
        engine.generate([Request("", 1, SAMPLING, 0, prefix=(0, 0))])


def test_a_response_goes_on_from_a_prefix_of_a_model() -> None:
    """The same draws from prompt + prefix as from the same text as a prompt; tokens are the continuation alone."""
    engine = HFEngine(CausalLM(tiny("llama"), TOKENIZER))
    prefix = tuple(engine.encode_response("3+", end=False).tolist())
    [made] = engine.generate([Request("12+", 5, SAMPLING, 3, prefix)])
    [plain] = engine.generate([Request("12+3+", 5, SAMPLING, 3)])
    for a, b in zip(made, plain, strict=True):
        assert a.tokens.tolist() == b.tokens.tolist() and a.text == b.text
        assert a.prompt.tolist() == [*engine.encode("12+").tolist(), *prefix] == b.prompt.tolist()
    assert engine.decode(prefix) == "3+"
    assert engine.encode_response("3")[-1] == TOKENIZER.eos_token_id
