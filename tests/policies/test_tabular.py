"""The enumerable policy, its exact quantities and its engine, against SciPy, autograd and counting."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay.batch import Batch
from assay.engines.base import Engine, Request, Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.policies.base import Policy
from assay.policies.tabular import Leaf, TabularPolicy, Tree, enumerate_groups
from assay.types import Ask, Group, Task
from assay.verify.base import Verifier

pytestmark = pytest.mark.usefixtures("one_thread")

NESTED = [0.0, [1.0, 0.5], [[0.25], [1.0, 0.0, 0.75]]]
TASK = Task("tree", "", kind="tabular")


@pytest.fixture
def policy() -> TabularPolicy:
    return TabularPolicy.random(Tree.of(NESTED), seed=0)


def batch_of(policy: TabularPolicy, leaves: list[int]) -> Batch:
    group = Group(Ask(TASK, len(leaves)), tuple(policy.leaf_episodes(torch.tensor(leaves, dtype=torch.int64))))
    return Batch.from_groups([group], dtype=torch.float64)


# Trees


def test_a_tree_of_unequal_depth_and_branching():
    tree = Tree.of(NESTED)
    assert tree.paths == [(0,), (1, 0), (1, 1), (2, 0, 0), (2, 1, 0), (2, 1, 1), (2, 1, 2)]
    assert tree.rewards.tolist() == [0.0, 1.0, 0.5, 0.25, 1.0, 0.0, 0.75]
    assert tree.lengths.tolist() == [1, 2, 2, 3, 3, 3, 3]
    assert tree.depth == 3
    assert len(tree) == 7
    assert tree.nodes.tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 0], [0, 2, 3], [0, 2, 4], [0, 2, 4], [0, 2, 4]]


def test_leaves_carry_labels():
    tree = Tree.of([Leaf(1.0, "sound"), [Leaf(1.0, "lucky"), 0]])
    assert tree.labels == ("sound", "lucky", "")
    assert tree.rewards.tolist() == [1.0, 1.0, 0.0]


def test_uniform_trees_and_bandits():
    tree = Tree.uniform(3, 2, range(9))
    assert len(tree) == 9
    assert tree.children.shape == (4, 3)
    assert tree.paths[5] == (1, 2)
    assert tree.rewards[5] == 5
    assert Tree.bandit(4, [0, 1, 0, 0]).paths == [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize("nested", [[], [[]], ["right"], [None, 1.0], [1.0, "01"]])
def test_what_is_no_tree_is_refused(nested):
    with pytest.raises(UsageError, match="non-empty lists"):
        Tree.of(nested)


def test_sizes_and_rewards_must_fit():
    with pytest.raises(UsageError, match="depth >= 1"):
        Tree.uniform(2, 0)
    with pytest.raises(UsageError, match="3 rewards for a tree of 4 leaves"):
        Tree.uniform(2, 2, [0, 0, 1])
    with pytest.raises(UsageError, match=r"logits of shape \(5, 3\)"):
        TabularPolicy(Tree.of(NESTED), torch.zeros(1, 2))


# Log-probabilities


def test_forward_by_hand():
    tree = Tree.of([1.0, [0.0, 1.0, 0.0]])
    policy = TabularPolicy(tree, torch.tensor([[math.log(3), 0.0, 99.0], [0.0, math.log(2), 0.0]]))
    out = policy.forward(batch_of(policy, [0, 2]), {"entropy"})
    assert out.logprobs.exp().tolist() == [pytest.approx([0.75, 1.0]), pytest.approx([0.25, 0.5])]
    root, below = stats.entropy([0.75, 0.25]), stats.entropy([0.25, 0.5, 0.25])
    assert out.live["entropy"].tolist() == [pytest.approx([root, 0.0]), pytest.approx([root, below])]


def test_forward_divides_logits_by_the_temperature(policy):
    batch = batch_of(policy, list(range(7)))
    halved = TabularPolicy(policy.tree, policy.logits / 2)
    assert torch.allclose(policy.forward(batch, temperature=2.0).logprobs, halved.forward(batch).logprobs)
    with pytest.raises(UsageError, match="temperature above 0"):
        policy.forward(batch, temperature=0.0)


def test_forward_of_a_beginning_and_of_an_empty_response(policy):
    episodes = policy.episodes(torch.tensor([[2, 1], [0, 0]]), torch.tensor([2, 0]))
    assert [e.stop for e in episodes] == ["length", "length"]
    assert [e.text for e in episodes] == ["2/1", ""]
    got = policy.forward(Batch.from_groups([Group(Ask(TASK, 2), tuple(episodes))])).logprobs
    table = policy.log_policy()
    assert got[0].tolist() == [table[0, 2].item(), table[2, 1].item()]
    assert got[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("tokens", [[3], [0, 0], [2, 0, 1], [-1]])
def test_forward_refuses_what_is_no_path(policy, tokens):
    batch = batch_of(policy, [5])
    batch.episodes[0].tokens.resize(len(tokens), refcheck=False)
    batch.tokens = torch.tensor([tokens])
    with pytest.raises(UsageError, match="is not a path of the tree"):
        policy.forward(batch)


def test_forward_sums_to_the_leaf_log_probabilities(policy):
    total = policy.forward(batch_of(policy, list(range(7)))).logprobs.sum(-1)
    assert torch.allclose(total, policy.leaf_logprobs(), atol=1e-12)
    assert total.exp().sum().item() == pytest.approx(1.0, abs=1e-12)


def test_decisions_ruled_out_make_no_nan():
    policy = TabularPolicy(Tree.of([1.0, [0.5, 0.0]]), torch.tensor([[0.0, 0.0], [0.0, -torch.inf]]))
    out = policy.forward(batch_of(policy, [0, 1]), {"entropy"})
    total = out.logprobs.sum() + out.live["entropy"].sum() + policy.exact_entropy() + policy.exact_kl(policy)
    total.backward()
    assert math.isfinite(total.item())
    assert policy.logits.grad is not None
    assert bool(policy.logits.grad.isfinite().all())


def test_cells_without_a_child_never_get_a_gradient(policy):
    (policy.expected_reward() + policy.exact_entropy()).backward()
    absent = policy.tree.children == 0
    assert policy.logits.grad is not None
    assert torch.count_nonzero(policy.logits.grad[absent]) == 0
    assert bool((policy.logits.grad[~absent] != 0).any())


# Exact quantities


def big_policy() -> TabularPolicy:
    rewards = torch.rand(4096, generator=torch.Generator().manual_seed(1)).tolist()
    return TabularPolicy.random(Tree.uniform(4, 6, rewards), seed=2)


@pytest.mark.parametrize("make", [lambda: TabularPolicy.random(Tree.of(NESTED), 3), big_policy])
def test_exact_gradient_is_the_derivative(make):
    policy = make()
    (expected,) = torch.autograd.grad(policy.expected_reward(), policy.logits)
    assert torch.allclose(policy.exact_gradient(), expected, atol=1e-14)
    assert torch.count_nonzero(expected) > 0
    at, step = (1, 1), 1e-5
    values = []
    for sign in (1, -1):
        moved = policy.logits.detach().clone()
        moved[at] += sign * step
        values.append(TabularPolicy(policy.tree, moved).expected_reward().item())
    assert policy.exact_gradient()[at].item() == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-9)


def test_exact_gradient_of_a_bandit_by_hand():
    policy = TabularPolicy(Tree.bandit(3, [1, 0, 0]), torch.tensor([[0.5, 0.3, 0.2]]).log())
    assert policy.exact_gradient()[0].tolist() == pytest.approx([0.25, -0.15, -0.1])
    other = torch.tensor([0.0, 0.0, 1.0])
    assert policy.exact_gradient(other)[0].tolist() == pytest.approx([-0.1, -0.06, 0.16])
    assert policy.expected_reward(other).item() == pytest.approx(0.2)


def test_divergence_and_entropy_agree_with_scipy(policy):
    other = TabularPolicy.random(policy.tree, seed=5)
    p, q = (x.leaf_logprobs().exp().detach().numpy() for x in (policy, other))
    assert policy.exact_kl(other).item() == pytest.approx(stats.entropy(p, q), abs=1e-12)
    assert other.exact_kl(policy).item() == pytest.approx(stats.entropy(q, p), abs=1e-12)
    assert policy.exact_entropy().item() == pytest.approx(stats.entropy(p), abs=1e-12)
    with pytest.raises(UsageError, match="different trees"):
        policy.exact_kl(TabularPolicy(Tree.bandit(7)))


def test_divergence_from_a_policy_that_rules_out_a_leaf_is_infinite():
    tree = Tree.bandit(2)
    narrow = TabularPolicy(tree, torch.tensor([[0.0, -torch.inf]]))
    assert TabularPolicy(tree).exact_kl(narrow).item() == math.inf
    assert narrow.exact_kl(TabularPolicy(tree)).item() == pytest.approx(math.log(2))


def test_entropy_of_paths_is_the_expected_sum_of_entropies_of_decisions(policy):
    per_leaf = policy.forward(batch_of(policy, list(range(7))), {"entropy"}).live["entropy"].sum(-1)
    assert (policy.leaf_logprobs().exp() @ per_leaf).item() == pytest.approx(policy.exact_entropy().item(), abs=1e-12)


def test_expectation_of_a_function_of_the_path(policy):
    p = policy.leaf_logprobs().exp().detach().numpy()
    assert policy.expected(len).item() == pytest.approx(p @ [1, 2, 2, 3, 3, 3, 3])
    vector = policy.expected(lambda path: torch.tensor([1.0, path[0]], dtype=torch.float64))
    assert vector.tolist() == pytest.approx([1.0, p[1:3].sum() + 2 * p[3:].sum()])


def test_groups_are_enumerated_with_their_probabilities(policy):
    leaves, probability = enumerate_groups(policy, 3)
    assert leaves.shape == (343, 3)
    assert len({tuple(g) for g in leaves.tolist()}) == 343
    assert probability.sum().item() == pytest.approx(1.0, abs=1e-12)
    best = policy.tree.rewards[leaves].amax(-1)
    p_right = policy.leaf_logprobs().exp()[policy.tree.rewards == 1].sum()
    assert (probability * (best == 1)).sum().item() == pytest.approx(1 - (1 - p_right.item()) ** 3, abs=1e-12)
    (probability * best).sum().backward()
    assert policy.logits.grad is not None
    assert torch.count_nonzero(policy.logits.grad) > 0
    with pytest.raises(UsageError, match=r"7\^8"):
        enumerate_groups(policy, 8)


# Files


def test_a_saved_policy_comes_back(policy, tmp_path):
    labelled = TabularPolicy.random(Tree.of([Leaf(1.0, "né"), [0, 1]]), 1)
    for made in (policy, labelled, TabularPolicy(policy.tree, dtype=torch.float32)):
        made.save(tmp_path / "weights")
        loaded = TabularPolicy.load(tmp_path / "weights")
        assert torch.equal(loaded.logits, made.logits)
        assert loaded.logits.dtype == made.logits.dtype
        assert loaded.tree.paths == made.tree.paths
        assert loaded.tree.labels == made.tree.labels
        assert torch.equal(loaded.tree.rewards, made.tree.rewards)


def test_weights_are_taken_and_frozen(policy, tmp_path):
    policy.save(tmp_path)
    other = TabularPolicy(policy.tree, dtype=torch.float32)
    parameter = other.logits
    other.load_weights(tmp_path)
    assert other.logits is parameter
    assert torch.equal(parameter, policy.logits.float())
    reference, before = policy.frozen(tmp_path), policy.logits.detach().clone()
    with torch.no_grad():
        policy.logits += 1
    assert not reference.logits.requires_grad
    assert torch.equal(reference.logits, before)
    with pytest.raises(UsageError, match="another tree"):
        TabularPolicy(Tree.bandit(3)).load_weights(tmp_path)


def test_loading_what_is_not_there_is_refused(tmp_path):
    from safetensors.torch import save_file

    with pytest.raises(UsageError, match="does not exist"):
        TabularPolicy.load(tmp_path)
    save_file({"weight": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match="holds no tabular policy"):
        TabularPolicy.load(tmp_path)


def test_protocols(policy):
    assert isinstance(policy, Policy)
    assert isinstance(TabularEngine(policy), Engine)
    assert isinstance(TabularVerifier(policy.tree), Verifier)
    assert [name for name, _ in policy.module.named_parameters()] == ["logits"]


@given(st.lists(st.integers(0, 6), max_size=12), st.integers(1, 12))
def test_micro_batches_split_the_rows_within_the_budget(leaves, budget):
    policy = TabularPolicy(Tree.of(NESTED))
    parts = [p.tolist() for p in policy.micro_batches(batch_of(policy, leaves), budget)]
    assert [row for part in parts for row in part] == list(range(len(leaves)))
    sizes = [sum(int(policy.tree.lengths[leaves[row]]) for row in part) for part in parts]
    assert all(size <= budget or len(part) == 1 for size, part in zip(sizes, parts, strict=True))
    assert all(a + int(policy.tree.lengths[leaves[p[0]]]) > budget for a, p in zip(sizes, parts[1:], strict=False))


# The engine


def request(n: int = 8, seed: int = 7, **sampling) -> Request:
    return Request("", n, Sampling(**{"max_tokens": 3, **sampling}), seed)


def texts(policy: TabularPolicy, *requests: Request) -> list[list[str]]:
    return [[e.text for e in group] for group in TabularEngine(policy).generate(requests)]


def counts_of(policy: TabularPolicy, **sampling) -> np.ndarray:
    (drawn,) = texts(policy, request(8_000, **sampling))
    index = {"/".join(map(str, p)): i for i, p in enumerate(policy.tree.paths)}
    return np.bincount([index[t] for t in drawn], minlength=len(policy.tree))


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_paths_are_drawn_as_often_as_they_are_probable(policy, temperature):
    """Chi-square over 7 leaves; a right sampler fails with probability 1e-4 for a fresh seed (the seed is fixed)."""
    expected = 8_000 * policy.leaf_logprobs(temperature).exp().detach().numpy()
    assert stats.chisquare(counts_of(policy, temperature=temperature), expected).pvalue > 1e-4
    assert stats.chisquare(counts_of(policy, temperature=temperature), np.roll(expected, 1)).pvalue < 1e-4


def test_episodes_carry_what_the_trainer_would_compute(policy):
    (episodes,) = TabularEngine(policy).generate([request(64, temperature=0.7)])
    batch = Batch.from_groups([Group(Ask(TASK, 64), tuple(episodes))])
    out = policy.forward(batch, {"entropy"}, temperature=0.7)
    assert torch.equal(batch.logprobs, out.logprobs.float())
    for i, e in enumerate(episodes):
        assert e.logprobs is not None
        assert e.entropies is not None
        assert e.logprobs.dtype == e.entropies.dtype == np.float32
        assert e.tokens.dtype == np.int64
        assert np.array_equal(e.entropies, out.live["entropy"][i, : len(e.tokens)].detach().float().numpy())
        assert e.mask.all()
        assert e.stop == "eos"
        assert e.prompt.shape == (0,)
        assert e.text == "/".join(map(str, e.tokens))


def test_a_request_does_not_depend_on_the_others(policy):
    alone = texts(policy, request(seed=1))[0]
    among = texts(policy, request(5, seed=2), request(seed=1), request(seed=3, temperature=0.5), request(seed=1))
    assert among[1] == among[3] == alone
    assert among[0] != alone[:5]
    assert texts(policy, request(40, seed=1))[0][:8] == alone
    assert texts(policy, request(40, seed=1))[0] != texts(policy, request(40, seed=2))[0]


def test_no_request_and_no_sample(policy):
    assert TabularEngine(policy).generate([]) == []
    assert texts(policy, request(0)) == [[]]


def test_temperature_zero_takes_the_likeliest_token(policy):
    (episodes,) = TabularEngine(policy).generate([request(3, temperature=0)])
    table, node, path = policy.log_policy().detach(), 0, []
    while node >= 0:
        path.append(int(table[node].argmax()))
        node = int(policy.tree.children[node, path[-1]])
    assert [e.tokens.tolist() for e in episodes] == [path] * 3
    expected = policy.leaf_logprobs()[policy.tree.paths.index(tuple(path))].item()
    assert episodes[0].logprobs is not None
    assert episodes[0].logprobs.sum() == pytest.approx(expected, abs=1e-6)


def test_truncation_of_the_distribution_keeps_its_log_probabilities():
    policy = TabularPolicy(Tree.bandit(4), torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log())
    assert (counts_of(policy, top_k=2) > 0).tolist() == [True, True, False, False]
    assert (counts_of(policy, top_p=0.75) > 0).tolist() == [True, True, True, False]
    (episodes,) = TabularEngine(policy).generate([request(50, top_k=1)])
    assert all(e.logprobs is not None and e.logprobs[0] == pytest.approx(math.log(0.4)) for e in episodes)


def test_long_paths_are_cut(policy):
    (episodes,) = TabularEngine(policy).generate([request(200, max_tokens=2)])
    assert {len(e.tokens) for e in episodes} == {1, 2}
    whole = {"/".join(map(str, p)) for p in policy.tree.paths}
    assert {e.stop for e in episodes} == {"eos", "length"}
    assert all((e.stop == "eos") == (e.text in whole) for e in episodes)


def test_stop_strings_are_refused(policy):
    with pytest.raises(UsageError, match="no stop strings"):
        TabularEngine(policy).generate([request(stop=("/",))])


def test_the_engine_follows_the_policy(policy):
    engine = TabularEngine(policy)
    with torch.no_grad():
        policy.logits[0] = torch.tensor([0.0, 50.0, 0.0])
        policy.logits[1] = torch.tensor([50.0, 0.0, 0.0])
    assert {e.text for e in engine.generate([request(50)])[0]} == {"1/0"}
    assert engine.encode("anything").tolist() == []


# The verifier


def test_a_path_is_judged_by_its_leaf():
    verifier = TabularVerifier(Tree.of([Leaf(1.0, "sound"), [0.5, 0.0]]))
    assert [(v.score, v.passed) for v in (verifier(TASK, t) for t in ("0", "1/0", "1/1"))] == [
        (1.0, True), (0.5, False), (0.0, False)
    ]  # fmt: skip
    assert verifier(TASK, "0").feedback == "sound"
    assert verifier(TASK, " 0\n").passed is True
    assert TabularVerifier(Tree.of([Leaf(1.0), [0.5, 0.0]]), threshold=0.5)(TASK, "1/0").passed is True


@given(st.one_of(st.text(), st.text("0123/ ")))
def test_any_text_gets_a_verdict(response):
    verdict = TabularVerifier(Tree.of(NESTED))(TASK, response)
    assert (verdict.score == 0.0 and verdict.passed is False) or response.strip()[0] in "12"


def test_rewards_that_are_no_scores_are_refused():
    with pytest.raises(UsageError, match="reward -1"):
        TabularVerifier(Tree.bandit(2, [0, -1]))
