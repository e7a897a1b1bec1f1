"""A scorer of steps that writes why each is right or wrong before it says which: a language model tuned to do so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.batch import Batch
from assay.engines.asking import filled
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.tokens import Tokens
from assay.errors import UsageError
from assay.rewards.step_models.classifier import packed
from assay.rewards.step_models.examples import Row, StepExample
from assay.rewards.step_models.training import Logits, StepModel, StepTraining
from assay.types import Ask, Episode, Group, Message, Task

FIRST = """Here is a problem, and the first step of somebody's solution; the others follow one by one. Say of each \
step why it is right or wrong, and end with "Conclusion: right" or "Conclusion: wrong".

Problem:
{question}

Step 1:
{step}"""
NEXT = """Step {number}:
{step}"""
VERDICT = "Conclusion:"
RIGHT, WRONG = " right", " wrong"


class WrittenPRM:
    """Scores step k by what the model says of it in the k-th turn of a conversation about the solution:

        p_k = p(right) / (p(right) + p(wrong)) after x, step 1, w_1, ..., step k, the rationale of w_k and "Conclusion:"

    A turn w_k is a rationale, written greedily, and the verdict of the two that is likelier. p is made 2 p - 1, in
    [-1, 1]. A solution whose conversation has no room in the model's context has no scores.

    Args:
        policy: a :class:`~assay.policies.causal_lm.CausalLM`, which writes and is tuned.
        max_tokens: of a rationale.
        first: the first turn's question, with ``{question}`` and ``{step}``.
        following: those after it, with ``{step}`` and perhaps ``{number}``.
        budget: tokens of a pass.

    Raises:
        UsageError: ``max_tokens`` below 1, or a question without what it shows.

    Source: GroundedPRM (arXiv 2510.14942), where each turn is one step, rationale and conclusion.
    """

    def __init__(
        self, policy: Any, max_tokens: int = 256, first: str = FIRST, following: str = NEXT, budget: int = 8192
    ):
        if max_tokens < 1 or not ("{question}" in first and "{step}" in first and "{step}" in following):
            raise UsageError(
                f"a scorer that writes: max_tokens {max_tokens} must be at least 1, first show {{question}} and "
                "{step}, and following {step}"
            )
        self.policy, self.max_tokens, self.budget = policy, max_tokens, budget
        self.first, self.following, self.engine = first, following, HFEngine(policy)

    # What it reads

    def question(self, row: StepExample, number: int) -> str:
        """Return what is asked of a step, the first of which is number 1."""
        step = row.steps[number - 1].strip("\n")
        if number == 1:
            return filled(self.first, question=row.task.question, step=step)
        return filled(self.following, number=str(number), step=step)

    def asked(self, row: StepExample, number: int) -> np.ndarray:
        """Return its tokens, after the turn before where there is one."""
        messages = (Message(role="user", content=self.question(row, number)),)
        return self.engine.opening(messages, ()) if number == 1 else self.engine.bridge(messages, True)

    def answered(self, rationale: str, right: bool) -> np.ndarray:
        """Return the tokens of a turn and its end."""
        return self._said(opinion(rationale) + (RIGHT if right else WRONG), True)

    def demonstrated(self, row: StepExample) -> Episode | None:
        """Return the conversation in which each step is called what its label says, for the reasons that the row has.

        Only the model's own turns are to be learned. It ends before the first step without a label, or without room;
        ``None`` where there is no step before.
        """
        pieces, own, length = list[np.ndarray](), list[bool](), 0
        for k, label in enumerate(row.labels):
            if label is None:
                break
            why = row.rationales[k] if row.rationales else ""
            new = [self.asked(row, k + 1), self.answered(why, label > 0.5)]
            length += sum(map(len, new))
            if length > self.policy.context:
                break
            pieces += new
            own += [False, True]
        if not pieces:
            return None
        prompt, *rest = pieces
        tokens = np.concatenate(rest)
        mask = np.repeat(own[1:], [len(piece) for piece in rest])
        return Episode(prompt, tokens, mask, None, self.engine.decode(tokens), "eos")

    # What it says

    @torch.no_grad()
    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float] | None]:
        return self.score_examples([StepExample(task, tuple(steps)) for task, steps in responses])

    @torch.no_grad()
    def score_examples(self, rows: Sequence[StepExample]) -> list[list[float] | None]:
        """Return a score for each step of each solution, ``None`` for a solution without room."""
        self.train(False)
        out: list[list[float] | None] = [[] for _ in rows]
        heard = [np.zeros(0, dtype=np.int64) for _ in rows]
        for number in range(1, max((len(row.steps) for row in rows), default=0) + 1):
            going = [i for i, row in enumerate(rows) if len(row.steps) >= number and out[i] is not None]
            for i in going:
                heard[i] = np.concatenate([heard[i], self.asked(rows[i], number)])
            lost = {i for i in going if len(heard[i]) >= self.policy.context}
            reasons = self._reasons([heard[i] for i in going if i not in lost])
            going = [i for i in going if i not in lost]
            heads = [
                np.concatenate([heard[i], self._said(opinion(why), False)])
                for i, why in zip(going, reasons, strict=True)
            ]
            chances = self._chances(heads)
            for i, why, p in zip(going, reasons, chances, strict=True):
                row = out[i]
                if p is None or row is None:
                    lost.add(i)
                    continue
                row.append(2 * p - 1)
                heard[i] = np.concatenate([heard[i], self.answered(why, p > 0.5)])
            for i in lost:
                out[i] = None
        return out

    def _reasons(self, prompts: Sequence[np.ndarray]) -> list[str]:
        """Return the rationale that is written after each prompt."""
        sampling = Sampling(self.max_tokens, 0.0, stop=(VERDICT,))
        found = self.engine.generate([Request(Tokens(p), 1, sampling, 0) for p in prompts]) if prompts else []
        return [said.text.partition(VERDICT)[0].strip() for [said] in found]

    def _chances(self, heads: Sequence[np.ndarray]) -> list[float | None]:
        """Return p after each text so far, ``None`` where there is no room for the verdict."""
        words = [self._said(word, False) for word in (RIGHT, WRONG)]
        room = self.policy.context - max(map(len, words))
        fits = [i for i, head in enumerate(heads) if len(head) <= room]
        out: list[float | None] = [None] * len(heads)
        nothing = np.zeros(0, dtype=np.int64)
        for part in packed([len(heads[i]) for i in fits], self.budget):
            chosen = [fits[j] for j in part]
            asked = [Episode(heads[i], nothing, nothing > 0, None, "", "stop") for i in chosen]
            batch = Batch.from_groups(
                [Group(Ask(Task(str(i), ""), 1), (e,)) for i, e in zip(chosen, asked, strict=True)]
            )
            found = self.policy.continuations(batch, [[0, 0]] * len(chosen), [words] * len(chosen)).double()
            total = torch.nan_to_num(found).sum(-1)
            for i, p in zip(chosen, (total[:, 0] - total[:, 1]).sigmoid().tolist(), strict=True):
                out[i] = p
        return out

    def _said(self, text: str, end: bool) -> np.ndarray:
        return np.asarray(self.engine.encode_response(text, end=end), dtype=np.int64)

    # How it learns

    def read(self, rows: Sequence[StepExample]) -> list[tuple[Tensor, Tensor]]:
        raise UsageError("a scorer that writes has no states to be read both ways; leave out both_ways")

    def train(self, learning: bool) -> None:
        self.policy.module.train(learning)

    def views(self, rows: Sequence[StepExample]) -> list[Logits]:
        raise UsageError("a scorer that writes learns what it is to write, by method S132; take another kind")

    def groups(self, lr: float, trunk_lr: float) -> list[dict[str, object]]:
        return [{"params": [p for p in self.policy.module.parameters() if p.requires_grad], "lr": lr}]

    def parts(self, rows: Sequence[StepExample]) -> list[list[int]]:
        return packed([_length(row) for row in rows], self.budget)

    def save(self, folder: Path) -> None:
        """Write the model into ``policy``."""
        self.policy.save(folder / "policy")


def opinion(rationale: str) -> str:
    """Return what is said of a step up to the verdict."""
    return f"{rationale.strip()}\n{VERDICT}" if rationale.strip() else VERDICT


@dataclass(frozen=True, slots=True)
class WrittenTraining(StepTraining):
    """L = mean over the tokens of the model's own turns of -log p, on conversations made of labels and rationales.

    See :meth:`WrittenPRM.demonstrated`; ``lr`` is that of the model, and nothing else is learned.

    Raises:
        UsageError: of a fit, another model, or nothing with a label that has room.
    """

    lr: float = 1e-5
    epochs: int = 3
    weight_decay: float = 0.0

    def fit(self, model: StepModel, data: Sequence[Row], rng: np.random.Generator) -> list[float]:
        if not isinstance(model, WrittenPRM):
            raise UsageError(
                "rationales are learned by a model that writes them; take S132(form=head) for another kind"
            )
        rows = [row for row in data if isinstance(row, StepExample)]
        told = [(row, model.demonstrated(row)) for row in rows]
        useful = [replace(row, episode=episode) for row, episode in told if episode is not None]
        if not useful:
            raise UsageError(
                "the scorer of steps has nothing to learn from: no solution begins with a step that has a label, and "
                "has room in the model's context"
            )
        return StepTraining.fit(self, model, useful, rng)

    def pieces(self, model: StepModel, rows: Sequence[Row]) -> Iterator[Tensor]:
        assert isinstance(model, WrittenPRM)
        singles = [row for row in rows if isinstance(row, StepExample)]
        count = sum(int(_told(row).mask.sum()) for row in singles)
        for part in model.parts(singles):
            batch = Batch.from_groups([Group(Ask(singles[i].task, 1), (_told(singles[i]),)) for i in part])
            logprobs = model.policy.forward(batch).logprobs
            yield -(logprobs * batch.mask.to(logprobs)).sum() / count


def _told(row: StepExample) -> Episode:
    assert row.episode is not None
    return row.episode


def _length(row: StepExample) -> int:
    return len(_told(row).prompt) + len(_told(row).tokens)
