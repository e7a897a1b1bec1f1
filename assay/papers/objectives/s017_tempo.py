"""S017: the group's responses form a tree, and its nodes have values without a critic."""

from __future__ import annotations

from dataclasses import replace

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.tempo import Tempo
from assay.method import Method


@paper(
    "S017",
    "TEMPO",
    arxiv="2509.18314",
    seams=["credit"],
    essentials={
        "a prefix is worth the mean reward of the group's responses that begin with it (prefix to tree)": (
            "test_the_differences_are_those_of_the_tree"
        ),
        "the difference of values of neighbouring prefixes is added to GRPO's term, over the same deviation": (
            "test_the_worked_example"
        ),
        "only where responses part ways is it not zero: elsewhere the advantage is GRPO's": (
            "test_between_forks_it_is_grpo_bit_for_bit"
        ),
        "along a response the differences add up to the centred reward": (
            "test_along_a_response_the_differences_add_up_to_the_centred_reward"
        ),
        "the token that decides is moved twice as far as by GRPO": (
            "test_an_update_moves_the_token_that_decides_twice_as_far"
        ),
    },
    choices=(
        "the standard deviation is the unbiased one",
        "the end of a response counts as a token, so that one that was cut off shares no value with one that went on",
        "a response that goes on from another's prefix (prompt and response together) shares its values",
    ),
)
def tempo(td_weight: float = 1.0, normalise: bool = True) -> Method:
    """GRPO with a temporal difference at the tokens where responses of a group part ways.

        A_it = ((R_i - mean_j R_j) + td_weight (V(s_t+1) - V(s_t))) / (std_j R_j + 1e-6)
        V(s) = mean of R_j over the responses j of the group that begin with s

    s_t is the response before token t. Between two forks all that reach s_t also reach s_t+1, the difference is zero
    and the advantage GRPO's; along a response the differences add up to R_i - mean R. Both terms are divided by the
    same standard deviation. Nothing is learned, and no response costs more. Sampled responses of language models part
    early: the difference is in the first tokens.

    Args:
        td_weight: of the temporal difference; 0 is GRPO.
        normalise: divide by the group's standard deviation.

    Source: TEMPO (arXiv 2509.18314). Whether its standard deviation is the unbiased one is not known; here it is.
    """
    return Method(credit=Tempo(td_weight=td_weight, normalise=normalise))


claims(
    CLAIM := Claim(
        paper="S017",
        text="Where one early token decides, values of shared prefixes let the policy learn from fewer rollouts than "
        "one advantage for all tokens.",
        setting="tree",
        arms={"grpo": {"name": "grpo"}, "tempo": {"name": "S017"}},
        better="tempo",
        baseline="grpo",
        measure="area",
        options={"clustered": True, "branching": 4, "depth": 4, "right": 16, "tasks": 4, "prompts": 4, "steps": 100},
        sweep={"lr": (3.0, 10.0, 30.0, 100.0)},
    ),
    replace(
        CLAIM,
        text="Values of shared prefixes let the policy learn from fewer rollouts than one advantage for all tokens.",
        setting="unseen",
        options={"prompts": 4, "group": 16},
        sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)},
    ),
)
