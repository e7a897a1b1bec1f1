"""A writer who mends what he is told of, and of himself changes an answer for better or worse."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request, Sampling
from assay.evaluate.strategies.comparison import compare_strategies
from assay.inference.named import make_strategy
from assay.inference.sampling.refine_turns import DONE
from assay.lab.settings.reasoning.miracle import told
from assay.rewards.judges.rubric_judge import RubricJudge
from assay.types import Episode, Prompt, Task

NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Setting:
    """An arm is a strategy at test time; it gets the judge by naming ``"here"`` where a part takes one.

    A task's checklist has ``items`` items, each of which a first answer meets with the task's own chance, from
    Beta(a, b). Told of an item that is missing, the writer meets it in the next answer with chance ``mends``. Asked
    only whether there is anything to refine, he says that there is not with chance ``content``, and otherwise meets a
    missing item with chance ``drift`` and loses one that he has with the same chance. The judge of the checklist does
    not err.

    Args:
        items, a, b, mends, content, drift: see above.
        tasks: of a seed.
        turns: responses to each task, at most.
    """

    items: int = 10
    a: float = 6.0
    b: float = 2.0
    mends: float = 0.7
    content: float = 0.3
    drift: float = 0.1
    tasks: int = 60
    turns: int = 5

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``pass_t``, the share of tasks whose checklist is met, and ``acc_t``, the mean share of items, after
        turns 1 and the last one (``pass_1``, ``pass``, ``acc_1``, ``acc``); and ``gain``, of ``pass`` over ``pass_1``.
        """
        rng = np.random.default_rng([seed, 29])
        writer = Writer(self, rng.beta(self.a, self.b, self.tasks))
        rubric = [f"item {k} is met" for k in range(self.items)]
        tasks = [Task(str(k), f"Task {k}.", meta={"rubric": rubric}) for k in range(self.tasks)]
        judge = Checker()
        strategy = make_strategy({**told(arm, judge), "sampling": Sampling(max_tokens=8)})
        verifier = RubricJudge(judge, threshold=1.0)
        budgets = [1, self.turns]
        found = compare_strategies(tasks, writer, verifier, {"arm": strategy}, budgets, seed=seed, chunk=self.tasks)
        first, last = (point.summary() for point in found.points)
        passed = {"pass_1": first["accuracy"]["value"], "pass": last["accuracy"]["value"]}
        return {
            **passed,
            "acc_1": first["score"],
            "acc": last["score"],
            "gain": passed["pass"] - passed["pass_1"],
        }


class Writer:
    """An engine that answers with the items that it meets; see :class:`Setting`."""

    def __init__(self, setting: Setting, chances: np.ndarray):
        self.setting, self.chances = setting, chances

    def encode(self, prompt: Prompt) -> np.ndarray:
        return NOTHING

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return NOTHING

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            seeds = [[request.seed % 2**32, request.seed >> 32, j] for j in range(request.n)]
            texts = [self._answer(str(request.prompt), np.random.default_rng(seed)) for seed in seeds]
            out.append([Episode(NOTHING, NOTHING, NOTHING > 0, None, text, "eos") for text in texts])
        return out

    def _answer(self, prompt: str, rng: np.random.Generator) -> str:
        drawn = rng.random(self.setting.items)
        draft = re.search(r"^Met: (.*)$", prompt, re.MULTILINE)
        task = re.match(r"Task (\d+)\.", prompt)
        assert task is not None
        if draft is None:
            return _told(drawn < self.chances[int(task[1])])
        met = np.isin(np.arange(self.setting.items), [int(k) for k in draft[1].split()])
        missing = [int(k) for k in re.findall(r"^- item (\d+) is met$", prompt, re.MULTILINE)]
        if missing:
            met[missing] |= drawn[missing] < self.setting.mends
        elif rng.random() < self.setting.content:
            return DONE
        else:
            met ^= drawn < self.setting.drift
        return _told(met)


class Checker(Writer):
    """The judge: an engine that finds the items of a checklist in an answer."""

    def __init__(self) -> None:
        super().__init__(Setting(), NOTHING)

    def _answer(self, prompt: str, rng: np.random.Generator) -> str:
        said = re.search(r"^Met: (.*)$", prompt, re.MULTILINE)
        met = set(said[1].split()) if said else set()
        return json.dumps(
            ["yes" if k in met else "no" for k in re.findall(r"^\d+\. item (\d+) is", prompt, re.MULTILINE)]
        )


def _told(met: np.ndarray) -> str:
    return "Met: " + " ".join(map(str, np.flatnonzero(met)))
