"""A judgement of an answer's sentences: is each faithful to the documents, why may it be right or not, is it right?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.registry import part
from assay.types import Task, Verdict

TEMPLATE = """Judge the sentences of an answer to a question, one after the other. Documents may be wrong, or silent.

Question:
{question}

Documents:
{documents}

Sentences of the answer:
{sentences}

Write for each sentence, in their order, first whether the documents say so, then what that and your own knowledge mean
for it, and only then whether it is correct:
Sentence 1
Faithful: yes or no
Reason: why it is correct or not
Correct: yes or no"""

Label = tuple[bool, bool]
"""Of a sentence: whether it is faithful, and whether it is correct."""
_BEGIN = re.compile(r"^[ \t]*Sentence[ \t]+(\d{1,6})[ \t]*:?[ \t]*$", re.MULTILINE)
_BLOCK = re.compile(
    r"\s*Faithful:[ \t]*(yes|no)[ \t]*\n\s*Reason:[ \t]*(\S.*?)\s*\n[ \t]*Correct:[ \t]*(yes|no)\s*\Z",
    re.DOTALL | re.IGNORECASE,
)


def read_labels(reply: str, count: int) -> list[Label] | None:
    """Return the labels of as many sentences; ``None`` unless there is just one block for each, in their order, with
    faithfulness, a reason and correctness in this order."""
    marks = list(_BEGIN.finditer(reply))
    if [int(m[1]) for m in marks] != list(range(1, count + 1)):
        return None
    ends = [*(m.start() for m in marks[1:]), len(reply)]
    found = [_BLOCK.match(reply[m.end() : end]) for m, end in zip(marks, ends, strict=True)]
    return [(f[1].lower() == "yes", f[3].lower() == "yes") for f in found if f] if all(found) else None


def written_labels(labels: Sequence[Label], reasons: Sequence[str]) -> str:
    """Return labels with their reasons as :func:`read_labels` reads them."""
    word = {True: "yes", False: "no"}
    return "\n".join(
        f"Sentence {k}\nFaithful: {word[faithful]}\nReason: {' '.join(reason.split())}\nCorrect: {word[correct]}"
        for k, ((faithful, correct), reason) in enumerate(zip(labels, reasons, strict=True), 1)
    )


def truth(task: Task) -> list[Label] | None:
    """Return the labels that a task's reference has, a list of pairs; ``None`` where it is none."""
    rows = task.reference
    if not isinstance(rows, list | tuple) or not rows:
        return None
    if not all(isinstance(row, list | tuple) and len(row) == 2 and set(row) <= {True, False} for row in rows):
        return None
    return [(bool(faithful), bool(correct)) for faithful, correct in rows]


@part("verify", "sentence_labels")
@dataclass(frozen=True, slots=True)
class SentenceLabels:
    """score = the share of sentences both of whose labels are right; passes where all are.

    ``task.reference`` is a list of pairs, whether each sentence is faithful and whether it is correct. A reply that
    does not label just these is wrong. Parts: ``readable``, and the shares ``faithful`` and ``correct`` of either label
    that are right. Abstains on a task without labels.

    Source: TRM (arXiv 2509.25409); the form is a choice.
    """

    def __call__(self, task: Task, response: str) -> Verdict:
        labels = truth(task)
        if labels is None:
            return Verdict.abstain(f"task {task.id} has no labels of sentences, a list of pairs of true or false")
        said = read_labels(response, len(labels))
        if said is None:
            parts = {"readable": 0.0, "faithful": 0.0, "correct": 0.0}
            return Verdict(0.0, False, parts, f"no labels of just {len(labels)} sentences in their form")
        pairs, n = list(zip(said, labels, strict=True)), len(labels)
        faithful, correct = (sum(a[k] is b[k] for a, b in pairs) / n for k in (0, 1))
        score = sum(a == b for a, b in pairs) / n
        return Verdict(score, score == 1, {"readable": 1.0, "faithful": faithful, "correct": correct})
