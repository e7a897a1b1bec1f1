"""S056: a few labelled tasks say which pseudo-labels of the others can be trusted."""

from __future__ import annotations

from typing import Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.by_label import ByLabel
from assay.rewards.outcome.majority import MajorityVote
from assay.rewards.outcome.vote import Equal
from assay.select.trajectory import Trajectory
from assay.verify.answer.extract import Fallback, Rule


@paper(
    "S056",
    "TraPO",
    arxiv="2512.13106",
    seams=["curriculum", "verify", "reward", "select"],
    essentials={
        "true rewards where a task is labelled, agreement with the majority elsewhere, none at a tie": (
            "test_rewards_by_label"
        ),
        "similarity of histories of pass rates, standardised over time": "test_the_worked_similarities",
        "kept is what is similar enough, or among the most similar of the batch": "test_the_worked_similarities",
        "unlabelled tasks are recorded from the start and learned from after a warm-up": (
            "test_warm_up_records_and_does_not_learn"
        ),
        "what was kept joins the database": "test_what_was_kept_is_compared_with",
        "histories are cut to the shortest": "test_histories_are_cut_to_the_shortest",
        "tasks without labels are learned with it": "test_it_acts_in_training",
    },
    choices=(
        "histories are standardised and compared one by one, as in the authors' code; the paper writes the cosine of "
        "plain rates with the mean history of the database",
        "a task is not compared with its own history; what was kept once stays in the database",
        "kl_weight 0, as in the paper's runs",
    ),
)
def trapo(
    warm_up: int = 8,
    threshold: float = 0.4,
    top: float = 0.1,
    over: Literal["mean", "max"] = "mean",
    update: bool = True,
    equal: Equal = "same",
    rules: tuple[Rule, ...] | None = None,
    fallback: Fallback = "line",
    kl_weight: float = 0.0,
) -> Method:
    """GRPO on labelled tasks, and on those unlabelled ones whose pass rates over time resemble theirs.

        h(u) = history of the mean reward of u: true for labelled tasks, agreement with the majority for the others
        s(u) = mean over d in D of cos(z(h(u)), z(h(d))),  z standardises over time, D the labelled tasks
        u is learned from if s(u) >= threshold, or it is in the best ``top`` share of the batch

    R_i is the verdict for labelled tasks and 1[answer_i = majority's] for the others; a tie for the majority leaves no
    label. What is learned from joins D. Until a task has been asked more than ``warm_up`` times only labelled ones are
    learned from; histories grow all the same. A task is labelled unless it has no reference or
    ``meta["labelled"]`` is false: such a reference is never read.

    Args:
        warm_up, threshold, top, over, update: see :class:`assay.select.trajectory.Trajectory`.
        equal, rules, fallback: of the vote, see :class:`assay.rewards.outcome.vote.Ballot`.
        kl_weight: of the divergence from the reference policy.

    Source: TraPO (arXiv 2512.13106) and its authors' code (where kl_weight is 0.001; 0 in the paper's runs), whose
    similarity it is.
    """
    return Method(
        reward=ByLabel("verdict", MajorityVote("own", rules, fallback, equal, ties="none")),
        select=Trajectory(warm_up, threshold, top, over, update),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


claims(
    Claim(
        paper="S056",
        text="With one task in four labelled, learning from those of the others that resemble the labelled ones leads "
        "to more right answers than learning from all of them by their majority.",
        setting="views",
        arms={"trapo": {"name": "S056"}, "all": {"name": "grpo", "reward": "by_label"}},
        better="trapo",
        baseline="all",
        measure="right",
        options={"views": 1, "labelled": 0.25, "known": 0.5, "group": 8},
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
