"""S052: fade the credit of steps after the solution is there, and give it to those that bring it about."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.spae import PROBED, SPAE
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.signals.pattern_steps import PatternSteps
from assay.signals.steps import Steps


@paper(
    "S052",
    "SPAE",
    arxiv="2601.03823",
    seams=["rollout", "credit", "objective"],
    essentials={
        "after each step of thinking a few short answers are drawn": "test_how_responses_are_probed",
        "confidence is exp(-entropy) of these, correctness the mean probability of the reference put there": (
            "test_confidence_and_correctness_on_a_tree"
        ),
        "the reference's tokens follow what opens the answer": (
            "test_correctness_is_the_mean_probability_after_what_was_put"
        ),
        "both make the step's potential": "test_the_potential",
        "credit fades with the steps that come after the potential saturates": "test_the_worked_example",
        "a step gains by its change of potential, scaled over the batch, and all tokens are standardised": (
            "test_advantages_of_the_worked_example"
        ),
        "a policy learns faster to be right than from the outcome's credit alone": (
            "test_a_policy_is_right_sooner_for_the_steps_credit"
        ),
    },
    choices=(
        "saturation above 0.9, from the authors' code; what follows the last step has the outcome's credit alone",
        "means over the reference's tokens, as in the paper, where the authors' script divides by their number",
        "entropy over the whole vocabulary, at the probes' temperature of 0.6; correctness at temperature 1",
    ),
)
def spae(
    alpha: float = 0.5,
    xi: float = 0.5,
    saturation: float = 0.9,
    steps: Steps | PatternSteps = PatternSteps(pattern=r"\.\n\n"),  # noqa: B008  # frozen
    probes: int = 5,
    probe_tokens: int = 10,
    temperature: float = 0.6,
    header: str = "**Final Answer**\n\\boxed{",
    end: str | None = None,
    rounds: int = 10,
) -> Method:
    """DAPO with an advantage for every step of thinking.

        Phi_k = 1.5 acc_k conf_k + 0.5 acc_k - conf_k   after step k and ``header``:
            acc = mean_m pi(y*_m | ..., y*_<m),   conf = mean_n exp(- mean_l H_nl) of ``probes`` short answers
        f_k = 1 - alpha (1 - exp(-C_k)),  C_k steps before k with Phi > saturation
        g_k = exp(D_k) - mean exp(D),     D = Phi_k - Phi_{k-1} (0 for the first), brought to [0, 1] over the batch
        A_it = f_k (R_i - mean_g R) + xi g_k   for a token t of step k;  R_i - mean_g R on what follows the last step;
               then standardised over all tokens of the batch

    y* is the reference, whose probability is the policy's own as it is before the update; H is the entropy of the
    distribution an answer's token was drawn from, so the engine must report it: without it g is 0 and f is 1. Steps
    end in a full stop and a blank line, within the thought. Note that f also softens the punishment of wrong responses
    after they were right. Objective: ratios clipped to [0.8, 1.28], mean over tokens; prompts that are all right or all
    wrong are replaced, before anything is probed.

    Args:
        alpha, xi, saturation: see :class:`~assay.credit.spae.SPAE`.
        steps: how thoughts are cut.
        probes, probe_tokens, temperature: answers after each step, their longest, and how they are sampled.
        header: what they begin with, where ``end`` is given or known.
        end: ends thinking; ``</think>`` where that is a token, else nothing.
        rounds: of generation in a step, at most.

    Source: SPAE (arXiv 2601.03823); the threshold of saturation from its implementation, which divides by the number of
    tokens of the answer where the paper takes means.
    """
    probing = {"steps": steps, "probes": probes, "probe_tokens": probe_tokens, "temperature": temperature}
    return Method(
        rollout={**PROBED, "inner": {"name": "dynamic", "rounds": rounds}, "header": header, "end": end, **probing},
        credit=SPAE(alpha, xi, saturation),
        objective=ClippedSurrogate(clip_high=0.28),
    )


ONE = {
    "inner": {"name": "dynamic", "rounds": 1},
    "steps": {"by": "fixed", "size": 1},
    "end": "0",
    "forced": "0",
    "header": "",
    "probes": 2,
    "probe_tokens": 1,
}

claims(
    Claim(
        paper="S052",
        text="Credit that fades once the solution stands, and goes to the step that reaches it, makes right answers "
        "without checks come sooner than the same credit for every step.",
        setting="overthinking",
        unequal="both are probed after every step of a response, and choose how many steps they take",
        arms={
            "outcome": {"name": "S052", "rollout": ONE, "credit": {"alpha": 0.0, "xi": 0.0}},
            "spae": {"name": "S052", "rollout": ONE},
        },
        better="spae",
        baseline="outcome",
        measure="prompt/area",
        sweep={"lr": (1.0, 3.0, 10.0, 30.0, 100.0)},
    )
)
