"""The league's settings without learning: strategies at test time on responses that are there, at several checkpoints.

A setting is a recipe with a table ``[bank]``:

- ``steps``: of RL, whose weights answer; 0 are the model's own.
- ``samples``: responses on record, to each held-out task and of each of these weights.
- ``budgets``: responses that a strategy may begin; it is compared under the largest.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from assay.api import train
from assay.compare.run import held
from assay.config import dump_config, load_config, read_recipe
from assay.errors import RunError, UsageError
from assay.evaluate.strategies.bank import ResponseBank
from assay.evaluate.strategies.comparison import Point
from assay.evaluate.strategies.run import run
from assay.inference.named import make_strategies, split_outside
from assay.league.settings import opening
from assay.records.checkpoints import checkpoints
from assay.records.files import missing_files, write_text
from assay.records.record_text import record_text
from assay.records.run_folder import environment

SETTINGS = ("L4",)
BASELINE = "majority"
"""The strategy that all others are compared with."""

Record = dict[str, Any]


@dataclass(frozen=True)
class BankSetting:
    """A setting of strategies.

    Attributes:
        name: such as ``L4``.
        recipe: its file.
    """

    name: str
    recipe: Path

    @cached_property
    def sections(self) -> Mapping[str, Any]:
        """The recipe but for its table ``[bank]``."""
        return {key: value for key, value in read_recipe(self.recipe).items() if key != "bank"}

    @cached_property
    def bank(self) -> Mapping[str, Any]:
        """What it says in ``[bank]``."""
        found: Mapping[str, Any] = read_recipe(self.recipe)["bank"]
        return found

    @property
    def about(self) -> str:
        """What it asks, in sentences."""
        return opening(self.recipe)

    @property
    def steps(self) -> Sequence[int]:
        steps: Sequence[int] = self.bank["steps"]
        return steps

    @property
    def budgets(self) -> Sequence[int]:
        return sorted(self.bank["budgets"])

    @property
    def fingerprint(self) -> str:
        """A short hash of what its recipe sets; records of another one cannot be compared."""
        said = load_config(self.sections).model_dump(mode="json", exclude={"run"}, exclude_unset=True)
        return hashlib.sha256(json.dumps([said, self.bank], sort_keys=True).encode()).hexdigest()[:12]


def load(name: str) -> BankSetting:
    """Return a setting by its name, in any case."""
    return BankSetting(name.upper(), Path(str(resources.files("assay.league").joinpath(f"{name.lower()}.toml"))))


def entrants(strategies: str) -> list[str]:
    """Return the strategies that are named, with commas between them, as ``assay eval --strategy`` takes them.

    Raises:
        UsageError: there is no such strategy, or an option does not fit.
    """
    named = split_outside(strategies)
    if named:
        make_strategies(named)
    return named


def enter(
    setting: BankSetting,
    strategies: Sequence[str],
    folder: Path,
    store: Path,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Record]:
    """Answer a setting's tasks by strategies as far as their records do not have it yet.

    The model is trained first, and its responses to the held-out tasks are sampled once for all strategies; these are
    kept in ``folder``, as is what strategies have answered so far, and all go on where they were stopped.

    Args:
        setting: of the league.
        strategies: by what :func:`entrants` returns.
        folder: of the run and of the responses.
        store: of the records, ``store/LABEL.json`` each.
        say: told of each strategy at a checkpoint, in a line.

    Returns:
        The records by strategy.

    Raises:
        UsageError: a record there is of the setting as it was before; the folder is in use.
        RunError: the run ended without weights that the setting wants.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records = {name: _begun(setting, name, store) for name in strategies}
    with held(folder):
        for step in setting.steps:
            missing = [n for n, record in records.items() if not any(p["step"] == step for p in record["points"])]
            if not missing:
                continue
            bank = ResponseBank(folder / "bank", setting.bank["samples"])
            budgets = ",".join(map(str, setting.budgets))
            out = folder / "outcomes" / f"{step}-{hashlib.sha256(repr(missing).encode()).hexdigest()[:12]}"
            target = _weights(setting, folder, step)
            found = run(target, (), ",".join(missing), budgets, quiet=True, out=out, bank=bank)
            here = {k: v for k, v in environment().items() if k != "command"}
            for name in missing:
                points = [point for point in found.points if point.strategy == name]
                _add(records[name], step, points, here)
                write_text(store / f"{label(name)}.json", record_text(records[name]))
                say(f"{name}, step {step}: {', '.join(f'{p.budget}: {_share(p)}' for p in points)}")
    return records


def label(strategy: str) -> str:
    """Return a strategy as a file's name can have it."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in strategy).strip("-")


def _begun(setting: BankSetting, name: str, store: Path) -> Record:
    path = store / f"{label(name)}.json"
    shared = {"setting": setting.name, "label": name, "fingerprint": setting.fingerprint}
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        return {**shared, "environments": [], "points": []}
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    for key, value in shared.items():
        if record[key] != value:
            raise UsageError(f"{path} is of another {key} than today's; move it away to run {name} anew")
    return record


def _add(record: Record, step: int, points: Sequence[Point], environment: Mapping[str, Any]) -> None:
    """Put what came of a strategy at a checkpoint into its record."""
    if environment not in record["environments"]:
        record["environments"].append(environment)
    at = record["environments"].index(environment)
    record["points"] += [{"step": step, "environment": at, **_told(point)} for point in points]


def _weights(setting: BankSetting, folder: Path, step: int) -> str:
    """Return the target with a step's weights, trained up to there if they are not."""
    if step == 0:
        path = folder / "start.toml"
        write_text(path, dump_config(load_config(setting.sections)))
        return str(path)
    path = folder / "run" / "checkpoints" / f"rl-{step:06d}"
    if not path.is_dir() or missing_files(path):
        begun = any(not missing_files(p) for p in checkpoints(folder / "run"))
        kept = {"dir": str(folder / "run"), "checkpoint_every": math.gcd(*setting.steps), "keep": "all"}
        if begun:
            train(resume=folder / "run", quiet=True)
        else:
            train({**setting.sections, "run": kept}, quiet=True)
    if not path.is_dir():
        raise RunError(f"the run in {folder / 'run'} has no weights of step {step}; remove it to begin anew")
    return str(path)


def _told(point: Point) -> dict[str, Any]:
    """Return what is kept of a strategy under a budget: of each task right, wrong, unanswered or unjudged."""
    marks = {True: "1", False: "0", None: "?"}
    return {
        "budget": point.budget,
        "passed": "".join("-" if o.abstained else marks[o.passed] for o in point.outcomes),
        "tokens": asdict(point.tokens)["value"],
        "scoring": sum(o.scoring for o in point.outcomes) / len(point.outcomes),
        "unscored": sum(o.unscored for o in point.outcomes),
    }


def _share(point: Point) -> str:
    return "unjudged" if point.accuracy is None else f"{100 * point.accuracy.value:.1f}%"
