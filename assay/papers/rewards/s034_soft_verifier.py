"""S034: a generative verifier for answers of any domain, paid out as the probability it puts on its own judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.base import Credit
from assay.credit.reinforce import Reinforce
from assay.credit.reinforce_pp import ReinforcePlusPlus
from assay.credit.rloo import RLOO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.judged import judged
from assay.rewards.judges.reference_judge import ReferenceJudge, Score, Shown, Unread
from assay.rewards.shaping.standardised import StandardisedReward
from assay.rewards.shaping.weighted import WeightedSum
from assay.types import Group, Task

OPTIMISERS: dict[str, type[Credit]] = {"reinforce": Reinforce, "rloo": RLOO, "reinforce++": ReinforcePlusPlus}


@paper(
    "S034",
    "soft verifier",
    arxiv="2503.23829",
    seams=["verify", "reward", "credit", "policies"],
    essentials={
        "a language model compares the answer with the reference and replies 0 or 1": (
            "test_the_judge_is_shown_the_end_and_asked_once"
        ),
        "hard and soft scores: its reply, or its probability of the reply": (
            "test_the_score_is_the_probability_of_right_as_the_judge_says_it"
        ),
        "the probability is the judge's own at the token that decides": (
            "test_probabilities_are_those_of_the_judges_own_model"
        ),
        "rewards are standardised over the batch, 0 where all are equal": (
            "test_rewards_are_standardised_over_the_batch_and_zero_if_equal"
        ),
        "what is standardised has the divergence from the reference policy subtracted": (
            "test_the_divergence_is_subtracted_from_what_was_standardised"
        ),
        "REINFORCE, RLOO or REINFORCE++": "test_the_three_optimisers",
        "a small judge is taught by a large one's verdicts on responses met in training": (
            "test_a_teacher_labels_what_the_small_judge_will_be_asked"
        ),
        "answers the judge believes in are learned where the rule accepts few": "test_it_acts_in_training",
    },
    choices=(
        "the wording of the question; the reply is 1 or 0, as in the paper, or yes or no, as of the authors' verifier",
        "the final step is the last paragraph",
        "a divergence of weight 0.01",
        "an unread reply leaves the sample without a reward; the paper's counts as wrong (unread)",
    ),
)
def soft_verifier(
    judge: Any = None,
    score: Score = "soft",
    over: Literal["batch", "prompt"] = "batch",
    optimiser: Literal["reinforce", "rloo", "reinforce++"] = "reinforce",
    kl_weight: float = 0.01,
    shown: Shown = "final_step",
    unread: Unread = "abstain",
) -> Method:
    """A language model compares each answer with the reference; its confidence, standardised, is the reward.

        hard: r_i = 1[c_i = 1]        soft: r_i = pi_J(1) if c_i = 1,  1 - pi_J(0) if c_i = 0
        R_i = (r_i - mean r) / std r - kl_weight log(pi(o_i) / pi_ref(o_i))

    Mean and deviation are the batch's; where all are equal, the first term is 0. c_i is the judge's reply, 0 or 1 (no
    or yes of the authors' own verifier), and pi_J(c) its probability of that token. What it puts on neither reply
    counts for the answer when it says 0, and against it when it says 1. No format is rewarded.

    Args:
        judge: an engine, or the specification of one, see :class:`assay.rewards.judges.reference_judge.ReferenceJudge`;
            without it, the verdict's score.
        score: see above.
        over: mean and deviation over the ``batch`` or over the responses to a ``prompt``.
        optimiser: the credit given to R: itself, less its siblings' mean, or whitened over all tokens.
        kl_weight: a choice; the divergence is a reward on tokens, and stands outside what is standardised.
        shown: what the judge reads: the last paragraph (``final_step``, the paper's) or the whole ``response``.
        unread: a reply that is neither 0 nor 1 leaves the sample without a reward, or is ``wrong`` (the paper's).

    The paper's verifier of 7B parameters is distilled from a large judge on responses met in training, which it must
    expect to be ill-formed: see :func:`distillation`.

    Source: "Expanding RL with Verifiable Rewards Across Diverse Domains" (arXiv 2503.23829), rewards and their
    normalisation; the wording of the question is a choice.
    """
    inner = "verdict" if judge is None else JudgedReward(ReferenceJudge(judge, score, shown, unread))
    reward = StandardisedReward(inner, over)
    return Method(
        reward=WeightedSum({"judged": reward, "kl": "kl"}, {"kl": kl_weight}) if kl_weight else reward,
        credit=OPTIMISERS[optimiser](),
        objective=ClippedSurrogate(),
    )


class JudgedReward:
    """R_i = the score of a :class:`ReferenceJudge`; no reward where it abstains, or the task's own verifier failed.

    Terms: ``judge``, the score; ``accepted``, ``abstained``: zeros and ones.

    Args:
        judge: the verifier.
    """

    def __init__(self, judge: ReferenceJudge):
        self.judge = judge

    def __call__(self, batch: Batch) -> Reward:
        verdicts = self.judge.map([(t, e.text) for t, e in zip(batch.tasks, batch.episodes, strict=True)])
        dtype = batch.rewards.dtype
        values = torch.tensor([v.score for v in verdicts], dtype=dtype)
        told = torch.tensor([v.passed is not None for v in verdicts], dtype=torch.bool)
        accepted = torch.tensor([float(v.passed is True) for v in verdicts], dtype=dtype)
        terms = {"judge": values, "accepted": accepted, "abstained": (~told).to(dtype)}
        return Reward(values, valid=judged(batch) & told, terms=terms)


def distillation(groups: Sequence[Group], teacher: ReferenceJudge) -> list[Task]:
    """Return tasks that teach a small model to judge as ``teacher`` does the responses of ``groups``.

    Each task asks the teacher's question and has its reply, 0 or 1, as reference and worked solution, so that a warm-up
    on solutions is the distillation. Questions that come twice are kept once; those that the teacher abstains from are
    left out. Groups from several stages of training show it the mistakes that the policy will make.
    """
    pairs = [(group.task, episode.text) for group in groups for episode in group.episodes]
    made: dict[str, Task] = {}
    for (task, text), verdict in zip(pairs, teacher.map(pairs), strict=True):
        prompt = teacher.question(task, text)
        if verdict.passed is not None and prompt not in made:
            label = str(int(verdict.passed))
            made[prompt] = Task(f"{task.id}/judge {len(made)}", prompt, label, "exact", label)
    return list(made.values())


claims(
    Claim(
        paper="S034",
        text="Where answers are free-form and a judge's confidence says how likely it is right, its soft score leads "
        "to right answers more often than its yes or no.",
        setting="free_form",
        arms={
            "soft": {"name": "S034", "reward": {"name": "S034", "judge": "here"}},
            "hard": {"name": "S034", "reward": {"name": "S034", "judge": "here", "score": "hard"}},
            "rule": {"name": "S034"},
        },
        better="soft",
        baseline="hard",
        measure="area",
        sweep={"lr": (1.0, 3.0, 10.0, 30.0, 100.0)},
    )
)
