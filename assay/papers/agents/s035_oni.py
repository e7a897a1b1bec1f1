"""S035: a model beside the run labels what agents meet, and a reward model learned from its labels pays for it."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.registry import build
from assay.rewards.process.intrinsic import IntrinsicReward
from assay.rewards.shaping.weighted import WeightedSum
from assay.signals.captions.learner import Captions
from assay.signals.captions.models import Kind


@paper(
    "S035",
    "ONI",
    arxiv="2410.23022",
    seams=["rollout", "reward", "objective", "policies"],
    essentials={
        "total reward = w_e r_ext + w_i r_int(o) / N(o)^beta, N over the episode": "test_the_worked_totals",
        "each episode counts for itself": "test_the_worked_rewards",
        "retrieval: labels in a table, 0 without one": "test_what_is_not_labelled_pays_nothing",
        "classification: a network on the labels, 1[P(1) > eta]; what is worded otherwise is labelled too": (
            "test_a_classifier_labels_what_it_has_not_seen"
        ),
        "ranking: pairs that were met, a soft label for a tie, running mean and std, a threshold": (
            "test_the_worked_ranking"
        ),
        "a ranker finds the order": "test_a_ranker_finds_the_order",
        "the newest captions are annotated first, and the queue is bounded": "test_the_newest_go_first",
        "the learner does not wait for the annotator": "test_the_learner_does_not_wait",
        "a stored sample is paid by the model as it is when it is learned from": (
            "test_stored_samples_are_paid_by_the_current_model"
        ),
        "labels by explicit tags; what cannot be read is unhelpful": "test_labels_are_read_from_tags",
        "an actor with a critic": "test_it_trains",
        "a resumed run repeats": "test_a_resumed_run_repeats",
    },
    choices=(
        "captions are what the environment said to a turn, or a note of it; the opening of an episode is none, nor is "
        "an empty one",
        "extrinsic: the verdict, and what the environment pays turns",
        "advantages over turns by a critic beside PPO's clipped ratio, in place of APPO with V-trace",
        "networks pay nothing before they have learned from a label; the authors' code pays by untrained ones",
        "ranking adds the normalised reward, as the paper writes it; the authors' code adds the raw one",
        "labels come in a stated number of steps later, so that a run repeats itself; with arrival as soon as they can",
        "of networks: Adam, an encoder of characters for all of them; the wording of the questions",
    ),
)
def oni(
    annotator: Any = None,
    model: Kind = "retrieval",
    goal: str = "",
    of: str = "reply",
    intrinsic: float = 0.4,
    extrinsic: float = 0.1,
    beta: float = 3.0,
    turns: bool = True,
    discount: float = 0.99,
    decay: float = 0.95,
    batch: int = 100,
    capacity: int = 10_000,
    delay: int = 1,
    arrival: bool = False,
    eta: float = 0.5,
    epsilon: float = -0.5,
    lr: float = 1e-4,
    updates: int = 32,
    few: int = 25_000,
) -> Method:
    """PPO by turns, on what a model that is asked meanwhile finds helpful of what the policy meets.

        R_t = extrinsic r_t + intrinsic r_int(o_t) / N(o_t)^beta

    r_t is what the environment pays turn t, and on the last one the verdict's score; r_int the worth of caption o_t by
    a reward model that is learned during the run, N how often the episode has met it so far.

    Args:
        annotator, model, goal, of, batch, capacity, delay, arrival, eta, epsilon, lr, updates, few: see
            :class:`~assay.signals.captions.learner.Captions`.
        intrinsic, extrinsic: weights; the paper has extrinsic 0.1 where its game's score is paid and 10 on sparse
            tasks.
        beta: see :class:`~assay.rewards.process.intrinsic.IntrinsicReward`.
        turns: whether the environment's rewards of turns count; else the verdict alone.
        discount, decay: of the advantages, see :class:`~assay.credit.turns.turn_gae.TurnGAE`.

    Source: ONI (arXiv 2410.23022) and its authors' code. Its runs: Llama-3.1-8B at temperature 0.1, 100 to 500 messages
    at a time, NetHack, discount 0.99.
    """
    captions = Captions(
        annotator=annotator,
        model=model,
        goal=goal,
        of=of,
        batch=batch,
        capacity=capacity,
        delay=delay,
        arrival=arrival,
        eta=eta,
        epsilon=epsilon,
        lr=lr,
        updates=updates,
        few=few,
    )
    terms: dict[str, Any] = {"verdict": "verdict", "intrinsic": IntrinsicReward(captions, beta)}
    weights = {"verdict": extrinsic, "intrinsic": intrinsic}
    if turns:
        terms["turns"], weights["turns"] = {"name": "turns"}, extrinsic
    credit = build("credit", {"name": "turn_gae", "discount": discount, "decay": decay})
    return Method(reward=WeightedSum(terms, weights), credit=credit)


JUDGED = {"replies": [["met:\nYou open", "<label>helpful</label>"]], "otherwise": "<label>unhelpful</label>"}
MET = {"annotator": {"name": "keywords", **JUDGED}, "of": "message", "delay": 3, "extrinsic": 10.0}

claims(
    Claim(
        paper="S035",
        text="Where a goal is rare, to be paid for what an annotator that answers late finds helpful leads to it more "
        "often than the goal alone.",
        setting="environment",
        arms={
            "intrinsic": {"name": "S035", "options": {**MET, "intrinsic": 0.4}},
            "goal": {"name": "S035", "options": {**MET, "intrinsic": 0.0}},
        },
        better="intrinsic",
        baseline="goal",
        measure="final",
        options={
            "environment": {"name": "corridor", "rooms": 4, "doors": 3, "moves": 9},
            "words": (("right", "open", "stop"),),
            "tasks": (2,),
            "turns": 9,
            "steps": 100,
            "prompts": 1,
            "group": 8,
        },
        sweep={"lr": (1.0, 3.0, 10.0, 30.0, 100.0)},
    )
)
