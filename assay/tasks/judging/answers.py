"""Tasks that teach a judge to compare answers with references, and not to take the beginning of one for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from assay.engines.asking import filled
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.judging.keys import is_key
from assay.tasks.seeded import check_index, check_seed
from assay.tasks.sentences import segments
from assay.tasks.solutions.critiques import judged_groups
from assay.types import Group, Task
from assay.verify.text.mentions import mentions
from assay.verify.text.text import references

_ASKED = """Below are {parts} the end of a student's solution. Does the solution come
to the same final answer as the reference? It may say so in other words. A solution that breaks off before an answer
does not. Judge the final answer alone, not how it was found. Reply with 1 if it is the same and with 0 if it is not,
and with nothing else.

"""
_SHOWN = """Reference answer: {reference}
Answer: {answer}"""

TEMPLATE = _ASKED.replace("{parts}", "a question, its reference answer, and") + "Question: {question}\n" + _SHOWN
"""What a judge is asked; it replies with 1 or 0."""
BLIND = _ASKED.replace("{parts}", "the reference answer to a question and") + _SHOWN
"""The same without the question."""


@part("tasks", "judging")
class Judging:
    """Tasks of comparing an answer with a reference, reply 1 or 0, from solutions that were sampled and judged.

    See :func:`answer_tasks`. Each task has its reply as worked solution, so that a warm-up, or any supervised training
    on solutions, is the fine-tuning of the judge.

    Args:
        path: the folder of a run (all of its stored rollouts) or of an evaluation, or a file of samples that say
            which are right, as :class:`assay.records.foreign.Reader` reads them. Questions need their references.
        negatives: beginnings of solutions for each judged solution; 0 for none.
        question: whether the judge is shown the question.
        template: of the prompt, with ``{reference}`` and ``{answer}`` and perhaps ``{question}``, in place of both.
        seed: of all lots.
        fields, threshold: of a file, see the reader.

    Raises:
        UsageError: nothing there is of use.
    """

    def __init__(
        self,
        path: Path,
        negatives: float = 0.125,
        question: bool = True,
        template: str | None = None,
        seed: int = 0,
        fields: dict[str, str] | None = None,
        threshold: float | None = None,
    ):
        check_seed("tasks 'judging'", seed)
        groups = judged_groups(Path(path), fields or {}, threshold)
        shown = template or (TEMPLATE if question else BLIND)
        if any(f"{{{name}}}" not in shown for name in ("reference", "answer")):
            raise UsageError("tasks 'judging': the template must show the judge {reference} and {answer}")
        self.tasks = answer_tasks(groups, np.random.default_rng(seed), negatives, shown)

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def answer_tasks(
    groups: Sequence[Group], rng: np.random.Generator, negatives: float = 0.125, template: str = TEMPLATE
) -> list[Task]:
    """Return tasks for a judge: (question, reference, response) -> 1 or 0, in an order by lot.

    Every judged response once, labelled by its verdict, and ``round(negatives * that many)`` first sentences of
    responses drawn by lot, labelled 0, as far as there are so many that differ (:func:`opening`).

    Args:
        groups: judged; abstentions, and questions without a reference, are left out.
        rng: of the lots.
        negatives: see above; 20,000 to 160,000 in the paper, whose sentences are of new chains of thought.
        template: with ``{question}``, ``{reference}`` and ``{answer}``; the question may be left out.

    Returns:
        Tasks of kind ``exact`` whose reference and solution are the reply; ``meta["negative"]`` says which of them
        are beginnings.

    Raises:
        UsageError: no judged response to a question with a reference, or no beginning though some are asked for.

    Source: "One Token to Fool LLM-as-a-Judge" (arXiv 2507.08794), section on Master-RM.
    """
    if not 0 <= negatives < float("inf"):
        raise UsageError(f"tasks 'judging': negatives {negatives} must be a finite number >= 0")
    found: dict[tuple[str, str, str], tuple[Task, bool]] = {}
    for group in groups:
        if not references(group.task.reference):
            continue
        for episode, verdict in zip(group.episodes, group.verdicts, strict=True):
            if verdict.passed is not None:
                key = (group.task.question, str(group.task.reference), episode.text.strip())
                found.setdefault(key, (group.task, verdict.passed))
    if not found:
        raise UsageError("tasks 'judging': there is no judged response to a question with a reference")
    items = [(task, text, passed, False) for (_, _, text), (task, passed) in found.items()]
    want, taken = round(negatives * len(items)), set[tuple[str, str, str]]()
    for i in rng.permutation(len(items)).tolist():
        task, text, _, _ = items[i]
        sentence = opening(task, text)
        key = (task.question, str(task.reference), sentence or "")
        if len(taken) < want and sentence is not None and key not in found and key not in taken:
            taken.add(key)
            items.append((task, sentence, False, True))
    if want and not taken:
        raise UsageError(
            "tasks 'judging': no response has a first sentence that says nothing; give longer ones, or negatives=0"
        )
    made = []
    for k, i in enumerate(rng.permutation(len(items)).tolist()):
        task, text, passed, cut = items[i]
        prompt = filled(template, question=task.question, reference=" / ".join(references(task.reference)), answer=text)
        label = str(int(passed))
        meta = {"response": text, "negative": cut}
        made.append(Task(f"{task.id}/judging/{k}", prompt, label, "exact", label, meta=meta))
    return made


def opening(task: Task, response: str) -> str | None:
    """Return the first sentence of a response, or its first line where that is shorter.

    ``None`` where it would not teach that a beginning is no answer: it is all of the response, it states the reference,
    or it is one of the keys that judges are tested with.
    """
    sentence = next(iter(segments(response.strip().partition("\n")[0])), "")
    if not sentence or len(sentence) >= len(" ".join(response.split())):
        return None
    return None if is_key(sentence) or any(mentions(sentence, r) for r in references(task.reference)) else sentence
