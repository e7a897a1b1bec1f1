"""S087: how much of the solution is shown is found online, so that a response is right about half of the time."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.off_policy.shown import Shown


@paper(
    "S087",
    "SEELE",
    arxiv="2509.06923",
    seams=["curriculum", "rollout", "objective"],
    essentials={
        "a response begins with a share of the solution's tokens": "test_responses_begin_with_the_solution",
        "a group is sampled in rounds": "test_rounds",
        "after each a three-parameter logistic is fitted to the prompt's rounds, by least squares and with both ends": (
            "test_the_curve"
        ),
        "the next share is where success is one half": "test_the_next_share",
        "all but the last token at first, then what a prompt's latest round showed": "test_where_a_prompt_begins",
        "one group over all rounds, less its mean": "test_one_group",
        "no policy gradient on what was shown; a likelihood term of its own": "test_shown_tokens",
        "accuracy comes nearer one half than with a fixed share": "test_nearer_one_half",
        "it acts in training": "test_a_run_is_paced",
    },
    choices=(
        "a fit begins at slope 8, half-way 0.5 and chance 0.05, with slopes up to 50",
        "the likelihood is logarithmic; own and shown tokens have one denominator, and both a divergence",
    ),
)
def seele(
    rounds: int = 4,
    start: float | None = None,
    target: float = 0.5,
    weight: float = 0.001,
    kl_weight: float = 0.001,
) -> Method:
    """GRPO on responses that go on from as much of the solution as makes them right half of the time.

        f(p) = c + (1 - c) / (1 + exp(-a (p - b))),   p_next = clip(b - ln((1 - c) / (1/2 - c) - 1) / a, 0, 1)
        own tokens:   l = -min(rho A, clip(rho) A);   shown tokens:   l = -weight log pi;   A = R - mean R
        and kl_weight KL(pi || pi_ref)

    What can be learned of a prompt is at most proportional to a (1 - a), a its accuracy; that is largest at 1/2.

    Args:
        rounds, start, target: see :class:`~assay.rollout.surgery.paced.Paced`.
        weight, kl_weight: see :class:`~assay.objectives.off_policy.shown.Shown`.

    Source: SEELE (arXiv 2509.06923), section 4 and appendix B; groups there are of 32.
    """
    return Method(
        curriculum="paced",
        rollout={"name": "paced", "rounds": rounds, "start": start, "target": target},
        credit=GRPO(normalise=False),
        objective=Shown(weight=weight, kl_weight=kl_weight),
    )


FIXED = {"rounds": 1, "start": 0.5}
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
        sweep={"lr": (125.0, 625.0, 3120.0)},
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
