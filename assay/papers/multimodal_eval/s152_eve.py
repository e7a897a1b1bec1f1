"""S152: a challenger writes programs that edit pictures, and a solver answers what they do; each learns in its turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.curriculum.challenged import Challenged as ChallengedTasks
from assay.method import Method
from assay.method.partner import Partner, Turns
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.challenge import Boxed, ChallengeReward
from assay.signals.challenged import Challenged
from assay.tasks.pictures.challenges import Challenges
from assay.tasks.pictures.edits import Kind, carried_out, look, question, read_edit
from assay.verify.none import NoVerifier

__all__ = [
    "Boxed",
    "ChallengeReward",
    "Challenged",
    "ChallengedTasks",
    "Challenges",
    "carried_out",
    "eve",
    "look",
    "question",
    "read_edit",
]


@paper(
    "S152",
    "EVE",
    arxiv="2604.18320",
    seams=["tasks", "curriculum", "reward", "credit", "objective", "policies"],
    essentials={
        "programs with four settings, read from a block": "test_what_is_read_of_a_program",
        "run in the sandbox on the picture": "test_programs_are_run_on_the_picture",
        "results legal and of different looks": "test_results_have_to_look_different",
        "questions of three kinds, answers known by construction": "test_three_kinds_of_questions",
        "difficulty by the solver's answers": "test_the_worked_rewards_of_a_challenger",
        "a challenger earns form, validity and difficulty": "test_the_worked_rewards_of_a_challenger",
        "programs that are like many of the batch earn less": "test_programs_that_are_alike_earn_less",
        "examples: difficult and new ones, fifty": "test_examples_are_difficult_and_new",
        "a solver learns from questions neither easy nor out of reach": "test_questions_are_asked_by_difficulty",
        "a solver earns its box and its answer": "test_the_worked_rewards_of_a_solver",
        "two sets of weights, ten steps each in turn": "test_it_trains_in_turns",
    },
    choices=(
        "while nothing is set yet, the solver is asked the run's own tasks",
        "in the challenger's steps the solver answers the run's tasks with the pictures, which is not learned from",
        "the words of prompts; the first example is a crop",
        "all questions that some answers got right are kept, by their own difficulty",
        "matching four settings is right as a whole, or wrong",
        "BLEU is smoothed by adding one; what is alike is told as in the authors' code, which the paper's notes do not "
        "name",
        "models and pictures are one's own",
    ),
)
def eve(
    kinds: tuple[Kind, ...] = ("picture", "setting"),
    samples: int = 6,
    answer_tokens: int = 2048,
    steps: int = 10,
    programs: int = 4,
    kept: int = 50,
    novelty: float = 0.25,
    kl_weight: float = 1e-3,
    alike: float = 0.3,
    challenger: Mapping[str, Any] | None = None,
    challenger_tokens: int | None = None,
    challenger_lr: float | None = None,
) -> Method:
    """GRPO of a challenger and a solver in turns, who begin as the same model.

        challenger: R = .2 format + .4 valid + .4 mean over kinds of (1 - 2 |acc - 1/2|) - .3 alike
        solver: R = .2 boxed + .8 right, on questions with 0 < acc < 1, the nearest to one half first

    The run's policy is the solver; the first ``steps`` are the challenger's. ::

        [tasks]
        source = "shapes"           # or any tasks with pictures
        [method]
        name = "S152"
        [rollout]
        group = 8

    Args:
        kinds, samples: see :class:`~assay.signals.challenged.Challenged`; ``answer_tokens`` of an answer.
        steps: of each in its turn.
        programs: of the challenger for each picture.
        kept, novelty: see :class:`~assay.tasks.pictures.challenges.Challenges`.
        kl_weight: of both.
        alike: see :class:`~assay.rewards.outcome.challenge.ChallengeReward`.
        challenger, challenger_tokens, challenger_lr: changes to the run's model, and how they differ for it.

    Source: EVE (arXiv 2604.18320) and its authors' code: batches of 128, five iterations, learning rate 1e-6.
    """
    bank, turns = Challenges(kept, novelty), Turns(steps, steps, steps)
    objective = ClippedSurrogate(kl_weight=kl_weight)
    setting = Method(
        reward=ChallengeReward(Challenged(bank, kinds, samples, answer_tokens), alike=alike),
        credit=GRPO(),
        objective=objective,
    )
    partner = Partner(
        setting,
        bank.tasks,
        NoVerifier(),
        turns,
        group=programs,
        model=challenger,
        max_tokens=challenger_tokens,
        lr=challenger_lr,
    )
    return Method(
        curriculum={"name": "challenged", "bank": bank, "challengers": turns.partners, "steps": steps},
        reward=Boxed(),
        credit=GRPO(),
        objective=objective,
        partner=partner,
    )


claims(
    Claim(
        paper="S152",
        text="A challenger who is paid for difficulty comes to programs that the solver understands half of the time; "
        "paid for validity alone it stays with those it began with.",
        setting="challenger",
        evidence="mechanism",
        arms={"difficulty": {"hard": 0.4}, "validity": {"hard": 0.0}},
        better="difficulty",
        baseline="validity",
        measure="near",
        sweep={"lr": (0.03, 0.1, 0.3, 1.0)},
    )
)
