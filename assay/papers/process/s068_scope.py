"""S068: a response that goes wrong late is not thrown away: from its first wrong step on a teacher writes the rest."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.shaped import Shaped
from assay.rewards.process.step_scores import make_scorer
from assay.rollout.spliced import Source
from assay.signals.steps import Steps


@paper(
    "S068",
    "SCOPE",
    arxiv="2602.24110",
    seams=["rollout", "objective"],
    essentials={
        "a process reward model finds where a wrong response goes wrong": "test_where_it_is_cut",
        "what is mostly right is repaired, from there on": "test_a_wrong_response_is_repaired",
        "the beginning stays as it was sampled": "test_the_beginning_stays_as_it_was_sampled",
        "only repairs that are right enter the group, in their place": "test_only_right_repairs_enter",
        "the teacher's tokens have a shaped probability in the place of a ratio": "test_the_shaped_probability",
        "a group that was all wrong learns": "test_an_all_wrong_group_learns_from_a_repair",
        "how different responses are is measured": "test_diversity",
        "it acts in training": "test_a_run_repairs",
        "right answers come sooner than without": "test_sooner_with_repairs",
    },
    choices=(
        "threshold 0.5, half of the steps right, one repair of a prompt",
        "the teacher writes the whole rest; one step, or the worked solution's rest, are options",
        "gamma = 0.1 and no clip on the teacher's tokens",
        "a repair replaces the response; one that is wrong is dropped",
        "diversity by pairs of neighbouring words",
    ),
)
def scope(
    prm: Any,
    teacher: Any = None,
    source: Source = "suffix",
    threshold: float = 0.5,
    share: float = 0.5,
    most: int = 1,
    tries: int = 1,
    gamma: float = 0.1,
    steps: Steps = Steps(),  # noqa: B008  # frozen
    template: str | None = None,
) -> Method:
    """GRPO on groups in which wrong responses that begin well have been repaired, see
    :class:`~assay.rollout.spliced.Spliced`, with a shaped probability on what the teacher wrote.

        own tokens, the beginning of a repaired response among them:  l = -min(rho A, clip(rho) A)
        the teacher's tokens:                                         l = -p / (p + gamma) A
        A_i = (R_i - mean R) / std R, over the group with its repairs

    A group of n wrong responses of which one is repaired has advantages, where it had none.

    What it is compared with: the scores as dense rewards (reward ``process`` or ``bounded_steps``), and a teacher's
    whole response in the place of one's own (rollout ``taught`` with objective ``shaped``).

    Args:
        prm: scores steps, see :class:`assay.rewards.process.step_scores.StepScores`; ``verdict`` for the verdict's own.
        teacher: an engine, or a table that specifies one; without it the policy itself goes on from the cut.
        source, threshold, share, most, tries, steps, template: see :class:`~assay.rollout.spliced.Spliced`.
        gamma: see :class:`~assay.objectives.shaped.Shaped`.

    Source: SCOPE (arXiv 2602.24110), whose code is not public: what is stated is that a process reward model finds the
    first error of a response that is largely right, and that it is corrected from there; the rest are choices.
    """
    rollout: dict[str, Any] = {
        "name": "spliced",
        "prm": prm if prm == "verdict" else make_scorer(prm),
        "source": source,
        "threshold": threshold,
        "share": share,
        "most": most,
        "tries": tries,
        "steps": steps,
    }
    given = {"teacher": teacher, "template": template}
    return Method(
        rollout=rollout | {k: v for k, v in given.items() if v is not None},
        credit=GRPO(),
        objective=Shaped(gamma=gamma),
    )


ONE = {"by": "fixed", "size": 1}
SCOPE = {"prm": "verdict", "teacher": "here", "steps": ONE}

claims(
    Claim(
        paper="S068",
        text="Where right answers are rare, a policy whose wrong responses are repaired from their first wrong step on "
        "is right more often over training than one that learns from its own alone.",
        setting="planted",
        arms={
            "scope": {"name": "S068", "options": SCOPE},
            "own": {"name": "grpo"},
            "any beginning": {"name": "S068", "options": {**SCOPE, "share": 0.0}},
            "step": {"name": "S068", "options": {**SCOPE, "source": "step"}},
            "whole": {"name": "grpo", "objective": "shaped", "rollout": {"name": "taught", "teacher": "here"}},
        },
        better="scope",
        baseline="own",
        measure="area",
        sweep={"lr": (0.3, 3.0, 30.0)},
    )
)
