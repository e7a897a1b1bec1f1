"""S199: failures are rewarded by how near they came to the successes of their own batch."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.shaping.self_reference import Form, SelfReference
from assay.select.dynamic import AccuracyRange


@paper(
    "S199",
    "SRPO",
    arxiv="2511.15605",
    seams=["rollout", "reward", "select", "credit", "objective"],
    essentials={
        "failures by distance, successes 1, in the code's form and in the paper's": "test_the_worked_rewards",
        "trajectories of a task are compared over the whole batch": "test_a_task_is_compared_over_the_batch",
        "centres by DBSCAN on standardised embeddings, a common mean where there is noise alone": "test_centres",
        "plain 0 and 1 without a success, without a failure, and of embeddings that are zero": (
            "test_where_there_is_nothing_to_compare"
        ),
        "GRPO on these rewards": "test_the_worked_advantages",
        "prompts solved in 10 to 90 % of the tries are kept": "test_the_row_is_its_parts",
        "it trains": "test_it_trains",
    },
    choices=(
        "embeddings: states of the path, evenly spread; an encoder of one's own takes their place",
        "a task is an id without its last part, the number of a beginning; LIBERO's names are without their trial",
        "episodes end where the world ends them, so that no mask of later steps is needed",
    ),
    lacks="V-JEPA 2 and a model that sees: policies of numbers act",
)
def srpo(form: Form = "ranged", most: float = 0.6, embedding: str = "path", places: int = 8) -> Method:
    """GRPO, in which failures are worth how near they came to the successes of the batch.

        R = 1 if it succeeded, else most sigmoid(10 (0.5 - d_n)),  d_n the distance to the nearest centre of successes

    ::

        model = {source = "control", control = {environment = "point_mass", decisions = "bins", alpha = 1.0}}
        tasks = {source = {name = "environment", environment = "point_mass"}}

        [method]
        name = "S199"
        rollout = "vector"

    Args:
        form, most, embedding, places: see :class:`~assay.rewards.shaping.self_reference.SelfReference`.

    Source: SRPO (arXiv 2511.15605) and its authors' code in siiRL: groups of 8, clip 0.2 and 0.28, learning rate 5e-6,
    temperature 1.6.
    """
    return Method(
        reward=SelfReference(form, most, embedding, places),
        credit=GRPO(),
        select=AccuracyRange(0.1, 0.9),
        objective=ClippedSurrogate(clip_low=0.2, clip_high=0.28),
    )


WORLD = {"name": "point_mass", "speed": 0.2, "horizon": 15, "radius": 0.2, "start": [0.0, 0.0, 0.2]}

claims(
    Claim(
        paper="S199",
        text="Where few tries succeed, failures that are worth how near they came to successes lead further than "
        "failures that are all worth nothing.",
        setting="control",
        arms={
            "progress": {"name": "S199"},
            "outcome": {"name": "S199", "reward": "verdict"},
        },
        better="progress",
        baseline="outcome",
        measure="area",
        options={"environment": WORLD, "steps": 40, "prompts": 2, "group": 8, "every": 10},
        sweep={"lr": (1e-3, 3e-3, 1e-2)},
    )
)
