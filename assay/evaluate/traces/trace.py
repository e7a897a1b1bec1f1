"""Solutions of several steps in a file, each beside the reference solutions of its problem."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.evaluate.traces.regions import WHOLE, Box
from assay.media import Picture


@dataclass(frozen=True, slots=True)
class Step:
    """A step in words, or a picture with its boxes that matter; ``point`` is what a judge looks for."""

    text: str = ""
    image: Picture | None = None
    boxes: tuple[tuple[Box, float], ...] = tuple(WHOLE)
    point: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """What was said to a problem, and the solutions there are.

    Attributes:
        id, question: of the problem.
        steps, answer: as they were given; an empty answer is none.
        solutions: of references, one or more.
        reference: the right answer, ``None`` where none is known.
        kind: of the verifier that compares answers.
    """

    id: str
    question: str
    steps: tuple[Step, ...]
    answer: str
    solutions: tuple[tuple[Step, ...], ...]
    reference: Any = None
    kind: str = "exact"


def read_traces(path: Path) -> list[Trace]:
    """Read a JSONL file of traces::

        {"id": "1", "question": "...", "steps": [{"text": "..."}, {"image": "plot.png"}], "answer": "1/2",
         "reference": "1/2", "solutions": [[{"text": "...", "point": "..."},
                                            {"image": "right.png", "boxes": [[0.1, 0.2, 0.3, 0.3, 1.0]]}]]}

    In the place of a solution's steps there may be the name of a file in the layout of StepSTEM's benchmark
    (``benchmark/che/problem0/solution1/1.json``); a question and a reference that are not given are then read there.
    Pictures are looked for from the folder of the file that names them. A box is left, top, width and height as shares
    of the picture's, and a weight. ``kind`` names the verifier of answers, ``exact`` unless given.

    Raises:
        UsageError: the file cannot be read, or a line is no trace; says which.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    traces = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                traces.append(_trace(json.loads(line), path.parent))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                what = f"no {error}" if isinstance(error, KeyError) else str(error)
                raise UsageError(f"{path}, line {number}: no trace with steps and solutions: {what}") from error
    if not traces:
        raise UsageError(f"{path} has no traces")
    return traces


def _trace(row: Mapping[str, Any], folder: Path) -> Trace:
    filed = [_filed(folder / steps) for steps in row["solutions"] if isinstance(steps, str)]
    if filed:
        row = {**filed[0][0], **row}
    read = iter(filed)
    solutions = tuple(
        next(read)[1] if isinstance(steps, str) else tuple(_step(step, folder) for step in steps)
        for steps in row["solutions"]
    )
    if not solutions or not all(solutions):
        raise ValueError("a solution without steps")
    steps = tuple(_step(step, folder) for step in row["steps"])
    told = (str(row["id"]), str(row.get("question", "")), steps, str(row.get("answer", "")), solutions)
    return Trace(*told, row.get("reference"), str(row.get("kind", "exact")))


def _filed(path: Path) -> tuple[dict[str, Any], tuple[Step, ...]]:
    """Return what StepSTEM's file of a solution has: question and reference, and steps in their order."""
    try:
        held = json.loads(path.read_text(encoding="utf-8-sig"))  # twelve of the benchmark's begin with its mark
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    asked = "\n".join(str(part["content"]) for part in held["question"] if part["modality"] == "text")
    numbered = sorted(held["solution"].items(), key=lambda it: int(it[0].rpartition("_")[2]))
    steps = []
    for _, step in numbered:
        row = {"text": step["content"], "point": step.get("key_point", "")}
        if step["modality"] == "image":
            boxes = [[*box["bbox"], box["weight"]] for box in step.get("important_bbox", ())]
            row = {"image": step["content"], "boxes": boxes}
        steps.append(_step(row, path.parent))
    last = held["final_answer"]
    told = {"reference": last["answer"]} if last["modality"] == "text" else {}
    return {"question": asked, **told}, tuple(steps)


def _step(step: Mapping[str, Any], folder: Path) -> Step:
    if "image" in step:
        boxes = tuple(((float(x), float(y), float(w), float(h)), float(k)) for x, y, w, h, k in step.get("boxes", ()))
        if any(weight <= 0 or min(w, h) <= 0 for (_, _, w, h), weight in boxes):
            raise ValueError("a box without size or weight")
        return Step(image=Picture(folder / str(step["image"])), boxes=boxes or tuple(WHOLE))
    if not str(step["text"]).strip():
        raise ValueError("a step without words")
    return Step(str(step["text"]), point=str(step.get("point", "")))
