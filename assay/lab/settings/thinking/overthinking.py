"""Thoughts that go on after the solution is there, until they overturn it or run out of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting, Noisy
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task

END, USEFUL, IDLE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is a thought of useful and idle tokens, its end, and one of ``answers`` answers.

    The solution stands after ``need`` useful tokens. Every further token is a check, which with a fixed chance loses
    it: all useful tokens are then needed anew. An answer is right if it is the task's reference and the solution
    stands. A response is cut after ``longest`` tokens. At the start the policy solves readily and is reluctant to end,
    and it is sure of the reference where the solution stands; the rest is random.

    A text ``0`` ends a thought, so that an arm that ends thoughts by force says so with ``end = "0"``,
    ``forced = "0"``, ``header = ""`` and ``judged = "response"``. An arm may give a table ``setting`` with a ``group``
    of its own, as long as the rollouts in all are the same.

    Args:
        longest: tokens of a response.
        need: useful tokens to the solution.
        overturn: chance that a check loses it; drawn once for each thought, not anew each time.
        answers: to choose from.
        sure: probability of the reference at the start where the solution stands.
        skill: added to the logit of the useful token at the start where it does not.
        reluctance: subtracted from the logit of the end at the start.
        spread: standard deviation of the logits of thoughts at the start.
        noise: how often the verifier errs, drawn anew each time.
        steps, prompts, group, lr, optimizer: of training.
    """

    longest: int = 7
    need: int = 2
    overturn: float = 0.3
    answers: int = 4
    sure: float = 0.99
    skill: float = 2.0
    reluctance: float = 1.0
    spread: float = 0.3
    noise: float = 0.3
    steps: int = 40
    prompts: int = 1
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, and as ``NAME/area`` their means over training.

        ``right``: probability of a right answer; ``prompt``: of one without a check before it; ``checks``: expected
        number of checks; ``length``: expected tokens of a response; ``efficiency``: ``right`` over ``length``;
        ``anytime``: mean probability of a right answer where thoughts that have not ended after 0, 1, ... ``longest`` -
        1 tokens are ended by force; ``start`` is ``right`` before training, ``rollouts`` what was sampled, answers that
        are not learned from among it.
        """
        method = {**arm}
        knobs = dict(method.pop("setting", {}))
        if set(knobs) - {"group"}:
            raise UsageError("an arm may change the group of its setting alone")
        return replace(self, **knobs)._run(method, seed)

    def _run(self, method: Mapping[str, Any], seed: int) -> dict[str, float]:
        policy, key = self.policy(seed)
        worth, nodes = self.worth(policy.tree, seed), self.nodes(policy.tree, key)
        before = self.measure(policy, worth, nodes, key)
        curve: list[dict[str, float]] = []
        engine = Counting(policy)

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(self.measure(policy, worth, nodes, key))

        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer, max_tokens=self.longest)
        tasks = [Task(str(i), "", reference=str(key), kind="tabular") for i in range(self.prompts)]
        verifier = Noisy(TabularVerifier(policy.tree), self.noise, self.noise, seed)
        train(policy, tasks, verifier, method, training, seed, watch, engine)
        area = {f"{name}/area": float(np.mean([now[name] for now in curve])) for name in curve[-1]}
        return {**curve[-1], **area, "start": before["right"], "rollouts": engine.sampled}

    def policy(self, seed: int) -> tuple[TabularPolicy, int]:
        """Return the policy at the start, and the token of the reference."""
        rng = np.random.default_rng([seed, 7])
        key = int(rng.integers(self.answers))

        def node(thought: tuple[int, ...]) -> Any:
            stands = self.states(thought, seed)[-1] >= self.need
            answers = [float(stands and a == key) for a in range(self.answers)]
            if len(thought) == self.longest:
                return [answers]
            return [answers, node((*thought, USEFUL)), node((*thought, IDLE))]

        tree = Tree.of(node(()))
        logits = torch.from_numpy(self.spread * rng.standard_normal(tuple(tree.children.shape)))
        for thought in thoughts(self.longest):
            here, answering = tree.node(thought), tree.node([*thought, END])
            assert here is not None and answering is not None
            logits[here, END] -= self.reluctance
            logits[answering] = 0.0
            if self.states(thought, seed)[-1] >= self.need:
                logits[answering, key] = float(np.log(self.sure * (self.answers - 1) / (1 - self.sure)))
            elif len(thought) < self.longest:
                logits[here, USEFUL] += self.skill
        return TabularPolicy(tree, logits), key

    def states(self, thought: tuple[int, ...], seed: int) -> list[int]:
        """Return how many useful tokens count before and after each token of a thought."""

        def then(done: int, at: int) -> int:
            if done < self.need:
                return done + (thought[at] == USEFUL)
            lost = np.random.default_rng([seed, 29, *thought[: at + 1]]).random() < self.overturn
            return 0 if lost else done

        return list(accumulate(range(len(thought)), then, initial=0))

    def worth(self, tree: Tree, seed: int) -> dict[str, torch.Tensor]:
        """Return what each leaf counts for in each measure that is an expectation."""
        rows = []
        for path, reward in zip(tree.paths, tree.rewards.tolist(), strict=True):
            thought = path[: path.index(END)][: self.longest]
            checks = sum(done >= self.need for done in self.states(thought, seed)[:-1])
            right = reward * (len(path) <= self.longest)
            rows.append((right, checks, min(len(path), self.longest), right * (checks == 0)))
        columns = torch.tensor(rows, dtype=torch.float64).T
        return dict(zip(("right", "checks", "length", "prompt"), columns, strict=True))

    def nodes(self, tree: Tree, key: int) -> np.ndarray:
        """Return of each thought, as :func:`thoughts` orders them, its node, its answers', and the key's reward."""
        out = []
        for thought in thoughts(self.longest):
            here, answering = tree.node(thought), tree.node([*thought, END])
            assert here is not None and answering is not None
            out.append((here, answering, float(tree.rewards[-1 - int(tree.children[answering, key])])))
        return np.array(out)

    def measure(
        self, policy: TabularPolicy, worth: Mapping[str, torch.Tensor], nodes: np.ndarray, key: int
    ) -> dict[str, float]:
        """Return the exact measures."""
        with torch.no_grad():
            chance = policy.leaf_logprobs().exp()
            p = policy.log_policy().exp().numpy()
        out = {name: float((chance * values).sum()) for name, values in worth.items()}
        here, answering = nodes[:, 0].astype(int), nodes[:, 1].astype(int)
        answer = p[answering, key] * nodes[:, 2]
        # Thought i goes on as 2 i + 1 with a useful token and as 2 i + 2 with an idle one.
        reached = np.ones(len(nodes))
        for i in range(1, len(nodes)):
            reached[i] = reached[(i - 1) // 2] * p[here[(i - 1) // 2], USEFUL if i % 2 else IDLE]
        forced, ended, at = reached * answer, reached * p[here, END] * answer, []
        for b in range(self.longest):
            cut = slice(2**b - 1, 2 ** (b + 1) - 1)
            at.append(float(forced[cut].sum() + ended[: 2**b - 1].sum()))
        return {**out, "efficiency": out["right"] / out["length"], "anytime": float(np.mean(at))}


def thoughts(longest: int) -> list[tuple[int, ...]]:
    """Every thought of up to this many tokens, the shorter ones first."""
    out: list[tuple[int, ...]] = [()]
    for path in out:
        if len(path) < longest:
            out += [(*path, USEFUL), (*path, IDLE)]
    return out
