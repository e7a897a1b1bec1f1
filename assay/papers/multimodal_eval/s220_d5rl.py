"""S220: records of different qualities, learning from them, and how going on by play goes, on one scale."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.environments.control.recorded import recorded
from assay.environments.control.returns import course, normalised_return, scale_of
from assay.method import Method
from assay.papers.multimodal_eval.s204_dual_rl import dual_rl

__all__ = ["course", "d5rl", "normalised_return", "recorded", "scale_of"]


@paper(
    "S220",
    "D5RL",
    seams=["tasks", "select", "evaluate"],
    essentials={
        "records of an expert, of a script with noise, of undirected play, at random, and mixed": (
            "test_qualities_are_of_different_worth"
        ),
        "records that have to be put together: no episode goes from the start to the goal": (
            "test_no_crossing_goes_all_the_way"
        ),
        "100 (J - J_random) / (J_expert - J_random)": "test_the_worked_scale",
        "what a limit has cut is bootstrapped, what is over is not": "test_ends_are_told_apart_in_the_record",
        "the return offline, the line of those online, and its area": "test_the_worked_course",
        "it trains offline, then online, on that scale": "test_it_trains",
    },
    choices=(
        "learner: f-DVL, as offline and online learning alike; the benchmark compares several of others",
        "worlds: the point mass's records, and archives in D4RL's layout in place of those of its robots",
        "area: the mean height of the line from the end of the offline part on",
    ),
    lacks="its worlds (a kitchen, WidowX, A1), their records and pictures",
)
def d5rl(
    data: dict[str, Any] | None = None,
    offline: int = 0,
    updates: int = 1,
    batch: int = 256,
    capacity: int = 100_000,
    weight: float = 0.9,
    temperature: float = 10.0,
    discount: float = 0.99,
    rate: float = 0.005,
    lr: float = 3e-4,
    hidden: tuple[int, ...] = (256, 256),
) -> Method:
    """Learn from a record, then from play as well; ``return/normalised`` of what is played is told throughout.

        score = 100 (J - J_random) / (J_expert - J_random)

    ::

        model = {source = "control", control = {environment = "point_mass"}}
        tasks = {source = {name = "environment", environment = "point_mass"}}
        train = {steps = 100, lr = 3e-4}

        [method]
        name = "S220"
        rollout = {name = "vector", normalised = true}
        options = {offline = 50, updates = 100, data = {environment = "point_mass", mix = {play = 50, noisy = 10}}}

    Args:
        data, offline, updates, batch, capacity: see :class:`~assay.select.off_policy.offline.Recorded`; qualities of
            ``data`` are those of :data:`assay.environments.control.recorded.QUALITIES`.
        weight, temperature, discount, rate, lr, hidden: see :class:`~assay.signals.transitions.dual.DualCritic`.

    Source: D5RL, its abstract; D4RL (arXiv 2004.07219) for the scale.
    """
    return dual_rl(
        data=data,
        offline=offline,
        updates=updates,
        batch=batch,
        capacity=capacity,
        weight=weight,
        temperature=temperature,
        discount=discount,
        rate=rate,
        lr=lr,
        hidden=hidden,
    )


WORLD = {"name": "point_mass", "speed": 0.2, "horizon": 15, "radius": 0.15, "start": [-0.7, -0.7, 0.1]}
ARM = {
    "data": {"environment": WORLD, "mix": {"crossing": 60}},
    "offline": 8,
    "updates": 60,
    "batch": 128,
    "hidden": [32, 32],
    "lr": 3e-3,
    "rate": 0.05,
}

claims(
    Claim(
        paper="S220",
        text="Where no episode on record goes from the start to the goal but two can be put together, values do, and "
        "imitating all alike does not.",
        setting="control",
        arms={
            "values": {"name": "S220", "options": ARM},
            "cloning": {"name": "S220", "options": {**ARM, "temperature": 0.0}},
        },
        better="values",
        baseline="cloning",
        measure="final",
        options={"environment": WORLD},
        sweep={"lr": (1e-3, 3e-3, 1e-2)},
    )
)
