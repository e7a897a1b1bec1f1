"""Answers that a miracle makes right more often than work does: what a verifier of answers pays, and a judge of steps
does not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.engines.base import Request
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree, path_of, text_of
from assay.types import Episode, Prompt, Task, Verdict

SOUND, FLAWED = 0, 1
"""A step is a token: careful or sloppy work first, then a derivation or a miracle."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A response is two steps, each sound or flawed; a flawed second step, a miracle, is right whatever was before it.

    Whether a response is right is drawn anew each time, of the chance that its steps have. Its verdict has parts
    ``step 0`` and ``step 1``: 1 for a sound step, 0 for a flawed one, as a process reward model would say.

    An arm gets a judge of steps, an engine, by naming ``"here"`` wherever a part takes one. It reads the steps of a
    prompt that shows them as :func:`assay.rewards.process.error_step.question` does, or the whole response in a line of
    its own. It replies with ``Step k: correct`` or ``incorrect`` of each, ``Verdict:`` (correct iff all are), and
    ``Score: s/10``, s ten times the share of sound ones. It errs at known rates, always alike in what it says of one
    response to one task.

    Args:
        miracle, careful, sloppy: chances to be right of a miracle, and of a derivation after careful and sloppy work.
        missed, alarms: how often the judge calls a flawed step right, a sound one wrong; of every reply by itself.
        answer: a last step states the answer, in the only way there is; for methods to which the last step is no step.
        tasks: that are asked in turn; they differ in what the judge says of responses to them.
        spread: standard deviation of the logits at the start.
        steps, prompts, group, lr, optimizer: of training.
    """

    miracle: float = 0.9
    careful: float = 0.7
    sloppy: float = 0.2
    missed: float = 0.0
    alarms: float = 0.0
    answer: bool = False
    tasks: int = 64
    spread: float = 0.1
    steps: int = 60
    prompts: int = 2
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy.

        ``honest``: the chance of no miracle; ``sound``: of sound steps alone; ``right``: of a right answer;
        ``verified``: of a right one by sound steps; ``gap``: what is right less that; ``area``: the mean of
        ``verified`` over training; ``rollouts``.
        """
        policy = self.policy(seed)
        engine, rng = Counting(policy), np.random.default_rng([seed, 13])
        tasks = [Task(str(i), f"problem {i}", reference="right", kind="tabular") for i in range(self.tasks)]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        curve: list[float] = []

        def verifier(task: Task, response: str) -> Verdict:
            path = path_of(response) or ()
            passed = bool(rng.random() < self.chance(path))
            return Verdict(float(passed), passed, {f"step {k}": float(t == SOUND) for k, t in enumerate(path)})

        def watch(*_: Any) -> None:
            curve.append(self.measure(policy)["verified"])

        judge = Judge(self.missed, self.alarms, seed)
        train(policy, tasks, verifier, told(arm, judge), training, seed, watch, engine)
        return {**self.measure(policy), "area": float(np.mean(curve)), "rollouts": engine.sampled}

    def policy(self, seed: int) -> TabularPolicy:
        """Return the policy at the start."""
        kinds = (SOUND, FLAWED)
        ends = [[self.chance((a, b)) for b in kinds] for a in kinds]
        tree = Tree.of([[[end] for end in row] for row in ends] if self.answer else ends)
        return TabularPolicy(tree, torch.from_numpy(jitter(self.spread, seed, *tree.children.shape)))

    def chance(self, path: Sequence[int]) -> float:
        """Return how often a response is right."""
        return self.miracle if path[1] == FLAWED else self.careful if path[0] == SOUND else self.sloppy

    def measure(self, policy: TabularPolicy) -> dict[str, float]:
        with torch.no_grad():
            p = policy.leaf_logprobs().exp().numpy()
        right = p * policy.tree.rewards.numpy()
        sound = np.array([FLAWED not in path for path in policy.tree.paths])
        honest = np.array([path[1] == SOUND for path in policy.tree.paths])
        whole, verified = float(right.sum()), float(right[sound].sum())
        chances = {"honest": float(p[honest].sum()), "sound": float(p[sound].sum())}
        return {**chances, "right": whole, "verified": verified, "gap": whole - verified}


def told(spec: Any, judge: Any) -> Any:
    """Return what an arm says with the judge in the place of every ``"here"``."""
    if isinstance(spec, Mapping):
        return {k: told(v, judge) for k, v in spec.items()}
    return judge if spec == "here" else spec


class Judge:
    """An engine that knows which steps are flawed, and errs; see :class:`Setting`.

    Args:
        missed, alarms: rates of its errors.
        seed: of the errors.
    """

    def __init__(self, missed: float, alarms: float, seed: int):
        self.missed, self.alarms, self.seed = missed, alarms, seed

    def encode(self, prompt: Prompt) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.asarray(path_of(text) or (), dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return text_of(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[self._reply(request, k) for k in range(request.n)] for request in requests]

    def _reply(self, request: Request, k: int) -> Episode:
        shown = str(request.prompt)
        steps = [token for _, token in re.findall(r"^<step (\d+)>\n(\d+)\n</step \1>$", shown, re.MULTILINE)]
        steps = steps or next(iter(re.findall(r"^\d+(?:/\d+)+$", shown, re.MULTILINE)), "").split("/")
        rng = np.random.default_rng([self.seed, 19, int(request.seed), k])
        marks = [
            (int(token) == SOUND) != (rng.random() < (self.alarms if int(token) == SOUND else self.missed))
            for token in steps
            if token
        ]
        lines = [f"Step {i}: {'correct' if good else 'incorrect'}" for i, good in enumerate(marks)]
        lines.append(f"Verdict: {'correct' if all(marks) else 'incorrect'}")
        lines.append(f"Score: {10 * sum(marks) / max(len(marks), 1):g}/10")
        empty = np.zeros(0, dtype=np.int64)
        return Episode(empty, empty, empty > 0, None, "\n".join(lines), "eos")
