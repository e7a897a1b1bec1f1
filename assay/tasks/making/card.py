"""What a pipeline did, for those who read its tasks: the card beside a task file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.tasks.making.maker import Made, Model
from assay.types import Task


def card_of(
    recipe: str,
    options: Mapping[str, Any],
    models: Mapping[str, Model],
    seed: int,
    begun: Sequence[Task],
    made: Made,
    held_out: Sequence[Path] = (),
) -> dict[str, Any]:
    """Return the card as JSON holds it: what was run on what, and for each step how many tasks came and went, and why.

    It says nothing of how often it was stopped or how long it took, so that a run that was resumed has the same card.
    """
    steps = [
        {
            "step": name,
            "in": count.into,
            "out": count.out,
            "dropped": dict(sorted(count.dropped.items())),
            "asked": count.asked,
            "tokens": count.tokens,
        }
        for name, count in made.counts.items()
    ]
    kinds = sorted({task.kind for task in made.tasks})
    return {
        "recipe": recipe,
        "options": dict(options),
        "seed": seed,
        "models": {role: model.name for role, model in models.items()},
        "held_out": [str(path) for path in held_out],
        "seeds": len(begun),
        "tasks": len(made.tasks),
        "kinds": {kind: sum(task.kind == kind for task in made.tasks) for kind in kinds},
        "steps": steps,
    }


def table_of(card: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of a card's table: step, in, out, dropped and why, asked, tokens."""
    return [
        (
            row["step"],
            str(row["in"]),
            str(row["out"]),
            ", ".join(f"{n} {reason}" for reason, n in row["dropped"].items()),
            str(row["asked"]),
            str(row["tokens"]),
        )
        for row in card["steps"]
    ]
