"""S167: open-ended answers rewarded by a judge, by their embedding, by the kind of image named, and by their form."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.method import Method
from assay.registry import build
from assay.rewards.judged import judged
from assay.rewards.text.embedding import EmbeddingSimilarity, texts_of
from assay.types import Task
from assay.verify.text.overlap import f1

QUESTION = """Does the predicted answer say what the true answer says? Begin your reply with YES or NO.

True answer: {reference}
Predicted answer: {answer}"""
WEIGHTS = {"judge": 0.9 * 0.575, "embed": 0.9 * 0.375, "modality": 0.9 * 0.05, "format": 0.1}


@paper(
    "S167",
    "MediX-R1",
    seams=["verify", "reward"],
    essentials={
        "R = 0.9 (0.575 judge + 0.375 embedding + 0.05 modality) + 0.1 format": "test_weights_by_hand",
        "a language model that sees answer and reference, not the question, is asked for YES or NO": (
            "test_what_the_judge_is_asked"
        ),
        "the cosine of answer and reference counts from 0.8 on": "test_a_cosine_counts_from_its_bound_on",
        "the kind of image is named before the thought": "test_the_kind_of_image_counts_whatever_its_case",
        "the form: a thought, then an answer, and nothing else": "test_the_form",
        "hedges, questions back and single characters are no answers": "test_hedges_are_no_answers",
        "in training: what fools one judge but not the other loses to what is right": (
            "test_two_judges_learn_what_is_right_where_one_is_fooled"
        ),
    },
    choices=(
        "the judge's words",
        "a judge that fails leaves no reward; the authors' code gives 0",
        "the objective is GRPO's without a divergence; the authors' runs have one of 0.01 with it, and none with DAPO",
        "judge and embedding model are to be given; without them the verdict and F1 of words count",
    ),
)
def medix(judge: Any = None, embed: Any = None, near: float = 0.8) -> Method:
    """GRPO for open-ended answers with a composite reward: two judges of each answer, neither of them good.

        R_i = 0.9 (0.575 judge_i + 0.375 embed_i + 0.05 modality_i) + 0.1 format_i,   each 0 or 1

    judge: a language model says YES to the answer, given the reference and not the question. embed: the cosine of the
    answer's embedding with the reference's is at least ``near``. modality: what stands before ``<thinking>`` is the
    kind of image ``task.meta["modality"]``, whatever its case (nothing, where the task names none). format: from
    ``<thinking>`` on the response is ``<thinking>...</thinking><answer>...</answer>`` and nothing else.

    White space around <, > and / is removed first. The answer is what stands in ``<answer>``, or else the whole text,
    without dots at its ends. Both judges say 0 to an answer that is empty, one character, or contains ``__``, ``:`` or
    ``?`` (hedges and questions back), and 1 to one that equals the reference, unasked. Should a judge fail, the sample
    has no reward (the authors' code: 0).

    Args:
        judge: an engine, or the specification of one; without it, the verdict.
        embed: a function from texts to vectors, or the name of a model of sentence-transformers, see
            :class:`assay.rewards.text.embedding.EmbeddingSimilarity`; without it, F1 of the words shared takes the
            place of the cosine.
        near: in (0, 1].

    Source: MediX-R1's code (mbzuai-oryx/MediX-R1, ``medical.py``), with Qwen3-4B-Instruct and MedEmbed-large as models;
    the judge's wording is a choice.
    """
    return Method(reward=CompositeReward(judge, embed, near))


@dataclass(frozen=True, slots=True)
class Reading:
    """A response taken apart: its form, the text before its thought (if any), and its answer, empty if it is none."""

    formed: bool
    before: str | None
    answer: str


class CompositeReward:
    """See :func:`medix`; terms ``judge``, ``embed``, ``modality`` and ``format``, zeros and ones.

    Args:
        judge, embed, near: see there.
        max_tokens: of the judge's reply.
        template: with ``{answer}``, ``{reference}`` and, if the judge is to see it, ``{question}``.

    Raises:
        UsageError: ``near`` out of range, or a template that shows no answer.
    """

    def __init__(
        self, judge: Any = None, embed: Any = None, near: float = 0.8, max_tokens: int = 4, template: str = QUESTION
    ):
        if not 0 < near <= 1 or "{answer}" not in template:
            raise UsageError(f"reward 'S167': near {near:g} must be in (0, 1], and the template show the {{answer}}")
        self.judge = None if judge is None else build("engine", judge)
        self.similarity = None if embed is None else EmbeddingSimilarity(embed)
        self.near, self.template, self.sampling = near, template, Sampling(max_tokens, 0.0)

    def __call__(self, batch: Batch) -> Reward:
        readings = [read(e.text) for e in batch.episodes]
        wanted = [texts_of(task) for task in batch.tasks]
        dtype, valid = batch.rewards.dtype, judged(batch)
        terms = {name: torch.zeros(len(batch), dtype=dtype) for name in WEIGHTS}
        unsure: list[int] = []
        for i, (task, reading) in enumerate(zip(batch.tasks, readings, strict=True)):
            modality = str(task.meta.get("modality") or "")
            named = reading.before is not None and tidy(modality).casefold() == reading.before.casefold()
            terms["modality"][i] = named
            terms["format"][i] = reading.formed
            if not wanted[i]:
                valid[i] = False
            elif reading.answer and any(same(reading.answer, text) for text in wanted[i]):
                terms["judge"][i] = terms["embed"][i] = 1
            elif reading.answer and bool(valid[i]):
                unsure.append(i)
        said = self._asked(batch, readings, wanted, unsure)
        close = self._close(readings, wanted, unsure)
        for i in unsure:
            verdict = said[i]
            valid[i] = verdict is not None
            terms["judge"][i], terms["embed"][i] = float(bool(verdict)), float(close[i])
        values = sum((WEIGHTS[name] * term for name, term in terms.items()), torch.zeros_like(batch.rewards))
        return Reward(values, valid=valid, terms=terms)

    def _asked(
        self, batch: Batch, readings: list[Reading], wanted: list[list[str]], rows: list[int]
    ) -> dict[int, bool | None]:
        """What the judge says of each row; ``None`` where it failed."""
        if self.judge is None:
            return {i: batch.verdicts[i].passed for i in rows}
        prompts = {i: self._prompt(batch.tasks[i], wanted[i], readings[i].answer) for i in rows}
        once = list(dict.fromkeys(prompts.values()))
        replies = self.judge.generate([Request(p, 1, self.sampling, _seed(p)) for p in once]) if once else []
        said = {
            p: None if reply.stop == "error" else "YES" in reply.text.upper()
            for p, [reply] in zip(once, replies, strict=True)
        }
        return {i: said[p] for i, p in prompts.items()}

    def _prompt(self, task: Task, wanted: list[str], answer: str) -> str:
        shown = {"question": task.question, "reference": " / ".join(wanted), "answer": answer}
        # In one pass: an answer may contain braces of its own.
        return re.sub(r"\{(question|reference|answer)\}", lambda m: shown[m[1]], self.template)

    def _close(self, readings: list[Reading], wanted: list[list[str]], rows: list[int]) -> dict[int, bool]:
        measure: Callable[[str, str], float] = f1
        if self.similarity is not None:
            known = self.similarity.vectors([t for i in rows for t in (readings[i].answer, *wanted[i])])
            measure = lambda reference, answer: float(known[reference] @ known[answer])  # noqa: E731
        return {i: max(measure(t, readings[i].answer) for t in wanted[i]) >= self.near - 1e-9 for i in rows}


def tidy(text: str) -> str:
    """Return a text without white space around <, > and /, and at its ends."""
    return re.sub(r"\s*([<>/])\s*", r"\1", text).strip()


def read(text: str) -> Reading:
    """Take a response apart, see :func:`medix`."""
    text = tidy(text)
    start = text.find("<thinking>")
    body = text[start:] if start >= 0 else ""
    formed = re.fullmatch("<thinking>.*</thinking><answer>.*</answer>", body, re.DOTALL)
    found = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
    answer = (found[1] if found else text).strip().strip(".").strip()
    bad = len(answer) < 2 or any(mark in answer for mark in ("__", ":", "?"))
    return Reading(formed is not None, text[:start].strip() if start >= 0 else None, "" if bad else answer)


def same(answer: str, reference: str) -> bool:
    """Say whether they are equal but for dots at the ends."""
    return answer == tidy(reference).strip(". ")


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=7).digest(), "big")


def _judges(judge: float, embed: float) -> dict[str, float]:
    return {"judge": judge, "embed": embed}


JUDGE = {"name": "part", "part": "judge"}

claims(
    Claim(
        paper="S167",
        text="Where a judge is fooled by some wrong answers that do not resemble the reference, its sum with a reward "
        "for resemblance leads to right answers more often than the judge alone.",
        setting="choices",
        evidence="construction",
        arms={
            "judge": {"name": "grpo", "reward": JUDGE},
            "both": {
                "name": "grpo",
                "reward": {
                    "name": "weighted",
                    "terms": {"judge": JUDGE, "embed": {"name": "part", "part": "embed"}},
                    "weights": {"judge": 0.575, "embed": 0.375},
                },
            },
        },
        better="both",
        baseline="judge",
        measure="right",
        options={
            # Right; fools the judge; resembles the reference but is wrong; neither.
            "choices": [
                [[0.9, True, _judges(1, 1)], [0.1, True, _judges(0, 0)]],
                [[0.9, False, _judges(1, 0)], [0.1, False, _judges(0, 0)]],
                [[0.8, False, _judges(0, 1)], [0.2, False, _judges(0, 0)]],
                [[1.0, False, _judges(0, 0)]],
            ],
            "logits": [0.0, 1.0, 1.0, 1.0],
            "steps": 100,
        },
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
