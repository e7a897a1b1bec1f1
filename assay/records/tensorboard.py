"""Scalars as a TensorBoard event file, written at once: a full disk is noticed in the step that filled it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path


class EventFile:
    """A new event file in ``folder``, which is made if need be."""

    def __init__(self, folder: Path):
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns()}.{os.getpid()}"
        # Unbuffered, so that nothing is left to fail when the file is closed.
        self._file = open(folder / name, "wb", buffering=0)  # noqa: SIM115 - held for the life of the run
        self._records = RecordWriter(self._file)
        self._records.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())

    def add(self, scalars: Mapping[str, float], step: int) -> None:
        """Append the scalars of a step."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        event = Event(wall_time=time.time(), step=step, summary=Summary(value=values))
        self._records.write(event.SerializeToString())

    def add_text(self, tag: str, text: str, step: int) -> None:
        """Append a text in Markdown."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.plugins.text.summary_v2 import text_pb

        event = Event(wall_time=time.time(), step=step, summary=text_pb(tag, text))
        self._records.write(event.SerializeToString())

    def close(self) -> None:
        self._file.close()
