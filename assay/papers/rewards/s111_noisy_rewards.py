"""S111: rewards may be wrong nearly half of the time; phrases of reasoning make up for wrong negatives."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.rewards.outcome.flipped import Flipped
from assay.rewards.text.patterns import Calibrated, ReasoningPatterns


@paper(
    "S111",
    "noisy rewards and RPR",
    arxiv="2505.22653",
    seams=["verify", "reward", "evaluate"],
    essentials={
        "rewards are flipped with a given probability, by one draw for all responses of a prompt": (
            "test_responses_of_a_prompt_share_a_draw_and_prompts_do_not"
        ),
        "a flipped group has its advantages negated": "test_a_flipped_group_has_its_advantages_negated",
        "a response without an answer earns 0, and is not flipped": "test_without_an_answer_nothing_is_flipped",
        "evaluation is not flipped": "test_verdicts_are_not_flipped",
        "the pattern reward counts phrases, less repetition and questions of its own": "test_scores_by_hand",
        "the pattern reward is added where a noisy reward says wrong": "test_calibration_mends_what_is_wrong_only",
        "with 40% of the prompts flipped a policy still learns to be right, with 50% it does not": (
            "test_a_policy_learns_in_spite_of_many_flips"
        ),
    },
    choices=(
        "GRPO in place of the paper's PPO with a critic, which credit = 'gae' brings",
        "weight 0.1 for verdicts too, as for a reward model's scores; in the authors' code a verdict's is 1",
        "one phrase of the authors' list, misspelled there, is spelled here as it is written",
    ),
)
def noisy_rewards(
    patterns: Literal["calibrate", "alone", "none"] = "calibrate",
    flip: float = 0.0,
    weight: float = 0.1,
    threshold: float = 0.5,
    per: Literal["prompt", "sample"] = "prompt",
    inner: Any = "verdict",
) -> Method:
    """GRPO whose verdicts are flipped at random (a test), and repaired by a reward for phrases of reasoning.

        v'_i = 1 - v_i with probability flip, one draw for all responses of a prompt, else v_i
        RPR_i = max(0, min(1, phrases_i / 20) - repetition_i - questions of its own_i);  0 without an answer
        calibrate: R_i = v'_i if v'_i >= threshold else min(v'_i + weight RPR_i, 1)
        alone:     R_i = RPR_i          none: R_i = v'_i

    A flipped group has its advantages negated: E[A] = (1 - 2 flip) A, so that learning is slower and not other up to
    flip = 1/2, where it stops. ``flip`` is for asking how much noise a run stands; evaluation is never flipped. Any
    reward can be flipped (``reward.name = "flipped"``) or calibrated (``"calibrated"``).

    Args:
        patterns: what the phrases are for.
        flip: in [0, 1].
        weight: of RPR where it is added to a reward below ``threshold``.
        threshold: a reward below it counts as "wrong".
        per: draw per ``prompt`` or per ``sample``.
        inner: the reward v, a reward model's for one.

    Source: "The Climb Carves Wisdom Deeper Than the Summit" (arXiv 2505.22653) and its authors' code. They train by PPO
    with a critic (``credit = "gae"``).
    """
    noisy = Flipped(inner, flip, per) if flip else inner
    if patterns == "alone":
        return Method(reward=ReasoningPatterns())
    if patterns == "none":
        return Method(reward=Flipped(inner, flip, per))
    return Method(reward=Calibrated(noisy, ReasoningPatterns(), threshold, weight))


CERTAIN = [[[1.0, True, {}]], *([[[1.0, False, {}]]] * 3)]

claims(
    Claim(
        paper="S111",
        text="With the rewards of 40% of the prompts flipped, a policy still learns to be right; with 50% it does not.",
        setting="choices",
        arms={
            name: {"name": "grpo", "reward": {"name": "flipped", "chance": chance}}
            for name, chance in (("none", 0.0), ("20%", 0.2), ("40%", 0.4), ("50%", 0.5))
        },
        better="40%",
        baseline="50%",
        measure="right",
        options={"choices": CERTAIN, "steps": 200},
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
