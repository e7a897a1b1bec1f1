"""S170: can a model refine its answers, by itself, or when it is told what they lack?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.inference.base import Answer
from assay.inference.sampling.refine_turns import RefineTurns
from assay.inference.scoring.scorers import ByVerifier
from assay.rewards.judges.rubric_judge import RubricJudge
from assay.types import Task


@paper(
    "S170",
    "RefineBench",
    arxiv="2511.22173",
    seams=["inference", "evaluate"],
    essentials={
        "a checklist of binary items, each marked by a judge": "test_a_checklist_is_marked",
        "Pass_t and Acc_t by turn": "test_pass_and_acc_by_turn",
        "self-refinement, until the model declares that none is needed": "test_a_declared_answer_is_frozen",
        "guided refinement: what fails is told": "test_guided_refinement_is_told_what_fails",
        "partially guided: a share of it": "test_a_share_is_told",
        "an answer is frozen where nothing fails": "test_an_answer_without_faults_is_frozen",
        "its thousand problems are read as they are published": "test_its_problems_are_read",
        "it acts in assay eval": "test_it_acts_in_the_command",
        "guided rises, self stays": "test_guided_rises_and_self_stays",
    },
    choices=(
        "all wording, and the words that declare an end",
        "each turn shows the last answer, not the whole dialogue",
        "which items are told of a share is drawn anew in each turn",
    ),
)
def refinebench(
    judge: Any = None, share: float = 1.0, sampling: Sampling | None = None, max_tokens: int = 4096
) -> RefineTurns:
    """Self-refinement, or guided with a judge, over as many turns as the budget has responses; five in the paper.

        Pass_t = share of tasks all of whose items are met after turn t;   Acc_t = mean share of items met

    ``assay eval --strategy "S170,S170(judge={name=...})" --budgets 1,2,3,4,5`` has both by turn, where the verifier is
    a :class:`~assay.rewards.judges.rubric_judge.RubricJudge` with threshold 1: accuracy is Pass_t, the score Acc_t.
    A task's checklist is its ``meta["rubric"]``; the benchmark's problems are tasks ``refinebench``. Names the
    inference part ``refine_turns``.

    Args:
        judge: an engine, or the specification of one, which marks items for guidance; ``None`` for self-refinement.
        share: of the failing items that is told.
        sampling: how tokens of answers are drawn.
        max_tokens: of a judge's reply.

    Source: RefineBench (arXiv 2511.22173).
    """
    scorer = None if judge is None else ByVerifier(RubricJudge(judge, threshold=1.0, max_tokens=max_tokens))
    return RefineTurns(scorer, share, sampling or Sampling())


@dataclass(frozen=True, slots=True)
class Turn:
    """How answers stand after a turn; shares of tasks and of items, and what they are above those of turn 1."""

    passed: float
    acc: float
    gain: float
    acc_gain: float


def by_turn(tasks: Sequence[Task], answers: Sequence[Answer], judge: RubricJudge, turns: int = 5) -> list[Turn]:
    """Return Pass_t and Acc_t after each turn, of answers that :class:`RefineTurns` gave; a frozen one stays.

    Args:
        tasks, answers: of each other.
        judge: marks every answer by its task's checklist.
        turns: how many.

    Raises:
        UsageError: no answers, or of another strategy; marks that could not be read.
    """
    if not answers or any(not a.meta.get("turns") for a in answers):
        raise UsageError("turns can be told of answers of strategy refine_turns, one or more")
    pairs = [(t, text) for t, a in zip(tasks, answers, strict=True) for text in a.meta["turns"]]
    marks = dict(zip(((t.id, text) for t, text in pairs), judge.marks(pairs), strict=True))
    rows = []
    for k in range(turns):
        shares = []
        for task, answer in zip(tasks, answers, strict=True):
            said = answer.meta["turns"]
            found = marks[task.id, said[min(k, len(said) - 1)]]
            read = [mark for mark in found if mark is not None]
            if len(read) < len(found):
                raise UsageError(f"the judge gave marks of task {task.id} that cannot be read; take another form")
            shares.append((float(min(read) == 1), sum(read) / len(read)))
        rows.append([sum(column) / len(shares) for column in zip(*shares, strict=True)])
    return [Turn(p, a, p - rows[0][0], a - rows[0][1]) for p, a in rows]


claims(
    Claim(
        paper="S170",
        text="A writer who mends most of what he is told of, and of himself changes answers for better and worse, "
        "meets whole checklists after five turns if he is guided, and hardly more than at first if he is not.",
        setting="refinements",
        evidence="construction",
        arms={
            "guided": {"name": "S170", "judge": "here"},
            "half guided": {"name": "S170", "judge": "here", "share": 0.5},
            "self": {"name": "S170"},
        },
        better="guided",
        baseline="self",
        measure="gain",
    )
)
