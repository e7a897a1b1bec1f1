"""A scorer of steps, made from a model and its training tasks, or from labelled solutions in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from assay.errors import RunError, UsageError
from assay.inference.search.stepping import Stepping
from assay.inference.supervision.completing import Completer, Search
from assay.inference.supervision.prefixes import PrefixTree
from assay.inference.supervision.quality import Quality, quality
from assay.inference.supervision.searches import Along, BestFirst, FirstErrors
from assay.registry import call
from assay.rewards.step_models.examples import Row, StepExample, StepPair, plain_row, read_examples
from assay.rewards.step_models.saved import PRMSettings
from assay.rewards.step_models.training import StepTraining
from assay.signals.steps import Steps

if TYPE_CHECKING:
    from assay.engines.target import Target
    from assay.types import Task

SEARCHES: dict[str, Callable[..., Callable[[PrefixTree], Search]]] = {
    "first_errors": FirstErrors,
    "best_first": BestFirst,
    "along": Along,
}


@dataclass(frozen=True, slots=True)
class PRMMethod:
    """How a scorer of steps comes about: what it learns from, what it is, and how it learns.

    Attributes:
        search: grows the tree of a task; see :mod:`assay.inference.supervision.searches`.
        settings: what is trained.
        training: how.
        examples: of a tree: by default the values at the ends of steps.
        pairs: learn from pairs of siblings instead whose values differ by this or more.
        told: it learns from what people say, which has to be given: nothing is sampled.
    """

    search: Callable[[PrefixTree], Search] = field(default_factory=FirstErrors)
    settings: PRMSettings = field(default_factory=PRMSettings)
    training: StepTraining = field(default_factory=StepTraining)
    examples: Callable[[PrefixTree], Sequence[StepExample]] = PrefixTree.examples
    pairs: float | None = None
    told: bool = False

    def data(self, tree: PrefixTree) -> list[Row]:
        """Return what is learned from a tree."""
        return [*(self.examples(tree) if self.pairs is None else tree.pairs(self.pairs))]


def make_method(spec: str, **options: Any) -> PRMMethod:
    """Return the method that a paper's id stands for, or the default one with a search of this name and options.

    Args:
        spec: a name, perhaps with options, ``S130(k=4)``.
        options: more of them.

    Raises:
        UsageError: there is none, or an option does not fit.
    """
    from assay import catalogue
    from assay.inference.named import read_spec

    table = read_spec(spec) | options
    name = table.pop("name")
    if name in SEARCHES:
        return PRMMethod(call(SEARCHES[name], table, f"search {name!r}"))
    if not re.fullmatch(r"[sS]\d{3}", name):
        raise UsageError(f"--method {name!r} is neither a paper's id nor one of {', '.join(SEARCHES)}")
    made = catalogue.make(name, **table)
    if not isinstance(made, PRMMethod):
        raise UsageError(f"{name.upper()} makes no scorer of steps; assay papers show {name.upper()} says what it does")
    return made


@dataclass(frozen=True, slots=True)
class TrainedPRM:
    """A scorer of steps and where it comes from.

    Attributes:
        model: the scorer.
        history: mean loss of each epoch.
        rows, tasks: solutions or pairs that it learned from, and their tasks.
        quality: on tasks kept back; ``None`` where nothing of them could be measured.
        calls, tokens: completions that were sampled for its data, and their tokens; 0 of data from a file.
    """

    model: Any
    history: list[float]
    rows: int
    tasks: int
    quality: Quality | None
    calls: int = 0
    tokens: int = 0


def fit_prm(method: PRMMethod, model: Any, rows: Sequence[Row], seed: int = 0) -> TrainedPRM:
    """Train ``model`` on the rows of three tasks in four, and measure it on the others.

    Raises:
        RunError: the rows are of fewer than four tasks.
    """
    ids = list(dict.fromkeys(task_of(row).id for row in rows))
    if len(ids) < 4:
        raise RunError(
            f"there is something to learn in the solutions of {len(ids)} tasks, and a scorer of steps needs 4: take "
            "more tasks, tasks that the model solves now and then, or a judge whose replies can be read"
        )
    kept = set(ids[::4])
    learnt = [row for row in rows if task_of(row).id not in kept]
    torch.manual_seed(seed)
    history = method.training.fit(model, learnt, np.random.default_rng(seed))
    others = [row for row in rows if task_of(row).id in kept]
    return TrainedPRM(model, history, len(learnt), len(ids) - len(kept), quality(model, others))


def task_of(row: Row) -> Task:
    return row.better.task if isinstance(row, StepPair) else row.task


def sampled_rows(
    target: Target,
    policy: Any,
    method: PRMMethod,
    tasks: int,
    steps: Steps,
    keep: Path | None = None,
    prover: Target | None = None,
    tick: Callable[[int], None] = lambda done: None,
) -> tuple[list[Row], int, int]:
    """Grow a tree for each of ``tasks`` training tasks; return what is learned from them, completions and tokens.

    Args:
        target: whose tasks, sampling and verifier they are.
        policy: its model.
        method: see above.
        tasks: different ones.
        steps: where steps end.
        keep: a JSONL file that rows are added to tree by tree. One that is there is gone on with.
        prover: who completes the beginnings of method ``along``, if not the model itself.
        tick: told how many trees are grown.

    Raises:
        UsageError: tasks that nothing can judge, or a file that holds something else.
    """
    from assay.engines.base import Sampling
    from assay.engines.hf import HFEngine
    from assay.inference.heads.train import training_tasks
    from assay.tasks.configured import task_split
    from assay.verify.configured import make_verifier
    from assay.verify.isolate.pool import check_verifier

    config = target.config
    chosen = training_tasks(task_split(config)[0], tasks)
    rows = list(kept_rows(keep)) if keep is not None else []
    done = {task_of(row).id for row in rows}
    with ExitStack() as stack:
        verifier = make_verifier(config)
        if callable(close := getattr(verifier, "close", None)):
            stack.callback(close)
        check_verifier(verifier, chosen)
        rollout, measured = config.rollout, config.evaluate
        sampling = Sampling(rollout.max_tokens, measured.temperature, measured.top_p, stop=tuple(rollout.stop))
        completer = Completer(
            HFEngine(policy, rollout.max_rows), verifier, sampling, steps, stepping_of(steps, rollout.max_tokens)
        )
        if prover is not None:
            completer.prover = prover.open()
        open_ = [task for task in chosen if task.id not in done]
        for n, tree in enumerate(completer.grow(open_, method.search, config.seed), len(chosen) - len(open_) + 1):
            new = method.data(tree)
            rows += new
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.write("".join(json.dumps(plain_row(row), ensure_ascii=False) + "\n" for row in new))
            tick(n)
    return rows, completer.calls, completer.tokens


def kept_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file that was being written: without its last tree, which may not be all there, and the file
    is cut to them."""
    if not path.is_file():
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    last = json.loads(whole[-1])["id"] if whole else None
    kept = [line for line in whole if json.loads(line)["id"] != last]
    path.write_text("".join(kept), encoding="utf-8")
    if kept:
        yield from read_examples(path)


def stepping_of(steps: Steps, longest: int) -> Stepping:
    """Return how one step is sampled alone.

    Raises:
        UsageError: such steps end where it is not known while they are made.
    """
    stops = {"newline": ("\n",), "blank_line": ("\n\n",), "tag": (f"</{steps.tag}>",), "fixed": ()}
    if steps.by not in stops:
        raise UsageError(f"steps by {steps.by} cannot be sampled one by one; take {', '.join(stops)}")
    return Stepping(stops[steps.by], steps.size if steps.by == "fixed" else longest)
