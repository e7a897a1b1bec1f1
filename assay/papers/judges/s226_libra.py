"""S226: a judge that thinks, trained and measured on whether responses to solved problems are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.length.overlong import SoftOverlong
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.shaping.weighted import WeightedSum
from assay.tasks.judging.pointwise import Judged


@paper(
    "S226",
    "Libra",
    arxiv="2507.21645",
    seams=["tasks", "reward", "objective", "evaluate"],
    essentials={
        "items of judging from solved problems, without references": "test_items_of_solved_problems",
        "right and wrong are balanced for each generator": "test_balance_is_of_each_generator",
        "traces whose verdict is the label begin the training": "test_traces_are_those_that_are_right",
        "1 for the label, less what is too long": "test_lengths_by_hand",
        "its benchmark's records are read as they are published": "test_its_benchmark_is_read",
        "accuracy by subset, and its mean": "test_accuracy_by_hand",
        "verdicts label responses to prompts without references, as pairs": "test_pairs_by_verdicts",
        "do judges rank by accuracy as by what comes of them?": "test_ranks_by_hand",
        "it trains": "test_it_trains",
    },
    choices=(
        "lengths: 8,000 tokens and 16,000; one token over where both are the same",
        "a pair is the first response that is called right and the first that is called wrong",
        "the wording of the prompt; verdicts in boxes",
        "what names a record's subset: a field subset, source or dataset, the first there is",
        "what is no judging is one's own, any tasks in the mixture; the paper says little of its own",
    ),
)
def libra(expected: int = 8000, most: int = 16000, kl_weight: float = 0.0) -> Method:
    """GRPO for a judge on tasks ``pointwise_judging``: R = 1[verdict = label] + length term.

        term(L) = 0 up to L_exp, -(L - L_exp) / (L_max - L_exp) up to L_max, and -1 beyond

    Where both lengths are the same the term is 0 up to it and -1 beyond. A warm-up on :func:`with_traces` of
    :mod:`assay.tasks.judging.pointwise` comes first; tasks ``mixture`` adds what is no judging. Tasks ``libra_bench``
    are the benchmark, on which :func:`accuracy` measures.

    Args:
        expected, most: L_exp and L_max, tokens.
        kl_weight: of the divergence.

    Raises:
        UsageError: lengths that are not 1 <= L_exp <= L_max.

    Source: Libra (arXiv 2507.21645).
    """
    if not 1 <= expected <= most:
        raise UsageError(f"S226: lengths {expected} and {most} are 1 or more, the second at least the first")
    longest = max(most, expected + 1)
    length = SoftOverlong(longest, longest - expected)
    return Method(
        reward=WeightedSum({"verdict": VerdictReward(), "length": length}),
        credit=GRPO(),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Shares of items whose verdict is the label; one that could not be read is none.

    Attributes:
        subsets, generators: of each.
        mean: of the subsets, each alike.
    """

    subsets: dict[str, float]
    generators: dict[str, float]
    mean: float


def accuracy(items: Sequence[Judged], verdicts: Sequence[bool | None]) -> Accuracy:
    """Return how often verdicts on items are right.

    Raises:
        ValueError: lengths that differ, or no items.
    """
    pairs = [(item, v is item.right) for item, v in zip(items, verdicts, strict=True)]
    if not pairs:
        raise ValueError("there are no items to be right about")

    def by(name: str) -> dict[str, float]:
        keys = dict.fromkeys(getattr(item, name) for item, _ in pairs)
        return {k: float(np.mean([hit for item, hit in pairs if getattr(item, name) == k])) for k in keys}

    subsets = by("subset")
    return Accuracy(subsets, by("generator"), float(np.mean(list(subsets.values()))))


def pairs_of(prompt: str, responses: Sequence[str], verdicts: Sequence[bool | None]) -> dict[str, str] | None:
    """Return a row for tasks ``recorded``, a response that is called right preferred to one that is called wrong;
    ``None`` where there are not both."""
    called = list(zip(responses, verdicts, strict=True))
    right, wrong = (next((r for r, v in called if v is kind), None) for kind in (True, False))
    if right is None or wrong is None or right == wrong:
        return None
    return {"prompt": prompt, "chosen": right, "rejected": wrong}


def agreement(bench: Mapping[str, float], gains: Mapping[str, float]) -> float:
    """Return Spearman's correlation of judges' accuracies with what was gained by training on their verdicts.

    Raises:
        UsageError: other judges in one than in the other, or fewer than three.
    """
    if bench.keys() != gains.keys() or len(bench) < 3:
        raise UsageError("S226: accuracies and gains are of the same judges, three or more")
    from scipy.stats import spearmanr

    return float(spearmanr([bench[k] for k in bench], [gains[k] for k in bench]).statistic)


claims(
    Claim(
        paper="S226",
        text="A judge that only knows generators by their style is at chance on items balanced for each generator, and "
        "above it on items balanced over all.",
        setting="styled_items",
        evidence="construction",
        arms={"each generator": {"balance": "each"}, "over all": {"balance": "all"}},
        better="each generator",
        baseline="over all",
        measure="honest",
    )
)
