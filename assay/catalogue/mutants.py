"""How many small faults in a paper's code its tests notice, as ``make mutants`` recorded it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).with_name("mutants.json")
ENOUGH = 0.9
"""The share of faults that the tests of an exact row notice."""


@dataclass(frozen=True, slots=True)
class Score:
    """Faults put into a row's modules, those that its tests noticed, and a short hash of what the modules compute."""

    made: int
    caught: int
    text: str

    @property
    def share(self) -> float:
        return self.caught / self.made if self.made else 1.0

    @property
    def percent(self) -> str:
        """The share in whole percents, rounded down: what is not enough does not read as if it were."""
        return f"{100 * self.caught // self.made if self.made else 100}%"


@functools.cache
def scores() -> Mapping[str, Score]:
    """Return the recorded scores by the paper's id."""
    return {key: Score(**row) for key, row in json.loads(FILE.read_text(encoding="utf-8")).items()}


def record(key: str, score: Score) -> None:
    """Put a row's score into the record, one line a row."""
    scores.cache_clear()  # another process may have recorded meanwhile
    rows = {**scores(), key: score}
    lines = [f"{json.dumps(key)}: {json.dumps(asdict(rows[key]))}" for key in sorted(rows)]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    scores.cache_clear()
