"""S101: rubrics pay for what a response meets, and guide the refinement of one that misses something."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.engines.asking import filled
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.shaped import Shaped
from assay.rewards.judges.rubric_judge import RubricJudge, RubricReward
from assay.rollout.surgery.rubric_refined import REFINE
from assay.signals.likelihood import text_of_reference
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.work import Dropped, Here, Pipeline, Want, Work, noted
from assay.types import Task
from assay.verify.rubric.criteria import Rubric

KINDS = ("factual", "process")
WRITE = """Write criteria by which answers to the question are marked. Each is about one thing that either is so or is \
not, and does not repeat another. Of kind "factual" is what an answer has to state, on the way or as its result; of \
kind "process" is what has to be sound in its reasoning. The more depends on it, the larger its weight, from 1 to 5.

Question:
{question}

A right answer:
{reference}

Reply with a JSON list of tables {"text": ..., "kind": ..., "weight": ...} and nothing else."""


@dataclass(frozen=True, slots=True)
class Written:
    """Writes a rubric of factual and process criteria for a task, from its question and a right answer.

    What the writer replies has to be a rubric in which every criterion is of one of the two kinds.
    """

    def __call__(self, task: Task, here: Here) -> Work:
        right = task.solution or text_of_reference(task)
        [[reply]] = yield [Want(filled(WRITE, question=task.question, reference=right))]
        try:
            found = Rubric.read(json.loads(reply.text))
        except (ValueError, RecursionError, UsageError):
            return Dropped("no rubric is written")
        if any(c.kind not in KINDS or c.weight <= 0 for c in found.criteria):
            return Dropped("a criterion of another kind, or without weight")
        return noted(task, rubric=found.rows())


@pipeline("S101")
def rubrics() -> Pipeline:
    """A rubric for every task: ``assay tasks make S101``; see :class:`Written`. Role: ``writer``."""
    return Pipeline("S101", (("rubric", Written()),))


@paper(
    "S101",
    "RGR-GRPO",
    arxiv="2511.12344",
    seams=["reward", "rollout", "objective", "tasks"],
    essentials={
        "rubrics of factual and process criteria, with weights": "test_rubrics_are_written_for_tasks",
        "the reward is the weighted share of what is met": "test_rewards_by_hand",
        "groups in which a response meets all are left alone": "test_solved_groups_stay",
        "else the best failing response is refined by what it misses": "test_the_best_failing_response_is_refined",
        "a better refinement takes the place of the worst, and its advantage is the group's": (
            "test_advantages_of_a_mixed_group"
        ),
        "it is learned under the plain question, by a shaped probability": "test_a_refinement_is_learned_off_policy",
        "marks by kind are told": "test_marks_by_kind",
        "it acts in training": "test_a_run_refines",
    },
    choices=(
        "the bar: a response that meets all criteria",
        "one refinement, of the best response; it replaces the worst if it beats the best",
        "gamma = 0.1 and no clip on refinements, as in LUFFY",
        "all wording",
    ),
    lacks="the paper's own bar, number of refinements and what one replaces, which were not found: ours are guesses",
)
def rgr_grpo(
    judge: Any,
    bar: float = 1.0,
    tries: int = 1,
    gamma: float = 0.1,
    rubric: Sequence[Any] = (),
    template: str = REFINE,
    kl_weight: float = 0.0,
) -> Method:
    """GRPO on rubrics, with refinements of failing groups among their responses.

        R_i = sum_k w_k [criterion k is met by response i] / sum_k w_k;     A_i = (R_i - mean R) / std R

    Where no response of a group reaches ``bar``, :class:`~assay.rollout.surgery.rubric_refined.RubricRefined` has the
    best one refined. On the tokens of a refinement the loss is -f(p) A with f(p) = p / (p + gamma), p the policy's
    probability under the plain question (:class:`~assay.objectives.shaped.Shaped`); on others it is clipped.

    Args:
        judge: marks criteria: an engine, the specification of one, or a table of options of
            :class:`~assay.rewards.judges.rubric_judge.RubricJudge` with ``judge`` among them.
        bar, tries, template: see :class:`~assay.rollout.surgery.rubric_refined.RubricRefined`.
        gamma: see above.
        rubric: of the whole data set, beside the tasks' own ``meta["rubric"]``.
        kl_weight: of the divergence from the reference policy.

    Raises:
        UsageError: no engine, or an option that does not fit; of tasks, one without a rubric.

    Source: "Reward and Guidance through Rubrics" (arXiv 2511.12344); policy shaping of LUFFY (arXiv 2504.14945).
    """
    options = dict(judge) if isinstance(judge, Mapping) and "judge" in judge else {"judge": judge}
    marker = RubricJudge(**{"also": rubric, **options})
    return Method(
        rollout={"name": "rubric_refined", "marker": marker, "bar": bar, "tries": tries, "template": template},
        reward=RubricReward(marker),
        credit=GRPO(),
        objective=Shaped(gamma=gamma, kl_weight=kl_weight),
    )


claims(
    Claim(
        paper="S101",
        text="Where responses that meet a whole rubric are rare, a policy whose best failing responses are refined by "
        "what they miss meets more of it over training than one that is paid by the same marks alone.",
        setting="refined_answers",
        evidence="mechanism",
        arms={
            "guided": {"name": "S101", "options": {"judge": "here"}},
            "marks alone": {"reward": {"name": "rubric", "judge": "here"}},
            "all or nothing": {"reward": {"name": "rubric", "judge": {"judge": "here", "aggregate": "all"}}},
            "refined, as if on-policy": {"name": "S101", "options": {"judge": "here"}, "objective": "clip"},
        },
        better="guided",
        baseline="marks alone",
        measure="area",
        options={"steps": 20},
        sweep={"lr": (1.0, 10.0, 100.0)},
        unequal="a refinement is sampled beside each group in which all fail",
    )
)
