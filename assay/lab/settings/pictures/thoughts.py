"""States, thoughts about them and actions: what becomes of thoughts when actions alone are rewarded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.base import Engine, Sampling
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting, beside
from assay.objectives.turns.thoughts import GuidedThought
from assay.policies.tabular import TabularPolicy, Tree
from assay.rollout.single_turn import SingleTurn
from assay.rollout.turns.corrected import THOUGHT
from assay.rollout.turns.labelling import label_of
from assay.select.labels import Labels
from assay.types import Ask, Group, Span, Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """In each of ``states`` states the policy says one of as many thoughts, and then takes one of as many actions.

    Thought s is the right one in state s, and there action s pays. At the start thoughts are right somewhat more often
    than others (``seen``), and actions follow the thought (``follows``), whatever the state: the logit of the action
    that a thought names is so much higher. An arm is how much the right thought is imitated.

    Args:
        states: see above.
        seen, follows: logits at the start.
        spread: standard deviation of all logits at the start.
        steps, group, lr: of training; each state is asked once a step.
    """

    states: int = 5
    seen: float = 0.5
    follows: float = 1.0
    spread: float = 0.3
    steps: int = 100
    group: int = 8
    lr: float = 1.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``distinct``, the exponential of the mutual information of states and thoughts by the number of
        states, 1 where every state has its own thought; ``right``, the mean probability of the right thought;
        ``reward``, of the action that pays; each before training too (``start``, of ``distinct``); ``rollouts``.
        """
        policy = self.policy(seed)
        tasks = [Task(str(s), str(s), s, kind="thoughts") for s in range(self.states)]
        start, engine = self.distinct(policy), Counting(policy)
        method = {
            "rollout": Corrections(),
            "credit": {"name": "grpo", "normalise": False},
            "select": Labels("played", replayed=self.states * self.group),
            "objective": GuidedThought(**arm),
        }
        training = Training(self.steps, self.states, self.group, self.lr)
        train(policy, tasks, paid, method, training, seed, engine=engine)
        p, pays = self.chances(policy)
        return {
            "start": start,
            "distinct": self.distinct(policy),
            "right": float(np.mean(np.diag(p))),
            "reward": float(np.mean(pays)),
            "rollouts": float(engine.sampled),
        }

    def policy(self, seed: int) -> TabularPolicy:
        n = self.states
        tree = beside([Tree.uniform(n, 2, [float(a == s) for _ in range(n) for a in range(n)]) for s in range(n)])
        logits = jitter(self.spread, seed, *tree.children.shape)
        for s in range(n):
            logits[tree.node([s]), s] += self.seen
            for h in range(n):
                logits[tree.node([s, h]), h] += self.follows
        return TabularPolicy(tree, torch.from_numpy(logits))

    def chances(self, policy: TabularPolicy) -> tuple[np.ndarray, np.ndarray]:
        """Return P(thought | state), ``(states, states)``, and the probability in each state of what pays."""
        n, tree = self.states, policy.tree
        with torch.no_grad():
            p = policy.log_policy().exp().numpy()
        thoughts = np.stack([p[tree.node([s]), :n] for s in range(n)])
        pays = np.array([[p[tree.node([s, h]), s] for h in range(n)] for s in range(n)])
        return thoughts, (thoughts * pays).sum(-1)

    def distinct(self, policy: TabularPolicy) -> float:
        p, _ = self.chances(policy)
        overall = p.mean(0)
        information = float((p * np.log(p.clip(1e-300) / overall.clip(1e-300))).sum(-1).mean())
        return float(np.exp(information)) / self.states


class Corrections:
    """A rollout of one turn, a thought and an action, and of the right thought of every state as a label."""

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        out = []
        for group in SingleTurn(Sampling(2)).collect(asks, engine, rng):
            episodes = tuple(replace(e, spans=(Span(THOUGHT, 0, 1),)) for e in group.episodes)
            right = np.array([int(group.task.reference)], dtype=np.int64)
            labels = tuple(label_of(e.prompt, right) for e in episodes)
            task = replace(group.task, id=f"{group.task.id}/labels", parent=group.task.id)
            wrong = (Verdict.wrong(),) * len(labels)
            out += [replace(group, episodes=episodes), Group(replace(group.ask, task=task), labels, wrong)]
        return out


def paid(task: Task, response: str) -> Verdict:
    """Right for the action that pays in the state, whatever was thought."""
    return Verdict.right() if response.split("/")[-1] == str(task.reference) else Verdict.wrong()
