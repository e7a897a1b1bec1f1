"""States that tell, through noise, whether all steps so far are right, and scorers of steps that learn to read them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.inference.sampling.best_of_n import BestOfN
from assay.inference.scoring.scorers import BySteps
from assay.inference.search.stepping import Stepping
from assay.inference.supervision.completing import Completer
from assay.inference.supervision.marking import Marks
from assay.inference.supervision.quality import chances_of
from assay.inference.supervision.train import make_method
from assay.lab.settings.stepwise import supervision
from assay.policies.base import PolicyOutput
from assay.rewards.process.first_error import Found
from assay.rewards.step_models.examples import StepExample
from assay.signals.steps import Steps
from assay.statistics.judging import average_precision
from assay.types import Task

ONE = Steps("fixed", 1)


@dataclass(frozen=True, slots=True)
class Setting:
    """Responses as in setting ``supervision``; a state is u or -u, as all steps so far are right or not, and noise.

    A scorer learns from trees of ``problems`` and then chooses among ``samples`` responses to each of ``asked`` others.
    The verifier of the trees believes ``luck`` of the wrong responses; the accuracy is true. An arm names the
    ``method`` of ``assay train-prm`` with ``options``, or another ``loss`` or ``kind`` for the same trees; ``marks``: a
    judge names first errors, and this share of them wrongly. Or it scores steps by their ``probability``.

    Args:
        problems, asked, samples: see above.
        depth, skill, luck: see :class:`assay.lab.settings.stepwise.supervision.Setting`.
        width: of a state.
        noise: its standard deviation in every direction; u has length 1.
        expansions, branch, completions: of best-first trees.
        lr: of the scorer.
        reduce: how scores of steps become one of the response.
    """

    problems: int = 12
    asked: int = 100
    samples: int = 8
    depth: int = 8
    skill: float = 0.85
    luck: float = 0.2
    width: int = 16
    noise: float = 1.0
    expansions: int = 8
    branch: int = 4
    completions: int = 8
    lr: float = 0.03
    reduce: Literal["last", "min"] = "last"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return what the scorer is worth.

        ``accuracy``: of the best of the samples; ``single``: of one; ``oracle``: of the best-judged; ``pr_auc``: of
        steps after which a response is wrong; ``rows``: that were learned from; ``calls``: completions.
        """
        here = supervision.Setting(self.problems + self.asked, self.depth, 50, self.skill, 1.0, self.luck)
        engine = Wordy(here, seed)
        tasks = [Task(str(i), str(i)) for i in range(self.problems + self.asked)]
        fresh = tasks[self.problems :]
        if arm.get("scores") == "probability":
            return {"pr_auc": self.area(Probability(engine), engine, fresh)}
        method = make_method(str(arm["method"]), **arm.get("options", {}))
        if arm["method"] == "S185":
            search = replace(
                method.search,  # type: ignore[type-var]
                completions=self.completions,
                branch=self.branch,
                expansions=self.expansions,
            )
            method = replace(method, search=search)
        if "kind" in arm:
            method = replace(method, settings=replace(method.settings, kind=arm["kind"]))
        if "marks" in arm:
            method = replace(method, examples=Marks(Marker(float(arm["marks"]), seed)))
        if "loss" in arm:
            method = replace(method, pairs=None, training=replace(method.training, loss=arm["loss"]))
        method = replace(method, training=replace(method.training, lr=self.lr))
        completer = Completer(engine, engine.verdict, Sampling(self.depth), ONE, Stepping((), 1))
        trees = completer.grow(tasks[: self.problems], method.search, seed)
        rows = [row for tree in trees for row in method.data(tree)]
        torch.manual_seed(seed)
        states = Features(self, seed)
        model: Any = method.settings.made(states)
        method.training.fit(model, rows, np.random.default_rng(seed))
        best = BestOfN(BySteps(model, ONE, self.reduce), Sampling(self.depth))
        answers = best(fresh, engine, self.samples, np.random.default_rng([seed, 11]))
        right = [[not wrong(e.tokens).any() for e in a.episodes] for a in answers]
        chosen = [not wrong(engine.encode_response(a.text or "")).any() for a in answers]
        return {
            "accuracy": float(np.mean(chosen)),
            "single": float(np.mean(right)),
            "oracle": float(np.mean([any(many) for many in right])),
            "pr_auc": self.area(model, engine, fresh),
            "rows": len(rows),
            "calls": completer.calls / self.problems,
        }

    def area(self, model: Any, engine: supervision.Solver, tasks: list[Task]) -> float:
        """Return the area under precision and recall of steps after which a response is wrong."""
        found = engine.generate([Request(t.prompt, 1, Sampling(self.depth), i) for i, t in enumerate(tasks)])
        spans = [ONE.of(e, engine.decode) for [e] in found]
        rows = [
            StepExample(task, ("",) * len(cut), (), replace(e, spans=cut))
            for task, [e], cut in zip(tasks, found, spans, strict=True)
        ]
        chances = [p for row in chances_of(model, rows) for p in row or ()]
        truth = [bool(x) for [e] in found for x in np.logical_or.accumulate(wrong(e.tokens))]
        return average_precision([1 - p for p in chances], truth)


class Wordy(supervision.Solver):
    """A solver that may put a step in one way here and in many there."""

    def wordings(self, problem: str, steps: Sequence[int]) -> int:
        share = np.random.default_rng([self.seed, 29, int(problem), *steps]).random()
        return max(int(self.setting.wordings**share), 1)


class Marker:
    """Names the first wrong step, or now and then another one or none.

    Args:
        doubt: share of marks that are drawn at random.
        seed: of those.
    """

    def __init__(self, doubt: float, seed: int):
        self.doubt, self.rng = doubt, np.random.default_rng([seed, 23])

    def find(self, solutions: Sequence[tuple[str, Sequence[str]]]) -> list[Found]:
        out = []
        for _, steps in solutions:
            bad = np.flatnonzero(wrong(np.array([int(s) for s in steps])))
            index = int(bad[0]) if len(bad) else -1
            if self.rng.random() < self.doubt:
                index = int(self.rng.integers(-1, len(steps)))
            out.append(Found(index))
        return out


class Probability:
    """Scores a beginning by the least probable of its steps, 2 p - 1, p being that of what was written there.

    Args:
        engine: wrote them.
    """

    def __init__(self, engine: Wordy):
        self.engine = engine

    def score_examples(self, rows: Sequence[StepExample]) -> list[list[float]]:
        out = []
        for row in rows:
            assert row.episode is not None
            tokens = row.episode.tokens.tolist()
            problem, places = str(row.task.prompt), range(len(tokens))
            chances = [self.engine.chance(problem, tokens[:k]) for k in places]
            ways = [self.engine.wordings(problem, tokens[:k]) for k in places]
            own = [(p if t < 50 else 1 - p) / w for p, t, w in zip(chances, tokens, ways, strict=True)]
            out.append((2 * np.minimum.accumulate(own) - 1).tolist())
        return out


def wrong(tokens: np.ndarray) -> np.ndarray:
    """Which steps are wrong."""
    return tokens >= 50


class Features:
    """States of responses as a policy that never changes gives them.

    Args:
        setting: see above.
        seed: of u and of the noise.
    """

    quantities = frozenset({"hidden"})

    def __init__(self, setting: Setting, seed: int):
        self.setting, self.seed = setting, seed
        self.module = torch.nn.ParameterDict({"none": torch.zeros(1, requires_grad=False)})
        u = np.random.default_rng([seed, 17]).standard_normal(setting.width)
        self.direction = u / np.linalg.norm(u)

    @property
    def width(self) -> int:
        return self.setting.width

    def micro_batches(self, batch: Batch, budget: int) -> list[Tensor]:
        return [torch.arange(len(batch))]

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        hidden = torch.zeros(*batch.tokens.shape, self.width)
        for row, episode in zip(hidden, batch.episodes, strict=True):
            for t in range(1, len(episode.tokens)):
                row[t] = torch.from_numpy(self.state(episode.prompt, episode.tokens[:t])).float()
        return PolicyOutput(torch.zeros(batch.tokens.shape), {"hidden": hidden})

    def state(self, prompt: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Return the state after some steps."""
        noise = np.random.default_rng([self.seed, 19, *prompt.tolist(), *tokens.tolist()]).standard_normal(self.width)
        sign = -1.0 if wrong(tokens).any() else 1.0
        return sign * self.direction + self.setting.noise * noise
