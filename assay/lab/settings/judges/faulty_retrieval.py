"""Answers that fail because the first passage is beside the point, or though it is not, and a verifier that tells."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request, Sampling
from assay.engines.keywords import Keywords
from assay.environments.search.corpus import Corpus, Document
from assay.inference.named import make_strategy
from assay.tasks.judging.ternary import LETTERS
from assay.types import Episode, Task


@dataclass(frozen=True, slots=True)
class Setting:
    """Questions for a number that one passage has; another, with the same words and more, ranks before it or not.

    An arm is a strategy, which gets the documents and the verifier from here, one passage at a time. The model says the
    number that the passage has with chance ``careful``, else another; without a passage that has one it guesses. The
    verifier has ``sure`` more log-odds for the label that holds than for the others, and noise of each prompt.

    Args:
        tasks: questions.
        misled: share of them before whose passage another ranks.
        careful: see above.
        sure, slip: log-odds for the right label, and standard deviation of the noise.
        rounds: after the first answer.
    """

    tasks: int = 200
    misled: float = 0.4
    careful: float = 0.6
    sure: float = 2.0
    slip: float = 1.0
    rounds: int = 2

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``accuracy``, ``first``, that of the first answers, and ``asked``, the mean number of answers."""
        rng = np.random.default_rng([seed, 180])
        ages = rng.integers(10, 99, self.tasks).tolist()
        documents = []
        for k, age in enumerate(ages):
            name = f"person{k}"
            documents.append(Document(f"{name}-a", name, f"The age of {name}: {name} is {age} years old."))
            asks = f"What is the age of {name}? The age of {name} is not known." if rng.random() < self.misled else ""
            documents.append(Document(f"{name}-b", name, asks or f"{name} likes tea."))
        tasks = [Task(str(k), f"What is the age of person{k}?", str(age)) for k, age in enumerate(ages)]
        reader = Reader(self.careful)
        judge = Judge(dict(enumerate(map(str, ages))), self.sure, self.slip, seed)
        options = {"corpus": Corpus(documents), "verifier": judge, "rounds": self.rounds, "passages": 1}
        strategy = make_strategy({**arm, **options, "sampling": Sampling(8)})
        answers = strategy(tasks, reader, 1 + self.rounds, np.random.default_rng(seed))
        pairs = list(zip(answers, tasks, strict=True))
        return {
            "accuracy": float(np.mean([a.text == t.reference for a, t in pairs])),
            "first": float(np.mean([a.meta["turns"][0] == t.reference for a, t in pairs])),
            "asked": float(np.mean([len(a.meta["turns"]) for a in answers])),
        }


class Reader(Keywords):
    """The model of :class:`Setting`, an engine."""

    def __init__(self, careful: float):
        super().__init__(())
        self.careful = careful

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        out = []
        for r in requests:
            rng = np.random.default_rng(r.seed)
            known = re.search(r" is (\d+) years old", str(r.prompt))
            said = known[1] if known is not None and rng.random() < self.careful else str(rng.integers(100, 200))
            token = self.encode(said)
            out.append([Episode(self.encode(r.prompt), token, token > 0, None, said, "eos")])
        return out


class Judge(Keywords):
    """The verifier of :class:`Setting`, an engine that answers beam searches for one token with letters.

    Args:
        ages: what is right of each person.
        sure, slip: see there.
        seed: of the noise.
    """

    def __init__(self, ages: Mapping[int, str], sure: float, slip: float, seed: int):
        super().__init__(())
        self.ages, self.sure, self.slip, self.seed = ages, sure, slip, seed

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        out = []
        for r in requests:
            prompt = str(r.prompt)
            [who] = re.findall(r"Question: What is the age of person(\d+)", prompt)
            [said] = re.findall(r"Answer: (\d+)", prompt)
            held = "C" if said == self.ages[int(who)] else "B" if "years old" in prompt else "A"
            odds = np.random.default_rng([self.seed, r.seed]).standard_normal(3) * self.slip
            odds += [self.sure * (held == name) for name in LETTERS]
            known = odds - math.log(float(np.exp(odds).sum()))
            shown = self.encode(prompt)
            out.append([self._said(shown, LETTERS[k], known[k]) for k in np.argsort(-known).tolist()][: r.n])
        return out

    def _said(self, prompt: np.ndarray, text: str, logprob: float) -> Episode:
        token = self.encode(text)
        return Episode(prompt, token, token > 0, np.array([logprob], dtype=np.float32), text, "length")
