"""TimeLens-100K and the TimeLens benchmark as they are published: when events are in real videos."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.pictures.unlabelled import ENDINGS
from assay.tasks.seeded import check_index
from assay.types import Message, Task
from assay.verify.geometry.read import finite_tuple

QUESTION = (
    "Each picture is a frame of a video, with its time in seconds before it. When does this happen: '{what}'? "
    "Answer with its start and end: it happens in START - END seconds."
)
HEARD = frozenset({"audio", "hear", "heard", "hears", "hearing", "sound", "sounded", "sounds", "sounding"})


@dataclass(frozen=True, slots=True)
class Event:
    """What happens in ``video``, a path without its suffix, in the ``[start, end]`` seconds of each of ``spans``."""

    where: str
    source: str
    video: str
    duration: float
    what: str
    spans: tuple[tuple[float, float], ...]

    @property
    def heard(self) -> bool:
        """Whether it speaks of what is heard, which frames do not show."""
        return not HEARD.isdisjoint(self.what.strip("?").lower().split())

    @property
    def placed(self) -> bool:
        """Whether a span of it lies in the video, and the first, which is asked for, has a length."""
        start, end = self.spans[0]
        return start < end and any(0 <= a <= b <= self.duration for a, b in self.spans)


@part("tasks", "timelens")
class TimeLensVideos:
    """Each event of a file, asked for in the frames of its video, ``0.0s<image>0.5s<image>...`` before the question.

    The reference is the event's first span. Frames are pictures in a folder for each video, ``frames``/its path without
    the suffix, in the order of their names, ``every`` seconds one after the other::

        ffmpeg -i videos/didemo/a.mp4 -vf fps=2 frames/didemo/a/%05d.jpg

    Of more frames than ``most``, that many stand in the prompt, evenly spread from the first to the last. ``meta`` has
    the ``duration`` in seconds and the ``source``.

    Args:
        path: ``timelens-100k.jsonl``, or a file of the benchmark, such as ``charades-timelens.json``.
        frames: the folder, of one file's videos; those of the benchmark stand in it by their names.
        every: seconds from one frame to the next.
        most: frames to a prompt.
        shortest, longest: seconds of videos to be learned from.
        words: of an event to be learned from, at most.
        question: with ``{what}`` for the event.

    Of TimeLens-100K, events that are heard, or not in their videos, are left out too; of the benchmark nothing is.

    Raises:
        UsageError: an option out of range, no such file, none of its events is left, or a row of another form; when a
            task is made, a video without frames.

    Source: the files of TimeLens (arXiv 2512.14698), and its authors' code, whose numbers the defaults are.
    """

    def __init__(
        self,
        path: Path,
        frames: Path,
        every: float = 0.5,
        most: int = 448,
        shortest: float = 5.0,
        longest: float = 500.0,
        words: int = 200,
        question: str = QUESTION,
    ):
        if not every > 0 or most < 2 or words < 1 or not 0 <= shortest <= longest:
            raise UsageError(
                f"tasks 'timelens': every {every:g} must be above 0, most {most} at least 2, words {words} at least 1, "
                f"and shortest {shortest:g} from 0 to longest {longest:g}"
            )
        if "{what}" not in question:
            raise UsageError("tasks 'timelens': the question has no {what} for the event that it asks for")
        self.path, self.frames = Path(path).expanduser(), Path(frames).expanduser()
        self.every, self.most, self.question = every, most, question
        if self.path.suffix.lower() == ".json":
            self.events = list(_benchmark(self.path))
        else:
            self.events = [
                event
                for event in _learned(self.path)
                if shortest <= event.duration <= longest
                and len(event.what.split(" ")) <= words
                and event.placed
                and not event.heard
            ]
        if not self.events:
            raise UsageError(f"tasks 'timelens': {self.path} has no events, or none of them is to be learned from")

    @property
    def size(self) -> int:
        return len(self.events)

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        """The frames of the videos that have been asked about."""
        return {}

    def __getitem__(self, index: int) -> Task:
        event = self.events[check_index(index, self.size)]
        files = self._shown(event)
        kept = np.linspace(0, len(files) - 1, min(len(files), self.most)).round().astype(int)
        seen = "".join(f"{k * self.every:.1f}s{MARK}" for k in kept)
        message: Message = {
            "role": "user",
            "content": seen + self.question.replace("{what}", event.what),
            "images": tuple(Picture(files[k]) for k in kept),
        }
        start, end = event.spans[0]
        return Task(
            id=f"{self.path.name}/{index}",
            prompt=(message,),
            reference=[start, end],
            kind="interval",
            solution=f"It happens in {start:.1f} - {end:.1f} seconds.",
            meta={"source": event.source, "duration": event.duration},
        )

    def _shown(self, event: Event) -> list[Path]:
        if event.video not in self._files:
            folder = self.frames / event.video
            found = sorted(p for p in folder.iterdir() if p.suffix.lower() in ENDINGS) if folder.is_dir() else []
            if not found:
                raise UsageError(f"{event.where}: {folder} is no folder with the frames of its video")
            self._files[event.video] = found
        return self._files[event.video]


def _learned(path: Path) -> Iterator[Event]:
    """Read TimeLens-100K: a video with its events a line."""
    for where, row in read_rows(path):
        try:
            video = str(PurePosixPath(row["video_path"]).with_suffix(""))
            for event in row["events"]:
                spans = event["span"]
                spans = (spans,) if finite_tuple(spans, 2) is not None else tuple(spans)
                yield _event(where, str(row["source"]), video, row["duration"], event["query"], spans)
        except (KeyError, TypeError, ValueError):
            raise UsageError(
                f"{where} has not source, video_path, duration and events, each with a query and its span"
            ) from None


def _benchmark(path: Path) -> Iterator[Event]:
    """Read a file of the benchmark: a table of videos, each with queries and as many spans."""
    try:
        videos = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    if not isinstance(videos, Mapping):
        raise UsageError(f"{path} holds a {type(videos).__name__}, not a table of videos")
    for video, row in videos.items():
        where = f"{path} video {video!r}"
        try:
            for span, what in zip(row["spans"], row["queries"], strict=True):
                yield _event(where, path.stem, video, row["duration"], what, (span,))
        except (KeyError, TypeError, ValueError):
            raise UsageError(f"{where} has not duration, queries and as many spans") from None


def _event(where: str, source: str, video: str, duration: Any, what: Any, spans: tuple[Any, ...]) -> Event:
    read = [finite_tuple(span, 2) for span in spans]
    if not read or None in read or not isinstance(what, str) or isinstance(duration, bool):
        raise ValueError
    # Blanks are one, and no full stop ends it, as the sentence stands in quotation marks.
    said = re.sub(r"\s+", " ", what).strip().strip(".").strip()
    return Event(where, source, video, float(duration), said, tuple((s[0], s[1]) for s in read if s is not None))
