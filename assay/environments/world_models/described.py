"""A world as it is described to a developer, and the program that is true of it."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from assay.verify.behaviour.model import Language

FORM = (
    "Write the model as a Python program that defines step(state, action). It returns [state, reward, done]: the state "
    "after the action, as JSON has it, the reward as a number, and whether the episode has ended. It must depend on "
    "nothing but its arguments."
)
DOMAIN = "Write the model as a PDDL domain; problems are read with it, so names must be those that are given here."


@dataclass(frozen=True, slots=True)
class Described:
    """A world.

    Attributes:
        about: what it is, and what states and actions look like.
        rules: of its dynamics, each a sentence.
        source: the true program or domain.
        starts, problems, actions, horizon, effort: as in a reference of the verifier ``behaviour``.
    """

    about: str
    rules: tuple[str, ...]
    source: str
    actions: Sequence[Sequence[str]]
    starts: Sequence[Any] = ()
    problems: Sequence[str] = ()
    horizon: int = 12
    effort: int = 2000

    @property
    def language(self) -> Language:
        return "pddl" if self.problems else "python"

    def reference(self, hidden: int, seed: int) -> dict[str, Any]:
        """Return the reference of a task."""
        return {
            "language": self.language,
            "source": self.source,
            "starts": list(self.starts),
            "problems": list(self.problems),
            "actions": [list(some) for some in self.actions],
            "horizon": self.horizon,
            "effort": self.effort,
            "hidden": hidden,
            "seed": seed,
        }

    def text(self, rules: Sequence[str]) -> str:
        """Return what a developer is told, with these rules alone."""
        form = DOMAIN if self.language == "pddl" else FORM
        return "\n".join([self.about, "Rules:", *(f"- {rule}" for rule in rules), form])


def completed(module: ModuleType, constants: Mapping[str, Any]) -> str:
    """Return a program of the bank with the values of its constants, and in place of an import from assay the imported.

    Args:
        constants: by name; all that the program assigns to names in capitals by literals.
    """
    source = inspect.getsource(module)
    lines = source.splitlines()
    out: list[str] = []
    for node in ast.parse(source).body:
        text = "\n".join(lines[_first(node) - 1 : node.end_lineno])
        names = _names(node)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("assay."):
            out.append(_plain(inspect.getsource(importlib.import_module(node.module or ""))))
        elif names and names <= set(constants):
            out += [f"{name} = {constants[name]!r}" for name in sorted(names)]
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            out.append(text if not isinstance(node, ast.FunctionDef) else f"\n{text}\n")
    return "\n".join(out).strip() + "\n"


def _first(node: ast.stmt) -> int:
    """Return the line a statement begins in, with what decorates it."""
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])


def _names(node: ast.stmt) -> set[str]:
    """Return the names that a statement assigns to."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _plain(source: str) -> str:
    """Return a module without its docstring and what is for checkers of types."""
    kept = source.split("\n")
    first = ast.parse(source).body[0]
    return "\n".join(line for line in kept[first.end_lineno :] if not line.startswith("from __future__"))
