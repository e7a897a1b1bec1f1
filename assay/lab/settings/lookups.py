"""Questions that are answered by searching, by a policy that reads: what it has found makes the answer likelier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular_turns import TabularTurns
from assay.environments.base import Action
from assay.errors import UsageError
from assay.lab.settings._tabular import jitter
from assay.lab.settings.environment import Setting as Played
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rollout.turns.enumerated import enumerated
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """Questions of one fact over the corpus of environment ``search``, each asked in up to ``turns`` turns.

    A turn searches for what one of the questions is about, or gives one of ``values`` answers, the right ones of all
    questions among them. A tabular policy plays it, one softmax for everything that went before; its logits begin
    normal with deviation ``spread``. It can read: the logit of the right answer is ``gain`` higher wherever the article
    that tells it has been shown.

    An arm is a ``[method]`` table. Answers stand in ``<answer>`` and ``</answer>``, by which a signal asks for them.

    Args:
        questions, values: see above.
        turns: of an episode.
        gain, spread: see above.
        seed: of the corpus and the questions.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: fewer values than questions.
    """

    questions: int = 4
    values: int = 16
    turns: int = 3
    gain: float = 3.0
    spread: float = 0.3
    seed: int = 0
    steps: int = 60
    prompts: int = 4
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if self.values < self.questions:
            raise UsageError(f"setting 'lookups': {self.values} values cannot answer {self.questions} questions")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return what setting ``environment`` does."""
        tasks, words = self.questions_and_words()
        played = Reading(
            environment=self.world,
            words=(words,),
            tasks=[int(task.id.rpartition("/")[2]) for task in tasks],
            turns=self.turns,
            spread=self.spread,
            steps=self.steps,
            prompts=self.prompts,
            group=self.group,
            lr=self.lr,
            optimizer=self.optimizer,
            gain=self.gain,
        )
        return played.run(arm, seed, folder)

    @property
    def world(self) -> dict[str, Any]:
        """The environment's name and options."""
        return {"name": "search", "hops": 1, "documents": 20, "shown": 1, "protocol": "tags", "seed": self.seed}

    def questions_and_words(self) -> tuple[list[Task], list[str]]:
        """Return the questions, on different things with different answers, and all that can be said in a turn."""
        source = build("environment", self.world).tasks()
        tasks: list[Task] = []
        values: list[str] = []
        subjects: set[str] = set()
        index = 0
        while len(values) < self.values:
            task = source[index]
            index += 1
            if task.reference in values or {*task.meta["entities"]} & subjects:
                continue
            values.append(task.reference)
            if len(tasks) < self.questions:
                tasks.append(task)
                subjects |= {*task.meta["entities"]}
        searches = [f"<search>{task.meta['entities'][0]}</search>" for task in tasks]
        return tasks, [*searches, *(f"<answer>{value}</answer>" for value in sorted(values))]


@dataclass(frozen=True, slots=True)
class Reading(Played):
    """Setting ``environment`` with a policy that reads, see :class:`Setting`."""

    gain: float = 0.0

    def player(self, seed: int) -> tuple[TabularTurns, list[Task]]:
        world = build("environment", self.environment)
        source = world.tasks()
        tasks = [source[i] for i in self.tasks or ()]
        tree, openings = enumerated(world, tasks, self.words, self.turns)
        policy = Worded(tree, self.words[0])
        with torch.no_grad():
            policy.logits.copy_(torch.from_numpy(jitter(self.spread, seed, *policy.logits.shape)))
            policy.logits[0] = 0.0  # which question it is: nobody's choice
            for node, token in self.read(world, tasks, tree):
                policy.logits[node, token] += self.gain
        return TabularTurns(policy, self.words, openings), tasks

    def read(self, world: Any, tasks: Sequence[Task], tree: Tree) -> Iterator[tuple[int, int]]:
        """Yield the nodes at which the article that tells has been shown, each with the right answer's token."""
        words = list(self.words[0])
        for k, task in enumerate(tasks):
            right = words.index(f"<answer>{task.reference}</answer>")
            for turns in range(1, self.turns):
                for said in product(range(len(words)), repeat=turns):
                    if any(words[w].startswith("<answer>") for w in said):
                        continue
                    world.reset(task, 0)
                    for w in said:
                        world.step(Action(words[w]))
                    node = tree.node([k, *said])
                    if {*task.meta["evidence"]} <= {*world.seen} and node is not None:
                        yield node, right
            world.close()


class Worded(TabularPolicy):
    """A tabular policy whose tokens are words, so that a signal may ask how likely a text is."""

    def __init__(self, tree: Tree, words: Sequence[str]):
        super().__init__(tree)
        self.words = list(words)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        """Return the token of a text that is one of the words, none of any other."""
        return np.array([self.words.index(text)] if text in self.words else [], dtype=np.int64)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        return "".join(self.words[int(t)] for t in tokens)
