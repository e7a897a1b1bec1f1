"""S207: thoughts are corrected at every step and imitated, while the actions are learned by reward."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.turn_gae import TurnGAE
from assay.environments.points import Points
from assay.method import Method
from assay.objectives.turns.thoughts import GuidedThought, thought_tokens
from assay.rewards.outcome.thought_form import ThoughtForm
from assay.rollout.turns.corrected import Corrected
from assay.select.labels import Labels

__all__ = ["Corrected", "GuidedThought", "Labels", "Points", "ThoughtForm", "gtr", "thought_tokens"]


@paper(
    "S207",
    "GTR",
    arxiv="2503.08525",
    seams=["envs", "rollout", "reward", "select", "credit", "objective"],
    essentials={
        "a turn's probability, with thoughts weighed by lambda": "test_the_worked_turn",
        "the corrected thought of every state visited, its action left out": (
            "test_thoughts_are_corrected_where_they_were"
        ),
        "a model corrects, shown the state and the thought": "test_a_model_corrects",
        "thoughts are imitated, actions are not": "test_labels_are_imitated",
        "labels of all steps are kept and drawn from": "test_labels_are_kept",
        "a critic and generalised advantages over turns": "test_the_method",
        "form: a reward for turns that think and act, less for others": "test_form_is_paid_by_turn",
        "24 points, seen as cards": "test_points_by_hand",
        "it trains a model that sees": "test_it_trains",
    },
    choices=(
        "after the surrogate's updates of a step comes one on labels; the authors add the two gradients",
        "advantages are not whitened, as labels stand in the same batch",
        "an action that cannot be taken changes nothing; a reward of .1 for form either way",
        "what was sampled is not penalised for repetition",
        "formulas as wholes, so that who has begun one that leads nowhere is told so",
        "who corrects is the world's rule, or a model of one's own; GPT-4o, which may run a solver, in the paper",
        "the model is one's own, with LoRA where a recipe says so",
        "ALFWorld in words (environment 'alfworld', corrected by a model); the paper's policy sees pictures of it",
    ),
    lacks="the pictures of ALFWorld, which AI2-THOR draws",
)
def gtr(
    environment: Any = None,
    corrector: Any = None,
    thought: float = 0.5,
    imitation: float = 1.0,
    form: float = 0.1,
    replayed: int = 256,
    turns: int = 20,
) -> Method:
    """PPO on turns whose thoughts count less, and imitation of corrected thoughts.

        log pi(a, h | s) = lambda log pi(h | s) + log pi(a | s, h);    L = L_clip on that, then -log pi(h* | s)

    ::

        [tasks.source]
        name = "environment"
        environment = "points"
        [method]
        name = "S207"
        options = {environment = "points"}

    Args:
        environment: played; ``None`` where the recipe names the rollout ``corrected`` itself.
        corrector, turns: see :class:`~assay.rollout.turns.corrected.Corrected`.
        thought, imitation: see :class:`~assay.objectives.turns.thoughts.GuidedThought`.
        form: see :class:`~assay.rewards.outcome.thought_form.ThoughtForm`.
        replayed: labels in an update, at most.

    Source: GTR (arXiv 2503.08525) and its authors' code: lambda .5 for 24 points and .2 for ALFWorld, discount .9,
    decay .95, clip .1, four epochs, a warm-up on one epoch of given thoughts and actions.
    """
    options = {"name": "corrected", "environment": environment, "corrector": corrector, "turns": turns}
    return Method(
        rollout=options if environment is not None else "single_turn",
        reward=ThoughtForm(form),
        select=Labels("played", replayed=replayed),
        credit=TurnGAE(discount=0.9, decay=0.95, whitened=False),
        objective=GuidedThought(thought=thought, imitation=imitation),
    )


claims(
    Claim(
        paper="S207",
        text="Rewarded for actions alone thoughts come to say the same in many states; imitating corrected ones "
        "meanwhile keeps them different.",
        setting="thoughts",
        arms={"guided": {"imitation": 1.0}, "alone": {"imitation": 0.0}},
        better="guided",
        baseline="alone",
        measure="distinct",
        sweep={"lr": (0.1, 0.3, 1.0, 3.0)},
    )
)
