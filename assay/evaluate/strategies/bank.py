"""Responses of a model to tasks, made once and kept: what strategies are compared on again and again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Engine, Sampling, requests
from assay.engines.recall.recorded import Recorded, key
from assay.errors import RunError, UsageError
from assay.records.responses import read_responses, write_responses
from assay.types import Episode, Task


@dataclass(frozen=True, slots=True)
class ResponseBank:
    """A folder of responses, a part of the tasks in each file; what is missing in it is made.

    ::

        3f9a61c07b52/settings.json   all that these responses depend on
        3f9a61c07b52/part-00000.parquet ...   some tasks each

    Responses made otherwise lie beside them in a folder of another name.

    Attributes:
        folder: see above.
        samples: responses to each task.
        chunk: tasks to a file.

    Raises:
        UsageError: no samples.
    """

    folder: Path
    samples: int = 64
    chunk: int = 16

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise UsageError(f"a bank of {self.samples} responses to each task has none to draw from; give 1 or more")

    def engine(
        self,
        tasks: Sequence[Task],
        engine: Engine,
        sampling: Sampling,
        settings: Mapping[str, Any],
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> Recorded:
        """Make what is missing, and return the engine that answers from it.

        Args:
            tasks: with distinct ids.
            engine: of the model; it makes the responses, and answers whatever else is asked.
            sampling: how responses are drawn.
            settings: all that they depend on beside that: the model's weights, the tasks.
            seed: of the draws.
            progress: called as ``progress(done, in all)``, in files.

        Raises:
            RunError: a file is damaged, or the disk would not take one.
        """
        place = self._place({**settings, "seed": seed, "sampling": repr(sampling)})
        found: dict[str, Sequence[Episode]] = {}
        starts = range(0, len(tasks), self.chunk)
        for done, start in enumerate(starts, 1):
            part = tasks[start : start + self.chunk]
            path = place / f"part-{start:05d}.parquet"
            if not path.is_file():
                asked = requests(part, self.samples, sampling, np.random.default_rng([seed, start]))
                _store(path, {t.id: e for t, e in zip(part, engine.generate(asked), strict=True)})
            responses = read_responses(path, {t.id: engine.encode(t.prompt) for t in part})
            found |= {key(t.prompt): responses.get(t.id, []) for t in part}
            if progress is not None:
                progress(done, len(starts))
        return Recorded(engine, found, sampling)

    def _place(self, settings: Mapping[str, Any]) -> Path:
        """The folder of these responses, named after what they depend on."""
        from assay.records.files import write_text

        text = json.dumps({**settings, "samples": self.samples, "chunk": self.chunk}, sort_keys=True, default=str)
        place = self.folder / hashlib.sha256(text.encode()).hexdigest()[:12]
        try:
            place.mkdir(parents=True, exist_ok=True)
            write_text(place / "settings.json", text)
        except OSError as error:
            raise RunError(f"could not keep responses in {place}: {error.strerror or error}") from None
        return place


def _store(path: Path, responses: Mapping[str, Sequence[Episode]]) -> None:
    try:
        write_responses(path, responses)
    except OSError as error:
        raise RunError(f"could not keep responses in {path.parent}: {error.strerror or error}") from None
