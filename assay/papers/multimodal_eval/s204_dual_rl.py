"""S204: values from what is on record, by losses that find the best of it; imitation without rewards beside it."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.reinforce import Reinforce
from assay.method import Method
from assay.objectives.policy_gradient import PolicyGradient
from assay.ops.implicit_value import CLIP, Form
from assay.rewards.outcome.verdict import VerdictReward
from assay.select.off_policy.offline import DualRL


@paper(
    "S204",
    "Dual RL",
    arxiv="2302.08560",
    seams=["select", "objective", "policies"],
    essentials={
        "f-DVL: lambda f(d) - (1 - lambda) d, by chi-square and by total variation": "test_the_worked_losses",
        "lambda takes the value from the middle to the largest": "test_the_worked_minimisers",
        "XQL beside it, its exponent clipped": "test_noise_carries_xql_away_and_f_dvl_not",
        "twin Q by a Huber loss to r + discount V(s'), slow copies": "test_critics_by_hand",
        "what a limit has cut is bootstrapped, what is over is not": "test_what_is_cut_goes_on",
        "the policy: likelihoods weighted by min(exp(temperature (Q - V)), 100)": "test_the_policy_s_loss_by_hand",
        "ReCOIL: no reward and no discriminator; Q high on demonstrations, low where the policy would go": (
            "test_recoil_by_hand"
        ),
        "ReCOIL as the code has it: demonstrations are worth 200, and what is over -200": "test_bounded_recoil_by_hand",
        "it trains offline, and goes on online": "test_it_trains",
    },
    choices=(
        "chi-square's f is 0 for d <= 0, as the paper has it; the authors' code is above 0 again below -4",
        "ReCOIL's next value is V(s'), a constant; half of what is drawn is of demonstrations",
        "by default ReCOIL is the paper's equation, of beta 0.5 (its code has 0.1, and does not use it); what "
        "its authors run is top = 200, form = 'xql', weight = 5 (2.5 to 20, by how Q behaves), clip = 7",
        "worlds: a point mass, and Gymnasium's ids; temperature 3 and lambda 0.7 for all of them",
        "records are one's own, in the layout of D4RL",
        "no decay of the policy's learning rate, no layer norm, no dropout",
    ),
)
def dual_rl(
    data: dict[str, Any] | None = None,
    offline: int = 0,
    updates: int = 1,
    batch: int = 256,
    capacity: int = 100_000,
    form: Form = "chi_square",
    weight: float = 0.7,
    temperature: float = 3.0,
    discount: float = 0.99,
    rate: float = 0.005,
    lr: float = 3e-4,
    hidden: tuple[int, ...] = (256, 256),
    clip: float = CLIP,
    imitate: bool = False,
    beta: float = 0.5,
    top: float | None = None,
) -> Method:
    """f-DVL, or with ``imitate`` ReCOIL: critics that look at no action but those on record, and weighted imitation.

    A point mass from 90 random and 10 expert episodes, 50 steps of 100 updates each, and then on by what it plays::

        model = {source = "control", control = {environment = "point_mass"}}
        tasks = {source = {name = "environment", environment = "point_mass"}}
        rollout = {prompts = 1, group = 1}
        train = {steps = 100, lr = 3e-4}

        [method]
        name = "S204"
        rollout = "vector"
        options = {offline = 50, updates = 100, data = {environment = "point_mass", mix = {random = 90, expert = 10}}}

    Args:
        data, offline, updates, batch, capacity: see :class:`~assay.select.off_policy.offline.Recorded`.
        form, weight, temperature, discount, rate, lr, hidden, clip: see
            :class:`~assay.signals.transitions.dual.DualCritic`.
        imitate, beta, top: see :class:`~assay.select.off_policy.offline.DualRL`.

    Source: Dual RL (arXiv 2302.08560) and its authors' code: layers of 256 and 256, Adam at 3e-4, slow copies at 0.005,
    discount 0.99, temperature 3 for locomotion, 0.5 for the kitchen and 10 for the ant in mazes.
    """
    select = DualRL(
        data=data,
        offline=offline,
        updates=updates,
        batch=batch,
        capacity=capacity,
        form=form,
        weight=weight,
        temperature=temperature,
        discount=discount,
        rate=rate,
        lr=lr,
        hidden=hidden,
        clip=clip,
        imitate=imitate,
        beta=beta,
        top=top,
    )
    return Method(VerdictReward(), Reinforce(), select, PolicyGradient())


WORLD = {"name": "point_mass", "speed": 0.2, "horizon": 15, "radius": 0.15}
ARM = {
    "data": {"environment": WORLD, "mix": {"random": 90, "expert": 10}},
    "offline": 8,
    "updates": 60,
    "batch": 128,
    "hidden": [32, 32],
    "lr": 3e-3,
    "rate": 0.05,
}

claims(
    Claim(
        paper="S204",
        text="Of ten episodes of an expert among ninety at random a policy that imitates by f-DVL's values makes most, "
        "and one that imitates all alike nothing.",
        setting="control",
        arms={
            "f_dvl": {"name": "S204", "options": {**ARM, "weight": 0.9, "temperature": 10.0}},
            "cloning": {"name": "S204", "options": {**ARM, "temperature": 0.0}},
        },
        better="f_dvl",
        baseline="cloning",
        measure="final",
        options={"environment": WORLD},
        sweep={"lr": (1e-3, 3e-3, 1e-2)},
    ),
    Claim(
        paper="S204",
        name="imitation",
        text="Told which episodes are the expert's, and no reward, ReCOIL makes more of the same record than imitating "
        "all of it alike.",
        setting="control",
        arms={
            "recoil": {"name": "S204", "options": {**ARM, "imitate": True, "discount": 0.9, "lr": 1e-3, "rate": 0.02}},
            "cloning": {"name": "S204", "options": {**ARM, "temperature": 0.0}},
        },
        better="recoil",
        baseline="cloning",
        measure="final",
        options={"environment": WORLD},
        sweep={"lr": (1e-3, 3e-3, 1e-2)},
    ),
)
