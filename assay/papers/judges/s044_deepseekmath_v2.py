"""S044: one model analyses proofs, analyses such analyses, and writes proofs whose flaws it admits."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.sft import SFT
from assay.rewards.proofs.analysis import AnalysisReward
from assay.rewards.proofs.roles import ProofRoles
from assay.rewards.proofs.self_analysed import SelfAnalysed
from assay.select.reward_term import RewardTerm


@paper(
    "S044",
    "DeepSeekMath-V2",
    arxiv="2511.22570",
    seams=["tasks", "verify", "reward", "select", "objective", "inference"],
    essentials={
        "the verifier: form, score and the quality of its analysis, multiplied": "test_the_verifiers_reward_by_hand",
        "the meta-verifier: form and score, on what an analysis objects to": "test_the_verifiers_reward_by_hand",
        "the generator: the proof's score, and an honest one of its own": "test_the_generators_reward_by_hand",
        "three roles of one model": "test_three_roles",
        "new proofs are labelled by analyses and votes on their objections": "test_labels_by_hand",
        "and become tasks of the verifier": "test_proofs_without_labels",
        "sequential refinement, until it finds no flaw itself": "test_refined_until_it_is_content",
        "a pool of proofs, refined by pairs of proof and analysis, until one passes all": "test_the_pool",
        "between rounds: rejection fine-tuning on samples of all roles, from which the next verifier begins": (
            "test_between_rounds"
        ),
        "it trains": "test_it_trains",
    },
    choices=(
        "all wording; one form for the three analyses",
        "8 analyses, 3 votes, of which more than half have to be 1, and 2 valid ones make a label",
        "the quality of an analysis is not asked for where its score is wholly wrong",
        "roles alternate as stages of a recipe do",
        "a refinement is shown one proof and one analysis, as in the paper; the released code shows up to eight",
        "between rounds all samples of full worth are learned from; the paper does not say which",
        "problems, labelled proofs and analyses are a file of one's own; the authors' are not released",
    ),
)
def deepseekmath_v2(
    judge: Any = None,
    role: Literal["generator", "verifier", "both"] = "generator",
    alpha: float = 0.76,
    beta: float = 0.24,
    n: int = 1,
    kl_weight: float = 0.0,
    least: float = 1.0,
) -> Method:
    """GRPO for a role of the model on tasks ``proofs``, and fine-tuning on what succeeded in all of them.

        verifier:   R = R_format (1 - |s' - s|) R_meta;   the meta-verifier without R_meta, on scores of analyses
        generator:  R = R_format (alpha s + beta (1 - |s' - s|) ms)

    s' is what a response says, s the label, or the judge's score of the proof, ms the quality of an analysis by the
    judge of analyses. The verifier is trained first, without ``judge`` and then with a meta-verifier for one; then the
    generator, begun from it, with ``judge = {judge = ..., meta = ...}``; then tasks ``proofs`` with a ``labeller``
    label its proofs for the next verifier. That one begins where role ``both`` ends: the generator samples proofs and
    analyses, on a file with rows of all kinds, and those with R >= ``least`` are learned from (objective ``sft``). In
    use: strategies ``refine(scorer=self_score)`` and ``proof_pool``.

    Args:
        judge: see :class:`~assay.rewards.proofs.self_analysed.SelfAnalysed`; of the verifier's role the meta-verifier,
            see :class:`~assay.rewards.proofs.analysis.AnalysisReward`.
        role: see above.
        alpha, beta, n: see :class:`~assay.rewards.proofs.self_analysed.SelfAnalysed`.
        kl_weight: of the divergence, in the two roles.
        least: of role ``both``, see above.

    Raises:
        UsageError: a generator, or both roles, without a judge.

    Source: DeepSeekMath-V2 and its authors' code.
    """
    if role == "both":
        reward_of_both = ProofRoles(judge, alpha, beta, n)
        return Method(reward=reward_of_both, select=RewardTerm("worth", least), objective=SFT())
    reward = AnalysisReward(judge) if role == "verifier" else SelfAnalysed(judge, alpha, beta, n)
    return Method(reward=reward, credit=GRPO(), objective=ClippedSurrogate(kl_weight=kl_weight))


claims(
    Claim(
        paper="S044",
        text="Who is rewarded for his proof's score alone says of his proofs what he likes; with the term for honest "
        "analyses what he says is the score.",
        setting="self_scores",
        evidence="mechanism",
        arms={
            "honest": {"name": "S044", "judge": "here"},
            "proof alone": {"name": "S044", "judge": "here", "options": {"beta": 0.0}},
        },
        better="honest",
        baseline="proof alone",
        measure="calibrated",
        sweep={"lr": (0.3, 1.0, 3.0)},
        tuning=(1000, 1001),
    )
)
