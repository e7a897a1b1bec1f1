r"""Verdicts of three kinds: an answer is right (A), wrong (B), or there is nothing that could be judged (C)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from assay.engines.asking import filled
from assay.types import Task

Letter = Literal["A", "B", "C"]
LETTERS: tuple[Letter, ...] = ("A", "B", "C")

_RULES = """The reference answer is right: do not solve the problem again, and do not doubt it. Compare the final
answer of the response with it, and nothing else of the response. Where the question asks for a form, for several
parts or for all of something, all of that is required; otherwise forms of the same value are the same, and so is an
answer in a box and one out of it. See first whether there is anything to judge."""
_LETTERS = """A: the final answer is the same as the reference.
B: it is not, or there is none.
C: it cannot be judged: the response breaks off, repeats itself, declines or is no text; or the question or the
reference is incomplete, or they do not fit each other."""
_SHOWN = """Question: {question}
Reference answer: {reference}
Response: {response}"""

DIRECT = f"""Judge a response to a question. {_RULES}

{_LETTERS}

{_SHOWN}

Reply with the letter and nothing else."""
PARAPHRASES = (
    DIRECT,
    f"""{_SHOWN}

Does the response end in the reference answer? {_RULES}

{_LETTERS}

Your judgment is one letter:""",
    f"""You mark answers. {_LETTERS}

{_RULES}

{_SHOWN}

Which of A, B and C is it? Give the letter alone.""",
)
"""Prompts that ask for the same in other words, so that a judge learns what is asked and not how."""
REASONED = f"""Judge a response to a question. {_RULES}

{_LETTERS}

{_SHOWN}

Think first, and end with the letter in a box, as in \\boxed{{A}}."""
SHOWN = ("question", "reference", "response")
"""What a prompt has to show."""


@dataclass(frozen=True, slots=True)
class Item:
    """A response with what it is compared with, and the verdict.

    Attributes:
        question, reference, response: as a judge is shown them.
        label: the verdict.
        kind: of the answer, such as ``numerical``.
        domain: of the question.
        pattern: what makes it right, wrong or invalid; empty where it is not known.
    """

    question: str
    reference: str
    response: str
    label: Letter
    kind: str = ""
    domain: str = ""
    pattern: str = ""

    def task(self, name: str, template: str = DIRECT) -> Task:
        """Return the task of judging it, whose worked solution is the letter."""
        shown = {"question": self.question, "reference": self.reference, "response": self.response}
        meta = {"kind": self.kind, "domain": self.domain, "pattern": self.pattern}
        return Task(name, filled(template, **shown), self.label, "exact", self.label, meta=meta)


_BOX = re.compile(r"\\?boxed\{(?:\\text\{)?\s*([ABC])\s*\}")
_BARE = re.compile(r"\s*([ABC])\.?\s*")
_AFTER = re.compile(r"\b([ABC])\b")
FINAL = "Final Judgment:"


def letter(reply: str) -> Letter | None:
    r"""Return what a reply says: the last ``\boxed`` letter, else the letter that is all of it, else the last one
    after "Final Judgment:"; ``None`` where it says nothing."""
    boxes = _BOX.findall(reply)
    if boxes:
        return boxes[-1]
    bare = _BARE.fullmatch(reply)
    if bare is not None:
        return bare[1]  # type: ignore[return-value]
    _, judged, rest = reply.rpartition(FINAL)
    after = _AFTER.findall(rest) if judged else []
    return after[-1] if after else None


_THINKING = re.compile(r"<think>(?P<inner>.*?)</think>", re.DOTALL)
CUTS = (0.2, 0.4, 0.6)
"""Shares of the thinking that are cut off at its beginning."""
TAGS = ("reasoning", "thought", "")
"""What thinking is put between instead; no tags at all for the last."""


def rethought(response: str, rng: np.random.Generator) -> str:
    """Return a response whose thinking begins later, or stands between other tags, by lot; its answer is as it was.

    What has no thinking between ``<think>`` and ``</think>`` stays.
    """
    found = _THINKING.search(response)
    if found is None:
        return response
    inner, choice = found["inner"], int(rng.integers(len(CUTS) + len(TAGS)))
    if choice < len(CUTS):
        changed = f"<think>{inner[round(CUTS[choice] * len(inner)) :]}</think>"
    else:
        tag = TAGS[choice - len(CUTS)]
        changed = f"<{tag}>{inner}</{tag}>" if tag else inner
    return response[: found.start()] + changed + response[found.end() :]


def retold(item: Item, rng: np.random.Generator) -> Item:
    """Return an item whose response is :func:`rethought`; the verdict is the same."""
    return replace(item, response=rethought(item.response, rng))
