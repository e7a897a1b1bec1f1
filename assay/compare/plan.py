"""What a comparison runs: a recipe, methods, tasks, seeds, a sweep and a budget, all settled before the first run."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from assay.compare.budget import Budget
from assay.compare.methods import named
from assay.config import RunConfig, apply_override, load_config, read_recipe, shown_first
from assay.errors import UsageError, nearest
from assay.method import make_method
from assay.records.files import write_text
from assay.statistics.sweep import combinations

Measure = Literal["final", "area"]
Choice = Mapping[str, Any]
"""Values of the swept keys."""

KEYS = ("methods", "tasks", "seeds", "first_seed", "starts", "sweep", "tuning", "budget", "points", "measure")
WARM_UP = "warm-up"
"""Beside the methods' folders, that of their common start."""
_LABEL = re.compile(r"[\w.+-]{1,60}")


@dataclass(frozen=True, slots=True)
class Plan:
    """A comparison.

    Attributes:
        recipe: a recipe's sections, as far as they are set; its ``[method]`` counts only for the method ``recipe``.
        methods: per label the ``[method]`` table.
        tasks: per label a task source; ``None`` for the recipe's own.
        seeds: every method runs on every one, on every task; two or more.
        budget: what each run may sample.
        sweep: keys of the recipe and the values tried, alike for every method: each takes the combination with the
            largest mean over tasks and ``tuning`` seeds, the first of equals.
        tuning: seeds of the sweep, none of which counts.
        starts: warm starts of a task, which its seeds take in turn; one of its own for each seed if ``None``.
        points: equal parts of the budget after each of which the held-out tasks are asked once.
        measure: the score of a run. ``final``: held-out pass@1 where the budget is spent, ``evaluate.samples``
            responses to each task; ``area``: its mean over the budget.

    Raises:
        UsageError: something of it does not fit.
    """

    recipe: Mapping[str, Any]
    methods: Mapping[str, Mapping[str, Any]]
    seeds: Sequence[int]
    budget: Budget
    tasks: Mapping[str, Any] = field(default_factory=lambda: {"tasks": None})
    sweep: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    tuning: Sequence[int] = (1000, 1001)
    starts: int | None = None
    points: int = 8
    measure: Measure = "final"

    def __post_init__(self) -> None:
        if len(set(self.seeds)) < 2:
            raise UsageError("a comparison needs two or more seeds, or its intervals cannot be told")
        if len(self.choices) > 1 and not self.tuning:
            raise UsageError("a sweep needs one or more tuning seeds")
        if clash := set(self.seeds) & set(self.tuning if len(self.choices) > 1 else ()):
            raise UsageError(f"seed {min(clash)} is one that the sweep tunes on; take others")
        if self.starts is not None and not 1 <= self.starts <= len(self.seeds):
            raise UsageError(f"starts = {self.starts}: take from 1 to the number of seeds, {len(self.seeds)}")
        if self.starts is not None and self.recipe.get("tasks", {}).get("eval_seed") is None:
            raise UsageError(
                "starts are shared by seeds: set tasks.eval_seed, so that none has learnt what another seed holds out"
            )
        if not 1 <= self.points <= 1000:
            raise UsageError(f"points = {self.points}: take from 1 to 1000")
        if self.measure not in get_args(Measure):
            raise UsageError(f"measure {self.measure!r} is not one of {', '.join(get_args(Measure))}")
        for label in (*self.methods, *self.tasks):
            if not _LABEL.fullmatch(label) or label in (WARM_UP, ".", ".."):
                raise UsageError(
                    f"label {label!r}: letters, digits and . _ + - only, and not warm-up, since folders are named by it"
                )
        for method, task, choice in itertools.product(self.methods, self.tasks, self.choices):
            config = self.config(method, task, self.seeds[0], choice)
            if config.evaluate.samples == 0:
                raise UsageError("a comparison measures held-out tasks: set evaluate.samples to 1 or more")
            make_method(config.method.name, **config.method.model_dump(exclude={"name"}))

    @property
    def choices(self) -> Sequence[Choice]:
        """Every combination of the sweep, one without values if there is none."""
        return combinations(self.sweep)

    def start(self, seed: int) -> int:
        """Return the seed of the warm start that a seed's runs go on from."""
        if self.starts is None:
            return seed
        among = self.seeds if seed in self.seeds else self.tuning
        return self.seeds[among.index(seed) % self.starts]

    def data(self, task: str, seed: int, choice: Choice) -> dict[str, Any]:
        """Return a recipe's sections, without a method."""
        data: dict[str, Any] = json.loads(json.dumps(self.recipe))
        if self.tasks[task] is not None:
            data["tasks"] = {**data.get("tasks", {}), "source": self.tasks[task]}
        data["seed"] = seed
        for key, value in choice.items():
            apply_override(data, f"{key}={json.dumps(value)}")
        return data

    def config(self, method: str, task: str, seed: int, choice: Choice) -> RunConfig:
        """Return the configuration of a run."""
        data = self.data(task, seed, {})
        data["method"] = json.loads(json.dumps(self.methods[method]))
        for key, value in choice.items():
            apply_override(data, f"{key}={json.dumps(value)}")
        return load_config(data)

    def describe(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it, the recipe with its defaults."""
        recipe = load_config(self.recipe).model_dump(mode="json", exclude={"seed", "run", "method"})
        return {
            "recipe": recipe,
            "methods": {k: dict(v) for k, v in self.methods.items()},
            "tasks": {k: recipe["tasks"]["source"] if v is None else v for k, v in self.tasks.items()},
            "seeds": list(self.seeds),
            "budget": {"unit": self.budget.unit, "amount": self.budget.amount},
            "sweep": {k: list(v) for k, v in self.sweep.items()},
            "tuning": list(self.tuning) if len(self.choices) > 1 else [],
            **({} if self.starts is None else {"starts": self.starts}),
            "points": self.points,
            "measure": self.measure,
        }


def read_plan(recipe: str | Path | None, overrides: Sequence[str] = (), **flags: Any) -> Plan:
    """Return the plan of a recipe, which may say in a table ``[compare]`` what is not given here.

    Args:
        recipe: a TOML file, a recipe of the package, a file of tasks; ``None`` for the defaults.
        overrides: changes to the recipe, ``a.b.c=value`` each.
        flags: keys of ``[compare]``; ``None`` is not given. ``methods`` and ``tasks`` are names (a list, or one text
            with commas) or tables by label; names of methods are those of :func:`assay.compare.methods.named`.
            ``seeds`` is a number or a list, ``sweep`` lists of values by key (or texts ``key=value,value``),
            ``tuning`` a number of seeds or a list, ``starts`` a number, ``budget`` as :meth:`Budget.of` reads it.

    Raises:
        UsageError: something does not fit.
    """
    data: dict[str, Any] = {}
    if recipe is not None:
        data = read_recipe(recipe)
    said = data.pop("compare", {})
    if not isinstance(said, Mapping):
        raise UsageError("compare is a table: [compare]")
    for key in said:
        if key not in KEYS:
            raise UsageError(f"unknown key 'compare.{key}'{nearest(key, KEYS)}")
    table = said["methods"] if isinstance(said.get("methods"), Mapping) else {}
    said = {**said, **{k: v for k, v in flags.items() if v is not None}}
    for override in overrides:
        apply_override(data, override)
    if recipe is not None:
        data = shown_first(recipe, data)
    config = load_config(data)
    sections = config.model_dump(mode="json", exclude_unset=True, exclude={"run", "seed"})
    own = sections.pop("method", {})
    source = config.tasks.source
    default = source if isinstance(source, str) else str(source.get("name", "tasks"))
    first = _whole(said.get("first_seed", 0), "first_seed")
    return Plan(
        recipe=sections,
        methods=_methods(said.get("methods", ()), own, table),
        tasks=dict(_named(said, "tasks")) or {default: None},
        seeds=_seeds(said.get("seeds", 5), first, "seeds"),
        budget=Budget.of(str(said.get("budget", "rollouts")), config),
        sweep=_sweep(said.get("sweep", {})),
        tuning=_seeds(said.get("tuning", 2), 1000, "tuning"),
        starts=None if said.get("starts") is None else _whole(said["starts"], "starts"),
        points=_whole(said.get("points", 8), "points"),
        measure=said.get("measure", "final"),
    )


def settle(path: Path, plan: Mapping[str, Any]) -> None:
    """Write a plan, or see that what is there is the same.

    Raises:
        UsageError: it is another; the line says in what.
    """
    if not path.is_file():
        write_text(path, json.dumps(plan, indent=1))
        return
    there = _flat(json.loads(path.read_text(encoding="utf-8")))
    here = _flat(json.loads(json.dumps(plan)))
    for key in dict.fromkeys([*there, *here]):
        old, new = (d.get(key, "nothing") for d in (there, here))
        if old != new:
            raise UsageError(
                f"{path.parent} holds a comparison with {key} = {old}, not {new}: a plan is settled before its first "
                "run; keep it, or take another --out"
            )


def _flat(value: Any, key: str = "") -> dict[str, str]:
    if isinstance(value, dict) and value:
        return {
            k: v for name, inner in value.items() for k, v in _flat(inner, f"{key}.{name}" if key else name).items()
        }
    return {key: json.dumps(value)}


def _methods(value: Any, own: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    table = value if isinstance(value, Mapping) else table
    pairs = [named(name, own, table) for name, _ in _named({"methods": value}, "methods")]
    if len(dict(pairs)) < len(pairs):
        raise UsageError(f"methods {value!r}: two are called the same")
    return dict(pairs)


def _named(said: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    value = said.get(key, ())
    if isinstance(value, Mapping):
        return list(value.items())
    names = [n.strip() for n in value.split(",") if n.strip()] if isinstance(value, str) else list(value)
    if not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise UsageError(f"{key} are different names, or a table of tables by label, not {value!r}")
    return [(name, name) for name in names]


def _whole(value: Any, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"compare.{key} is a whole number, not {value!r}")
    return value


def _seeds(value: Any, first: int, key: str) -> tuple[int, ...]:
    if isinstance(value, list | tuple):
        return tuple(dict.fromkeys(_whole(v, key) for v in value))
    return tuple(range(first, first + _whole(value, key)))


def _sweep(value: Any) -> dict[str, list[Any]]:
    if isinstance(value, Mapping):
        out = dict(value)
    else:
        out = {}
        for text in value:
            key, equals, values = str(text).partition("=")
            if not equals or not values:
                raise UsageError(f"sweep {text!r} is not of the form key=value,value")
            try:
                out[key] = tomllib.loads(f"v = [{values}]")["v"]
            except tomllib.TOMLDecodeError:
                out[key] = values.split(",")
    for key, values in out.items():
        if not isinstance(values, list) or not values:
            raise UsageError(f"sweep of {key}: give a list of values")
        if key.split(".")[0] in ("seed", "run"):
            raise UsageError(f"{key} is not a thing to sweep")
    return out
