"""S087: how much of the solution is shown is found online, so that a response is right about half of the time."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.off_policy.shown import Shown
from assay.rollout.surgery.item_response import Prior


@paper(
    "S087",
    "SEELE",
    arxiv="2509.06923",
    seams=["curriculum", "rollout", "objective"],
    essentials={
        "a response begins with a share of the solution's tokens": "test_responses_begin_with_the_solution",
        "a group is sampled in rounds": "test_rounds",
        "after each a three-parameter logistic is fitted to the prompt's rounds": "test_the_curve",
        "the next share is where success is one half": "test_the_next_share",
        "one group over all rounds": "test_one_group",
        "no policy gradient on what was shown; a likelihood term of its own": "test_shown_tokens",
        "accuracy comes nearer one half than with a fixed share": "test_nearer_one_half",
        "it acts in training": "test_a_run_is_paced",
    },
    choices=(
        "4 rounds; the first shows half of the solution, anew each time a prompt comes",
        "priors: slope 8, half-way 0.5, chance 0.05, with standard deviations 0.5, 0.5, 1 of log a, b, logit(2 c)",
        "the likelihood has weight 0.1 and is of all responses; own and shown tokens have one denominator",
    ),
)
def seele(
    rounds: int = 4,
    start: float = 0.5,
    target: float = 0.5,
    prior: Prior = Prior(),  # noqa: B008  # frozen
    weight: float = 0.1,
) -> Method:
    """GRPO on responses that go on from as much of the solution as makes them right half of the time.

        f(p) = c + (1 - c) / (1 + exp(-a (p - b))),   p_next = clip(b - ln((1 - c) / (1/2 - c) - 1) / a, 0, 1)
        own tokens:   l = -min(rho A, clip(rho) A);   shown tokens:   l = -weight log pi

    What can be learned of a prompt is at most proportional to a (1 - a), a its accuracy; that is largest at 1/2.

    Args:
        rounds, start, target, prior: see :class:`~assay.rollout.surgery.paced.Paced`.
        weight: see :class:`~assay.objectives.off_policy.shown.Shown`.

    Source: SEELE (arXiv 2509.06923), of which what is stated is the curve, the target, the rounds and the two terms;
    the numbers are choices.
    """
    rollout = {"name": "paced", "rounds": rounds, "start": start, "target": target, "prior": prior}
    return Method(rollout=rollout, credit=GRPO(), objective=Shown(weight=weight))


FIXED = {"rounds": 1}
CHAINS = {"length": 12, "chance": 0.5, "group": 16}

claims(
    CLAIM := Claim(
        paper="S087",
        text="On chains that are right about once in four thousand, a policy whose hints are fitted within each "
        "group is "
        "right more often without hints, over training, than one that is always shown half of the solution.",
        setting="hinted_chains",
        arms={"seele": {"name": "S087"}, "half": {"name": "S087", "options": FIXED}},
        better="seele",
        baseline="half",
        measure="area",
        options=CHAINS,
        sweep={"lr": (25.0, 125.0, 625.0)},
        tuning=(1000, 1001),
    ),
    Claim(
        paper="S087",
        name="mechanism",
        text="A group's accuracy is nearer one half where hints are fitted within it than where half of the "
        "solution is "
        "always shown, as long as the policy does not solve the problem by itself.",
        setting="hinted_chains",
        arms={"seele": {"name": "S087"}, "half": {"name": "S087", "options": FIXED}},
        better="seele",
        baseline="half",
        measure="balance",
        options={**CHAINS, "problems": 8, "rollouts": 256},
        sweep={"lr": (1.0, 5.0)},
    ),
)
