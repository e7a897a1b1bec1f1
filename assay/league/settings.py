"""The league's settings, a recipe each with what is compared in it, and the methods by the names they have here."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from assay.compare.methods import in_file
from assay.compare.plan import Plan, read_plan
from assay.compare.standing import BASELINE
from assay.errors import UsageError, nearest
from assay.method.standard import standard

SETTINGS = ("L1", "L2", "L2-noisy", "L2-length", "L3")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the league.

    Attributes:
        name: such as ``L1``.
        recipe: its file, whose table ``[compare]`` has budget, measure, points, seeds and the first sweep.
        changes: to the recipe, ``a.b.c=value`` each, of a variant.
        told: what a variant is, in place of what the recipe's first lines say.
        seeds: how many of the recipe's seeds are run, the first ones; all if ``None``.
    """

    name: str
    recipe: Path
    changes: Sequence[str] = ()
    told: str = ""
    seeds: int | None = None

    def plan(self, label: str, method: Mapping[str, Any], sweep: Mapping[str, Sequence[Any]] | None = None) -> Plan:
        """Return what one method runs.

        Args:
            label: what the method is called.
            method: its ``[method]`` table.
            sweep: in place of the setting's own.
        """
        return read_plan(self.recipe, self.changes, methods={label: method}, sweep=sweep, seeds=self.seeds)

    @property
    def about(self) -> str:
        """What it asks, in sentences: the recipe's first lines, or a variant's own."""
        return self.told or opening(self.recipe)

    @property
    def measure(self) -> str:
        """What methods are compared by."""
        return self.plan(BASELINE, {"name": BASELINE}).measure

    @property
    def fingerprint(self) -> str:
        """A short hash of what its recipe sets, budget and measure; records of another one cannot be compared.

        More seeds or rates leave it as it is, and so do keys that recipes have learnt since.
        """
        plan = self.plan(BASELINE, {"name": BASELINE})
        shared = [plan.recipe, plan.budget.unit, plan.budget.amount, plan.points, plan.measure]
        return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()[:12]


def opening(recipe: Path) -> str:
    """Return what the comment that a setting's recipe begins with says of it, in sentences, without the name."""
    text = recipe.read_text(encoding="utf-8").partition("\n[")[0]
    said = " ".join(line[1:].strip() for line in text.splitlines() if line.startswith("#")).partition(": ")[2]
    return said[0].upper() + said[1:]


def load(name: str) -> Setting:
    """Return a setting by its name, in any case.

    Raises:
        UsageError: there is none of that name.
    """
    found = next((setting for setting in SETTINGS if setting.lower() == name.lower()), None)
    if found is None:
        raise UsageError(f"the league has no setting {name!r}; its settings are {', '.join(SETTINGS)}")
    variants = tomllib.loads(_file("variants.toml").read_text(encoding="utf-8"))
    return Setting(found, _file(f"{found.partition('-')[0].lower()}.toml"), **variants.get(found, {}))


def _file(name: str) -> Path:
    return Path(str(resources.files("assay.league").joinpath(name)))


@cache
def known() -> Mapping[str, Mapping[str, Any]]:
    """Return the methods that have a name in the league, each with its ``[method]`` table."""
    own = tomllib.loads(_file("methods.toml").read_text(encoding="utf-8"))
    return {**standard(), **own}


def method(label: str) -> Mapping[str, Any]:
    """Return the ``[method]`` table of a name in the league or of a paper's id.

    Raises:
        UsageError: neither.
    """
    if label in known():
        return known()[label]
    from assay.catalogue import find

    try:
        row = find(label)
    except UsageError:
        raise UsageError(f"no method is called {label!r} in the league{nearest(label, known())}") from None
    return {"name": row.id}


def entrant(name: str) -> tuple[str, Mapping[str, Any]]:
    """Return label and ``[method]`` table of a name, a paper's id, or a TOML file that has such a table.

    Raises:
        UsageError: none of these.
    """
    if not name.endswith(".toml"):
        label = name if name in known() else name.upper()
        return label, method(label if label in known() else name)
    path = Path(name)
    if path.stem in known():
        raise UsageError(f"{name} is called as a standard method is; give it another name")
    return path.stem, in_file(path)
