"""S070: say the same to every wording of a question, whatever each of them retrieves."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.base import RewardPart
from assay.rewards.shaping.weighted import WeightedSum
from assay.rewards.text.paraphrase_similarity import GroupSimilarity, Measure


@paper(
    "S070",
    "PS-GRPO",
    arxiv="2510.04392",
    seams=["tasks", "rollout", "reward", "evaluate"],
    essentials={
        "a response earns its mean similarity to the responses to the question's other wordings": (
            "test_the_worked_example"
        ),
        "similarity is BLEU": "test_similarity_is_bleu_of_words_and_pairs",
        "a few wordings and responses drawn for each stand for all, without bias": (
            "test_draws_average_to_the_exact_value"
        ),
        "where there are references accuracy is added": "test_the_verdict_is_added",
        "every wording is asked with its own documents, its responses one advantage group": (
            "test_wordings_bring_their_documents"
        ),
        "consistency of retrieval, and of answers with documents fixed or retrieved, is measured": "test_consistency",
        "a policy comes to agree with itself across wordings": "test_a_policy_comes_to_agree_across_wordings",
    },
    choices=(
        "BLEU of words and pairs, which did best of the orders 1 to 3 that the paper compares",
        "accuracy weighs 1, the divergence 0.001",
        "the retriever, which is not trained, has run before: each wording holds what it found",
    ),
)
def con_rag(
    measure: Measure = "bleu_2",
    wordings: int | None = 3,
    responses: int | None = 1,
    accuracy: float = 1.0,
    kl_weight: float = 0.001,
    together: bool = False,
    key: str = "paraphrases",
) -> Method:
    """GRPO with a reward for being similar to the responses to the question's other wordings.

        r_ij = 1/((n-1) g) sum_{u != i} sum_m sim(o_ij, o_um) + accuracy v_ij

    over g responses to each of n wordings, or over ``wordings`` other wordings and ``responses`` of each that are drawn
    for every response. Advantages are standardised within the responses to a wording (or, ``together``, to all). The
    wordings stand in ``task.meta[key]``, each with the documents that were retrieved for it; the run's group is shared
    between them (24 are four for each of six). The consistency of a system before and after is measured by
    :func:`assay.rewards.text.paraphrase_similarity.consistency` and by ``retrieval_consistency`` beside it. The paper's
    accuracy is that of verifier ``token_f1``.

    Args:
        measure: sim, see :class:`assay.rewards.text.paraphrase_similarity.GroupSimilarity`.
        wordings, responses: see above, 3 and 1 in the paper; ``None`` for all.
        accuracy: weight of the verdict's score; 0 for tasks without references.
        kl_weight: of the divergence from the reference policy.
        together: see above.
        key: of ``task.meta``.

    Source: "Improving Consistency in Retrieval-Augmented Systems with Group Similarity Rewards" (arXiv 2510.04392). The
    order of BLEU and the weights are choices.
    """
    similar = GroupSimilarity(measure, wordings, responses)
    reward: RewardPart = similar
    if accuracy:
        reward = WeightedSum({"similarity": similar, "verdict": "verdict"}, {"verdict": accuracy})
    return Method(
        reward=reward,
        objective=ClippedSurrogate(kl_weight=kl_weight),
        rollout={"name": "paraphrased", "key": key, "together": together},
    )


claims(
    Claim(
        paper="S070",
        text="With a reward for similarity beside the verdict, responses to different wordings of a question agree "
        "more, sooner, than with the verdict alone.",
        setting="views",
        arms={
            "similarity": {"name": "S070", "reward": {"name": "S070", "measure": "exact"}, "objective": "clip"},
            "verdict": {"name": "grpo", "rollout": "paraphrased"},
        },
        better="similarity",
        baseline="verdict",
        measure="agree",
        options={"views": 3, "group": 12, "steps": 40},
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
