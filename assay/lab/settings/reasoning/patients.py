"""A doctor who reads images with a confidence that is known, and reports of earlier cases where these are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request, Sampling
from assay.environments.cases.environment import Cases
from assay.environments.cases.patients import LABELS
from assay.inference.named import make_strategy
from assay.lab.settings.reasoning._words import Words
from assay.types import Episode, Task


@dataclass(frozen=True, slots=True)
class Setting:
    """An arm is a strategy at test time, with its options; ``re_retrieve`` has the case base of environment ``cases``.

    Tasks are diagnoses of images. The doctor's logit of the right option is ``known``, and of every option normal noise
    of deviation ``spread``; a report that was shown adds ``trust`` to the option it names. He answers with an option
    drawn by these. Where images have ``noise`` the most similar case may be of another disease.

    Args:
        tasks: answered by each run.
        diseases, noise, earlier: of the environment.
        known, spread, trust: see above.
    """

    tasks: int = 200
    diseases: int = 16
    noise: float = 0.0
    earlier: int = 48
    known: float = 1.0
    spread: float = 1.5
    trust: float = 2.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``accuracy``, the share of right answers; ``first``, of first ones; ``again``, the share of tasks that
        were looked at again; ``same``, of these, the share whose case was of the same disease (1 where there are none);
        ``mended`` and ``broken``, shares of all tasks where the second answer is right and the first was not, and the
        other way round; ``tokens`` for each task."""
        world = Cases("image", self.diseases, ["diagnosis"], noise=self.noise, earlier=self.earlier, seed=seed)
        tasks, bank = [world.tasks()[i] for i in range(self.tasks)], world.earlier()
        rows = [{"image": case.image, "report": case.report} for case in bank]
        strategy = make_strategy({"sampling": Sampling(max_tokens=64), "cases": rows, **arm})
        answers = strategy(tasks, Doctor(self, tasks, seed), 1, np.random.default_rng([seed, 44]))
        right = np.array([_said(a.text) == t.reference for a, t in zip(answers, tasks, strict=True)])
        first = np.array([_said(a.episodes[0].text) == t.reference for a, t in zip(answers, tasks, strict=True)])
        shown = [(a.meta["case"], t) for a, t in zip(answers, tasks, strict=True) if "case" in a.meta]
        same = [bank[case].disease == task.meta["disease"] for case, task in shown]
        return {
            "accuracy": float(right.mean()),
            "first": float(first.mean()),
            "again": len(shown) / len(tasks),
            "same": float(np.mean(same)) if same else 1.0,
            "mended": float((right & ~first).mean()),
            "broken": float((first & ~right).mean()),
            "tokens": float(np.mean([a.tokens for a in answers])),
        }


def _said(text: str | None) -> str:
    found = re.findall(r"<answer>\s*([A-D])", text or "")
    return found[-1] if found else ""


class Doctor:
    """An engine that answers, see :class:`Setting`; log-probabilities are those it has drawn by."""

    def __init__(self, setting: Setting, tasks: Sequence[Task], seed: int):
        rng = np.random.default_rng([seed, 45])
        self.words, self.trust = Words(), setting.trust
        self.known = {}
        for task in tasks:
            logits = setting.spread * rng.standard_normal(len(LABELS))
            logits[LABELS.index(task.reference)] += setting.known
            self.known[str(task.question)] = (logits, task.meta["options"])

    def encode(self, prompt: Any) -> np.ndarray:
        return self.words.encode(str(prompt))

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.words.encode(text)

    def decode(self, tokens: Any) -> str:
        return self.words.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        return [[self._answer(r, np.random.default_rng([r.seed, k])) for k in range(r.n)] for r in requests]

    def _answer(self, request: Request, rng: np.random.Generator) -> Episode:
        logits, options = self.known[str(request.prompt)]
        shown = self.words.decode(request.prefix)
        logits = logits + self.trust * np.array([f"It is {option};" in shown for option in options])
        chances = np.exp(logits - logits.max())
        chances /= chances.sum()
        k = int(rng.choice(len(LABELS), p=chances))
        made = self.words.episode(request, [f"<think>I see.</think>\n<answer> {LABELS[k]}. {options[k]} </answer>"])
        said = [LABELS[k] in made.text and self.words.decode([t]).startswith(f"{LABELS[k]}.") for t in made.tokens]
        logprobs = np.where(said, np.log(chances[k]), 0.0).astype(np.float32)
        return Episode(made.prompt, made.tokens, made.mask, logprobs, made.text, made.stop)
