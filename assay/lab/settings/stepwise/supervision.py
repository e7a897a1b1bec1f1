"""Solutions in steps of which it is known where they go wrong, for what learns that from completions alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request, Sampling
from assay.inference.search.stepping import Stepping
from assay.inference.supervision.completing import Completer
from assay.inference.supervision.prefixes import PrefixTree
from assay.inference.supervision.train import SEARCHES
from assay.policies.tabular import text_of
from assay.registry import call
from assay.signals.steps import Steps
from assay.types import Episode, Prompt, Stop, Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """A response has ``depth`` steps, each in one of many wordings, right or wrong; it is right if all of them are.

    The policy takes a right step with a chance that is drawn anew after every beginning. Two responses hardly ever
    begin alike. An arm says how beginnings are chosen, ``search``: a name with options.

    Args:
        problems: to be solved.
        depth: steps of a response.
        wordings: of a right step, and of a wrong one.
        skill: chance of a right step, before its logit is shifted; about half of the responses are right.
        spread: standard deviation of the shift.
        luck: share of responses with a wrong step that are right all the same.
    """

    problems: int = 8
    depth: int = 16
    wordings: int = 50
    skill: float = 0.97
    spread: float = 1.0
    luck: float = 0.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return what a search found out.

        ``located``: first errors of a problem that are known to be there, a beginning with a right completion and its
        next step without one, and are; ``false``: those that are not; ``calls``: completions of a problem;
        ``rate``: located errors for a hundred completions; ``share``: of the first completions, those that are right.
        """
        table = dict(arm["search"])
        search = call(SEARCHES[table.pop("name")], table, "search")
        engine = Solver(self, seed)
        completer = Completer(engine, engine.verdict, Sampling(self.depth), Steps("fixed", 1), Stepping((), 1))
        trees = list(completer.grow([Task(str(i), str(i)) for i in range(self.problems)], search, seed))
        found = [first_errors(tree, self.wordings) for tree in trees]
        good, bad = sum(a for a, _ in found), sum(b for _, b in found)
        return {
            "located": good / self.problems,
            "false": bad / self.problems,
            "calls": completer.calls / self.problems,
            "rate": 100 * good / completer.calls,
            "share": float(np.mean([tree.root.value or 0.0 for tree in trees])),
        }


class Solver:
    """An engine that writes steps, a token each: those below ``wordings`` are right, as many others wrong.

    Args:
        setting: see above.
        seed: of the problems.
    """

    def __init__(self, setting: Setting, seed: int):
        self.setting, self.seed = setting, seed

    def encode(self, prompt: Prompt) -> np.ndarray:
        return np.array([int(str(prompt))], dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.array([int(step) for step in text.split("/") if step], dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return text_of(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[self._one(r, np.random.default_rng([r.seed, j])) for j in range(r.n)] for r in requests]

    def _one(self, request: Request, rng: np.random.Generator) -> Episode:
        here = self.setting
        steps = list(request.prefix)
        while len(steps) < min(here.depth, len(request.prefix) + request.sampling.max_tokens):
            wrong = rng.random() >= self.chance(str(request.prompt), steps)
            steps.append(int(rng.integers(self.wordings(str(request.prompt), steps))) + here.wordings * int(wrong))
        tokens = np.array(steps[len(request.prefix) :], dtype=np.int64)
        prompt = np.concatenate([self.encode(request.prompt), np.asarray(request.prefix, dtype=np.int64)])
        stop: Stop = "eos" if len(steps) >= here.depth else "length"
        return Episode(prompt, tokens, np.ones(len(tokens), dtype=bool), None, text_of(tokens), stop)

    def wordings(self, problem: str, steps: Sequence[int]) -> int:
        """Return in how many ways the next step may be put."""
        return self.setting.wordings

    def chance(self, problem: str, steps: Sequence[int]) -> float:
        """Return how likely the next step is right."""
        here = self.setting
        shift = here.spread * np.random.default_rng([self.seed, int(problem), *steps]).standard_normal()
        return float(1 / (1 + np.exp(-np.log(here.skill / (1 - here.skill)) - shift)))

    def verdict(self, task: Task, response: str) -> Verdict:
        """Judge a response, of which luck depends on nothing else."""
        steps = self.encode_response(response)
        lucky = np.random.default_rng([self.seed, 1, int(str(task.prompt)), *steps.tolist()]).random()
        right = not (steps >= self.setting.wordings).any() or lucky < self.setting.luck
        return Verdict.right() if right else Verdict.wrong()


def first_errors(tree: PrefixTree, wordings: int) -> tuple[int, int]:
    """Return how many neighbours are known to be before and after a first error, truly and falsely."""
    good = bad = 0
    for node, children in tree.siblings():
        for child in children:
            assert child.episode is not None
            if child.length == node.length + 1 and child.value == 0 and (node.value or 0) > 0:
                wrong = child.episode.tokens >= wordings
                true = bool(wrong[-1] and not wrong[:-1].any())
                good, bad = good + true, bad + (not true)
    return good, bad
