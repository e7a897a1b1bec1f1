"""Questions with moves of their own and fillers that would fit any question; the policy also knows no question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.types import Prompt, Task, Verdict

FINISH = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is up to ``longest`` tokens: finish, the move of one of the questions, or one of the fillers.

    It is right if it finishes after at least ``need`` moves of its own question. The policy starts with the same
    logits at every node of a question: ``own`` for its move, ``other`` for those of other questions, 0 for the rest,
    and normal noise. Without a question, which is what an empty prompt is, it is the mixture of all questions as they
    are at the start, token by token; nothing trains that.

    Args:
        questions: all asked in every step.
        fillers: tokens that do nothing.
        longest, need: see above.
        own, other: logits at the start.
        spread: standard deviation of the noise.
        steps, group, lr, optimizer: of training.
    """

    questions: int = 3
    fillers: int = 2
    longest: int = 4
    need: int = 1
    own: float = 1.0
    other: float = -1.0
    spread: float = 0.3
    steps: int = 100
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over questions.

        ``solved``: probability of a right response; ``fillers``: expected number of fillers, and ``concise`` its
        negative; ``length``: expected tokens; ``start/...`` of these; ``rollouts``.
        """
        policy = self.policy(seed)
        before = self.measure(policy)
        engine = Asked(policy, self.questions)
        training = Training(self.steps, self.questions, self.group, self.lr, self.optimizer)
        tasks = [Task(str(i), str(i), reference="right", kind="tabular") for i in range(self.questions)]
        train(policy, tasks, self.verdict, arm, training, seed, engine=engine)
        return {
            **self.measure(policy),
            **{f"start/{k}": v for k, v in before.items()},
            "rollouts": engine.sampled,
        }

    def policy(self, seed: int) -> TabularPolicy:
        """Return the policy at the start; the last child of its root is the absence of a question."""
        tokens = 1 + self.questions + self.fillers

        def node(i: int, path: tuple[int, ...]) -> Any:
            if path and (path[-1] == FINISH or len(path) == self.longest):
                return float(i < self.questions and self.solves(i, path))
            return [node(i, (*path, token)) for token in range(tokens)]

        tree = Tree.of([node(i, ()) for i in range(self.questions + 1)])
        rng = np.random.default_rng([seed, 7])
        logits = self.spread * rng.standard_normal(tuple(tree.children.shape))
        children = tree.children.tolist()
        todo = [(tuple(children[0][: self.questions + 1]), np.full(self.questions, 1 / self.questions))]
        while todo:
            nodes, reach = todo.pop()
            for i, here in enumerate(nodes[:-1]):
                logits[here, 1 : 1 + self.questions] += self.other
                logits[here, 1 + i] += self.own - self.other
            p = np.exp(logits[list(nodes[:-1]), :tokens])
            joint = reach[:, None] * p / p.sum(1, keepdims=True)
            logits[nodes[-1], :tokens] = np.log(joint.sum(0) / joint.sum())
            for token in range(tokens):
                following = tuple(children[here][token] for here in nodes)
                if following[0] > 0:
                    todo.append((following, joint[:, token]))
        return TabularPolicy(tree, torch.from_numpy(logits))

    def solves(self, question: int, path: tuple[int, ...]) -> bool:
        """Whether a response to a question is right."""
        return path[-1] == FINISH and path.count(1 + question) >= self.need

    def verdict(self, task: Task, response: str) -> Verdict:
        """Return the true verdict."""
        path = path_of(response) or ()
        return Verdict.right() if path and self.solves(int(task.id), path) else Verdict.wrong()

    def measure(self, policy: TabularPolicy) -> dict[str, float]:
        with torch.no_grad():
            p = policy.leaf_logprobs().exp().numpy()
        totals = np.zeros(3)
        shares = np.zeros(self.questions + 1)
        np.add.at(shares, [path[0] for path in policy.tree.paths], p)
        for weight, (i, *rest) in zip(p, policy.tree.paths, strict=True):
            if i < self.questions:
                idle = sum(token > self.questions for token in rest)
                totals += weight / shares[i] * np.array([self.solves(i, tuple(rest)), idle, len(rest)])
        solved, idle, length = (totals / self.questions).tolist()
        return {"solved": solved, "fillers": idle, "concise": -idle, "length": length}


class Asked(Counting):
    """An engine to which an empty prompt is the absence of a question, ``questions`` being the child it leads to."""

    def __init__(self, policy: TabularPolicy, questions: int):
        super().__init__(policy)
        self.questions = questions

    def encode(self, prompt: Prompt) -> np.ndarray:
        return np.asarray([self.questions], dtype=np.int64) if prompt == "" else super().encode(prompt)
