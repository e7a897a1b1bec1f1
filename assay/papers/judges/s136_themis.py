"""S136: a reward model that calls tools, reads what they return and says what follows, before its number."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.inference.supervision.train import PRMMethod
from assay.rewards.step_models.saved import PRMSettings
from assay.rewards.step_models.traced import TracedTraining


@paper(
    "S136",
    "Themis",
    arxiv="2310.01045",
    seams=["policies", "verify"],
    essentials={
        "a trace of calls, observations and a rationale, and a number at its end": "test_a_trace_by_tokens",
        "the paper's traces are read as they are, with what tools returned": "test_the_papers_traces_are_read",
        "both heads learn: L_lm + 0.5 L_rm": "test_the_loss_by_hand",
        "the gradient reaches both heads and the model below": "test_gradients_reach_both_heads",
        "observations and the rationale can be left out": "test_what_is_learned_of_a_trace",
        "seven tools, whose errors are texts": "test_tools_answer_in_text",
        "scoring consults the tools": "test_scores_come_of_what_tools_say",
        "in assay train-prm, and what it makes scores": "test_a_reward_model_with_tools",
        "with a tool it ranks what it cannot reckon": "test_tools_tell_sums_apart",
    },
    choices=(
        "calls are written as everywhere in assay, not as Thought, Action and Action Input",
        "a calendar of ISO dates; the weather and translations are those on record, as in the authors' code",
        "a trace is greedy, with three calls at most",
        "the number has a bias, which pairs do not tell",
        "a call of the paper's traces is the one of our tools that does the same; its thought is left out",
    ),
)
def themis(
    weight: float = 0.5,
    observations: bool = True,
    rationale: bool = True,
    environment: Any = "consulting",
    calls: int = 3,
    max_tokens: int = 256,
    training: dict[str, Any] | None = None,
) -> PRMMethod:
    """A reward model with tools: ``assay train-prm MODEL --method S136 --data FILE``.

        L = L_lm + weight L_rm,   L_lm = mean -log p(token of a trace),   L_rm = mean -log sigmoid(r+ - r-)

    FILE has rows of ``prompt``, ``chosen`` and ``rejected``, the latter tables of ``answer``, ``calls`` and
    ``rationale``, or is one of TARA's (``ernie-research/TARA`` on the Hugging Face hub); the tools are called while it
    is read, where what they returned is not on record. What it makes plays the traces of responses that it scores:
    ``assay eval MODEL --scorer "steps(scorer=prm,by.by=whole)"``, and reward ``step_scores`` in ``assay train``.

    Args:
        weight: see above.
        observations, rationale: what of a trace is learned, and stands in it, see
            :class:`~assay.rewards.step_models.traced.TracedTraining`.
        environment: whose tools they are; any whose tasks are judged by what is said at last.
        calls: at most, 0 for a reward model without tools.
        max_tokens: of a turn.
        training: options of :class:`~assay.rewards.step_models.training.StepTraining`.

    Raises:
        UsageError: an option out of range; of a fit, no pairs.

    Source: Themis, "Tool-Augmented Reward Modeling" (arXiv 2310.01045), and its authors' code: learning rate 1e-5, five
    epochs of batches of 64, weight decay 0.1.
    """
    how: dict[str, Any] = {"epochs": 5, "batch": 64, "lr": 1e-5, "trunk_lr": 1e-5, "weight_decay": 0.1}
    settings = PRMSettings("traced", traced={"environment": environment, "calls": calls, "max_tokens": max_tokens})
    learned: dict[str, Any] = {"weight": weight, "observations": observations, "rationale": rationale}
    return PRMMethod(settings=settings, training=TracedTraining(**{**how, **(training or {})}, **learned), told=True)


claims(
    Claim(
        paper="S136",
        text="Of products that it cannot reckon, a reward model that may ask a calculator tells right answers from "
        "wrong ones more often than one that is trained on the same pairs without a tool.",
        setting="consulted_sums",
        evidence="construction",
        arms={
            "tools": {"name": "S136"},
            "no rationale": {"name": "S136", "rationale": False},
            "tools, observations not learned": {"name": "S136", "observations": False},
            "no tools": {"name": "S136", "calls": 0, "rationale": False},
        },
        better="tools",
        baseline="no tools",
        measure="accuracy",
        unequal="a reward model with tools takes more turns",
    )
)
