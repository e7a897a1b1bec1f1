"""S049: a judge that asks of each sentence whether documents say so, thinks, and only then whether it is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.credit.step_reward import StepReward
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.sentences.judge import SentenceJudge
from assay.rewards.sentences.labels import SentenceLabelReward
from assay.rewards.sentences.reward import SentenceReward
from assay.signals.steps import Steps
from assay.verify.grounding.sentence_labels import Label


@paper(
    "S049",
    "TRM",
    arxiv="2509.25409",
    seams=["tasks", "verify", "reward", "credit", "evaluate"],
    essentials={
        "faithfulness, a reason and correctness of each sentence, in this order": "test_how_labels_are_read",
        "supervised start on labels with their reasons": "test_tasks_of_labelled_sentences",
        "the judge's reward by sentence, with a bonus for wrong ones that are found": "test_the_judges_reward_by_hand",
        "another number of sentences earns nothing": "test_the_judges_reward_by_hand",
        "the policy's reward by sentence: correctness and preference, 1 to 2": "test_the_policys_reward_by_hand",
        "sentences are compared within the group, each on its own tokens": "test_tokens_of_sentences",
        "F1 of wrong sentences and answers, and of the four cases": "test_what_is_measured",
        "both stages train": "test_it_trains",
    },
    choices=(
        "all wording, and the form of labels",
        "the bonus, 0.5; the policy's weights are divided by their sum",
        "how an answer is cut into sentences",
        "a judge whose labels do not fit the sentences gives an answer no reward",
        "preferences are those of a judge of pairs, in both orders",
    ),
    lacks="the paper's own bonus and scale of the policy's weights, which were not found: ours are guesses",
)
def trm(
    judge: Any = None,
    preferences: Any = None,
    correct: float = 1.0,
    useful: float = 2.0,
    stage: Literal["policy", "judge"] = "policy",
    alpha: float = 0.5,
    bonus: float = 0.5,
    steps: Any = None,
    kl_weight: float = 0.0,
) -> Method:
    """GRPO on what a judge says of each sentence; or, in the stage before, for that judge.

        judge:   r_j = alpha 1[f_j = f*_j] + (1 - alpha) 1[c_j = c*_j] + bonus 1[c_j = c*_j = 0],   R = mean_j r_j
        policy:  r_j = (correct c_j + useful pref) / (correct + useful),   A_t = (r_j(t) - mean) / std over the group

    The judge is trained on tasks ``sentence_labels``, after a warm-up on their solutions; policies on questions with
    ``meta["documents"]``, with verifier ``none``.

    Args:
        judge: an engine, or the specification of one, which labels sentences.
        preferences: a judge of pairs, see :class:`~assay.rewards.judges.anchored_pairs.AnchoredPairs`; ``None``: only
            correctness counts.
        correct, useful: weights of the policy's reward.
        stage: which of the two.
        alpha, bonus: of the judge's reward.
        steps: options of :class:`~assay.signals.steps.Steps`; sentences unless given.
        kl_weight: of the divergence.

    Raises:
        UsageError: stage ``policy`` without a judge.

    Source: TRM (arXiv 2509.25409).
    """
    objective = ClippedSurrogate(kl_weight=kl_weight)
    if stage == "judge":
        return Method(reward=SentenceLabelReward(alpha, bonus), credit=GRPO(), objective=objective)
    cut = Steps(**(steps or {"by": "sentence"}))
    scorer = judge if hasattr(judge, "scores") else SentenceJudge(judge)
    return Method(
        reward=SentenceReward(scorer, preferences, cut, correct, useful),
        credit=StepReward(cut, outcome=None),
        objective=objective,
    )


CASES = {
    (True, True): "faithful, correct",
    (True, False): "faithful, wrong",
    (False, True): "unfaithful, correct",
    (False, False): "unfaithful, wrong",
}


def measured(said: Sequence[Sequence[Label] | None], labels: Sequence[Sequence[Label]]) -> dict[str, float]:
    """Return how well answers' sentences were judged.

    ``sentences`` and ``answers`` are F1 of what is wrong; an answer is wrong if one of its sentences is. By each of the
    four cases of true labels: the share of its sentences whose correctness was judged rightly. What was not read is
    taken to be called right, which is a mistake where it is wrong. What there is none of is left out.

    Args:
        said: labels of each answer; ``None`` for a reply that could not be read.
        labels: true ones.

    Raises:
        ValueError: as many of neither.
    """
    read = [one or [(True, True)] * len(true) for one, true in zip(said, labels, strict=True)]
    pairs = [(a, b) for one, true in zip(read, labels, strict=True) for a, b in zip(one, true, strict=True)]
    out = {"sentences": wrong_f1([c for (_, c), _ in pairs], [c for _, (_, c) in pairs])}
    right = [[all(c for _, c in one) for one in some] for some in (read, labels)]
    out["answers"] = wrong_f1(*right)
    for case, name in CASES.items():
        hits = [a[1] is b[1] for a, b in pairs if b == case]
        if hits:
            out[name] = sum(hits) / len(hits)
    return {name: value for name, value in out.items() if value is not None}


def wrong_f1(said: Sequence[bool], true: Sequence[bool]) -> float | None:
    """Return F1 of what is wrong (false); ``None`` where nothing is and nothing is said to be."""
    hits = sum(not a and not b for a, b in zip(said, true, strict=True))
    named = sum(not a for a in said) + sum(not b for b in true)
    return 2 * hits / named if named else None


OPTIONS = {"steps": {"by": "fixed", "size": 1}}

claims(
    Claim(
        paper="S049",
        text="Where a judge knows which sentences are wrong, a policy whose sentences are rewarded one by one comes to "
        "right ones sooner than one whose whole answers are rewarded by their share.",
        setting="planted_sentences",
        evidence="mechanism",
        arms={
            "by sentence": {"name": "S049", "judge": "here", "options": OPTIONS},
            "whole answer": {"name": "S049", "judge": "here", "options": OPTIONS, "credit": "grpo"},
        },
        better="by sentence",
        baseline="whole answer",
        measure="area",
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
        tuning=(1000, 1001),
    )
)
