"""S157: videos whose motion is Newton's, learned straight through the last steps that draw them."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.drawings.newton import Newton
from assay.ops.motion import Proxy
from assay.rewards.drawings.newton import NewtonReward
from assay.rollout.drawings.denoise import Denoise
from assay.tasks.drawings.motions import Motions
from assay.verify.drawings.motion import Motion

__all__ = ["Denoise", "Motion", "Motions", "Newton", "NewtonReward", "newton_rewards"]


@paper(
    "S157",
    "NewtonRewards",
    arxiv="2512.00425",
    seams=["tasks", "verify", "reward", "objective"],
    essentials={
        "the second difference of velocity is zero: constant acceleration": "test_the_kinematic_term_by_hand",
        "the object's looks stay, so that less motion and fading do not pay": "test_the_mass_term_by_hand",
        "both are differentiated through the last steps of the sample": "test_the_gradient_goes_through_the_last_steps",
        "five motions of constant acceleration, and what is beyond training": "test_five_motions",
        "measures against the simulation, the range of motion among them": "test_measures_by_hand",
        "as a scalar, a reward of policy gradients": "test_the_scalar_reward",
        "it trains": "test_it_trains",
    },
    choices=(
        "velocity is read from the moment of brightness and not by an optical-flow model; looks are light and fixed "
        "random filters, and not a video encoder's",
        "L_mass is relative to the real video's first frame; its weight is 30, at which both terms are of like size",
        "the gradient goes through the last step of denoising alone",
        "the model is one's own",
    ),
    lacks="a network for optical flow and a video encoder, rendered scenes, the paper's own norms, masks and weights",
)
def newton_rewards(
    weight: float = 30.0,
    steps: int = 1,
    proxy: Proxy = "moment",
    against: Literal["real", "first"] = "real",
    filters: int = 8,
    scalar: bool = False,
) -> Method:
    """Post-training of a video flow on two measurable terms; no verdict and no advantage has a part in it.

        L = mean_t |v_{t+1} - 2 v_t + v_{t-1}|^2 + w mean_t |phi_t - phi_real,t|^2

    Use::

        [model]
        source = "flow"
        flow = {shape = [8, 16, 16, 3], network = "unet", prompt = 64}
        [tasks]
        source = "motions"                  # beyond = ["height", "speed", "friction"] for what is out of training
        [warmup]
        steps = 5000
        [method]
        name = "S157"

    ``assay eval RUN --by category`` tells the measures of each motion.

    Args:
        weight, steps, proxy, against, filters: see :class:`~assay.objectives.drawings.newton.Newton`.
        scalar: learn from -L as a reward, by the clipped surrogate of noisy steps, instead of through the sample.

    Source: NewtonRewards (arXiv 2512.00425).
    """
    terms: dict[str, Any] = {"weight": weight, "proxy": proxy, "against": against, "filters": filters}
    if scalar:
        return Method(reward=NewtonReward(**terms))
    return Method(objective=Newton(steps=steps, **terms))


claims(
    Claim(
        paper="S157",
        text="Without the mass term a flow meets constant acceleration by letting the object fade; with it the object "
        "stays.",
        setting="wobble",
        arms={
            "mass": {"name": "S157", "options": {"steps": 3}},
            "kinematic": {"name": "S157", "options": {"steps": 3, "weight": 0.0}},
        },
        better="mass",
        baseline="kinematic",
        measure="light",
        sweep={"lr": (1e-4, 3e-4)},
    )
)
