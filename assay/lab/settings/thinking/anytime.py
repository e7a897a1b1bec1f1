"""Thoughts of a few tokens that may be cut short: how good is the answer at every length?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular import TabularVerifier
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.types import Task, Verdict

END, USEFUL, IDLE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is a thought of up to ``longest`` tokens, useful or idle, its end, and one of ``answers`` answers.

    The right answer is the same after every thought. At the start its logit after a thought grows by ``gain`` with each
    useful token in it, from ``margin`` below the others; the rest of the policy starts at random. A text ``0`` ends a
    thought, and is no answer, so that an arm that cuts thoughts says ``end = "0"``, ``forced = "0"``, ``header = ""``,
    ``stop = false`` and ``judged = "response"``.

    With ``enough``, answers cannot be learned by heart: whichever is given, it is right with the probability
    1/``answers`` after an idle thought and 1 after ``enough`` useful tokens, linear in between, drawn anew each time.
    Then only thinking is learned.

    Args:
        longest: tokens of a thought, after which only its end is left.
        answers: to choose from.
        gain, margin: see above.
        enough: useful tokens after which an answer is right; ``None`` for answers that are learned.
        eager: added to the logit of ending a thought, at the start.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    longest: int = 4
    answers: int = 4
    gain: float = 1.0
    margin: float = 1.0
    enough: int | None = None
    eager: float = 0.0
    spread: float = 0.3
    steps: int = 60
    prompts: int = 4
    group: int = 4
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact accuracies of the trained policy when thoughts that have not ended at a budget are ended there.

        ``at B`` for B = 1 ... ``longest``; ``anytime``: their mean weighed by B; ``start``: that at the start;
        ``rollouts``: thoughts and answers sampled.
        """
        policy, right = self.policy(seed)
        engine = Counting(policy)
        before = self.measure(policy, right)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer, max_tokens=self.longest)
        tasks = [Task(str(i), "", kind="tabular") for i in range(self.prompts)]
        rng = np.random.default_rng([seed, 11])

        def judge(task: Task, response: str) -> Verdict:
            useful = (path_of(response) or ())[:-1].count(USEFUL)
            return Verdict.right() if rng.random() < self.insight(useful) else Verdict.wrong()

        verifier = TabularVerifier(policy.tree) if self.enough is None else judge
        train(policy, tasks, verifier, arm, training, seed, engine=engine)
        return {**self.measure(policy, right), "start": before["anytime"], "rollouts": engine.sampled}

    def policy(self, seed: int) -> tuple[TabularPolicy, int]:
        """Return the policy at the start, and the token of the right answer."""
        rng = np.random.default_rng([seed, 7])
        right = 1 + int(rng.integers(self.answers))

        def node(size: int) -> Any:
            answers = [float(a == right) for a in range(self.answers + 1)]
            return [answers] if size == self.longest else [answers, node(size + 1), node(size + 1)]

        tree = Tree.of(node(0))
        logits = torch.from_numpy(self.spread * rng.standard_normal(tuple(tree.children.shape)))
        for path in thoughts(self.longest):
            answering = tree.node([*path, END])
            assert answering is not None
            logits[answering, right] += self.gain * path.count(USEFUL) - self.margin
            thinking = tree.node(path)
            assert thinking is not None
            logits[thinking, END] += self.eager
        return TabularPolicy(tree, logits), right

    def insight(self, useful: int) -> float:
        """Return the chance that an answer is right after so many useful tokens, where it is not learned."""
        least = 1 / self.answers
        return least + (1 - least) * min(useful / (self.enough or 1), 1.0)

    def measure(self, policy: TabularPolicy, right: int) -> dict[str, float]:
        """Return the exact accuracies."""
        p = policy.log_policy().detach().exp()
        at = np.zeros(self.longest + 1)

        def visit(path: tuple[int, ...], chance: float) -> None:
            here, answering = policy.tree.node(path), policy.tree.node([*path, END])
            assert here is not None and answering is not None
            answer = float(p[answering, right]) if self.enough is None else self.insight(path.count(USEFUL))
            stop = float(p[here, END])
            # Cut here, or ended here by itself and so the same at every budget beyond.
            at[len(path)] += chance * answer
            at[len(path) + 1 :] += chance * stop * answer
            if len(path) < self.longest:
                for token in (USEFUL, IDLE):
                    visit((*path, token), chance * float(p[here, token]))

        visit((), 1.0)
        budgets = np.arange(1, self.longest + 1)
        return {
            "anytime": float(np.average(at[1:], weights=budgets)),
            **{f"at {b}": float(at[b]) for b in budgets},
        }


def thoughts(longest: int) -> list[tuple[int, ...]]:
    """Every thought of up to this many tokens."""
    out: list[tuple[int, ...]] = [()]
    for path in out:
        if len(path) < longest:
            out += [(*path, USEFUL), (*path, IDLE)]
    return out
