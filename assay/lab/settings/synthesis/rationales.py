"""Problems that are written by way of one of a few rationales, by models that are tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.learning.likelihood import Pair
from assay.papers.data.s144_promptcot2 import Annotated, elbo, learn


class Table:
    """Writes one of a list of texts, by a categorical distribution for each prompt.

    Args:
        texts: that can be written.
        rate: of a fit: p becomes (1 - rate) p + rate times the shares of the responses to the prompt.
        rng: draws each prompt's distribution at first, from a Dirichlet distribution of ones.
    """

    def __init__(self, texts: Sequence[str], rate: float, rng: np.random.Generator):
        self.texts, self.rate, self.rng = list(texts), rate, rng
        self.rows: dict[str, np.ndarray] = {}

    def row(self, prompt: str) -> np.ndarray:
        """Return the chances of all texts, ``(texts,)``."""
        if prompt not in self.rows:
            self.rows[prompt] = self.rng.dirichlet(np.ones(len(self.texts)))
        return self.rows[prompt]

    def draw(self, prompts: Sequence[str], n: int, seed: int) -> list[list[str]]:
        rng = np.random.default_rng(seed)
        return [[self.texts[i] for i in rng.choice(len(self.texts), n, p=self.row(prompt))] for prompt in prompts]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        return [float(np.log(self.row(prompt)[self.texts.index(text)])) for prompt, text in pairs]

    def fit(self, pairs: Sequence[Pair], seed: int) -> None:
        for prompt in dict.fromkeys(prompt for prompt, _ in pairs):
            said = [text for other, text in pairs if other == prompt]
            shares = np.bincount([self.texts.index(t) for t in said], minlength=len(self.texts)) / len(said)
            self.rows[prompt] = (1 - self.rate) * self.row(prompt) + self.rate * shares


class Factored(Table):
    """Writes a rationale by a distribution for each prompt, and a problem by one for each rationale: p(z | c) p(x | z).

    Args:
        texts: pairs of a rationale and a problem, by the text that has both.
        rate, rng: see :class:`Table`.
    """

    def __init__(self, texts: Mapping[str, tuple[str, str]], rate: float, rng: np.random.Generator):
        super().__init__(list(texts), rate, rng)
        self.parts = dict(texts)
        self.thoughts = Table(list(dict.fromkeys(z for z, _ in texts.values())), rate, rng)
        self.problems = Table(list(dict.fromkeys(x for _, x in texts.values())), rate, rng)

    def row(self, prompt: str) -> np.ndarray:
        joint = np.outer(self.thoughts.row(prompt), [1.0] * len(self.problems.texts))
        joint *= np.stack([self.problems.row(z) for z in self.thoughts.texts])
        place = {(z, x): p for z, row in zip(self.thoughts.texts, joint, strict=True)
                 for x, p in zip(self.problems.texts, row, strict=True)}  # fmt: skip
        return np.array([place[self.parts[text]] for text in self.texts])

    def fit(self, pairs: Sequence[Pair], seed: int) -> None:
        self.thoughts.fit([(prompt, self.parts[text][0]) for prompt, text in pairs], seed)
        self.problems.fit([self.parts[text] for _, text in pairs], seed)


@dataclass(frozen=True, slots=True)
class Setting:
    """Concepts with a few problems each, annotated with rationales at random; a problem depends on the rationale alone.
    An arm says how many rationales are drawn (``k``).

    Args:
        concepts, problems, rationales: how many; problems are of all concepts alike.
        seeds: problems of a concept that are learned from.
        rate: see :class:`Table`.
        rounds: of learning.
    """

    concepts: int = 4
    problems: int = 6
    rationales: int = 6
    seeds: int = 3
    rate: float = 0.2
    rounds: int = 8

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return the mean ``likelihood`` of the seeds after learning, log p(x | c) in nats over all rationales, and the
        ``bound`` on it by the posterior."""
        rng = np.random.default_rng([seed, 41])
        thoughts = [f"thought {z}" for z in range(self.rationales)]
        seeds = [
            Annotated((f"concept {c}",), thoughts[int(rng.integers(self.rationales))], f"problem {x}")
            for c in range(self.concepts)
            for x in rng.choice(self.problems, self.seeds, replace=False)
        ]
        problems = [Annotated((), "", f"problem {x}") for x in range(self.problems)]
        generator = Factored({p.joint(z): (z, p.problem) for p in problems for z in thoughts}, self.rate, rng)
        posterior = Table(thoughts, self.rate, rng)
        learn(generator, posterior, seeds, self.rounds, int(arm["k"]), seed)
        likelihood, bound = [], []
        for one in seeds:
            joint = np.array(generator.score([(one.given, one.joint(z)) for z in thoughts]))
            likelihood.append(float(np.log(np.exp(joint).sum())))
            bound.append(elbo(joint, posterior.row(one.asked)))
        return {"likelihood": float(np.mean(likelihood)), "bound": float(np.mean(bound))}
