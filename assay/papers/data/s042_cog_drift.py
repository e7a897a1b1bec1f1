"""S042: a problem that is never solved is asked as a choice and with a mask first, and climbs back to itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import filled
from assay.engines.base import Sampling
from assay.engines.writing import lines, pieces, unlisted
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.tasks.making.filters import PassRate
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.work import Dropped, Here, Pipeline, Want, Work, noted
from assay.types import Task

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DISTRACTORS = """The answer to the problem below is {answer}. Write {n} wrong answers of the same form that
somebody could believe, one a line, between <wrong> and </wrong>, and nothing else.

Problem:
{question}"""
MASK = """The answer to the problem below is {answer}. Write the answer with half to four fifths of its digits
replaced by "_", one "_" for each, between <mask> and </mask>. Leave one digit or more to be seen, and every letter and
symbol as it is.

Problem:
{question}"""
CHOOSE = "{question}\n\n{options}\n\nPut the right answer itself, not its letter, within \\boxed{}."
FILL = "{question}\n\nThe answer should look like: {mask}. Fill the blank by giving the full answer."


def choice(task: Task, wrong: Sequence[str], size: int, here: Here) -> dict[str, Any] | None:
    """Return the variant with ``size`` options at random places, ``None`` where there are too few wrong ones.

    A distractor that is the answer, as the verifier of the task sees it, or equals another is none; nor is one of which
    the verifier cannot tell.
    """
    kept: list[str] = []
    for text in wrong:
        same = any(text.casefold() == other.casefold() for other in (*kept, str(task.reference)))
        if text and not same and here.judge(task, f"\\boxed{{{text}}}").passed is False:
            kept.append(text)
    if len(kept) < size - 1:
        return None
    answer = str(task.reference)
    options = [answer, *kept[: size - 1]]
    order = here.rng.permutation(size).tolist()
    shown = {LETTERS[place]: options[k] for place, k in enumerate(order)}
    listed = "\n".join(f"{letter}) {text}" for letter, text in shown.items())
    return {
        "variant": {4: "four_choice", 10: "ten_choice"}.get(size, f"{size}_choice"),
        "prompt": filled(CHOOSE, question=task.question, options=listed),
        "reference": answer,
        "kind": "choice",
        "options": shown,
    }


def masked(task: Task, mask: str) -> dict[str, Any] | None:
    """Return the variant that shows a mask of the answer, ``None`` where it hides no digit, or more than digits."""
    answer, mask = str(task.reference).strip(), mask.strip()
    fits = len(mask) == len(answer) and all(
        m == a or (m == "_" and a.isdigit()) for m, a in zip(mask, answer, strict=True)
    )
    if mask == answer or not fits:
        return None
    return {"variant": "fill_in", "prompt": filled(FILL, question=task.question, mask=mask)}


@dataclass(frozen=True, slots=True)
class MakeVariants:
    """Notes the variants of a task in ``meta["variants"]``, easiest first: choices of several sizes, and a mask.

    Args:
        sizes: options of the choices, ascending.
        mask: whether there is one with a mask.
        sampling: of the replies.
    """

    sizes: tuple[int, ...] = (4, 10)
    mask: bool = True
    sampling: Sampling = Sampling(512, 0.7)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if list(self.sizes) != sorted({*self.sizes}) or not all(2 <= size <= len(LETTERS) for size in self.sizes):
            raise UsageError(f"S042: sizes of choices are ascending numbers from 2 to {len(LETTERS)}, not {self.sizes}")

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError where no task has an answer in a line."""
        if not any(isinstance(task.reference, str | int | float) for task in tasks):
            raise UsageError("S042 makes choices and masks of answers; no task has a reference that is a text")

    def __call__(self, task: Task, here: Here) -> Work:
        if not isinstance(task.reference, str | int | float) or isinstance(task.reference, bool):
            return Dropped("its reference is no text")
        answer = str(task.reference)
        most = str(max(self.sizes, default=1) - 1)
        shown = {"question": task.question, "answer": answer}
        [[named], [hidden]] = yield [
            Want(filled(DISTRACTORS, **shown, n=most), 1, self.sampling),
            Want(filled(MASK, **shown), 1, self.sampling),
        ]
        wrong = [unlisted(line) for line in lines(named.text, "wrong")]
        masks = pieces(hidden.text, "mask") if self.mask else []
        found = [choice(task, wrong, size, here) for size in self.sizes]
        found += [masked(task, masks[-1])] if masks else []
        made = [variant for variant in found if variant is not None]
        return noted(task, variants=made) if made else Dropped("no variant of it is sound")


@pipeline("S042")
def variants_of_hard(
    tries: int = 64,
    sound: int = 3,
    sizes: tuple[int, ...] = (4, 10),
    mask: bool = True,
    sampling: Sampling = Sampling(1024, 0.7),  # noqa: B008  # frozen
) -> Pipeline:
    """What a solver never solves and a stronger judge does, with its variants: ``assay tasks make S042``.

    Args:
        tries: replies of the solver, none of which is right; 0 takes every task.
        sound: replies of the judge, most of them right, so that the reference can be trusted; 0 trusts all.
        sizes, mask: see :class:`MakeVariants`.
        sampling: of both.
    """
    steps: list[tuple[str, Any]] = []
    if tries:
        steps.append(("never solved", PassRate(tries, 0.0, 0.0, "solver", sampling)))
    if sound:
        steps.append(("sound", PassRate(sound, (sound // 2 + 1) / sound, 1.0, "judge", sampling, "judge_pass_rate")))
    return Pipeline("S042", [*steps, ("variants", MakeVariants(sizes, mask))])


@paper(
    "S042",
    "Cog-DRIFT",
    arxiv="2604.04767",
    seams=["tasks", "curriculum"],
    essentials={
        "problems that are never solved, and sound": "test_only_what_is_never_solved_and_sound_is_rewritten",
        "choices of four and ten with plausible wrong answers": "test_choices_with_sound_distractors",
        "an answer with a mask": "test_masks_that_hide_something_of_the_answer",
        "the same gold: a letter and its text agree": "test_the_letter_and_the_text_are_graded_alike",
        "each question climbs its own ladder, and never down": "test_each_question_climbs_its_own_ladder",
        "it acts in training": "test_a_run_asks_variants",
        "what is never solved is solved by the ladder": "test_the_ladder_solves_what_is_never_solved",
    },
    choices=(
        "the threshold is on the verdict's score, not on a total with a bonus for format",
        "a letter counts as the answer at it, which the authors' reward, of the answer alone, counts as wrong",
        "more than half of the stronger model's replies are right, where the authors take the most frequent of 3",
        "one reply for all distractors, one for the mask; a variant whose reply is not sound is left out",
        "the words of prompts, but for what is said of a mask",
    ),
)
def cog_drift(threshold: float = 0.5, window: int = 1, kl_weight: float = 0.01) -> Method:
    """GRPO on whatever variant of a problem is current: of four options, of ten, with a mask, the problem itself.

        up one variant iff the mean score of the problem's last W steps > threshold;   never down
        L = clip(0.2, 0.28) + 0.01 KL (k3)

    The tasks are those that ``assay tasks make S042`` writes, read with ``tasks.source.name=made``.

    Args:
        threshold, window: see :class:`~assay.curriculum.variants.Variants`.
        kl_weight: of the divergence from the reference policy.

    Source: Cog-DRIFT (arXiv 2604.04767) and its authors' code.
    """
    climbing: Mapping[str, Any] = {"name": "variants", "threshold": threshold, "window": window}
    return Method(curriculum=climbing, objective=ClippedSurrogate(clip_high=0.28, kl_weight=kl_weight))


claims(
    Claim(
        paper="S042",
        text="A problem that is never solved is learned by way of choices of its answer, where training on the problem "
        "alone learns nothing.",
        setting="nested_answers",
        arms={
            "ladder": {"name": "S042", "options": {"kl_weight": 0.0}},
            "direct": {"name": "grpo", "objective": {"name": "clip", "clip_low": 0.2, "clip_high": 0.28}},
        },
        better="ladder",
        baseline="direct",
        measure="solved",
        sweep={"lr": (0.3, 1.0, 3.0)},
    )
)
