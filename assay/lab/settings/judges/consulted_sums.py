"""Products that a reward model which counts words cannot reckon, and a calculator that it may ask."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.engines.base import Request
from assay.environments.tools import call
from assay.inference.supervision.train import make_method
from assay.policies.base import PolicyOutput
from assay.rewards.step_models.examples import StepExample, StepPair
from assay.rewards.step_models.on_states import StepHead
from assay.rewards.step_models.traced import TracedRM
from assay.types import Episode, Message, Task, Tool


@dataclass(frozen=True, slots=True)
class Setting:
    """Pairs of a right and a wrong product, with the call that tells them apart: what is left of the product when the
    answer is taken off. An arm names a method of ``assay train-prm``, by ``name`` and options.

    The model sees how often each word stands in question, answer and trace, by their hashes, and learns how likely each
    character is. It always writes the right call, where it may call, and then says what follows from the result, where
    traces have a rationale.

    Args:
        pairs, fresh: that are learned from, and on which the reward model is measured.
        words: hashes.
        lr, epochs: of the training.
    """

    pairs: int = 40
    fresh: int = 100
    words: int = 64
    lr: float = 0.05
    epochs: int = 10

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``accuracy``, the share of fresh pairs whose right answer has the higher score, equal ones counting
        half, and ``gap``, the mean difference of their scores in [-1, 1]."""
        rng = np.random.default_rng([seed, 43])
        rows = [_pair(rng, i) for i in range(self.pairs + self.fresh)]
        options = dict(arm)
        method = make_method(str(options.pop("name")), **options)
        training = replace(method.training, lr=self.lr, trunk_lr=self.lr, epochs=self.epochs, batch=8, weight_decay=0.0)
        policy: Any = Counter(self.words)
        writer: Any = Writer(bool(options.get("rationale", True)))
        model = TracedRM(policy, StepHead(self.words), engine=writer, **method.settings.traced)
        training.fit(model, rows[: self.pairs], np.random.default_rng(seed))
        fresh = rows[self.pairs :]
        found = model.score_examples([x for row in fresh for x in (row.better, row.worse)])
        scores = np.array([math.nan if x is None else x[0] for x in found]).reshape(-1, 2)
        gaps = scores[:, 0] - scores[:, 1]
        return {"accuracy": float(np.mean((gaps > 0) + 0.5 * (gaps == 0))), "gap": float(gaps.mean())}


def _pair(rng: np.random.Generator, i: int) -> StepPair:
    a, b, off = (int(x) for x in rng.integers(12, 99, size=3))
    sides = []
    for answer, word in ((a * b, "right"), (a * b + off, "wrong")):
        plan = [{"name": "calculator", "arguments": {"expression": f"{a}*{b}-{answer}"}}]
        task = Task(str(i), f"What is {a} times {b}?", meta={"plan": plan, "rationale": f"It is {word}."})
        sides.append(StepExample(task, (str(answer),)))
    return StepPair(sides[0], sides[1], 0)


class Counter:
    """A model of characters without a context, whose state after a text is how often its words stand in it."""

    def __init__(self, words: int):
        self.module, self.width = torch.nn.ParameterDict({"table": torch.nn.Parameter(torch.zeros(128))}), words

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        logprobs = self.module["table"].log_softmax(-1)[batch.tokens.clamp(min=0)]
        hidden = torch.zeros(*batch.tokens.shape, self.width)
        for i, e in enumerate(batch.episodes):
            for word in re.findall(r"-?\w+", _text(e.prompt) + _text(e.tokens)):
                hidden[i, len(e.tokens) - 1, zlib.crc32(word.encode()) % self.width] += 1
        return PolicyOutput(logprobs, {"hidden": hidden})

    def micro_batches(self, batch: Batch, budget: int) -> list[torch.Tensor]:
        return [torch.arange(len(batch))]


class Writer:
    """The engine of :class:`Setting`; a character is a token.

    Args:
        talks: whether it says something in the end.
    """

    window = 1_000_000

    def __init__(self, talks: bool):
        self.talks = talks

    def encode(self, prompt: Any) -> np.ndarray:
        return np.array([min(ord(c), 127) for c in str(getattr(prompt, "ids", prompt))], dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text + "\n" * end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return _text(tokens)

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        """See :class:`assay.engines.base.Conversing`; it is told of tools by a word."""
        return self.encode("".join(f"{m['content']}\n" for m in messages) + "calculator\n" * bool(tools))

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        """See :class:`assay.engines.base.Conversing`."""
        return self.encode("".join(f"result {m['content']}\n" for m in messages))

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        out = []
        for r in requests:
            ids: Any = getattr(r.prompt, "ids", None)
            prompt = self.encode(r.prompt) if ids is None else np.asarray(ids, dtype=np.int64)
            context = np.concatenate([prompt, np.asarray(r.prefix, dtype=np.int64)])
            tokens = self.encode_response(self.said(_text(context)))
            zeros = np.zeros(len(tokens), dtype=np.float32)
            out.append([Episode(context, tokens, tokens >= 0, zeros, _text(tokens), "eos")])
        return out

    def said(self, context: str) -> str:
        """Return the next turn."""
        a, b, answer = re.findall(r"What is (\d+) times (\d+)\?\nAnswer: (\d+)", context)[-1]
        results = re.findall(r"^result (.*)$", context, re.MULTILINE)
        if not results and "calculator" in context:
            return call("calculator", expression=f"{a}*{b}-{answer}").text
        return f"It is {'right' if results[-1:] == ['0'] else 'wrong'}." if self.talks else ""


def _text(tokens: Sequence[int] | np.ndarray) -> str:
    return "".join(map(chr, np.asarray(tokens).tolist()))
