"""Factors of what a turn is worth, as a function that a model has written, run in the sandbox on what is known of
turns."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.batch import Batch
from assay.engines.asking import filled
from assay.engines.base import Engine, Request, Sampling
from assay.errors import RunError
from assay.ops.turns import Turns
from assay.sandbox import Limits, Program, sandbox
from assay.types import Turn

FIXED = ("index", "own_tokens", "valid", "calls", "changed", "seen_before", "terminated", "truncated")
"""Columns that every turn has: its number, its length, whether it could be taken, its calls, whether the state changed,
whether the state it led to was met before in its trajectory, and whether the episode ended with it."""
MOST = 64
"""Factors of a function, at most."""


class BadFunction(Exception):
    """What a function did wrong; it can be written again."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the columns of observations mean: :data:`FIXED`, a column for each tag, one for each number noted of
    turns."""

    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, turns: Sequence[Turn]) -> Layout:
        tags = sorted({turn.tag for turn in turns if turn.tag is not None})
        noted = {name for turn in turns for name, value in turn.info.items() if isinstance(value, int | float)}
        return cls(tuple(tags), tuple(sorted(noted)))

    @property
    def names(self) -> tuple[str, ...]:
        return (*FIXED, *(f"tag_{tag}" for tag in self.tags), *(f"noted_{name}" for name in self.notes))

    def rows(self, table: Turns, batch: Batch) -> np.ndarray:
        """Return the observations of the turns of a table, ``(M, D)`` float64."""
        out = np.zeros((len(table), len(self.names)))
        met: dict[int, set[str]] = {}
        for m, turn in enumerate(table.records):
            seen = met.setdefault(int(table.trajectory[m]), set() if turn.state is None else {turn.state})
            own = int(batch.mask[int(table.sample[m]), turn.start : turn.end].sum())
            told = turn.next_state is not None
            fixed = [turn.index, own, turn.valid, len(turn.calls), told and turn.next_state != turn.state]
            fixed += [told and turn.next_state in seen, turn.terminated, turn.truncated]
            notes = [float(turn.info.get(name, 0)) for name in self.notes]
            out[m] = [*map(float, fixed), *(float(turn.tag == tag) for tag in self.tags), *notes]
            if turn.next_state is not None:
                seen.add(turn.next_state)
        return out


_HARNESS = """
import io, json, sys
import numpy as np
sys.stdout = io.StringIO()  # what the function prints is nobody's
import written
given = np.array(json.load(open("observations.json")), dtype=float)
found = written.evaluation_func(given)
if not isinstance(found, (list, tuple)) or not found:
    raise ValueError("evaluation_func has to return a list of arrays")
for i, column in enumerate(found):
    if np.shape(column) != (len(given), 1):
        raise ValueError(f"array {i} has shape {np.shape(column)}, not ({len(given)}, 1)")
whole = np.concatenate([np.asarray(column, dtype=float) for column in found], axis=1)
if not np.isfinite(whole).all():
    raise ValueError("a factor is not finite")
json.dump(whole.tolist(), sys.__stdout__)
"""


def evaluate(source: str, observations: np.ndarray) -> np.ndarray:
    """Return the factors ``(M, d)`` that ``evaluation_func`` of a program makes of observations ``(M, D)``.

    Raises:
        BadFunction: it raised, took too long, or did not return a list of finite ``(M, 1)`` arrays.
        RunError: the sandbox failed.
    """
    program = Program(
        _HARNESS,
        files={"written.py": source},
        packages=("numpy",),
        inputs={"observations.json": json.dumps(observations.tolist())},
    )
    out = sandbox().run(program, limits=Limits(20.0, 60.0))
    if out.status == "infrastructure":
        raise RunError(f"factors could not be computed: {out.reason}")
    if out.status != "ok":
        last = out.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise BadFunction("; ".join([out.reason or "it wrote nothing", *last])[:500])
    try:
        found = np.array(json.loads(out.stdout), dtype=np.float64)
    except ValueError as error:
        raise BadFunction("it wrote what is no array") from error
    if found.ndim != 2 or len(found) != len(observations) or not 0 < found.shape[1] <= MOST:
        raise BadFunction(
            f"{found.shape[-1] if found.size else 0} factors of {len(found)} rows; at most {MOST} are taken"
        )
    return found


PROMPT = """You help to find out which turns of an agent earned what its whole episode was paid.

The task: {task}
Each turn is a row of numbers, in this order: {layout}

Write evaluation_func(obs) in Python with numpy. It is given an array of shape (batch, {width}) and returns a list of
arrays of shape (batch, 1), each a factor that tells how much a turn contributed.{before}

Reply with JSON: {"Understand": "...", "Analyze": "...", "Functions": "the source"}"""


def write(
    engine: Engine, task: str, layout: Layout, observations: np.ndarray, n: int = 5, tries: int = 5, seed: int = 0
) -> str:
    """Let a model write the function: n candidates, one reply that merges their factors, and corrections of that.

    The merged function is run on real observations. What it raises, or the shape that is wrong, goes back to the model,
    up to ``tries`` times; a function that never runs is never used.

    Raises:
        RunError: none ran.
    """
    shown = {"task": task, "layout": ", ".join(layout.names), "width": str(len(layout.names))}
    many = Request(filled(PROMPT, **shown, before=""), n, Sampling(4096, 1.0), seed)
    candidates = [source for [*replies] in engine.generate([many]) for reply in replies if (source := read(reply.text))]
    before = "\n\nMerge all factors of these functions into one:\n\n" + "\n\n".join(candidates)
    why = "no reply held a function"
    for k in range(tries + 1):
        asked = Request(filled(PROMPT, **shown, before=before), 1, Sampling(4096, 0.3), seed + 1 + k)
        [[reply]] = engine.generate([asked])
        source = read(reply.text)
        try:
            if not source:
                raise BadFunction("the reply holds no JSON with Functions")
            evaluate(source, observations)
            return source
        except BadFunction as error:
            why = str(error)
            before = f"\n\nThis function fails:\n\n{source}\n\nwith: {why}\n\nCorrect it."
    raise RunError(f"no function of factors ran in {tries + 1} tries; the last: {why}")


def read(reply: str) -> str:
    """Return the source in a reply, or nothing."""
    for start in [m.start() for m in re.finditer(r"\{", reply)]:
        try:
            found, _ = json.JSONDecoder().raw_decode(reply[start:])
        except ValueError:
            continue
        if isinstance(found, dict) and "Functions" in found:
            source = found["Functions"]
            return "\n\n".join(map(str, source)) if isinstance(source, list) else str(source)
    return ""
