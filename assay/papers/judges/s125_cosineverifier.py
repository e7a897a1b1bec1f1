"""S125: a judge of computed answers that may run programs and convert units before it says what it thinks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.outcome.verdict_part import VerdictPart
from assay.rewards.shaping.weighted import WeightedSum
from assay.tasks.judging.rare import variants
from assay.tasks.judging.ternary import Item


@paper(
    "S125",
    "CoSineVerifier",
    arxiv="2512.01224",
    seams=["tasks", "rollout", "verify", "reward", "objective", "policies"],
    essentials={
        "an interpreter and a converter of units, whose errors are texts": "test_tools_answer_in_text",
        "a loop of calls and observations, at most so many, that ends in a boxed verdict": "test_a_judge_uses_tools",
        "the judging policy, as cases": "test_the_policy_in_cases",
        "1 for the right verdict, more if a tool has helped, nothing for a wrong one": "test_rewards_by_hand",
        "cold start on plans whose verdict is the label": "test_plans_pass",
        "hard negatives near the reference; responses on which opinions differ": "test_what_is_hard",
        "rare kinds of answers: more of them, right and nearly right": (
            "papers/judges/test_s125_rare.py::test_rare_kinds_become_as_many"
        ),
        "each kind has its own other writings and slips": "papers/judges/test_s125_rare.py::test_variants_by_kind",
        "the same without a model": "test_the_policy_in_cases",
        "what is judged stands behind the thinking": "test_thinking_is_not_judged",
        "tokens of a verdict are told": "test_a_judge_uses_tools",
        "its benchmarks are read as they are published": "audit/test_published.py::test_sets_are_read",
        "it trains": "test_it_trains",
    },
    choices=(
        "the size of the incentive, 0.1, and calls, 5; its form is ours",
        "a unit that is missing is passed over, as in the authors' prompt; verifier computed has it as a switch",
        "what rounding to two decimals would make 0 is compared to a hundredth",
        "identities are decided by assay's algebra, in place of points",
        "the words of the prompt",
        "what is rare is made more by rules for sixteen kinds of answers, up to a share of the commonest",
    ),
)
def cosineverifier(environment: Any = "checking", calls: int = 5, beta: float = 0.1, kl_weight: float = 0.0) -> Method:
    """GRPO for a judge with tools, in turns: its own tokens are trained, observations are not.

        R = 1[readable] (1[v = label] + beta 1[v = label and a call has succeeded])

    Judged answers are those of environment ``checking``: made up, or those of a run or file, with more of the rare
    kinds of answers if asked for (``rare``); a warm-up plays their plans. As a verifier the judge is ``{name =
    "assay.rewards.judges.tool_judge:ToolJudge", judge = ...}``, and without a model verifier ``computed`` goes by the
    same policy. Its benchmarks are ``assay audit VERIFIER verifybench``, ``verifybench-hard`` and ``sci-verifybench``;
    in the authors' own repository they are files, for which ``--fields
    reference=answer,response=model_ans,label=gold_ans,category=question_type``.

    Args:
        environment: name or table of environment ``checking``.
        calls: turns of an episode before the last.
        beta: see above.
        kl_weight: of the divergence.

    Source: CoSineVerifier (arXiv 2512.01224).
    """
    reward = WeightedSum({"verdict": VerdictReward(), "tool": VerdictPart("tool", scale=beta)})
    return Method(
        rollout={"name": "multi_turn", "environment": environment, "turns": calls + 1},
        reward=reward,
        credit=GRPO(),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


def hard_negatives(items: Sequence[Item], rng: np.random.Generator, most: int = 2) -> list[Item]:
    """Return items whose answer is near the reference and not it, as the verifier of computed answers judges.

    Args:
        items: with references; how an answer is missed depends on its kind, see
            :func:`~assay.tasks.judging.rare.variants`.
        rng: of the lots by which of more ``most`` of each are returned.
        most: see above.
    """
    out = []
    for item in items:
        near = [made for made in variants(item) if made.label == "B"]
        out += [near[k] for k in rng.permutation(len(near))[:most].tolist()]
    return out


def disputed(opinions: Sequence[Sequence[bool | None]]) -> list[int]:
    """Return the places of responses on which a judge's opinions differ; one that could not be read is none."""
    return [i for i, row in enumerate(opinions) if {True, False} <= set(row)]


claims(
    Claim(
        paper="S125",
        text="Of a judge that converts units badly in its head, tools make verdicts on answers with units right, and "
        "leave those on words as they are.",
        setting="reckoning_judges",
        evidence="construction",
        arms={"tools": {"calls": 3}, "no tools": {"calls": 0}},
        better="tools",
        baseline="no tools",
        measure="units",
        unequal="a judge with tools takes more turns",
    )
)
