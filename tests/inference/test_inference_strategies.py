"""Strategies on the tabular policy: their expected accuracy and cost are known by enumeration."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.inference.base import Answer, Budget, Strategy
from assay.inference.election import elect, totals
from assay.policies.tabular import TabularPolicy, Tree, enumerate_groups, path_of
from assay.registry import build
from assay.rewards.outcome.vote import Ballot
from assay.types import Task

TREE = Tree.uniform(3, 2, rewards=[0, 1, 0, 0, 0, 1, 1, 0, 0])
POLICY = TabularPolicy.random(TREE, seed=3)
ENGINE = TabularEngine(POLICY)
VERIFIER = TabularVerifier(TREE)
TASKS = [Task(str(i), "") for i in range(1000)]
PATHS = TREE.paths
P = POLICY.leaf_logprobs().exp().detach().numpy()
RIGHT = TREE.rewards.numpy()


class LastToken(Ballot):
    """The answer of a path is its last token."""

    def answers(self, batch: Batch) -> list[str | None]:
        return [e.text[-1:] for e in batch.episodes]


LAST = LastToken(equal="exact")
SAMPLING = Sampling(max_tokens=2)


def run(name: str, budget: Any, tasks: list[Task] = TASKS, **options: Any) -> list[Answer]:
    strategy = build("inference", {"name": name, "sampling": SAMPLING, **options})
    assert isinstance(strategy, Strategy)
    return strategy(tasks, ENGINE, budget, np.random.default_rng(0))


def accuracy(answers: list[Answer], right: Any = RIGHT) -> float:
    where = {"/".join(map(str, p)): r for p, r in zip(PATHS, right, strict=True)}
    return float(np.mean([where[a.text or ""] for a in answers]))


def close(measured: float, exact: float, n: int = len(TASKS)) -> None:
    """Within 4.5 standard errors of a proportion."""
    assert abs(measured - exact) < 4.5 * math.sqrt(max(exact * (1 - exact), 1e-3) / n), (measured, exact)


def expected(n: int, choose: Any) -> float:
    """Exact expected accuracy of a rule that chooses among n sampled leaves."""
    groups, probability = enumerate_groups(POLICY, n)
    return sum(p * RIGHT[row[choose(row)]] for row, p in zip(groups.tolist(), probability.tolist(), strict=True))


QUALITY = [0.3, 0.9, 0.1, 0.8, 0.2, 0.7, 0.4, 0.95, 0.05]


def quality(task: Task, response: str) -> float:
    """A scorer that is often wrong: knows leaf 5 and 1, but prefers leaf 7."""
    path = path_of(response) or ()
    return QUALITY[PATHS.index(path)] if path in PATHS else 0.5


def winner(row: list[int], weights: list[float]) -> int:
    tally: dict[int, float] = {}
    for leaf, w in zip(row, weights, strict=True):
        tally[leaf % 3] = tally.get(leaf % 3, 0.0) + w
    best = max(tally.values())
    first = next(a for a in tally if math.isclose(tally[a], best))
    mine = [i for i, leaf in enumerate(row) if leaf % 3 == first]
    return max(mine, key=lambda i: (weights[i], -i))


def test_best_of_n_is_what_enumeration_says() -> None:
    for n in (1, 3):
        close(
            accuracy(run("best_of_n", n, scorer=quality)),
            expected(n, lambda row: max(range(len(row)), key=lambda i: (QUALITY[row[i]], -i))),
        )
    # Under the verifier it is pass@n.
    close(accuracy(run("best_of_n", 4, scorer=VERIFIER)), 1 - (1 - float(P @ RIGHT)) ** 4)
    # Under the model's own confidence it is the likeliest of the sampled leaves.
    close(
        accuracy(run("best_of_n", 3, scorer="confidence")),
        expected(3, lambda row: max(range(3), key=lambda i: (round(P[row[i]], 12), -i))),
    )


@pytest.mark.slow
def test_majority_and_weighted_majority_are_what_enumeration_says() -> None:
    # One leaf stands for its answer here, so that right and wrong are of answers: the last token.
    for n in (3, 4):
        plain = run("majority", n, ballot=LAST)
        close(accuracy(plain), expected(n, lambda row: winner(row, [1.0] * len(row))))
        assert {a.tokens for a in plain} == {2 * n}
    weighed = run("weighted_majority", 4, ballot=LAST, scorer=quality)
    close(accuracy(weighed), expected(4, lambda row: winner(row, [QUALITY[leaf] for leaf in row])))


@pytest.mark.slow
def test_equal_scores_vote_as_the_majority() -> None:
    plain = run("majority", 5, ballot=LAST)
    weighed = run("weighted_majority", 5, ballot=LAST, scorer=lambda task, response: 0.5)
    assert [a.text for a in plain] == [a.text for a in weighed]


@pytest.mark.slow
def test_self_consistency_stops_when_the_vote_is_settled() -> None:
    """With confidence 1 it answers like the full vote at lower cost; both are known by enumeration."""
    n = 5
    answer = np.array([sum(P[i] for i in range(9) if i % 3 == a) for a in range(3)])
    share, cost = 0.0, 0.0
    good = [sum(P[i] * RIGHT[i] for i in range(9) if i % 3 == a) / answer[a] for a in range(3)]
    for row in itertools.product(range(3), repeat=n):
        probability = float(np.prod(answer[list(row)]))
        counts = Counter(row)
        first = next(a for a in row if counts[a] == max(counts.values()))
        share += probability * good[first]
        for k in range(2, n + 1):
            top = sorted(Counter(row[:k]).values(), reverse=True)
            if k == n or top[0] - (top[1] if len(top) > 1 else 0) > n - k:
                cost += probability * 2 * k
                break
    found = run("self_consistency", n, ballot=LAST, confidence=1.0)
    close(accuracy(found), share)
    spent = [a.tokens for a in found]
    assert abs(np.mean(spent) - cost) < 4.5 * np.std(spent) / math.sqrt(len(spent))
    assert np.mean(spent) < 2 * n - 1
    # Beta(4, 1) beyond one half is 15/16: three votes to none are enough at 0.93, not at 0.94.
    strategies = {c: build("inference", {"name": "self_consistency", "confidence": c}) for c in (0.93, 0.94)}
    assert strategies[0.93].settled((0, 0, 0), None)
    assert not strategies[0.94].settled((0, 0, 0), None)


def test_refining_until_right_takes_a_geometric_number_of_rounds() -> None:
    p, n = float(P @ RIGHT), 4
    found = run("refine", n, scorer=VERIFIER)
    close(accuracy(found), 1 - (1 - p) ** n)
    rounds = [len(a.episodes) for a in found]
    assert abs(np.mean(rounds) - (1 - (1 - p) ** n) / p) < 4.5 * np.std(rounds) / math.sqrt(len(rounds))
    # Without a scorer the last response is the answer, whatever it is.
    last = run("refine", 3, tasks=TASKS[:50])
    assert all(a.text == a.episodes[-1].text and len(a.episodes) == 3 for a in last)


def state_value(task: Task, response: str) -> float:
    """The exact value of a beginning: the expected reward from there."""
    path = path_of(response) or ()
    under = [i for i, p in enumerate(PATHS) if p[: len(path)] == path]
    return float(P[under] @ RIGHT[under] / P[under].sum())


def best_of_steps(n: int) -> float:
    """Exact accuracy of sampling n first steps, keeping the one of most value, then n second steps and the best."""
    first = P.reshape(3, 3).sum(-1)
    value = (P * RIGHT).reshape(3, 3).sum(-1) / first
    total = 0.0
    for row in itertools.product(range(3), repeat=n):
        chosen = max(row, key=lambda a: value[a])
        miss = float(((P * (1 - RIGHT)).reshape(3, 3).sum(-1) / first)[chosen]) ** n
        total += float(np.prod(first[list(row)])) * (1 - miss)
    return total


@pytest.mark.slow
def test_beam_search_with_the_exact_value_is_what_enumeration_says() -> None:
    found = run("beam", 3, scorer=state_value, branch=3, stop=(), step=1)
    close(accuracy(found), best_of_steps(3))
    assert {a.tokens for a in found} == {6}
    # With one step after each beginning, nothing is dropped on the way: best-of-n.
    close(accuracy(run("beam", 3, scorer=VERIFIER, branch=1, stop=(), step=1)), 1 - (1 - float(P @ RIGHT)) ** 3)


@pytest.mark.slow
def test_tree_search_with_the_exact_value_is_what_enumeration_says() -> None:
    options = {"scorer": state_value, "value": "state", "c": 0.0, "stop": (), "step": 1}
    close(accuracy(run("mcts", 2, branch=3, **options)), best_of_steps(3))
    # One simulation reaches no end: the most valued beginning is finished by one sample.
    first = P.reshape(3, 3).sum(-1)
    value = (P * RIGHT).reshape(3, 3).sum(-1) / first
    exact = sum(
        float(np.prod(first[list(row)])) * max(value[a] for a in row) for row in itertools.product(range(3), repeat=3)
    )
    close(accuracy(run("mcts", 1, branch=3, **options)), exact)


def test_tree_search_with_rollouts_tries_every_arm_of_a_bandit() -> None:
    """On one decision each rollout is a sample, so that n of them find a right arm as best-of-n does."""
    tree = Tree.bandit(4, [0, 0, 1, 0])
    policy = TabularPolicy.random(tree, seed=1)
    strategy = build("inference", {"name": "mcts", "scorer": TabularVerifier(tree), "branch": 2, "stop": (), "step": 1})
    answers = strategy(TASKS, TabularEngine(policy), 4, np.random.default_rng(0))
    p = float(policy.leaf_logprobs().detach().exp()[2])
    close(float(np.mean([a.text == "2" for a in answers])), 1 - (1 - p) ** 4)


CASES: list[tuple[str, dict[str, Any]]] = [
    ("greedy", {}),
    ("sample", {}),
    ("best_of_n", {"scorer": quality}),
    ("majority", {"ballot": LAST}),
    ("weighted_majority", {"ballot": LAST}),
    ("self_consistency", {"ballot": LAST}),
    ("beam", {"scorer": state_value, "stop": (), "step": 1}),
    ("mcts", {"scorer": state_value, "stop": (), "step": 1, "value": "state"}),
    ("mcts", {"scorer": quality, "stop": (), "step": 1}),
    ("refine", {"scorer": quality}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=[f"{i} {c[0]}" for i, c in enumerate(CASES)])
@given(tokens=st.integers(1, 40), samples=st.none() | st.integers(1, 9))
@settings(max_examples=12, deadline=None)
def test_no_strategy_spends_more_than_its_budget(
    name: str, options: dict[str, Any], tokens: int, samples: int | None
) -> None:
    """What it says it spent is what it sampled, and never more than the budget; with too little it still answers."""
    strategy = build("inference", {"name": name, "sampling": SAMPLING, **options})
    for answer in strategy(TASKS[:3], ENGINE, Budget(samples, tokens), np.random.default_rng(1)):
        assert 1 <= answer.tokens <= tokens
        assert answer.text
        assert answer.scoring == 0


def test_a_strategy_is_reproducible_and_the_rest_of_the_call_does_not_matter_to_a_vote() -> None:
    for name, options in CASES:
        again = [run(name, 3, TASKS[:5], **options) for _ in range(2)]
        assert [a.text for a in again[0]] == [a.text for a in again[1]]


@given(st.lists(st.tuples(st.integers(-1, 3), st.none() | st.floats(0, 1)), max_size=8), st.floats(0, 1))
def test_totals_are_sums_over_clusters(rows: list[tuple[int, float | None]], bonus: float) -> None:
    found = totals([c for c, _ in rows], [w for _, w in rows], bonus)
    for cluster in range(4):
        mine = [w + bonus for c, w in rows if c == cluster and w is not None]
        assert found.get(cluster, 0.0) == pytest.approx(sum(mine))
    best = elect(found, "first", np.random.default_rng(0))
    assert (best is None) == (not found)
    if best is not None:
        assert found[best] == pytest.approx(max(found.values()))


def test_abstention() -> None:
    """Below the threshold there is no answer; the tokens are spent all the same."""
    found = run("majority", 3, TASKS[:200], ballot=LAST, least=0.7)
    shares = [a.meta["share"] for a in found]
    assert {a.abstains for a in found} == {True, False}
    assert [a.abstains for a in found] == [s < 0.7 for s in shares]
    assert all(a.tokens == 6 for a in found)
    low = run("best_of_n", 2, TASKS[:50], scorer=quality, least=0.85)
    assert [a.abstains for a in low] == [max(a.meta["scores"]) < 0.85 for a in low]


def test_what_cannot_be_scored_is_no_low_score() -> None:
    def half(task: Task, response: str) -> float | None:
        return None if response.startswith("0") else -1.0

    for answer in run("best_of_n", 4, TASKS[:50], scorer=half):
        known = [e.text for e in answer.episodes if not e.text.startswith("0")]
        assert answer.text == (known or [answer.episodes[0].text])[0]
        assert answer.meta["unscored"] == 4 - len(known)


def test_budgets_are_read_and_refused() -> None:
    assert Budget.of(4) == Budget.of("4") == Budget(samples=4)
    assert Budget.of("512t") == Budget(tokens=512)
    assert str(Budget.of("512t")) == "512t"
    for wrong in (0, "x", "-1", "4s", "t"):
        with pytest.raises(UsageError):
            Budget.of(wrong)
    with pytest.raises(UsageError):
        Budget()
