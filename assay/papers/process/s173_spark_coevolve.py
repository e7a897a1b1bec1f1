"""S173: a step's verdicts become tasks of judging and of reflecting, for the very model whose answers they are on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Engine
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import part
from assay.rollout.derived import Derived
from assay.rollout.templates import check_template, through_template
from assay.types import Ask, Episode, Group, Task
from assay.verify.answer.extract import extract
from assay.verify.base import Verifier
from assay.verify.text.exact import Exact

KIND = "spark_judgement"
"""Of tasks that ask for a judgement."""

Labelled = tuple[str, str, str]
"""A template and two labels: of one answer what is said if it is right and if it is wrong; of two, first and second."""
POINTWISE: tuple[Labelled, ...] = (
    (
        "{question}\n\nA proposed answer: {response}\n\nIs it right? Think it through, then end with \\boxed{{Yes}} or "
        "\\boxed{{No}}.",
        "Yes",
        "No",
    ),
    (
        "{question}\n\nSomebody answers: {response}\n\nA: this answer is right.\nB: this answer is wrong.\n\nWhich "
        "holds? Reason step by step and give \\boxed{{A}} or \\boxed{{B}}.",
        "A",
        "B",
    ),
)
PAIRWISE: tuple[Labelled, ...] = (
    (
        "{question}\n\nTwo answers were given.\nA: {first}\nB: {second}\n\nOne of them is right. Which? Reason step by "
        "step, then end with \\boxed{{A}} or \\boxed{{B}}.",
        "A",
        "B",
    ),
    (
        "Compare two answers to a question.\n\nQuestion:\n{question}\n\nAnswer 1: {first}\nAnswer 2: {second}\n\nWork "
        "out which one is right and write its number, \\boxed{{1}} or \\boxed{{2}}.",
        "1",
        "2",
    ),
)
REFLECT: tuple[str, ...] = (
    "{question}\n\nAn earlier attempt, which may be wrong:\n{response}\n\nLook for what is wrong with it, then solve "
    "the question again.",
    "{question}\n\nThis was said before:\n{response}\n\nReflect on whether it holds, mend what does not, and give the "
    "right answer.",
)
MIXED = 0.3
"""Chance that a prompt with right and wrong answers gives a task on one of them rather than on two."""


@paper(
    "S173",
    "SPARK",
    arxiv="2509.22624",
    seams=["tasks", "rollout", "verify", "reward", "objective", "inference"],
    essentials={
        "all right or all wrong: one answer is to be judged": "test_unanimous_prompts_give_one_answer_to_judge",
        "right and wrong: mostly one of each, in random order": "test_mixed_prompts_give_pairs_in_either_order",
        "three in ten of these are on one answer, right or wrong alike": "test_three_in_ten_are_on_one_answer",
        "what is judged is the final answer, and without one nothing is": "test_what_is_judged_is_the_final_answer",
        "reflection: on a wrong response for the first half of the prompts, on a wrong answer for the others": (
            "test_reflection_shows_reasoning_to_one_half_and_answers_to_the_other"
        ),
        "at most 32 of either kind in a step, at random": "test_caps_are_kept",
        "templates of a pool, with labels of several kinds": "test_templates_and_labels_are_drawn_from_a_pool",
        "judgements are scored by their label, reflections by the task's own answer": (
            "test_judgements_are_scored_by_label_and_reflections_by_the_answer"
        ),
        "GRPO with a KL term (k3), the same loss for all of them in one step": "test_one_step_learns_from_all_three",
        "at test time: answer, judge, reflect; or the best of several": "test_at_test_time_it_judges_and_reflects",
        "judging is learned with no data on judging": "test_judging_is_learned_beside_solving",
    },
    choices=(
        "the words of templates, and how many there are",
        "extra tasks are learned from in the optimiser steps of the step's own mini-batches",
    ),
)
def spark(
    judged: int = 32,
    reflected: int = 32,
    n: int | None = None,
    kl_weight: float = 0.001,
    pointwise: tuple[Labelled, ...] = POINTWISE,
    pairwise: tuple[Labelled, ...] = PAIRWISE,
    reflect: tuple[str, ...] = REFLECT,
    inner: Any = "single_turn",
) -> Method:
    """GRPO on a step's responses, on judgements of their answers and on second attempts after wrong ones.

    Per prompt, of its judged answers a:

        all right    "is a right?", Yes                    all wrong    "is a right?", No
        mixed        with chance 0.3 "is a right?" of a right or a wrong one, else "which of a, b is right?"

    and, where one was wrong, "solve this again after this attempt": a whole response for prompts in the first half of
    the step, a final answer for the others; the verifier is the task's own. At most ``judged`` and ``reflected`` of
    them, drawn at random, are answered as often as a prompt is, by the policy as it is, each an advantage group.

    At test time ``refine`` with scorer ``judge`` answers, judges and reflects; ``best_of_n`` with it takes the
    best-judged.

    Args:
        judged, reflected: tasks of either kind in a step, at most; with 0 and 0 it is GRPO.
        n: responses to each; as many as to a prompt if ``None``.
        kl_weight: of the divergence (k3) from the reference in the loss.
        pointwise: templates with ``{response}``, each with the labels for a right and for a wrong answer.
        pairwise: templates with ``{first}`` and ``{second}``, each with the labels of the first and the second.
        reflect: templates with ``{response}``. All may have ``{question}`` and write other braces twice.
        inner: the rollout that answers prompts.

    Source: SPARK (arXiv 2509.22624) and its released code.
    """
    options = {"judged": judged, "reflected": reflected, "n": n, "inner": inner}
    pools = {"pointwise": pointwise, "pairwise": pairwise, "reflect": reflect}
    return Method(
        objective=ClippedSurrogate(kl_weight=kl_weight),
        rollout={"name": "judge_and_reflect", **options, **pools},
    )


@part("rollout", "judge_and_reflect")
@dataclass(slots=True)
class JudgeAndReflect(Derived):
    """Responses, and tasks of judging and reflecting made of them.

    Args:
        sampling, judge, more, curriculum, answer, inner, n, max_tokens: see :class:`~assay.rollout.derived.Derived`.
        judged, reflected, pointwise, pairwise, reflect: see :func:`spark`.

    Raises:
        UsageError: a cap below 0, an empty pool, a template that does not show what it is to, or equal labels.
    """

    judged: int = 32
    reflected: int = 32
    pointwise: tuple[Labelled, ...] = POINTWISE
    pairwise: tuple[Labelled, ...] = PAIRWISE
    reflect: tuple[str, ...] = REFLECT
    _verifier: Verifier = field(default_factory=Exact, init=False)

    def __post_init__(self) -> None:
        Derived.__post_init__(self)
        where = "rollout 'judge_and_reflect'"
        if min(self.judged, self.reflected) < 0 or not (self.pointwise and self.pairwise and self.reflect):
            raise UsageError(f"{where}: judged and reflected must be at least 0, and no pool of templates empty")
        if any(one == other for _, one, other in (*self.pointwise, *self.pairwise)):
            raise UsageError(f"{where}: the two labels of a template must differ")
        for template in (*(row[0] for row in self.pointwise), *self.reflect):
            check_template(template, "response", where)
        for template, *_ in self.pairwise:
            check_template(template.replace("{second}", ""), "first", where)
            check_template(template.replace("{first}", ""), "second", where)

    def verifier(self, kind: str) -> Verifier | None:
        return self._verifier if kind == KIND else None

    def derive(self, groups: Sequence[Group], engine: Engine, rng: np.random.Generator) -> list[Ask]:
        judgements, reflections = list[Ask](), list[Ask]()
        for i, group in enumerate(groups if self.judged or self.reflected else ()):
            right, wrong = self.answers(group, True), self.answers(group, False)
            if self.judged and (right or wrong):
                judgements.append(self.judgement(group, right, wrong, rng))
            if self.reflected and wrong:
                reflections.append(self.reflection(group, wrong, 2 * i < len(groups), rng))
        return [*_some(judgements, self.judged, rng), *_some(reflections, self.reflected, rng)]

    def answers(self, group: Group, passed: bool) -> list[tuple[Episode, str]]:
        """Return a group's responses of one verdict that have a final answer, with it."""
        pairs = zip(group.episodes, group.verdicts, strict=True)
        found = [(e, self._answer(group.task, e.text)) for e, v in pairs if v.passed is passed]
        return [(e, text) for e, text in found if text]

    def judgement(
        self, group: Group, right: Sequence[tuple[Episode, str]], wrong: Sequence[tuple[Episode, str]], rng: Any
    ) -> Ask:
        """Return what is asked about the answers of one prompt."""
        if right and wrong and rng.random() >= MIXED:
            template, first, second = _one(self.pairwise, rng)
            good, bad, turned = _one(right, rng)[1], _one(wrong, rng)[1], rng.random() < 0.5
            shown = {"first": bad, "second": good} if turned else {"first": good, "second": bad}
            label = second if turned else first
            return self._ask(group, replace(group.task, id="judge", reference=label, kind=KIND), template, shown)
        positive = bool(right) if not (right and wrong) else bool(rng.random() < 0.5)
        template, yes, no = _one(self.pointwise, rng)
        shown = {"response": _one(right if positive else wrong, rng)[1]}
        label = yes if positive else no
        return self._ask(group, replace(group.task, id="judge", reference=label, kind=KIND), template, shown)

    def reflection(self, group: Group, wrong: Sequence[tuple[Episode, str]], whole: bool, rng: Any) -> Ask:
        """Return the prompt of a group again, after a wrong response or, unless ``whole``, its final answer."""
        episode, answer = _one(wrong, rng)
        shown = {"response": episode.text if whole else answer}
        return self._ask(group, replace(group.task, id="reflect"), _one(self.reflect, rng), shown)

    def _ask(self, group: Group, task: Task, template: str, shown: dict[str, str]) -> Ask:
        prompt, id = through_template(group.task.prompt, template, **shown), f"{group.task.id}/{task.id}"
        made = replace(task, id=id, prompt=prompt, parent=group.task.id, solution=None, hints=())
        return Ask(made, group.ask.n if self.n is None else self.n)

    def _answer(self, task: Task, response: str) -> str:
        span = self.answer(task, response)
        return (response[span.start : span.end] if span is not None else extract(response) or "").strip()


def _one(pool: Sequence[Any], rng: np.random.Generator) -> Any:
    return pool[int(rng.integers(len(pool)))]


def _some(asks: list[Ask], most: int, rng: np.random.Generator) -> list[Ask]:
    """Return at most ``most`` of what might be asked, drawn at random, in order."""
    if len(asks) <= most:
        return asks
    return [asks[i] for i in sorted(rng.permutation(len(asks))[:most].tolist())]


TABLE: dict[str, Any] = {
    "pointwise": [["24/{question}/{response}", "1", "0"]],
    "pairwise": [["25/{question}/{first}/{second}", "0", "1"]],
    "reflect": ["26/{question}/{response}"],
    "judged": 4,
    "reflected": 4,
    "kl_weight": 0.0,
}
"""How the prompts of setting ``own_judge`` are written; for its 8 prompts a step, the caps of 32 for 64."""
ARMS: dict[str, dict[str, Any]] = {
    "spark": {"name": "S173", "options": TABLE},
    "grpo": {"name": "S173", "options": {**TABLE, "judged": 0, "reflected": 0}},
}

claims(
    Claim(
        paper="S173",
        text="Recycling a step's verdicts into judging and reflecting raises solving and judging together above GRPO "
        "on as many responses.",
        setting="own_judge",
        evidence="mechanism",
        unequal="training ends with the step that reaches the same number of responses, and steps are not alike",
        arms=ARMS,
        better="spark",
        baseline="grpo",
        measure="both",
        sweep={"lr": (0.3, 1.0, 3.0)},
    ),
    Claim(
        paper="S173",
        text="It solves more than GRPO does with as many responses, although some of them were spent on judging and "
        "reflecting.",
        setting="own_judge",
        name="solving",
        evidence="mechanism",
        unequal="training ends with the step that reaches the same number of responses, and steps are not alike",
        arms=ARMS,
        better="spark",
        baseline="grpo",
        measure="solved",
        sweep={"lr": (0.3, 1.0, 3.0)},
    ),
)
