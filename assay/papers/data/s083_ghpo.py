"""S083: a group that fails is asked anew with a growing beginning of the reference solution in its prompt."""

from __future__ import annotations

from collections.abc import Sequence

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.rollout.surgery.hints import BEGINNING


@paper(
    "S083",
    "GHPO",
    arxiv="2507.10628",
    seams=["curriculum", "rollout"],
    essentials={
        "only groups without a right response are asked anew, as a whole": "test_which_groups_are_asked_anew",
        "a hint is a share of the solution's characters": "test_beginnings",
        "larger shares follow as long as all fail": "test_the_ladder_stops_at_the_first_success",
        "what fails to the end stays, with advantage 0": "test_what_fails_to_the_end",
        "learned under the prompt with the hint, which it was sampled under": "test_learned_as_sampled",
        "the trigger is the verdict, not the format": "test_the_format_does_not_trigger",
        "a constant hint in the first steps": "test_the_cold_start",
        "it acts in training": "test_a_run_asks_anew",
        "solves without hints what it never solved": "test_solved_without_hints",
    },
    choices=(
        "shares 0.25, 0.5, 0.75 of the characters; a half is rounded to the even number",
        "in the cold start a failed group has the one hint of cold_share",
        "the words around the hint",
        "the reward is the verdict; a format's, half as much, is a term that a recipe adds",
    ),
)
def ghpo(
    shares: Sequence[float] = (0.25, 0.5, 0.75),
    cold: int = 0,
    cold_share: float = 0.5,
    opens: bool = False,
    template: str = BEGINNING,
) -> Method:
    """GRPO in which a group of wrong responses gives way to one under a prompt with the beginning of the solution.

        x_w = template(x, first round(w |s|) characters of the solution s),   w = 0.25, 0.5, 0.75 until one is right
        A_i = (R_i - mean R) / std R,  rho_i = pi(y_i | x_w) / pi_old(y_i | x_w)

    On-policy as it stands: a response is learned from under the prompt that it was written under.

    Args:
        shares, cold, cold_share, opens, template: see :class:`~assay.rollout.surgery.reasked.Reasked`.

    Source: GHPO (arXiv 2507.10628) and its authors' code, whose cold start is a setting; the paper's is of some 20
    steps at a share of a half.
    """
    return Method(
        rollout={
            "name": "reasked",
            "source": "solution",
            "shares": tuple(shares),
            "cold": cold,
            "cold_share": cold_share,
            "opens": opens,
            "template": template,
        },
        credit=GRPO(),
    )


claims(
    Claim(
        paper="S083",
        text="Where success is about one in a million, a policy whose failed groups are asked anew with the beginning "
        "of the solution comes to solve the problem without it; GRPO, at as many responses, does not.",
        setting="hinted_chains",
        arms={"ghpo": {"name": "S083"}, "grpo": {"name": "grpo"}},
        better="ghpo",
        baseline="grpo",
        measure="solved",
        sweep={"lr": (25.0, 125.0, 625.0)},
        tuning=(1000,),
    )
)
