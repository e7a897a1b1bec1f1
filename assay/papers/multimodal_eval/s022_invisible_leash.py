"""S022: which problems RL keeps, loses and gains within reach, and why it cannot reach what had no probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.evaluate.answers import answers_of
from assay.evaluate.paired import paired_samples
from assay.records.evaluation import Evaluation
from assay.statistics.support import SupportIntervals, support_intervals


@dataclass(frozen=True, slots=True)
class EmpiricalSupport:
    """Compares the support of two models from samples of both on the same tasks, with 95% intervals.

    Args:
        answers: the items are the right answers of tasks, as both models' samples show them, not the tasks.
    """

    answers: bool = False

    def __call__(self, before: Evaluation, after: Evaluation) -> SupportIntervals:
        """Return the counts and rates at the number of samples that both have of (nearly) every task.

        Raises:
            UsageError: evaluations of different tasks, or nothing judged in both.
        """
        pairs = paired_samples(before, after)
        if not self.answers:
            return support_intervals(*pairs.hits())
        reach = [
            (task, *reached)
            for task, (b, a) in enumerate(zip(pairs.before, pairs.after, strict=True))
            for reached in answers_of(b[: pairs.k], a[: pairs.k]).reach()
        ]
        return support_intervals([r[1] for r in reach], [r[2] for r in reach], [r[0] for r in reach])


@paper(
    "S022",
    "The Invisible Leash",
    arxiv="2507.14843",
    seams=["evaluate"],
    essentials={
        "within reach: a right one among k samples, before and after; preserved, shrunk, expanded, out of reach": (
            "test_the_metric_counts_tasks_and_right_answers"
        ),
        "retention SRR, discovery NDR, their harmonic mean SDS, and net change NSCR": "test_a_row_of_the_papers_table",
        "what k samples show with confidence 1 - zeta has a probability of 1 - zeta^(1/k)": (
            "test_what_8192_samples_reach"
        ),
        "the optimum under a KL term tilts what the base model can say, and adds nothing": (
            "test_tilting_reweights_and_adds_nothing"
        ),
        "training by samples of its own leaves at 0 what had no probability": (
            "test_what_has_no_probability_is_never_sampled_and_stays_at_none"
        ),
        "training lowers right answers that are rare": "test_a_rare_right_answer_loses_what_it_had",
        "entropy of tokens may rise while that of answers falls": "test_entropies_of_tokens_and_answers_part",
        "entropy of tokens: mean over responses of means over their tokens; of answers: none is one of them": (
            "test_entropies_by_hand"
        ),
    },
    choices=(
        "items: problems; with answers=True the right answers of problems",
        "k: as many samples as (nearly) every task has of both models; up to 8192 in the paper",
        "intervals of the four rates are ours",
        "a rate without a denominator is NaN",
        "entropy of tokens: of what they were drawn from, where the paper reads samples again at temperature 1",
    ),
)
def invisible_leash(answers: bool = False) -> EmpiricalSupport:
    """Counts what is within reach of k samples before training and after: preserved P, lost S, gained E, neither.

        SRR  = P / (P + S)               retention          NDR  = E / (P + E)                discovery
        SDS  = 2 SRR NDR / (SRR + NDR)   dynamics           NSCR = (E - S) / (P + E + S)      net change

    NSCR below 0: the support shrank. A rate without a denominator is NaN. What has a probability of at least
    1 - zeta^(1/k) is among k samples with confidence 1 - zeta (:func:`assay.statistics.support.least_reachable`).

        from assay.papers.multimodal_eval.s022_invisible_leash import invisible_leash
        invisible_leash()(before, after)     # two Evaluations; or: assay diagnose BEFORE AFTER

    which the command reports for tasks and for right answers, as a function of k, and beside the entropy of answers
    (of the final answers to a task) and of tokens, which may move in opposite directions, and the likelihood of worked
    solutions under both models. The theory is in :func:`tilted`: rewards reweight what the model before can say.

    Args:
        answers: count right answers of tasks in place of tasks.

    Source: The Invisible Leash (arXiv 2507.14843), with k up to 8192 and zeta 0.05.
    """
    return EmpiricalSupport(answers)


def tilted(probabilities: ArrayLike, rewards: ArrayLike, beta: float) -> NDArray[np.float64]:
    """Return what maximises E[R] - KL(p || q) / beta: p(y) proportional to q(y) exp(beta R(y)).

    It is 0 wherever q is, whatever the reward.

    Args:
        probabilities: q, of the model before; scaled to sum to 1.
        rewards: R, as many.
        beta: inverse weight of the KL term.

    Raises:
        UsageError: probabilities that are negative or all zero, or not as many rewards.
    """
    q, r = np.asarray(probabilities, dtype=np.float64), np.asarray(rewards, dtype=np.float64)
    if q.shape != r.shape or (q < 0).any() or not q.sum() > 0:
        raise UsageError("tilted needs probabilities, not all zero, and as many rewards")
    weight = q * np.exp(beta * (r - r.max()))
    return weight / weight.sum()


claims(
    Claim(
        paper="S022",
        text="Of the right answers to questions never asked, fewer are within reach after RL than before.",
        setting="unseen",
        unequal="one arm is the model before training",
        arms={"base": {"name": "grpo", "setting": {"steps": 0}}, "trained": {"name": "grpo"}},
        better="base",
        baseline="trained",
        measure="covered",
        options={"steps": 300},
        each={"lr": (1e-3, 3e-3, 1e-2)},
    )
)
