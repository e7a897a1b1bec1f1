"""S091: semantic entropy, branching from prefixes, advantages by segment and the trimming of long right answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from assay import catalogue
from assay.batch import Batch
from assay.credit.branch_values import BranchValues, advantages
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.inference.base import Budget
from assay.inference.voting.branching import BranchingVote
from assay.lab.settings._tabular import Training, train
from assay.method import Method
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.tabular import TabularPolicy, Tree
from assay.rollout import semantic_branching
from assay.rollout.semantic_branching import SemanticBranching, semantic_entropies, semantic_entropy
from assay.select.reward_std import RewardSpread
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.episodes import judge_groups


def test_opposites_are_more_open_than_synonyms() -> None:
    p = torch.tensor([0.5, 0.5], dtype=torch.float64)

    def of(cos: float) -> float:
        unit = torch.tensor([[1.0, 0.0], [cos, math.sqrt(1 - cos**2)]], dtype=torch.float64)
        return float(semantic_entropy(p, unit))

    assert of(1.0) == pytest.approx(-0.693147 / 2, abs=1e-6)
    assert of(-1.0) == pytest.approx(0.346574, abs=1e-6)
    assert of(0.0) == pytest.approx(0.0, abs=1e-12)
    # The two sums of the definition, one by one.
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(5))
    e = rng.standard_normal((5, 3))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    spread = -sum(q[i] * q[j] * e[i] @ e[j] for i in range(5) for j in range(5) if i != j)
    exact = -(q * np.log(q)).sum() * spread
    assert float(semantic_entropy(torch.from_numpy(q), torch.from_numpy(e))) == pytest.approx(exact)


def test_tokens_of_a_tree_are_equally_unlike_each_other() -> None:
    """Three, each as likely: H = ln 3, and cosines of -1/2 between them make SD = 6/9 / 2."""
    policy = TabularPolicy(Tree.uniform(3, 2))
    [found] = semantic_entropies(policy, policy.leaf_episodes(torch.tensor([4])))
    assert found == pytest.approx([math.log(3) / 3] * 2)
    # A token whose embedding is 0 is like none.
    unit = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    assert float(semantic_entropy(torch.tensor([0.5, 0.5]), unit)) == 0


LENGTHS, REWARDS = [10, 8, 12, 6], [1.0, 0.0, 1.0, 0.0]
NODES = [(0, 4), (0, 4, 6), (0, 4, 6), (0,)]


def paths() -> list[np.ndarray]:
    """Response 1 branches from 0 after 4 tokens, response 2 from 1 after 6, response 3 is fresh."""
    first = np.arange(10)
    second = np.concatenate([first[:4], np.arange(20, 24)])
    third = np.concatenate([second[:6], np.arange(30, 36)])
    return [first, second, third, np.arange(40, 46)]


def test_advantages_of_a_tree_of_four() -> None:
    found = advantages(paths(), NODES, REWARDS, [False] * 4, 1.0)
    v4, v0, v6 = 2 / 3, 1 / 2, 1 / 2
    assert found[0] == pytest.approx([v4 - v0] * 4 + [1 - v4] * 6)
    assert found[1] == pytest.approx([v4 - v0] * 4 + [v6 - v4] * 2 + [-0.5] * 2)
    assert found[2] == pytest.approx([v4 - v0] * 4 + [v6 - v4] * 2 + [0.5] * 6)
    assert found[3] == pytest.approx([-0.5] * 6)
    # One of each segment adds up to R - V(0).
    for row, nodes, reward in zip(found, NODES, REWARDS, strict=True):
        assert sum(row[k] for k in nodes) == pytest.approx(reward - v0)


def test_long_right_answers_lose_after_the_branch_they_share_with_the_shortest() -> None:
    plain = advantages(paths(), NODES, REWARDS, [False] * 4, 1.0)
    found = advantages(paths(), NODES, REWARDS, [r == 1 for r in REWARDS], 1.0)
    assert found[2] == pytest.approx([1 / 6] * 4 + [-0.208333] * 2 + [0.375] * 6, abs=1e-6)
    for i in (0, 1, 3):
        assert found[i] == pytest.approx(plain[i])
    assert advantages(paths(), NODES, REWARDS, [r == 1 for r in REWARDS], 0.0)[2] == pytest.approx(plain[2])
    half = advantages(paths(), NODES, REWARDS, [r == 1 for r in REWARDS], 0.5)[2]
    assert half[6] == pytest.approx(0.5 * (6 / 8) ** 0.5)


def tree_batch(length: float = 1.0, masked: bool = False) -> Batch:
    """The tree of four as episodes; the fresh one names no branch points, the first one at its very end."""
    none = np.zeros(0, dtype=np.int64)
    named: list[dict[str, tuple[int, ...]]] = [{"nodes": (0, 4, 10)}, {"nodes": NODES[1]}, {"nodes": NODES[2]}, {}]
    masks = [np.ones(len(t), dtype=bool) for t in paths()]
    if masked:
        masks[0][2] = False
    episodes = tuple(
        Episode(none, t, mask, np.zeros(len(t)), "", "eos", meta=meta)
        for t, mask, meta in zip(paths(), masks, named, strict=True)
    )
    verdicts = tuple(Verdict(r, bool(r)) for r in REWARDS)
    batch = Batch.from_groups([Group(Ask(Task("t", ""), 4), episodes, verdicts)], torch.float64)
    batch.rewards = torch.tensor(REWARDS, dtype=torch.float64)
    return batch


def test_the_credit_reads_branch_points_and_right_lengths_from_a_batch() -> None:
    found = BranchValues(1.0)(tree_batch(masked=True))
    assert found[0].tolist() == pytest.approx([1 / 6, 1 / 6, 0, 1 / 6] + [1 / 3] * 6 + [0, 0]), "no credit outside"
    assert found[1, :8].tolist() == pytest.approx([1 / 6] * 4 + [-1 / 6] * 2 + [-0.5] * 2)
    assert found[2].tolist() == pytest.approx([1 / 6] * 4 + [-1 / 6 - 1 / 24] * 2 + [0.375] * 6)
    assert found[3].tolist() == pytest.approx([-0.5] * 6 + [0] * 6)
    assert BranchValues() == BranchValues(1.0) and BranchValues.group_relative
    BranchValues(0.5)
    # Each group has a tree of its own.
    one = tree_batch()
    two = Batch.from_groups([Group(Ask(Task(n, ""), 4), one.episodes, one.verdicts) for n in "ab"], torch.float64)
    two.rewards = torch.tensor([*REWARDS, 1, 1, 1, 1], dtype=torch.float64)
    both = BranchValues(0.0)(two)
    assert torch.allclose(both[:4], BranchValues(0.0)(one)) and not both[4:].any()


def test_right_responses_of_no_tokens_are_equally_short() -> None:
    none = np.zeros(0, dtype=np.int64)
    found = advantages([none, none, np.arange(2)], [(0,)] * 3, [1.0, 1.0, 1.0], [True] * 3, 1.0)
    assert [len(row) for row in found] == [0, 0, 2] and found[2].tolist() == [0, 0]


def test_the_loss_is_dr_grpos() -> None:
    """Tokens summed and divided by the longest length, over four responses; groups of equal rewards have no weight."""
    made = catalogue.make("S091")
    assert made.rollout == {"name": "semantic_branching", "eps": 0.5, "top": 20} and made.credit == BranchValues(1.0)
    loss = made.objective
    assert (loss.aggregation, loss.max_length, loss.kl_weight) == ("constant", 4096, 0.001), "as in their script"
    assert loss.clip_low == loss.clip_high == 0.2
    batch = tree_batch()
    batch.advantages = BranchValues(1.0)(batch)
    logprobs = torch.zeros(4, 12, dtype=torch.float64, requires_grad=True)
    catalogue.make("S091", kl_weight=0.0, max_length=8).objective(logprobs, batch).value.backward()
    assert logprobs.grad is not None and torch.allclose(logprobs.grad, -batch.advantages / (4 * 8))
    rounding = [1.0, 1.0, 1.0, 1 - 1.4e-6]  # a deviation of .7e-6
    for rewards, weight in (([1.0] * 4, 0.0), (rounding, 0.0), ([1.0, 1.0, 1.0, 1 - 2.4e-6], 1.0), (REWARDS, 1.0)):
        batch.rewards = torch.tensor(rewards, dtype=torch.float64)
        assert made.select(batch).tolist() == [weight] * 4
    for spread in (1.0, 1e-3):  # however much steps before differed, nothing that differs is left out
        batch.rewards = spread * torch.tensor(REWARDS, dtype=torch.float64)
        for _ in range(12):
            assert made.select(batch).tolist() == [1.0] * 4


def test_prompts_of_equal_rewards_are_replaced_if_asked_for() -> None:
    assert catalogue.make("S091").select.rounds == 1
    select = catalogue.make("S091", rounds=8).select
    assert isinstance(select, RewardSpread) and select.rounds == 8
    batch = tree_batch()
    assert select.keep(batch).tolist() == [True] * 4
    batch.rewards = torch.ones(4, dtype=torch.float64)
    assert select.keep(batch).tolist() == [False] * 4


@pytest.mark.slow
def test_a_step_reinforces_what_a_branch_added() -> None:
    policy = TabularPolicy.random(TREE, seed=0)

    def right() -> float:
        return float((policy.leaf_logprobs().detach().exp() * TREE.rewards).sum())

    start = right()
    method = {"name": "S091", "objective": {"max_length": 4, "kl_weight": 0.0}}
    training = Training(steps=20, prompts=4, group=6, lr=30.0, max_tokens=4)
    train(policy, [Task("0", "", kind="tabular")], TabularVerifier(TREE), method, training, 0)
    assert start < 0.3 < 0.6 < right(), (start, right())


def test_branches_at_one_depth_of_different_responses_are_not_one_node() -> None:
    """Known by depth alone, the values at 2 of the two pairs would be mixed."""
    tokens = [np.array(t) for t in ([1, 2, 3], [1, 2, 4], [5, 6, 7], [5, 6, 8])]
    found = advantages(tokens, [(0, 2)] * 4, [1.0, 1.0, 0.0, 0.0], [False] * 4, 1.0)
    assert found[0] == pytest.approx([0.5, 0.5, 0.0])
    assert found[2] == pytest.approx([-0.5, -0.5, 0.0])


TREE = Tree.uniform(3, 4, rewards=[float(i % 5 == 0) for i in range(81)])
POLICY = TabularPolicy.random(TREE, seed=0)
ENGINE = TabularEngine(POLICY)


def collected(eps: float, n: int = 6, seed: int = 0) -> list[Group]:
    asks = [Ask(Task(str(i), ""), n) for i in range(5)]
    return SemanticBranching(Sampling(4), eps).collect(asks, ENGINE, np.random.default_rng(seed))


def test_responses_branch_at_the_most_open_position_not_yet_used() -> None:
    for group in collected(0.0):
        seen: list[Episode] = []
        used: set[tuple[int, ...]] = set()
        for episode in group.episodes:
            tokens = tuple(episode.tokens.tolist())
            assert len(tokens) == 4 and episode.text == "/".join(map(str, tokens))
            # Log-probabilities of the kept part are those it was sampled with.
            [whole] = ENGINE.policy.episodes(torch.from_numpy(episode.tokens)[None], torch.tensor([4]))
            assert episode.logprobs == pytest.approx(whole.logprobs, abs=1e-6)
            if seen:
                table = semantic_entropies(POLICY, seen)
                options = [
                    (float(v), -r, -t)
                    for r, row in enumerate(table)
                    for t, v in enumerate(row)
                    if t > 0 and tuple(seen[r].tokens[:t].tolist()) not in used
                ]
                if options:  # else it starts from the prompt
                    _, r, t = max(options)
                    prefix = tuple(seen[-r].tokens[:-t].tolist())
                    assert tokens[: len(prefix)] == prefix
                    used.add(prefix)
            seen.append(episode)
        for episode in group.episodes:
            mine = sorted(len(p) for p in used if tuple(episode.tokens[: len(p)].tolist()) == p)
            assert episode.meta["nodes"] == (0, *mine)


def test_without_branching_it_is_dr_grpo() -> None:
    groups = judge_groups(TabularVerifier(TREE), collected(1.0))
    assert all(e.meta["nodes"] == (0,) for g in groups for e in g.episodes)
    batch = Batch.from_groups(groups, torch.float64)
    batch.rewards = torch.tensor([v.score for v in batch.verdicts], dtype=torch.float64)
    found = BranchValues(alpha=0.0)(batch)
    for g in range(5):
        mine = batch.group == g
        expected = batch.rewards[mine] - batch.rewards[mine].mean()
        assert torch.allclose(found[mine], expected[:, None].expand(-1, 4))


def test_prompts_have_as_many_responses_as_they_are_asked_for() -> None:
    asks = [Ask(Task(str(n), ""), n) for n in (1, 4, 2)]
    groups = SemanticBranching(Sampling(4), 0.0).collect(asks, ENGINE, np.random.default_rng(0))
    assert [len(g.episodes) for g in groups] == [1, 4, 2]
    assert SemanticBranching(Sampling(4)).collect([], ENGINE, np.random.default_rng(0)) == []


@pytest.mark.parametrize(("temperature", "read"), [(0.5, 0.5), (0.0, 1.0)])
def test_openness_is_of_the_choice_that_is_made(
    temperature: float, read: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the temperature of sampling; greedy sampling leaves no choice, and is read at 1."""
    found = []
    monkeypatch.setattr(
        semantic_branching,
        "semantic_entropies",
        lambda policy, episodes, top, at: found.append(at) or semantic_entropies(policy, episodes, top, at),
    )
    SemanticBranching(Sampling(4, temperature)).collect([Ask(Task("", ""), 2)], ENGINE, np.random.default_rng(0))
    assert found == [read] * 2


def test_a_response_is_drawn_from_the_policy_wherever_it_branches() -> None:
    """Given the kept prefix, what follows has the policy's probabilities: frequencies of the next token."""
    counts = np.zeros((2, 3))
    tree = Tree.uniform(3, 2)
    policy = TabularPolicy.random(tree, seed=4)
    asks = [Ask(Task(str(i), ""), 2) for i in range(800)]
    groups = SemanticBranching(Sampling(2), 0.0).collect(asks, TabularEngine(policy), np.random.default_rng(0))
    for group in groups:
        first, second = (e.tokens for e in group.episodes)
        assert first[0] == second[0]
        if first[0] < 2:
            counts[first[0], second[1]] += 1
    for a in range(2):
        p = policy.log_policy().exp().detach().numpy()[tree.node([a])]
        n = counts[a].sum()
        assert np.abs(counts[a] / n - p).max() < 4.5 * math.sqrt(0.25 / n)


def test_a_language_model_branches_by_its_own_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    nano = {"hidden": 16, "layers": 2, "heads": 2, "context": 64}
    policy = CausalLM.load(ModelConfig(source="nano", nano=nano), 0)
    engine = HFEngine(policy)
    [group] = SemanticBranching(Sampling(8), 0.3, top=5).collect(
        [Ask(Task("t", "1+2="), 5)], engine, np.random.default_rng(0)
    )
    assert any(len(e.meta["nodes"]) > 1 for e in group.episodes)
    for e in group.episodes:
        assert len(e.tokens) <= 8 and engine.decode(e.tokens) == e.text
        assert len(e.prompt) == len(engine.encode("1+2="))
    [e] = group.episodes[:1]
    [found] = semantic_entropies(policy, [e], top=5)
    with torch.no_grad():
        hidden = policy.forward(Batch.from_groups([Group(Ask(Task("t", ""), 1), (e,))]), {"hidden"}).live["hidden"][0]
    unit = torch.nn.functional.normalize(policy.model.get_input_embeddings().weight.float(), dim=-1)
    whole = policy.head.logits(hidden, 1.0).softmax(-1)
    p, tokens = whole.topk(5)
    # The entropy is of the whole vocabulary, the meanings those of the five likeliest, by their own probabilities.
    assert float(p.detach().sum(-1).max()) < 0.9
    expected = semantic_entropy(p, unit[tokens], -(whole * whole.log()).sum(-1))
    alone = semantic_entropy(p, unit[tokens])
    assert float((alone / expected).detach().max()) < 0.9
    assert found == pytest.approx(expected.detach().numpy(), abs=1e-5)
    # Responses of several lengths, read together and in blocks of two positions.
    monkeypatch.setattr("assay.policies.logprobs.Head.rows", lambda head, chunk_bytes=0: 2)
    short = Episode(e.prompt, e.tokens[:3], e.mask[:3], e.logprobs[:3], "", "length")
    both = semantic_entropies(policy, [short, e], top=5)
    assert both[1] == pytest.approx(found, abs=1e-5) and both[0] == pytest.approx(found[:3], abs=1e-5)


def test_the_vote_pays_for_what_follows_a_branch_alone() -> None:
    strategy = BranchingVote(Sampling(4), eps=0.0)
    tasks = [Task(str(i), "") for i in range(10)]
    for answer in strategy(tasks, ENGINE, 6, np.random.default_rng(0)):
        assert answer.text in {e.text for e in answer.episodes}
        assert len(answer.episodes) == 6
        assert answer.tokens == sum(answer.meta["fresh"]) < 24
    for answer in strategy(tasks, ENGINE, Budget(tokens=9), np.random.default_rng(0)):
        assert answer.tokens <= 9 and len(answer.episodes) == 2
    for answer in strategy(tasks, ENGINE, Budget(tokens=3), np.random.default_rng(0)):
        assert answer.tokens == 3


def test_the_vote_is_the_answer_that_most_give() -> None:
    policy = TabularPolicy(Tree.uniform(2, 1))
    strategy = BranchingVote(Sampling(1), eps=1.0)
    tasks = [Task(str(i), "") for i in range(20)]
    answers = strategy(tasks, TabularEngine(policy), 5, np.random.default_rng(0))
    for answer in answers:
        most = Counter(e.text for e in answer.episodes).most_common(1)[0]
        assert answer.text == most[0] and most[1] >= 3
    assert any(answer.text != answer.episodes[0].text for answer in answers)
    nothing = strategy([Task("n", "", kind="number")], Mute(policy), 3, np.random.default_rng(0))
    assert nothing[0].text == "I cannot." and nothing[0].meta["clusters"] == (-1, -1, -1)


class Mute(TabularEngine):
    """Gives no answer, in ever more words."""

    said = "I cannot."

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = [[replace(e, text=self.said) for e in row] for row in super().generate(requests)]
        self.said = f"Sorry. {self.said}"
        return out


def test_bounds_of_options() -> None:
    vote = BranchingVote()
    assert (vote.eps, vote.top) == (0.5, 20)
    assert (SemanticBranching(Sampling(4)).eps, SemanticBranching(Sampling(4)).top) == (0.5, 20)
    for make in (BranchingVote, SemanticBranching):
        for eps, top in ((0.0, 2), (1.0, 2)):
            assert make(Sampling(4), eps, top).top == 2
        for eps, top in ((-0.1, 2), (1.1, 2), (0.5, 1)):
            with pytest.raises(UsageError, match="semantic_branching"):
                make(Sampling(4), eps, top)


def test_options_and_the_method() -> None:
    made = catalogue.make("S091")
    assert isinstance(made, Method) and isinstance(made.credit, BranchValues)
    with pytest.raises(UsageError):
        BranchValues(-1)
    with pytest.raises(UsageError):
        SemanticBranching(Sampling(4), 1.5)
    # Abstentions are out of the values.
    groups = [Group(g.ask, g.episodes, (Verdict.abstain("x"), *[Verdict.right()] * 5)) for g in collected(0.5)]
    batch = Batch.from_groups(groups, torch.float64)
    batch.rewards = torch.ones(len(batch), dtype=torch.float64)
    batch.valid[::6] = False
    assert not BranchValues(0.0)(batch).any()


def test_a_branch_within_a_stop_string_ends_with_it() -> None:
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 64, "alphabet": "01"}
    engine = HFEngine(CausalLM.load(ModelConfig(source="nano", nano=nano), 0))
    stops = ("001", "110")
    [grown] = semantic_branching.grow(["0"], [40], engine, Sampling(40, stop=stops), np.random.default_rng(0), 0.0, 3)
    assert sum(e.stop == "stop" for e in grown.episodes) > 10
    for e in grown.episodes:
        assert all(stop not in engine.decode(e.tokens[:-1]) for stop in stops)
