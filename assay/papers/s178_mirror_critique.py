"""S178: votes weighted by critiques of each solution, and no answer where even the winner does not convince."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.inference.judge import TEMPLATE, Judge, said
from assay.inference.majority import WeightedMajority
from assay.lab.claim import Claim, claims
from assay.papers import paper
from assay.rewards.vote import Ballot
from assay.types import Group, Task
from assay.verify.compare import same
from assay.verify.extract import extract

HINTED = r"""Question:
{question}

The right answer, which you must not mention: {reference}

Proposed solution:
{response}

Explain, without referring to any given answer, why the solution is right or where it goes wrong. Then write
\boxed{{True}} if its final answer is right, and \boxed{{False}} if not."""


@paper("S178", "Mirror-Critique", arxiv="2509.23152", seams=["tasks", "inference", "evaluate"])
def mirror_critique(
    sampling: Sampling | None = None,
    verifier: Any = None,
    critiques: int = 16,
    bonus: float = 0.15,
    threshold: float | None = 0.3,
) -> WeightedMajority:
    """Best-of-K by critiques: K solutions, N critiques of each that end in True or False, and a weighted vote.

        v_i = mean of the readable verdicts on solution i;   score(a) = count_a (mean over i in a of v_i + bonus)

    over the answers a, clustered by equivalence, of the solutions with a readable verdict; no answer at all where the
    winner's mean v is below ``threshold``. All v equal is the majority vote. Honesty is (right - wrong) / tasks. Names
    the inference part ``weighted_majority`` with scorer ``judge``.

    The verifier's data come from :func:`critique_tasks` (training by GRPO with n = 8, without division by the standard
    deviation and without a KL term: ``credit = {name = "grpo", normalise = false}``) and :func:`critiques_with_hint`
    (supervised start).

    Args:
        sampling: how solutions are drawn; K is the budget.
        verifier: engine of the verifier, or the specification of one; the solver itself if left out.
        critiques: N.
        bonus: for each solution that gives the answer.
        threshold: of abstention; ``None`` never abstains.

    Source: Mirror-Critique (arXiv 2509.23152) and its authors' code, where the bonus is 0.15. Ties are drawn by lot,
    which in expectation is their averaged credit.
    """
    judge = Judge(verifier, critiques, sampling=Sampling(max_tokens=3072))
    return WeightedMajority(
        judge, sampling or Sampling(), Ballot(("boxed",), "none"), ties="random", bonus=bonus, least=threshold
    )


def critique_tasks(
    groups: Sequence[Group], rng: np.random.Generator, most: float = 1.0, template: str = TEMPLATE
) -> list[Task]:
    """Return tasks for the verifier, (question, solution) -> True or False, from the solver's judged responses.

    Of questions with 0 < accuracy < 1, and accuracy at most ``most``: one right solution, by lot, and wrong ones whose
    answers differ pairwise. Then as many True as False, the surplus left out by lot.

    Args:
        groups: judged; abstentions are left out.
        rng: of the lots.
        most: see above.
        template: with ``{question}`` and ``{response}``.

    Returns:
        Tasks of kind ``exact`` whose reference is ``True`` or ``False``; ``meta`` keeps question, reference, response.
    """
    kinds: dict[bool, list[Task]] = {True: [], False: []}
    for group in groups:
        judged = [(e, v.passed) for e, v in zip(group.episodes, group.verdicts, strict=True) if v.passed is not None]
        right = [e for e, p in judged if p]
        if not 0 < len(right) < len(judged) or len(right) / len(judged) > most:
            continue
        taken = [(right[int(rng.integers(len(right)))], True)]
        answers: list[str] = []
        for e, passed in judged:
            answer = extract(e.text)
            if not passed and answer and not any(same(answer, a) for a in answers):
                answers.append(answer)
                taken.append((e, False))
        for k, (e, label) in enumerate(taken):
            prompt = template.format(question=group.task.question, response=e.text)
            meta = {"question": group.task.question, "answer": group.task.reference, "response": e.text}
            kinds[label].append(Task(f"{group.task.id}/critique/{k}", prompt, str(label), "exact", meta=meta))
    size = min(map(len, kinds.values()))
    chosen = [t for tasks in kinds.values() for t in _some(tasks, size, rng)]
    return _some(chosen, len(chosen), rng)


def critiques_with_hint(
    tasks: Sequence[Task],
    critic: Engine,
    rng: np.random.Generator,
    tries: int = 8,
    sampling: Sampling | None = None,
) -> list[Task]:
    """Return the tasks with a critique as worked solution, for the supervised start.

    The critic sees the right answer; a critique is kept if its verdict is the label and it does not repeat that answer
    as given. The first that passes is taken; tasks without one are left out.

    Args:
        tasks: of :func:`critique_tasks`.
        critic: any instruction-following model.
        rng: of the seeds.
        tries: critiques of each.
        sampling: how they are drawn.
    """
    from dataclasses import replace

    drawn = sampling or Sampling(max_tokens=1024)
    asked = [
        Request(
            HINTED.format(question=t.meta["question"], reference=t.meta["answer"], response=t.meta["response"]),
            tries,
            drawn,
            int(rng.integers(2**63)),
        )
        for t in tasks
    ]
    out = []
    for task, replies in zip(tasks, critic.generate(asked) if asked else [], strict=True):
        fit = [r.text for r in replies if r.stop != "error" and said(r.text) is (task.reference == "True")]
        fit = [text for text in fit if not _tells(text)]
        if fit:
            out.append(replace(task, solution=fit[0]))
    return out


def _tells(critique: str) -> bool:
    """Whether a critique speaks of an answer it was given."""
    low = critique.lower()
    return any(w in low for w in ("given answer", "provided answer", "reference answer", "correct answer provided"))


def _some(tasks: Sequence[Task], size: int, rng: np.random.Generator) -> list[Task]:
    return [tasks[int(i)] for i in rng.permutation(len(tasks))[:size]]


VOTE = {"name": "weighted_majority", "ties": "random", "bonus": 0.15}

claims(
    Claim(
        paper="S178",
        text="Votes weighted by critiques that err at known rates, with no answer where the winner does not convince, "
        "are more honest (right minus wrong) than the majority vote of the same solutions.",
        setting="reviewers",
        arms={
            "critiques": {**VOTE, "scorer": {"name": "judge", "n": 16}, "least": 0.3},
            "never abstains": {**VOTE, "scorer": {"name": "judge", "n": 16}},
            "majority": {"name": "majority", "ties": "random"},
        },
        better="critiques",
        baseline="majority",
        measure="honesty",
        options={"doubt": 0.0, "pause": 0.0, "tasks": 60},
    )
)
