"""Questions to a judge of nuggets: whether a passage supports each of some facts, with labels that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from assay.engines.marking import Question
from assay.errors import UsageError
from assay.tasks.making.work import Dropped, Here, child
from assay.types import Task
from assay.verify.rubric.criteria import Rubric
from assay.verify.rubric.forms import FORMS, form_of

LABELS = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
"""What a policy earns by each; the middle one is a choice."""
TEMPLATE = """Does the passage support each nugget, a fact that an answer to the question should state? Go by the \
passage alone, and by nothing else that you know. Decide in this order:

1. The passage contradicts the nugget: not_support.
2. It states all that is essential, with the same quantities, times and qualifications: support.
3. It states one essential part, but another is missing, hedged or unclear, or takes a small and safe inference: \
partial_support.
4. Otherwise: not_support.

Question:
{question}

Passage:
{response}

Nuggets:
{criteria}

First write your reasons, in <reasoning>...</reasoning>. Then write one label for each nugget, in order, as {form} and \
nothing else. For example:
{example}"""


def nugget_question(block: int = 10, form: str = "json", partial: float = LABELS["partial_support"]) -> Question:
    """Return how nuggets are asked about: ``block`` in a request, labels in ``form``, ``partial`` for half of one."""
    return Question(block, form, LABELS | {"partial_support": partial}, TEMPLATE)


@dataclass(frozen=True, slots=True)
class Compositions:
    """Makes of labelled nuggets one question for each composition of labels that there is: tasks to train a judge on.

    For every size b, and all n_s + n_p + n_n = b for which there are nuggets enough, ``draws`` times n_s supported, n_p
    partly supported and n_n unsupported ones are drawn and shuffled; equal questions are asked once. A task has
    ``meta["passage"]`` and ``meta["nuggets"]``, tables of ``text``, ``label`` and, if there is one, the ``reasoning``
    of who labelled it. What is made has the labels as reference, and as solution where all nuggets have a reasoning.
    The form of each is drawn.

    Args:
        least, most: sizes of a question.
        draws: for each composition.
        forms: to draw from; all if empty.

    Raises:
        UsageError: an option out of range, or a task without such nuggets.
    """

    least: int = 1
    most: int = 10
    draws: int = 1
    forms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most or self.draws < 1:
            raise UsageError(f"step compositions: needs 1 <= least {self.least} <= most {self.most} and a draw")
        for name in self.forms:
            form_of(name)

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError for a task that has no passage and labelled nuggets."""
        for task in tasks:
            _nuggets(task)

    def __call__(self, task: Task, here: Here) -> list[Task] | Dropped:
        nuggets = _nuggets(task)
        kinds = [[n for n in nuggets if n["label"] == label] for label in LABELS]
        forms, seen, out = list(self.forms) or list(FORMS), set[tuple[str, ...]](), list[Task]()
        for size in range(self.least, self.most + 1):
            for counts in product(range(size + 1), repeat=len(kinds)):
                if sum(counts) != size or any(n > len(kind) for n, kind in zip(counts, kinds, strict=True)):
                    continue
                for _ in range(self.draws):
                    drawn = [
                        kind[i]
                        for n, kind in zip(counts, kinds, strict=True)
                        for i in here.rng.choice(len(kind), n, replace=False)
                    ]
                    form = forms[int(here.rng.integers(len(forms)))]
                    some = [drawn[i] for i in here.rng.permutation(size)]
                    if (key := tuple(sorted(n["text"] for n in some))) not in seen:
                        seen.add(key)
                        out.append(asked(task, some, form, len(out) + 1))
        return out or Dropped("no nuggets")


def asked(task: Task, nuggets: Sequence[Mapping[str, Any]], form: str, number: int) -> Task:
    """Return the task of labelling some nuggets of a task, in one request."""
    rubric = Rubric.read([{"text": n["text"]} for n in nuggets])
    [prompt] = nugget_question(0, form).prompts(task.question, str(task.meta["passage"]), rubric)
    labels = [str(n["label"]) for n in nuggets]
    reasons = [str(n["reasoning"]) for n in nuggets if n.get("reasoning")]
    told = "\n".join(f"{k}. {why}" for k, why in enumerate(reasons, 1))
    taught = (
        f"<reasoning>\n{told}\n</reasoning>\n{form_of(form).write(labels)}" if len(reasons) == len(labels) else None
    )
    fields = {"prompt": prompt, "reference": labels, "kind": "none", "solution": taught}
    return child(task, "compositions", number, **fields, meta={"form": form})


def _nuggets(task: Task) -> list[Mapping[str, Any]]:
    rows = task.meta.get("nuggets")
    fits = isinstance(rows, Sequence) and all(
        isinstance(n, Mapping) and n.get("text") and n.get("label") in LABELS for n in rows
    )
    if not fits or not isinstance(task.meta.get("passage"), str):
        raise UsageError(
            f"step compositions: task {task.id} needs meta['passage'] and meta['nuggets'], tables of text and label, "
            f"one of {', '.join(LABELS)}"
        )
    return list(rows or ())
