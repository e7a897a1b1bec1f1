"""Group similarity: the worked example, its subsampled estimate, BLEU against a peer, and consistency measures."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from claimed import learned

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.method import make_method
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rewards.text.paraphrase_similarity import (
    GroupSimilarity,
    bleu,
    consistency,
    drawn,
    jaccard,
    retrieval_consistency,
)
from assay.types import Ask, Episode, Group, Task, Verdict

WORKED = ["a b", "a c"], ["a b", "d e"], ["a b", "a b"]


def of_views(*views: list[str], passed: bool | None = True) -> Batch:
    zeros = np.zeros(1, dtype=np.int64)
    episodes = tuple(
        Episode(zeros, zeros, zeros == 0, zeros.astype(np.float32), t, "eos", advantage_group=str(v), meta={"view": v})
        for v, texts in enumerate(views)
        for t in texts
    )
    group = Group(Ask(Task("t", "?", "4"), len(episodes)), episodes)
    return Batch.from_groups([group.judged([Verdict(float(bool(passed)), passed)] * len(episodes))], torch.float64)


def test_the_worked_example():
    found = GroupSimilarity("jaccard")(of_views(*WORKED)).values.tolist()
    assert found == pytest.approx([0.75, 0.25, 0.833333, 0, 0.583333, 0.583333], abs=1e-6)


@pytest.mark.slow
def test_draws_average_to_the_exact_value():
    part, batch, rounds = GroupSimilarity("jaccard", wordings=1, responses=1), of_views(*WORKED), 1500
    mean = sum(part(batch).values for _ in range(rounds)) / rounds
    # Standard error at most 0.013.
    assert mean.tolist() == pytest.approx([0.75, 0.25, 0.833333, 0, 0.583333, 0.583333], abs=0.05)


def test_equal_responses_are_worth_one_and_teach_nothing():
    texts = ["the answer is five or so"] * 2
    method = make_method("S070", reward={"name": "S070", "accuracy": 0.0})
    batch = method.value(of_views(texts, texts, texts))
    assert batch.rewards.tolist() == pytest.approx([1.0] * 6) and not batch.advantages.any()


def test_the_verdict_is_added():
    batch = of_views(*WORKED)
    part = make_method("grpo", reward={"name": "S070", "measure": "jaccard", "responses": 2, "accuracy": 0.5}).reward
    assert part(batch).values.tolist() == pytest.approx([1.25, 0.75, 1.333333, 0.5, 1.083333, 1.083333], abs=1e-6)


def test_each_response_is_compared_with_one_of_each_of_three_other_wordings() -> None:
    """Unless told otherwise; and its verdict counts as much as being like all of them."""
    method = make_method("S070")
    batch = of_views(*[[f"{view}{k}" for k in range(4)] for view in range(6)])
    similar, asked = method.reward.members[0], Counter()

    def sim(reference: str, answer: str) -> float:
        asked[answer, reference[0]] += 1
        return 0.5

    similar.similarity = sim
    assert method.reward(batch).values.tolist() == pytest.approx([1.5] * 24)
    assert set(asked.values()) == {1} and len(asked) == 24 * 3, "one response each of three other wordings"
    assert not any(answer[0] == view for answer, view in asked)
    assert method.objective.kl_weight == 0.001


def test_draws_do_not_repeat() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        assert len({*drawn("abcd", 3, rng)}) == 3
    assert drawn("ab", 2, rng) == drawn("ab", 5, rng) == drawn("ab", None, rng) == ["a", "b"]


def test_wordings_bring_their_documents() -> None:
    """A wording is a prompt of its own, what was retrieved for it included, and has its own mean and deviation."""
    engine = TabularEngine(TabularPolicy(Tree.of([[0, 1], [1, 0], [0, 0]])))
    rollout = make_method("S070").rollout
    part = build("rollout", rollout, sampling=Sampling(4))
    [group] = part.collect([Ask(Task("t", "0", meta={"paraphrases": ["1", "2"]}), 6)], engine, np.random.default_rng(0))
    assert [e.prompt.tolist() for e in group.episodes] == [[0]] * 2 + [[1]] * 2 + [[2]] * 2
    assert Batch.from_groups([group]).group.tolist() == [0, 0, 1, 1, 2, 2]
    joined = build("rollout", make_method("S070", options={"together": True}).rollout, sampling=Sampling(4))
    [group] = joined.collect([Ask(Task("t", "0", meta={"paraphrases": ["1"]}), 4)], engine, np.random.default_rng(0))
    assert Batch.from_groups([group]).group.tolist() == [0] * 4


def test_one_wording_is_compared_with_itself_and_one_response_with_nothing():
    found = GroupSimilarity("exact")(of_views(["4", "4", "5"]))
    assert found.values.tolist() == [0.5, 0.5, 0.0] and found.valid.all()
    assert GroupSimilarity("exact")(of_views(["4"])).valid.tolist() == [False]


def test_failures_are_not_compared_with():
    batch = of_views(["4", "5"], ["4", "5"])
    batch.verdicts[3] = Verdict.abstain("timed out")
    found = GroupSimilarity("exact")(batch)
    assert found.values.tolist() == [1.0, 0.0, 0.5, 0.0] and found.valid.tolist() == [True, True, True, False]


def test_bleu_by_hand():
    assert bleu("a b c", "a b c") == pytest.approx(1.0) and bleu("a", "") == 0.0 and bleu("", "a") == 0.0
    assert bleu("a b c d", "a b") == pytest.approx(math.exp(-1))
    # 2 of 3 words, (1 + 1) of (2 + 1) pairs, (0 + 1) of (1 + 1) triples.
    assert bleu("a b c", "a b d") == pytest.approx((2 / 3 * 2 / 3 * 1 / 2) ** (1 / 3))
    # Up to four words in a row, though the answer has five: 4 of 5, (3 + 1) of 5, (2 + 1) of 4, (1 + 1) of 3.
    assert bleu("a b c d e", "A b c d f") == pytest.approx((4 / 5 * 4 / 5 * 3 / 4 * 2 / 3) ** (1 / 4))
    assert bleu("a b c d", "x") == 0.0 and bleu("a a", "a a a") == pytest.approx((2 / 3 * 2 / 3 * 1 / 2) ** (1 / 3))


def test_similarity_is_bleu_of_words_and_pairs() -> None:
    """2 of 3 words, (1 + 1) of (2 + 1) pairs; the triple, of which none is shared, does not count."""
    reward = make_method("S070", reward={"name": "S070", "accuracy": 0.0}).reward
    assert reward(of_views(["a b c"], ["a b d"])).values.tolist() == pytest.approx([2 / 3, 2 / 3])
    longer = {order: GroupSimilarity(f"bleu_{order}").similarity("a b c", "a b d") for order in (1, 2, 3)}
    assert longer == pytest.approx({1: 2 / 3, 2: 2 / 3, 3: (2 / 3 * 2 / 3 * 1 / 2) ** (1 / 3)})


def test_bleu_against_a_peer():
    sacrebleu = pytest.importorskip("sacrebleu")
    rng = np.random.default_rng(0)
    peer = sacrebleu.BLEU(smooth_method="add-k", smooth_value=1, effective_order=True, tokenize="none")
    for _ in range(50):
        reference, answer = (" ".join(rng.choice(list("abcde"), rng.integers(4, 12))) for _ in range(2))
        assert bleu(reference, answer) == pytest.approx(peer.sentence_score(answer, [reference]).score / 100, abs=1e-6)


def test_consistency():
    assert consistency(["a b", "a c", "a b"], "jaccard") == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)
    assert consistency(["x"]) == 1.0 and jaccard("", "") == 1.0
    assert retrieval_consistency([["d1", "d2"], ["d2", "d3"], []]) == pytest.approx((1 / 3 + 0 + 0) / 3)
    assert retrieval_consistency([[], []]) == 1.0


def test_draws_survive_a_checkpoint_and_options_are_checked():
    one, other = (GroupSimilarity("jaccard", 1, 1) for _ in range(2))
    batch = of_views(*WORKED)
    assert torch.equal(one(batch).values, GroupSimilarity("jaccard", 1, 1, seed=0)(batch).values)
    assert one.state_dict() == {"drawn": 1}
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(batch).values, other(batch).values)
    for bad in ({"wordings": 0}, {"responses": 0}, {"responses": -1}, {"wordings": -1}):
        with pytest.raises(UsageError, match="group_similarity"):
            GroupSimilarity(**bad)
    assert make_method("S070", rollout="single_turn").rollout == "single_turn"


@pytest.mark.slow
def test_a_policy_comes_to_agree_across_wordings() -> None:
    """Three wordings of each question, 40 steps: it agrees more than at the start, and than from verdicts alone."""
    similar, alone = (learned("S070", arm, steps=40) for arm in ("similarity", "verdict"))
    assert similar["agree"] > similar["start/agree"] + 0.03 and similar["agree"] > alone["agree"]
