"""Trajectories of an agent that says that it has done what it has not, and a judge who believes what is not shown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.environments.opinion import Cited
from assay.environments.verified.verifier import TrajectoryVerifier
from assay.types import Episode, Prompt

NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Setting:
    """A task is of ``items`` items. Each is done with chance ``done``; of one that is not the agent says that it is,
    with chance ``lies``. The screen of its turn shows how the item stands, and no other. Between them are turns that
    show nothing. The user has what was asked for if all items are done.

    An arm is options of the verifier. The judge reads what is shown without mistakes; of what is not shown it believes
    the agent.

    Args:
        items, idle, done, lies: see above; ``idle`` turns show nothing.
        trajectories: of a seed.
        top: screens of a criterion.
    """

    items: int = 4
    idle: int = 8
    done: float = 0.85
    lies: float = 0.8
    trajectories: int = 60
    top: int = 2

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``false`` and ``missed``, the shares of failures that pass and of successes that do not, ``right``,
        the share of right outcomes, ``honest``, 1 - ``false``, and ``process``, the mean distance of the process from
        the share of items that are done."""
        rng = np.random.default_rng([seed, 53])
        verifier = TrajectoryVerifier(Reader(), **{"top": self.top, **arm})
        task = "Do " + ", ".join(f"item {k}" for k in range(self.items)) + "."
        passed, truth, gaps = [], [], []
        for _ in range(self.trajectories):
            done = rng.random(self.items) < self.done
            found = verifier.judged(task, self.trajectory(rng, done), "All is done.")
            passed.append(found.success)
            truth.append(bool(done.all()))
            gaps.append(abs((found.process or 0.0) - done.mean()))
        said, right = np.array(passed), np.array(truth)
        false = float(said[~right].mean()) if (~right).any() else 0.0
        return {
            "false": false,
            "missed": float((~said[right]).mean()) if right.any() else 0.0,
            "right": float((said == right).mean()),
            "honest": 1 - false,
            "process": float(np.mean(gaps)),
        }

    def trajectory(self, rng: np.random.Generator, done: np.ndarray) -> list[Cited]:
        """Return the turns of a trajectory whose items are done or not."""
        places = sorted(rng.choice(self.items + self.idle, size=self.items, replace=False).tolist())
        turns, order = [], iter(rng.permutation(self.items).tolist())
        for turn in range(self.items + self.idle):
            action, seen = "scroll", "a page without news"
            if turn in places:
                k = next(order)
                said = bool(done[k]) or rng.random() < self.lies
                action = f"I {'did' if said else 'looked at'} item {k}"
                seen = f"item {k} is {'done' if done[k] else 'open'}"
            turns.append(Cited(turn, action, seen))
        return turns


class Reader:
    """The judge of :class:`Setting`."""

    def encode(self, prompt: Prompt) -> np.ndarray:
        return NOTHING

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return NOTHING

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            text = json.dumps(self.said(str(request.prompt)))
            out.append([Episode(NOTHING, NOTHING, NOTHING > 0, None, text, "eos")] * request.n)
        return out

    def said(self, prompt: str) -> Any:
        """Return what it replies."""
        listed = re.findall(r"^\d+\. item (\d+) ", prompt, re.MULTILINE)
        shown = dict(re.findall(r"item (\d+) is (done|open)", prompt))
        if prompt.startswith("Write a rubric"):
            return [{"text": f"item {k}", "points": 1} for k in re.findall(r"item (\d+)", prompt)]
        if "how much does this tell" in prompt:
            return [10 * (k in shown) for k in listed]
        if "Taking it at its word" in prompt:
            return [int(f"I did item {k}" in prompt) for k in listed]
        if "An error is charged once" in prompt:
            return []
        if "does the criterion apply?" in prompt:
            [k] = re.findall(r"^Criterion: item (\d+) ", prompt, re.MULTILINE)
            points = shown.get(k, "done" if f"I did item {k}" in prompt else "open") == "done"
            return {"applies": True, "points": int(points), "controllable": True}
        return {"success": "open" not in shown.values()}
