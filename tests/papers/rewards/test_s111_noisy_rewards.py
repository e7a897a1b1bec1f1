"""Noisy rewards: a group's flip negates its advantages, and the phrases' score by hand-counted texts."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from claimed import learned

from assay.batch import Batch
from assay.credit.gae import GAE
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method import make_method
from assay.rewards.outcome.flipped import Flipped
from assay.rewards.text.patterns import PHRASES, Calibrated, ReasoningPatterns, repetition


def two_prompts(make_batch, scores, **more) -> Batch:
    """A batch of one prompt for each list of scores."""
    flat = [s for row in scores for s in row]
    groups = [g for g, row in enumerate(scores) for _ in row]
    batch = make_batch([1] * len(flat), flat, groups, **more)
    batch.prompt_group = torch.tensor(groups)
    return batch


def advantages(batch: Batch, part) -> torch.Tensor:
    reward = part(batch)
    batch.rewards, batch.valid = reward.values, reward.valid
    return GRPO()(batch)[:, 0]


def test_a_flipped_group_has_its_advantages_negated(make_batch):
    """Every group of two to five verdicts."""
    groups = [[*scores] for n in range(2, 6) for scores in product([0.0, 1.0], repeat=n)]
    plain = advantages(two_prompts(make_batch, groups), Flipped(chance=0.0))
    turned = advantages(two_prompts(make_batch, groups), Flipped(chance=1.0))
    assert plain.any() and torch.allclose(turned, -plain, atol=1e-9)


def test_responses_of_a_prompt_share_a_draw_and_prompts_do_not(make_batch):
    part, rounds = Flipped(), 400
    flipped = part(two_prompts(make_batch, [[1.0, 1.0, 0.0], [1.0, 0.0]] * rounds)).terms["flipped"].tolist()
    drawn = []
    for at in range(0, 5 * rounds, 5):
        assert flipped[at] == flipped[at + 1] == flipped[at + 2] and flipped[at + 3] == flipped[at + 4]
        drawn += [flipped[at], flipped[at + 3]]
    # Standard error 0.017.
    assert sum(drawn) / len(drawn) == pytest.approx(0.4, abs=0.07)
    assert drawn[::2] != drawn[1::2]


def test_draws_are_repeatable_and_survive_a_checkpoint(make_batch):
    batch = two_prompts(make_batch, [[1.0], [0.0]] * 8)
    one, other = Flipped(chance=0.5), Flipped(chance=0.5)
    first, second = one(batch).values, one(batch).values
    assert not torch.equal(first, second)
    assert torch.equal(Flipped(chance=0.5, seed=0)(batch).values, first)
    assert Flipped()(make_batch([])).values.tolist() == []
    other.load_state_dict({"drawn": 1})
    assert torch.equal(other(batch).values, second)
    assert make_method("grpo", reward={"name": "S111", "flip": 0.3}).state_dict()["reward.0"] == {"drawn": 0}


def test_the_order_of_rows_does_not_matter(make_batch):
    batch = two_prompts(make_batch, [[1.0, 0.0]] * 6)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    assert torch.equal(Flipped()(batch.rows(order)).values, Flipped()(batch).values[order])


def test_without_an_answer_nothing_is_flipped(make_batch):
    texts = [r"it is \boxed{4}", "I do not know", ""]
    batch = two_prompts(make_batch, [[0.0, 0.0, 0.0]], texts=texts)
    part = Flipped(chance=1.0, rules=("boxed",), fallback="none")
    found = part(batch)
    assert found.values.tolist() == [1.0, 0.0, 0.0]
    assert found.terms["flipped"].tolist() == [1.0, 0.0, 0.0]


def test_verdicts_are_not_flipped(make_batch):
    """What evaluation reads; and by itself the method flips nothing."""
    batch = two_prompts(make_batch, [[1.0, 0.0], [1.0, 1.0]])
    before = list(batch.verdicts)
    assert Flipped(chance=1.0)(batch).values.tolist() == [0, 1, 0, 0]
    assert batch.verdicts == before and [v.score for v in batch.verdicts] == [1, 0, 1, 1]
    assert make_method("S111", options={"patterns": "none"}).reward(batch).values.tolist() == [1, 0, 1, 1]


def test_abstentions_have_no_reward_even_flipped(make_batch):
    batch = two_prompts(make_batch, [[0.0, 0.0]], passed=[None, False])
    for part in (Flipped(chance=1.0), Calibrated(), ReasoningPatterns()):
        assert part(batch).valid.tolist() == [False, True]


def test_per_sample_draws_differ_within_a_prompt(make_batch):
    flipped = Flipped(chance=0.5, per="sample")(two_prompts(make_batch, [[1.0] * 32])).terms["flipped"]
    assert 0 < flipped.sum() < 32


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Wait, we know that x. Alternatively, let me check it.", 0.2),
        ("wait wait wait", 0.05),
        ("", 0.0),
        ("<think>Wait.</think> Therefore 4.", 0.1),
        ("<think>Wait. Therefore", 0.1),
        ("Wait. Therefore.\nuser: next question", 0.0),
        (" ".join(PHRASES), 1.0),
    ],
)
def test_scores_by_hand(text, score):
    assert len(PHRASES) == len(set(PHRASES)) == 40
    assert ReasoningPatterns().score(text) == pytest.approx(score)


def test_repetition_counts_distinct_sequences():
    assert repetition(["a", "b", "a", "b", "a"], 2) == pytest.approx(2 / 4)
    assert repetition(["a"] * 5, 2) == pytest.approx(1 / 4)
    assert repetition(["a"], 20) == 0.0
    words = [str(i) for i in range(20)]
    # 41 words have 22 places for 20; the first 20-gram and the one behind it occur twice.
    text = " ".join([*words, *words, "0"]) + " wait alternatively"
    assert ReasoningPatterns(full=2).score(text) == pytest.approx(1 - 2 / 24)
    # Of single words, "wait" occurs twice: one of three.
    assert ReasoningPatterns(full=1, ngram=1).score("wait and wait") == pytest.approx(1 - 1 / 3)


def test_without_an_answer_phrases_are_worth_nothing(make_batch):
    batch = two_prompts(make_batch, [[0.0, 0.0]], texts=[r"wait, \boxed{4}", "wait, therefore"])
    assert ReasoningPatterns(rules=("boxed",), fallback="none")(batch).values.tolist() == pytest.approx([0.05, 0])
    assert ReasoningPatterns()(batch).values.tolist() == pytest.approx([0.05, 0.1])


def test_calibration_mends_what_is_wrong_only(make_batch):
    phrases = " ".join(PHRASES)
    batch = two_prompts(make_batch, [[1.0, 0.0, 0.0]], texts=[phrases, phrases, "no"])
    assert make_method("S111").reward(batch).values.tolist() == pytest.approx([1.0, 0.1, 0.0])
    assert make_method("grpo", reward={"name": "S111", "patterns": "alone"}).reward(batch).values.tolist() == [1, 1, 0]
    turned = make_method("grpo", reward={"name": "S111", "flip": 1.0}).reward(batch)
    assert turned.values.tolist() == pytest.approx([0.1, 1.0, 1.0])
    # Scores of a model: from one half on they count as right and stay; below it they are raised, to 1 at most.
    graded = two_prompts(make_batch, [[0.5, 0.49, 0.7]], texts=[phrases] * 3)
    for part in (make_method("S111").reward, Calibrated()):
        assert part(graded).values.tolist() == pytest.approx([0.5, 0.59, 0.7])
    assert Calibrated(weight=0.9)(graded).values.tolist() == pytest.approx([0.5, 1.0, 0.7])


@pytest.mark.slow
def test_a_policy_learns_in_spite_of_many_flips():
    """Of four answers one is right; after 60 steps."""
    assert learned("S111", "40%", steps=60)["right"] > 0.9
    assert learned("S111", "50%", steps=60)["right"] < 0.3


def test_options():
    assert isinstance(make_method("S111", credit="gae").credit, GAE)
    for bad in ({"chance": 1.5}, {"chance": -0.1}, {"seed": -1}):
        with pytest.raises(UsageError, match="flipped"):
            Flipped(**bad)
    for bad in ({"phrases": ()}, {"phrases": "wait"}, {"phrases": ("wait", "")}, {"full": 0}, {"ngram": 0}):
        with pytest.raises(UsageError, match="reasoning_patterns"):
            ReasoningPatterns(**bad)
