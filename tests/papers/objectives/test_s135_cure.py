"""CURE: where responses are taken up again, what a continuation is, how groups add up, and what is left of DAPO."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from tiny import TOKENIZER, tiny

from assay import catalogue
from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import RunError, UsageError
from assay.lab.settings._tabular import Training, train
from assay.method import make_method
from assay.papers.objectives.s135_cure import Critical
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rewards.outcome.verdict import VerdictReward
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")

TASK = Task("tree", "")


def peaked() -> TabularPolicy:
    """Three tokens; the second is nearly uniform, the others are nearly sure."""
    tree = Tree.uniform(3, 3, [float(i % 2) for i in range(27)])
    logits = torch.zeros(tree.children.shape, dtype=torch.float64)
    logits[:, 0] = 3.0
    for first in range(3):
        node = tree.node([first])
        assert node is not None
        logits[node] = torch.tensor([0.3, 0.0, 0.1])
    return TabularPolicy(tree, logits)


def collected(policy, n=16, engine=None, **options):
    rollout = Critical(Sampling(8), **{"min_chars": 1, **options})
    return rollout.collect([Ask(TASK, n)], engine or TabularEngine(policy), np.random.default_rng(0))[0]


def test_a_group_is_new_responses_and_continuations_of_them() -> None:
    policy = peaked()
    group = collected(policy)
    first, rest = group.episodes[:4], group.episodes[4:]
    assert len(group.episodes) == 16 and all("branch_of" not in e.meta for e in first)
    assert sorted(e.meta["branch_of"] for e in rest) == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    for episode in rest:
        source, at = first[episode.meta["branch_of"]], episode.meta["at"]
        prefix = source.tokens[:at].tolist()
        assert at >= 1 and episode.prompt.tolist() == prefix
        assert episode.mask.all() and len(episode.tokens) == 3 - at == len(episode.logprobs)
        assert episode.text == "/".join(map(str, [*prefix, *episode.tokens.tolist()]))
    [judged] = judge_groups(TabularVerifier(policy.tree), [group])
    assert [v.score for v in judged.verdicts] == [
        policy.tree.rewards[policy.tree.paths.index(tuple(map(int, e.text.split("/"))))] for e in group.episodes
    ]


def test_with_one_candidate_it_is_the_most_uncertain_token_but_never_the_first() -> None:
    group = collected(peaked(), n=40, top=1)
    assert all(e.meta["at"] == 1 and len(e.prompt) == 1 for e in group.episodes[10:])


def position(entropies, tokens=None, draws=400, **options):
    """Positions drawn for one response with these entropies."""
    engine = TabularEngine(peaked())
    [[episode]] = engine.generate([Request("", 1, Sampling(8), 0)])
    tokens = np.array(tokens or [1] * len(entropies), dtype=np.int64)
    episode = replace(episode, tokens=tokens, entropies=np.array(entropies, dtype=np.float32))
    rollout, rng = Critical(Sampling(8), **{"min_chars": 1, **options}), np.random.default_rng(0)
    return [rollout._position(episode, engine, {}, rng) for _ in range(draws)]


def test_positions() -> None:
    assert set(position([9, 0.1, 0.7, 0.3], top=1)) == {2}
    drawn = position([9, 0.1, 0.7, 0.3], top=2)
    assert set(drawn) == {2, 3} and 0.4 < drawn.count(2) / len(drawn) < 0.6
    assert set(position([9, 0.1, 0.7, 0.3])) == {1, 2, 3}
    # Tokens of fewer than min_chars characters are no candidates; without any, the response is sampled anew.
    assert set(position([9, 0.1, 0.7, 0.3], tokens=[0, 12, 1, 1], min_chars=2)) == {1}
    assert set(position([9, 0.1, 0.7, 0.3], min_chars=2)) == {0} == set(position([1.0]))


def test_group_sizes_are_what_was_asked_for() -> None:
    for n in range(1, 12):
        group = collected(peaked(), n=n)
        new = [e for e in group.episodes if "branch_of" not in e.meta]
        assert len(group.episodes) == n and len(new) == -(-n // 4)
        taken = [e.meta["branch_of"] for e in group.episodes if "branch_of" in e.meta]
        assert max((taken.count(j) for j in taken), default=0) <= 3
    assert not any("branch_of" in e.meta for e in collected(peaked(), n=6, branches=0).episodes)


def test_advantages_are_over_new_responses_and_continuations_together() -> None:
    policy = peaked()
    groups = judge_groups(TabularVerifier(policy.tree), [collected(policy)])
    batch = make_method("S135").value(Batch.from_groups(groups, torch.float64))
    rewards = torch.tensor([v.score for v in groups[0].verdicts], dtype=torch.float64)
    want = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
    assert torch.allclose(batch.advantages[:, 0], want) and batch.totals.groups == 1
    assert batch.totals.tokens == sum(len(e.tokens) for e in groups[0].episodes) < 16 * 3


def test_the_default_is_dapo_with_branches() -> None:
    method = make_method("S135")
    objective = method.objective
    assert (objective.clip_low, objective.clip_high, objective.dual_clip) == (0.2, 0.28, 10.0)
    assert objective.aggregation == "token_mean" and not objective.kl_weight
    second = catalogue.make("S135", stage=2)
    assert second.rollout["inner"] == "single_turn" and second.objective == objective
    policy = peaked()
    judge = partial(judge_groups, TabularVerifier(policy.tree))
    rollout = build("rollout", method.rollout, sampling=Sampling(8), judge=judge, more=lambda: [Ask(TASK, 16)])
    [group] = rollout.collect([Ask(TASK, 16)], TabularEngine(policy), np.random.default_rng(0))
    assert len(group.episodes) == len(group.verdicts) == 16


def test_defaults() -> None:
    """K = 20, four responses and twelve continuations of sixteen, ten rounds, 512 tokens of buffer."""
    inner = {"name": "cure", "branches": 3, "top": 20, "min_chars": 2}
    assert catalogue.make("S135").rollout == {"name": "dynamic", "inner": inner, "rounds": 10}
    assert catalogue.make("S135", stage=2).rollout == {"name": "dynamic", "inner": "single_turn", "rounds": 10}
    plain = Critical(Sampling(8))
    assert (plain.branches, plain.top, plain.min_chars) == (3, 20, 2)
    assert isinstance(catalogue.make("S135").reward, VerdictReward)
    n = 744  # of at most 1000 tokens: half of the buffer, which begins at 488
    long = Episode(np.zeros(0, np.int64), np.zeros(n, np.int64), np.ones(n, bool), np.zeros(n, np.float32), "", "eos")
    batch = Batch.from_groups([Group(Ask(TASK, 1), (long,), (Verdict.right(),))], torch.float64)
    assert catalogue.make("S135", max_length=1000).reward(batch).values.tolist() == [2 - 0.5]
    Critical(Sampling(8), branches=0, top=1, min_chars=0)


def test_a_prompt_is_never_only_right_or_only_wrong() -> None:
    batch = Batch.from_groups(judge_groups(TabularVerifier(peaked().tree), [collected(peaked())]), torch.float64)
    assert make_method("S135").value(batch).weights.all()
    sure = TabularPolicy(Tree.uniform(3, 3, [1.0] * 27))
    batch = Batch.from_groups(judge_groups(TabularVerifier(sure.tree), [collected(sure)]), torch.float64)
    assert not make_method("S135").value(batch).weights.any()


def test_continuations_are_draws_of_their_own() -> None:
    """From one response of a nearly uniform second token: twelve draws with the same seed would be equal."""
    group = collected(peaked(), n=13, branches=12, top=1)
    assert {e.text.split("/")[1] for e in group.episodes[1:]} == {"0", "1", "2"}
    tokens = 20
    seen = position(np.linspace(0, 1, tokens), draws=600, top=tokens - 1)
    assert set(seen) == set(range(1, tokens))


def test_overlong_responses_are_punished_as_in_dapo() -> None:
    """Right and wrong are 2 apart where the whole punishment is 1."""
    policy = peaked()
    groups = judge_groups(TabularVerifier(policy.tree), [collected(policy, n=4, branches=0)])
    batch = Batch.from_groups(groups, torch.float64)
    reward = catalogue.make("S135", max_length=3, buffer=1).reward(batch)
    scores = torch.tensor([v.score for v in batch.verdicts], dtype=torch.float64)
    assert torch.equal(reward.values, 2 * scores - 1)


def test_errors() -> None:
    class Silent(TabularEngine):
        def generate(self, requests):
            return [[replace(e, entropies=None) for e in row] for row in super().generate(requests)]

    with pytest.raises(RunError, match="entropies"):
        collected(peaked(), engine=Silent(peaked()))
    for bad in ({"branches": -1}, {"top": 0}, {"min_chars": -1}):
        with pytest.raises(UsageError, match="rollout 'cure'"):
            Critical(Sampling(8), **bad)


def test_the_prefix_of_a_language_model_is_taken_over_token_by_token() -> None:
    engine = HFEngine(CausalLM(tiny("llama"), TOKENIZER))
    rollout = Critical(Sampling(6), min_chars=1, top=3)
    [group] = rollout.collect([Ask(Task("t", "12+", "3"), 8)], engine, np.random.default_rng(1))
    question = engine.encode("12+").tolist()
    assert any(e.meta.get("at") for e in group.episodes)
    for episode in group.episodes[2:]:
        source, at = group.episodes[episode.meta["branch_of"]], episode.meta["at"]
        assert episode.prompt.tolist() == [*question, *source.tokens[:at].tolist()]
        assert episode.text == engine.decode([*source.tokens[:at].tolist(), *episode.tokens.tolist()])
        assert at == 0 or engine.decode([int(source.tokens[at])]).strip()
    # Log-probabilities are those of the continuation after its whole prompt.
    batch = Batch.from_groups([group])
    assert torch.allclose(engine.policy.forward(batch).logprobs[batch.mask], batch.logprobs[batch.mask], atol=1e-4)


def test_in_training_stage_two_goes_on_where_stage_one_ended() -> None:
    """One of 27 leaves in three is right at first; stage 1, then stage 2 on the same weights, by the run's own loop."""
    tree = Tree.uniform(3, 3, [float(i % 3 == 0) for i in range(27)])
    policy, task, right = TabularPolicy(tree), Task("t", "", kind="tabular"), []
    for stage, min_chars in ((1, {"min_chars": 1}), (2, {})):
        method = {"name": "S135", "options": {"stage": stage, **min_chars}}
        contexts: list[int] = []

        def watch(step: int, batch: Batch, metrics: object, contexts: list[int] = contexts) -> None:
            contexts.extend(len(e.prompt) for e in batch.episodes)

        train(policy, [task], TabularVerifier(tree), method, Training(12, 1, 16, 2.0), 0, watch)
        right.append(float(policy.leaf_logprobs().detach().exp() @ tree.rewards))
        assert (max(contexts) > 0) == (stage == 1)
    assert 1 / 3 + 0.1 < right[0] < right[1] - 0.1
