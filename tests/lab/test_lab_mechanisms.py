"""What the settings measure for claims about how a method works, against numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.lab.settings.bandits.lengths import Setting as Lengths
from assay.lab.settings.bandits.spurious import Setting as Spurious
from assay.lab.settings.language.latents import Setting as Latents
from assay.lab.settings.open_ended.answers import Setting as Answers
from assay.lab.settings.reasoning.steps import FINISH, USELESS
from assay.lab.settings.reasoning.steps import Setting as Steps
from assay.lab.settings.thinking.anytime import END, IDLE, USEFUL
from assay.lab.settings.thinking.anytime import Setting as Anytime
from assay.lab.settings.thinking.drafts import Setting as Drafts
from assay.lab.settings.tree import Setting as Tree
from assay.papers.objectives.s065_pure import CREDIT, ONE
from assay.policies.tabular import text_of
from assay.types import Task

PLAIN = {"name": "grpo"}


def test_an_answer_that_is_not_learned_is_as_right_as_its_thought_is_useful() -> None:
    setting = Anytime(longest=4, answers=4, enough=2)
    assert [setting.insight(k) for k in range(4)] == [0.25, 0.625, 1.0, 1.0]


def test_accuracy_at_a_budget_is_that_of_thoughts_cut_there() -> None:
    """A policy that thinks usefully first and idly afterwards, worked out by hand; one that ends at once."""
    setting = Anytime(longest=3, answers=2, enough=2)
    policy, right = setting.policy(0)
    with torch.no_grad():
        policy.logits[:] = 0
        for path, token in (((), USEFUL), ((USEFUL,), USEFUL), ((USEFUL, USEFUL), IDLE)):
            policy.logits[policy.tree.node(path), token] = 60.0
    found = setting.measure(policy, right)
    assert [found[f"at {b}"] for b in (1, 2, 3)] == pytest.approx([0.75, 1.0, 1.0])
    assert found["anytime"] == pytest.approx((0.75 + 2 + 3) / 6)
    with torch.no_grad():
        policy.logits[policy.tree.node(())] = 0
        policy.logits[policy.tree.node(()), END] = 60.0
    assert setting.measure(policy, right)["anytime"] == pytest.approx(0.5)


def test_accuracy_of_whole_responses_is_that_of_many_samples() -> None:
    setting = Anytime(longest=3, answers=4, enough=2, eager=-1.0)
    policy, right = setting.policy(3)
    [episodes] = TabularEngine(policy).generate([Request("", 4000, Sampling(8), 5)])
    # The last token is the answer.
    sampled = np.mean([setting.insight(list(e.tokens[:-1]).count(USEFUL)) for e in episodes])
    assert setting.measure(policy, right)["at 3"] == pytest.approx(sampled, abs=0.02)


def test_a_response_that_does_not_finish_has_a_bad_last_step() -> None:
    parts = Steps(longest=3, useless=0.5, cut=-0.9).verdict(Task("0", ""), text_of([USELESS] * 3)).parts
    assert list(parts.values()) == pytest.approx([0.75, 0.75, 0.05])
    ended = Steps(longest=3, useless=0.5, wrong=-0.6, cut=-0.9).verdict(
        Task("0", ""), text_of([USELESS] * 2 + [FINISH])
    )
    assert list(ended.parts.values()) == pytest.approx([0.75, 0.75, 0.2])
    assert list(Steps(longest=2).verdict(Task("0", ""), text_of([USELESS] * 2)).parts.values()) == [0.75, 0.75]


def test_the_sum_of_the_fooled_judge_s_scores_prefers_a_wrong_response_and_the_minimum_does_not() -> None:
    """What the claim of S065 rests on: every response of the tree, by its sum and by its least score."""
    setting = Steps(useful=0.1, useless=0.9, right=0.5, wrong=-0.9, cut=-0.9)
    tree = setting.policy(0).tree
    verdicts = [setting.verdict(Task("0", ""), text_of(path)) for path in tree.paths]
    scores = [[2 * s - 1 for s in verdict.parts.values() if s is not None] for verdict in verdicts]
    solved = [setting.solves(path) for path in tree.paths]
    best = {f: max(range(len(scores)), key=lambda i: f(scores[i])) for f in (sum, min)}
    assert not solved[best[sum]] and solved[best[min]]
    arm = {"reward": {"name": "process", "steps": ONE, "form": "sum", "outcome": 0.0}, "credit": CREDIT}
    assert Steps(steps=1).run(arm, 0, Path())["rollouts"] == 32


def test_breadth_is_the_effective_share_of_right_leaves() -> None:
    setting = Tree(branching=4, depth=1, right=2, spread=0.0, steps=1, prompts=1, group=2, lr=0.0)
    found = setting.run(PLAIN, 0, Path())
    # All four alike: half of the probability is on the right ones, which are reached alike.
    assert found["breadth"] == pytest.approx(0.5) and found["kept"] == 1.0
    skewed = Tree(tasks=3, right=2, depth=2, steps=1, prompts=1, group=2, lr=0.0).run(PLAIN, 1, Path())
    assert 0 < skewed["breadth"] <= skewed["final"]


def test_a_step_that_lowers_the_mass_of_right_leaves_is_not_kept() -> None:
    """A reward for being wrong, learned for one step, leaves no task where it was."""
    arm = {
        "name": "grpo",
        "reward": {"name": "weighted", "terms": {"verdict": "verdict"}, "weights": {"verdict": -1.0}},
    }
    found = Tree(tasks=2, depth=1, branching=4, right=2, prompts=2, group=256, steps=1, lr=1.0).run(arm, 0, Path())
    assert found["kept"] == 0.0 and found["final"] < found["start"]


def test_breadth_of_drafts_starts_at_success_times_spread() -> None:
    found = Drafts(tasks=2, arms=6, right=3, hard=0.0, steps=1, lr=0.0).run(PLAIN, 0, Path())
    assert found["breadth"] <= found["final"] and found["diversity"] <= np.log(3) + 1e-9


def test_the_divergence_from_the_answered_view_is_zero_only_where_the_answer_says_nothing() -> None:
    """Doubt 1: the views are the same. Doubt 0: KL(posterior, prior) = -log of the prior's mass on right leaves."""
    same = Answers(tasks=2, doubt=1.0, steps=1, lr=0.0).run(PLAIN, 0, Path())
    assert same["posterior"] == pytest.approx(0.0, abs=1e-9)
    told = Answers(tasks=1, doubt=0.0, steps=1, lr=0.0).run(PLAIN, 0, Path())
    assert told["posterior"] == pytest.approx(np.log(told["start"]), abs=1e-6)


def test_the_area_of_lengths_lies_between_the_start_and_the_best(tmp_path: Path) -> None:
    still = Lengths(steps=2, lr=0.0).run(PLAIN, 0, tmp_path)
    assert still["area"] == pytest.approx(still["accuracy"])


def test_clipping_far_away_changes_nothing_and_a_step_of_none_leaves_the_entropy() -> None:
    setting = Spurious(draws=200)
    assert setting.run({"clip": 1e9}, 0, Path())["change"] == setting.run({"clip": None}, 0, Path())["change"]
    assert Spurious(draws=200, step=0.0).run({"clip": 0.2}, 1, Path())["change"] == pytest.approx(0.0, abs=1e-12)
    found = setting.run({"clip": None}, 2, Path())
    # Entropy of (0.9, 0.1) plus a tenth of at most log 5.
    two = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert two < found["start"] <= two + 0.1 * np.log(5)
    for wrong in ({"actions": 1}, {"top": 1.0}, {"even": 0.0}):
        with pytest.raises(UsageError, match="spurious"):
            Spurious(**wrong)


def test_latents_describes_the_warm_start_it_shares() -> None:
    recipe = Latents(start=0.4, tasks=7).describe()["recipe"]
    assert recipe["warmup"]["target"] == 0.4 and recipe["tasks"]["eval_size"] == 7
