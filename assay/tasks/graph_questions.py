"""Questions about a knowledge graph: facts around a masked entity, which is to be told from others of its type."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

Fact = tuple[str, str, str]
TRIES = 1000
MASK = "[?]"


@part("tasks", "graph_questions")
class GraphQuestions:
    """Endless questions: which entity is at ``[?]`` in a connected part of a graph, to be chosen from some of its type.

    The masked entity is drawn with weight 1 / degree^rare, so that seldom mentioned ones are asked of more often. The
    part grows from it by facts that touch what is there already, and holds at least two of its own facts where it has
    them. The others to choose from are of its type and do not fit all of the facts that name it, so that one answer is
    right; its name stands nowhere in the facts. Judged by verifier ``choice``; the solution says facts and answer.

    Args:
        path: JSON lines with ``head``, ``relation``, ``tail`` and, if known, ``head_type``, ``tail_type``.
        facts: of a question, at most; ``meta["difficulty"]`` says how many there are.
        choices: to choose from, the answer among them; at least 2.
        rare: exponent of the weights; 0 draws evenly.
        seed: of the draws.

    Raises:
        UsageError: a file that cannot be read, an option out of range, or no entity with others of its type.
    """

    def __init__(self, path: str, facts: int = 3, choices: int = 4, rare: float = 1.0, seed: int = 0):
        check_seed("tasks 'graph_questions'", seed)
        if facts < 1 or not 2 <= choices <= 26 or rare < 0:
            raise UsageError("tasks 'graph_questions': facts >= 1, choices from 2 to 26 and rare >= 0, please")
        self.facts_shown, self.choices, self.rare, self.seed = facts, choices, rare, seed
        self.facts, self.types = read_graph(Path(path))
        self.about: dict[str, list[int]] = {}
        for i, (head, _, tail) in enumerate(self.facts):
            for entity in dict.fromkeys((head, tail)):
                self.about.setdefault(entity, []).append(i)
        self.entities = list(self.about)
        if not any(len(self._alike(entity)) for entity in self.entities):
            raise UsageError(f"tasks 'graph_questions': {path} has no two entities of one type")

    @property
    def size(self) -> None:
        return None

    @cached_property
    def weights(self) -> np.ndarray:
        """The chance of each entity to be masked, before questions that cannot be asked are drawn anew."""
        w = np.array([len(self.about[entity]) ** -self.rare for entity in self.entities])
        return np.asarray(w / w.sum())

    def __getitem__(self, index: int) -> Task:
        check_index(index, None)
        rng = generator(self.seed, index, 5)
        for _ in range(TRIES):
            masked = self.entities[int(rng.choice(len(self.entities), p=self.weights))]
            shown = self._part(masked, rng)
            others = [e for e in self._alike(masked) if not self._fits(e, masked, shown)]
            spoken = [" ".join(MASK if word == masked else word for word in self.facts[i]) for i in shown]
            if others and not any(masked.lower() in fact.lower() for fact in spoken):
                return self._task(index, masked, spoken, others, rng)
        raise UsageError("tasks 'graph_questions': no question with one answer was found; show more facts")

    def _part(self, masked: str, rng: np.random.Generator) -> list[int]:
        """Grow a connected set of facts from an entity: two of its own first, then any that touch what is there."""
        own = [self.about[masked][i] for i in rng.permutation(len(self.about[masked]))]
        shown = own[: min(2, self.facts_shown)]
        while len(shown) < self.facts_shown:
            there = {e for i in shown for e in (self.facts[i][0], self.facts[i][2])}
            near = sorted({i for e in there for i in self.about[e]} - set(shown))
            if not near:
                break
            shown.append(near[int(rng.integers(len(near)))])
        return shown

    def _alike(self, entity: str) -> list[str]:
        kind = self.types.get(entity)
        return [other for other in self.entities if other != entity and self.types.get(other) == kind]

    def _fits(self, other: str, masked: str, shown: Sequence[int]) -> bool:
        """Whether another entity could stand in the masked one's place in every fact that is shown."""
        known = set(self.facts)
        mine = [self.facts[i] for i in shown if masked in (self.facts[i][0], self.facts[i][2])]
        return all(
            (other if head == masked else head, relation, other if tail == masked else tail) in known
            for head, relation, tail in mine
        )

    def _task(
        self, index: int, masked: str, spoken: Sequence[str], others: Sequence[str], rng: np.random.Generator
    ) -> Task:
        drawn = [others[i] for i in rng.permutation(len(others))[: self.choices - 1]]
        options = [[masked, *drawn][i] for i in rng.permutation(len(drawn) + 1)]
        label = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[options.index(masked)]
        listed = "\n".join(f"{'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[i]}. {option}" for i, option in enumerate(options))
        facts = "\n".join(f"- {fact}" for fact in spoken)
        return Task(
            id=f"graph/{self.seed}/{index}",
            prompt=f"One thing is hidden behind {MASK}:\n{facts}\nWhich is it?\n{listed}\n"
            "Think, then put the letter of your answer in \\boxed{}.",
            reference={"answer": label, "options": options},
            kind="choice",
            solution="\n".join(
                [*(f.replace(MASK, masked) + "." for f in spoken), f"It is {masked}: \\boxed{{{label}}}"]
            ),
            meta={"source": "graph", "difficulty": len(spoken), "entity": masked, "degree": len(self.about[masked])},
        )


def read_graph(path: Path, who: str = "tasks 'graph_questions'") -> tuple[list[Fact], dict[str, str]]:
    """Return the facts of a file, and the type of each entity that has one.

    Raises:
        UsageError: it cannot be read, or a line is no fact.
    """
    facts: dict[Fact, None] = {}
    types: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{who}: {path} cannot be read: {error}") from None
    for number, line in enumerate(filter(str.strip, lines), 1):
        try:
            row: Mapping[str, Any] = json.loads(line)
            head, relation, tail = (str(row[key]) for key in ("head", "relation", "tail"))
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"{path} line {number} is no fact: it needs head, relation and tail") from None
        facts[head, relation, tail] = None
        types |= {row[end]: str(row[f"{end}_type"]) for end in ("head", "tail") if row.get(f"{end}_type")}
    if not facts:
        raise UsageError(f"{who}: {path} has no facts")
    return list(facts), types
