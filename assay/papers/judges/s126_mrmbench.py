"""S126: which dimensions of preference a reward model tells apart, and whether it is near to what it knows."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.gae import GAE
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build
from assay.rewards.judges.probed_preferences import ProbedPreferences
from assay.rewards.shaping.weighted import WeightedSum
from assay.select.reward_term import RewardTerm


@paper(
    "S126",
    "MRMBench",
    arxiv="2511.12464",
    seams=["reward", "select", "evaluate", "policies"],
    essentials={
        "the last state of a reward model, which stays as it is": "test_the_model_stays_as_it_is",
        "a linear probe for each dimension, easy (two labels) and hard (three), classes balanced": (
            "test_a_probe_tells_what_is_there"
        ),
        "accuracy by dimension, and its mean": "test_a_probe_tells_what_is_there",
        "its six sets are read as they are published, with what they test on": "test_its_sets_are_read",
        "clusters of states by dimension; the nearest says which is in play": "test_distances_by_hand",
        "in RL, a sample whose nearest centre is too far away is left out": "test_far_samples_are_left_out",
        "in assay eval MODEL --dimensions FILE and assay train": "test_probed_and_trained",
    },
    choices=(
        "easy merges labels 1 and 2",
        "a quarter of the prompts is kept back where nobody says which; the rate is chosen on a quarter of the others",
        "far is beyond the 0.9 quantile of the distances of responses that were kept back; the paper's 140 is of its "
        "models' states",
        "PPO with lambda 0.95 and 0.05 times the divergence from the reference policy",
    ),
)
def mrmbench(
    source: Any = None,
    clusters: Any = None,
    threshold: float | None = None,
    kl_weight: float = 0.05,
    credit: Any = None,
    max_length: int | None = None,
    token_budget: int = 8192,
    device: str | None = None,
) -> Method:
    """PPO on a reward model's scores of responses that it knows something of (inference-time probing).

        d = min over dimensions and centres of ||h - c||;   weight 1[d <= threshold];   R = r(x, y)

    ``assay eval MODEL --dimensions FILE --out clusters.json`` probes the model and writes the centres; FILE has rows
    with ``prompt``, ``response``, ``dimension`` and ``label`` (0, 1 or 2), or is the folder ``mrm_hard`` of the
    benchmark (``ifnoc/MRMBench`` on the Hugging Face hub), with harmlessness, helpfulness, correctness, coherence,
    complexity and verbosity, each with the responses to test on. See
    :func:`assay.inference.supervision.probing.probing`.

    Args:
        source: folder or hub id of the reward model.
        clusters: that file.
        threshold: the file's own unless given.
        kl_weight: of the divergence, on tokens.
        credit: by default GAE with a critic.
        max_length, token_budget, device: of :class:`~assay.rewards.judges.preference_model.PreferenceModel`.

    Raises:
        UsageError: no model or no clusters.

    Source: MRMBench (arXiv 2511.12464).
    """
    if source is None or clusters is None:
        raise UsageError(
            "S126: name the reward model by source, and by clusters the file that assay eval MODEL --dimensions FILE "
            "--out clusters.json writes"
        )
    scores = ProbedPreferences(source, clusters, max_length, token_budget, device)
    most = scores.clusters.threshold if threshold is None else threshold
    reward = WeightedSum({"model": scores, "kl": "kl"}, {"kl": kl_weight}) if kl_weight else scores
    return Method(
        reward=reward,
        credit=GAE(discount=1.0, decay=0.95) if credit is None else build("credit", credit),
        select=RewardTerm("model/distance" if kl_weight else "distance", most=most),
        objective=ClippedSurrogate(),
    )


claims(
    Claim(
        paper="S126",
        text="A policy that climbs a reward model's scores keeps more of what is wanted if samples far from what the "
        "model knows are left out than if as many are left out by lot.",
        setting="far_samples",
        evidence="construction",
        arms={"far": {"drop": "far"}, "by lot": {"drop": "random"}, "none": {"drop": "none"}},
        better="far",
        baseline="by lot",
        measure="worth",
    )
)
