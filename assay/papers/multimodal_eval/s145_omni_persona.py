"""S145: questions about people who may not be there, rewarded and scored for answers and for abstentions."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.evaluate.abstention.calibrated import Calibrated, CalibratedScores
from assay.method import Method
from assay.objectives.gspo import GSPO
from assay.rewards.outcome.grounded import Grounded
from assay.tasks.pictures.personas import Personas
from assay.verify.answer.abstention import abstains
from assay.verify.grounding.persona import Persona
from assay.verify.text.degenerate import degenerate

__all__ = [
    "Calibrated",
    "CalibratedScores",
    "Grounded",
    "Persona",
    "Personas",
    "abstains",
    "degenerate",
    "omni_persona",
]


@paper(
    "S145",
    "Omni-Persona",
    arxiv="2605.09996",
    seams=["tasks", "verify", "reward", "credit", "objective", "evaluate"],
    essentials={
        "an index of a context, or none of them; the last box, Answer:, or number": "test_localising",
        "yes or no, the last of them": "test_verifying",
        "abstention by phrases in the last sentence, answers held against the reference": "test_answers_in_words",
        "rewards: right 1, confusing there and absent -.5, another person 0": "test_the_table_of_rewards",
        "text that repeats itself is worth 0 whatever it says": "test_gibberish",
        "Ans, TA, 1 - FA, Cal and Avg": "test_the_scores_by_hand",
        "localize, verify and text_qa by 30 to 30 to 40, there to absent by 1 to .6": "test_the_mix",
        "the ratio of a whole sequence (GSPO)": "test_it_trains_and_is_scored",
        "it trains a model that sees": "test_it_trains_and_is_scored",
    },
    choices=(
        "an answer in words is right where the reference stands in the response, unless another verifier is named; a "
        "model in the paper",
        "the clip of the ratio is .2, as of the authors' trainer",
        "an index may have up to three digits; one in the code",
        "the model is one's own",
        "what could not be read counts as an attempt, which it is for the code, whose rule is phrases alone",
    ),
    lacks="voices, the benchmark's 750 items and their 18 tasks",
)
def omni_persona(
    tp: float = 1.0, tn: float = 1.0, fn: float = -0.5, fp: float = -0.5, clip: float = 0.2, kl_weight: float = 0.04
) -> Method:
    """GSPO on questions about people who may be absent, where abstaining rightly is worth as much as an answer.

    ``tasks.source = "personas"``. :class:`~assay.evaluate.abstention.calibrated.CalibratedScores` takes an evaluation
    apart; its Cal is the accuracy. With ``tasks.verify = {name = "persona", where = "whole"}`` abstentions are read as
    the benchmark's scores read them.

    Args:
        tp, tn, fn, fp: see :class:`~assay.rewards.outcome.grounded.Grounded`.
        clip: half-width of the range of the sequence's ratio.
        kl_weight: of the divergence from the model at the start.

    Source: Omni-Persona (arXiv 2605.09996) and its authors' code: groups of 8, temperature 1.1, 100 steps.
    """
    return Method(
        reward=Grounded(tp, tn, fn, fp),
        credit=GRPO(),
        objective=GSPO(clip_low=clip, clip_high=clip, kl_weight=kl_weight),
    )


PLAIN = {"name": "S145", "options": {"kl_weight": 0.0}}

claims(
    Claim(
        paper="S145",
        text="Where people may be absent, rewards for abstaining rightly and penalties for confusing the two lead to "
        "higher calibrated accuracy than rewards for right answers alone.",
        setting="absent",
        evidence="construction",
        arms={
            "grounded": PLAIN,
            "answers": {"name": "S145", "options": {"kl_weight": 0.0, "tn": 1e-9, "fn": 0.0, "fp": 0.0}},
        },
        better="grounded",
        baseline="answers",
        measure="cal",
        sweep={"lr": (0.1, 0.3, 1.0)},
    ),
    Claim(
        paper="S145",
        text="A policy that cannot tell who is absent, and names half of the others rightly, answers under these "
        "rewards, as their threshold says, where accuracy alone has it abstain.",
        setting="absent",
        evidence="construction",
        arms={"grounded": PLAIN, "accuracy": {**PLAIN, "reward": "verdict"}},
        better="grounded",
        baseline="accuracy",
        measure="attempted",
        options={"clear": 0.5, "sees": 0.5},
        sweep={"lr": (0.1, 0.3, 1.0)},
        name="threshold",
    ),
)
