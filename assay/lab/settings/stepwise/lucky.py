"""Labels of steps where wrong solutions may come right by luck, and a tool that errs now and then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Sampling
from assay.inference.search.stepping import Stepping
from assay.inference.supervision.completing import Completer
from assay.inference.supervision.step_tools import Checked
from assay.inference.supervision.train import make_method
from assay.lab.settings.stepwise import supervision
from assay.signals.steps import Steps
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """Responses as in setting ``supervision``, ``luck`` of whose wrong ones are believed. An arm names a ``method`` of
    ``assay train-prm`` with ``options``; one with a tool has one that is wrong of ``doubt`` of the steps.

    Args:
        problems, depth, skill, luck, doubt: see above.
    """

    problems: int = 40
    depth: int = 6
    skill: float = 0.8
    luck: float = 0.3
    doubt: float = 0.05

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return how good labels are, of steps up to the first wrong one.

        ``agreement``: share that say right or wrong as it is, above 0 meaning right; ``missed``: of wrong steps, those
        called right; ``labels``, ``tokens``: of a problem, labels and what was sampled for them.
        """
        here = supervision.Setting(self.problems, self.depth, 50, self.skill, 1.0, self.luck)
        engine = supervision.Solver(here, seed)
        options = dict(arm.get("options", {}))
        if arm["method"] == "S132":
            options["tool"] = Tool(self.doubt, seed)
        method = make_method(str(arm["method"]), **options)
        completer = Completer(
            engine, engine.verdict, Sampling(self.depth), Steps("fixed", 1), Stepping((), 1), together=1
        )
        told: list[tuple[bool, bool]] = []
        for tree in completer.grow([Task(str(i), str(i)) for i in range(self.problems)], method.search, seed):
            for row in method.examples(tree):
                for step, label in zip(row.steps, row.labels, strict=True):
                    right = int(step) < 50
                    if label is not None:
                        told.append((label > 0, right))
                    if not right:
                        break
        wrong = [said for said, right in told if not right]
        return {
            "agreement": float(np.mean([said == right for said, right in told])),
            "missed": float(np.mean(wrong)) if wrong else 0.0,
            "labels": len(told) / self.problems,
            "tokens": completer.tokens / self.problems,
        }


class Tool:
    """Checks steps, each independently wrong with chance ``doubt``."""

    def __init__(self, doubt: float, seed: int):
        self.doubt, self.rng = doubt, np.random.default_rng([seed, 31])

    def check(self, steps: Sequence[tuple[Task, Sequence[str], str]]) -> list[Checked]:
        out = []
        for *_, step in steps:
            mark = 1 if int(step) < 50 else -1
            out.append(Checked(-mark if self.rng.random() < self.doubt else mark))
        return out
