"""S215: before RL on few problems of a domain, imitation of unfiltered reasoning about knights and knaves."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.judged import judged
from assay.tasks.puzzles.knights_knaves import KnightsAndKnaves
from assay.types import Verdict
from assay.verify.answer.extract import extract

__all__ = ["KnightsAndKnaves", "warmed_up"]

_FORM = re.compile(r".+</think>\s*<answer>(.+)</answer>\s*", re.DOTALL)


@paper(
    "S215",
    "Warm up before you train",
    arxiv="2505.13718",
    seams=["tasks", "reward", "credit", "objective"],
    essentials={
        "puzzles with exactly one assignment of roles that fits": "test_two_hundred_puzzles_have_one_answer_each",
        "traces are imitated whole, wrong ones too": "test_traces_are_not_filtered",
        "supervised on puzzles, then GRPO on at most 100 problems of the target, in one run": (
            "test_the_recipe_goes_from_puzzles_to_few_problems"
        ),
        "the reward is 2 for a right answer and -0.5 for a wrong one, and less without a box or the form": (
            "test_grades_by_hand"
        ),
        "advantages are centred and not divided, a mean over tokens, no divergence": "test_grpo_without_its_biases",
        "without the first stage it is that RL alone": "test_without_traces_it_is_rl_alone",
        "base, base with RL, warm, warm with RL, on the target and on other domains": (
            "test_four_models_are_measured_on_both_domains"
        ),
    },
    choices=(
        "traces are written by a procedure that supposes one assignment after another, and slips at a given rate",
        "the target of the recipe is addition, without the form; the puzzles are spelled out",
        "statements: six kinds alike, one operator inside each other",
    ),
    lacks="a recipe at small size: QwQ's traces, MATH and MMLU-Pro with models of billions of weights are not here",
)
def warmed_up(form: bool = False) -> Method:
    """GRPO without its divisions on few problems: the second stage of ``assay train warm_up``.

    The first stage imitates solutions to puzzles of tasks ``knights_knaves``, right or wrong:

        stage 1:  minimise -sum_t log pi(y_t | puzzle, y_<t) over whole traces
        stage 2:  on at most 100 problems of the target domain, A_i = r_i - mean r, a mean over all tokens
                  r = 2 if right, -0.5 if wrong, -1 without a box, -2 out of the form

    Whether the warm-up carries over is told by four models, {base, base + RL, warm, warm + RL}, on the target and on
    other domains.

    Args:
        form: whether a response has to be ``...</think> <answer>...</answer>``, its prompt ending in ``<think>``, and
            the answer in a box. Without it there are only right and wrong ones.

    Source: "Warm Up Before You Train" (arXiv 2505.13718) and its authors' code: G = 10, temperature 0.7, top-p 0.95.
    """
    return Method(reward=Grades(form), credit=GRPO(normalise=False), objective=ClippedSurrogate())


@dataclass(frozen=True, slots=True)
class Grades:
    """r of :func:`warmed_up`; none where the verifier abstained."""

    form: bool = False

    def __call__(self, batch: Batch) -> Reward:
        grades = [self.grade(e.text, v) for e, v in zip(batch.episodes, batch.verdicts, strict=True)]
        return Reward(batch.rewards.new_tensor(grades), valid=judged(batch))

    def grade(self, text: str, verdict: Verdict) -> float:
        """Return the grade of a response."""
        if self.form:
            once = all(text.count(tag) == 1 for tag in ("</think>", "<answer>", "</answer>"))
            found = _FORM.fullmatch(text) if once else None
            if found is None:
                return -2.0
            if extract(found[1], ("boxed",), "none") is None:
                return -1.0
        return 2.0 if verdict.passed else -0.5


claims(
    Claim(
        paper="S215",
        text="After imitating traces of another domain, a fifth of them wrong, RL on four problems leaves more of the "
        "target's other problems solved than the same RL alone.",
        setting="warmed",
        evidence="construction",
        arms={
            "rl": {"warm": 0, "method": {"name": "S215"}},
            "warm, then rl": {"warm": 20, "method": {"name": "S215"}},
        },
        better="warm, then rl",
        baseline="rl",
        measure="target",
        sweep={"lr": (0.3, 1.0, 3.0)},
    ),
    Claim(
        paper="S215",
        name="elsewhere",
        text="After RL on four problems of the target, a policy that was warmed up on a third domain solves more of a "
        "domain that neither stage asked about.",
        setting="warmed",
        evidence="construction",
        arms={
            "rl": {"warm": 0, "method": {"name": "S215"}},
            "warm, then rl": {"warm": 20, "method": {"name": "S215"}},
        },
        better="warm, then rl",
        baseline="rl",
        measure="other",
        sweep={"lr": (0.3, 1.0, 3.0)},
    ),
)
