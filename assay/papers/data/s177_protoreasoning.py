"""S177: problems become programs in Prolog, or plans in PDDL, whose interpreters say what is right."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import filled
from assay.engines.base import Sampling
from assay.engines.writing import WRITING
from assay.errors import RunError, UsageError
from assay.tasks.making.filters import PassRate
from assay.tasks.making.work import Dropped, Here, Outcome, Pipeline, Want, Work, child, noted
from assay.types import Task
from assay.verify.logic.json_query import executed, ready
from assay.verify.programs.python import blocks

_REWRITE = """Write the problem below as a Prolog program with a predicate answer(X) whose one solution X is what is
asked for, as data that can be written as JSON: a dictionary such as _{name: "Ann", ages: [3, 4]}, a list, a number or
a string. It runs in SWI-Prolog, with nothing but what it contains.

Problem:
{question}
{faults}
End with the whole program in a block that opens with ```prolog."""
_EVOLVE = """Here is a Prolog program whose answer(X) has one solution.

{program}

Make it harder to work out in one's head: more facts, further rules, a longer chain between them. X is to have the same
form as before, with the same keys.
{faults}
End with the whole program in a block that opens with ```prolog."""
_SOLVE = """What does the query answer(X) give in this Prolog program? Work it out without running it.

```prolog
{program}
```

Put X, written as JSON, between <answer> and </answer>."""
TRIES = 3
"""Programs that are asked for before a problem is left out."""


@paper(
    "S177",
    "ProtoReasoning",
    arxiv="2506.15211",
    seams=["tasks", "verify", "objective"],
    essentials={
        "a problem is written as Prolog, and what its query gives is the answer": "test_the_answer_is_what_runs_out",
        "programs are made harder, the form of their answer kept": "test_harder_programs_keep_their_form",
        "the model sees the program and predicts the JSON, judged by structure": "test_answers_are_judged_by_structure",
        "plans are made, completed and put into order, judged by executing them": "test_the_three_kinds_of_plans",
        "a completion keeps the given steps in their places": "test_a_completion_keeps_what_is_given",
        "a reordering is a permutation": "test_a_reordering_is_a_permutation",
        "reasoning is kept where the verifier passes it, of problems solved in some of ten tries and not in all": (
            "test_solutions_are_verified"
        ),
        "supervised and RL runs learn from both tracks": "test_both_ways_of_training",
    },
    choices=(
        "the words of prompts; the query is answer(X)",
        "three tries at a program, with what was wrong",
        "two planning domains, blocks and ferry; no problems whose plan has to be the cheapest, which pddl_plan judges",
        "general samples beside the problems are the run's own",
    ),
)
def protoreasoning(
    rounds: int = 1,
    votes: int = 10,
    low: float = 0.1,
    high: float = 0.9,
    sampling: Sampling = WRITING,
) -> Pipeline:
    """The pipeline of the Prolog track: rewrite, make harder, execute, have solved, keep what is solved at times.

    ``assay tasks make S177 --seeds problems.jsonl --out prototypes.jsonl``; a run with ``sft`` learns from the
    verified solutions, one with rewards from the verdicts of ``json``. The planning track is the task source ``plans``,
    whose verifier is ``pddl_plan``. The paper makes three rounds: a teacher solves and the model learns from that
    (``high`` 1); then the model itself solves each ten times, and learns from what it solves in one to nine of them;
    and once more with the model that this gives. ``meta["pass_rate"]`` up to 0.3 is hard, from 0.7 on easy.

    Args:
        rounds: times that a program is made harder; 0 leaves it as it is.
        votes: solutions of the role ``solver``.
        low, high: window of the share of them that are right.
        sampling: of the writer.

    Source: ProtoReasoning (arXiv 2506.15211), section 2. It ends with 4,196 Prolog and 2,424 planning problems, of
    43,021 and 34,123, which it mixes with 100,000 general samples: 2 epochs at 2e-5.
    """
    if rounds < 0:
        raise UsageError(f"S177: rounds {rounds} must be 0 or more")
    harder = [(f"harder {i + 1}", Harder(sampling)) for i in range(rounds)]
    solved = PassRate(votes, low, high, sampling=Sampling(4096, 1.0), keep=True)
    return Pipeline("S177", [("prototype", Prototype(sampling)), *harder, ("pass rate", solved)])


claims(
    Claim(
        paper="S177",
        text="Trained on problems written as programs, a model solves them better when they are told as stories of a "
        "kind that it was not trained on than one that was trained on stories of another kind.",
        setting="prototypes",
        arms={
            "prototypes": {"method": {"name": "grpo"}, "forms": ["prototype"]},
            "stories": {"method": {"name": "grpo"}, "forms": ["pens"]},
        },
        better="prototypes",
        baseline="stories",
        measure="stops",
        sweep={"lr": (1e-4, 3e-4, 1e-3)},
    )
)


@dataclass(frozen=True, slots=True)
class Prototype:
    """Replaces a task by one whose prompt is a program and whose reference is what that gives.

    Args:
        sampling: of the writer.
    """

    sampling: Sampling = WRITING

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError where SWI-Prolog is missing."""
        ready()

    def __call__(self, task: Task, here: Here) -> Work:
        found = yield from _written(lambda f: filled(_REWRITE, question=task.question, faults=f), self.sampling, None)
        return Dropped(found) if isinstance(found, str) else _asked(task, "prototype", *found)


@dataclass(frozen=True, slots=True)
class Harder:
    """Replaces a prototype by a harder one of the same form; where that fails it stays as it is.

    Args:
        sampling: of the writer.
    """

    sampling: Sampling = WRITING

    def __call__(self, task: Task, here: Here) -> Work:
        program = str(task.meta["program"])
        found = yield from _written(
            lambda f: filled(_EVOLVE, program=f"```prolog\n{program}\n```", faults=f), self.sampling, task
        )
        return noted(task, harder=found) if isinstance(found, str) else _asked(task, "harder", *found)


def _written(prompt: Any, sampling: Sampling, like: Task | None) -> Any:
    """Ask for a program until one gives an answer, of the form of ``like``'s: return both, or what was wrong."""
    faults = ""
    for _ in range(TRIES):
        [[reply]] = yield [Want(prompt(faults), 1, sampling)]
        program = next((text for name, text in reversed(blocks(reply.text)) if name == "prolog"), "")
        if not program.strip():
            fault = "there is no block that opens with ```prolog"
        else:
            found = executed(program)
            if found.ours:
                raise RunError(f"programs cannot be run: {found.reason}")
            same = like is None or form(found.value) == form(like.reference)
            if not found.reason and same and (like is None or program != like.meta["program"]):
                return program, found.value
            fault = found.reason or ("its answer has another form" if not same else "it is the same program")
        faults = f"\nAn earlier program failed: {fault}\n"
    return fault


def _asked(task: Task, step: str, program: str, value: Any) -> Outcome:
    prompt = filled(_SOLVE, program=program)
    meta = {"program": program, "track": "prolog"}
    return child(task, step, 0, prompt=prompt, reference=value, kind="json", solution=None, hints=(), meta=meta)


def form(value: Any) -> Any:
    """What an answer is made of: the keys of dictionaries, what lists hold, and of all else the kind."""
    if isinstance(value, Mapping):
        return tuple(sorted((str(k), json.dumps(form(v), default=str)) for k, v in value.items()))
    if isinstance(value, list):
        return ["list", *sorted({json.dumps(form(v), default=str) for v in value})]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
