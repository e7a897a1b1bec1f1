"""S123: feedback in words becomes principles with yes or no, and a reward model that is told which principle counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.judges.principle_reward import PrincipleReward, PrincipleScorer
from assay.statistics.intervals import Interval, mean_interval


@paper(
    "S123",
    "RLBFF",
    arxiv="2509.21319",
    seams=["tasks", "reward", "evaluate", "policies"],
    essentials={
        "feedback is taken apart into principles, each with the words that say so and yes, no or partially": (
            "test_what_is_extracted"
        ),
        "only words that stand in the feedback count, by a partial ratio above 60; no partial labels, and no "
        "helpfulness": "test_what_is_extracted",
        "principles that all who judged a response have, with one label, are kept": "test_what_people_agree_on",
        "training on Yes and No, or on reasons that end so": "test_tasks_of_principles",
        "the scalar reward is log P(Yes) - log P(No)": "test_worked_numbers",
        "the generative one is the same, of the word that its reasons end in": "test_log_odds_behind_reasons",
        "the principle is chosen in use, and two of them give two rewards": "test_two_principles",
        "accuracy by principle": "test_accuracy_by_principle",
        "in assay train": "test_it_acts_in_training",
    },
    choices=(
        "all wording, and the JSON form of what is extracted",
        "similar: cosine above 0.8, of counts of words unless an embedding is given",
        "similar principles with different labels are not agreed on; whose extraction failed is not asked",
        "a principle is kept once; a reward by several is their mean",
        "a word that is not among the 20 likeliest tokens counts as the last of them",
        "several opinions are a mean of their log-odds",
        "the generative judge earns 1 for its label in its form, else 0; the paper's reward is of log-odds, and what "
        "it is for the label No was not to be found",
        "the 70B models, HelpSteer3's feedback and PrincipleBench are not here: rows are a file of one's own",
    ),
)
def rlbff(
    judge: Any = None,
    principles: Sequence[str] = (),
    form: Literal["word", "reasons"] = "word",
    samples: int = 1,
    read: Literal["odds", "share"] = "odds",
) -> Method:
    """GRPO on how far responses fulfil principles that are named now, by a judge that learned from feedback.

        R = mean over principles of log P(Yes | x, y, principle) - log P(No | x, y, principle)

    The judge is trained by the same package on tasks ``principles``, which takes feedback apart: in form ``word`` by
    supervised training on their solutions (objective ``sft`` on rollout ``recorded``, or ``[warmup]``), in form
    ``reasons`` by GRPO on verifier ``critique``. ``assay eval MODEL tasks.source=principles --by principle`` says how
    often it is right by principle.

    Args:
        judge: an engine, or the specification of one.
        principles: of every task; those of the tasks' ``meta["principles"]`` if there are none.
        form, samples, read: see :class:`~assay.rewards.judges.principle_reward.PrincipleScorer`.

    Source: RLBFF (arXiv 2509.21319).
    """
    return Method(
        reward=PrincipleReward(PrincipleScorer(judge, form, samples, read=read), principles),
        credit=GRPO(),
        objective=ClippedSurrogate(),
    )


def by_principle(
    judge: PrincipleScorer, rows: Sequence[tuple[str, str, str, bool]]
) -> dict[str, tuple[Interval, float]]:
    """Return by principle how often the judge is right about a label, with its interval, and the share it cannot say.

    Args:
        judge: in either form.
        rows: question, response, principle, and whether it is fulfilled.

    Raises:
        ValueError: no rows.
    """
    if not rows:
        raise ValueError("accuracy by principle needs rows")
    found: dict[str, list[bool | None]] = {}
    scores = judge.scores([(q, y, p) for q, y, p, _ in rows])
    for (_, _, principle, label), score in zip(rows, scores, strict=True):
        found.setdefault(principle, []).append(None if score is None else (score > judge.even) is label)
    out = {}
    for principle, marks in found.items():
        read = [float(x) for x in marks if x is not None]
        right = mean_interval(read, bounds=(0, 1)) if read else Interval(float("nan"), 0.0, 1.0)
        out[principle] = (right, 1 - len(read) / len(marks))
    return out


claims(
    Claim(
        paper="S123",
        text="A reward model that is told which of two opposed principles counts ranks the same responses rightly by "
        "either more often than one that learned from mixed preferences.",
        setting="opposed_principles",
        evidence="construction",
        arms={"principle": {"told": True}, "preferences": {"told": False}},
        better="principle",
        baseline="preferences",
        measure="accuracy",
    )
)
