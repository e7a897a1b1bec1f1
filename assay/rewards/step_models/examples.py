"""What scorers of steps learn from: solutions with values at the ends of steps, and pairs of which one is better."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.records.files import write_text
from assay.records.messages import among, message
from assay.records.rows import read_rows
from assay.rewards.step_models.people import told
from assay.rewards.step_models.rewardmath import paired, placed_rows
from assay.rewards.step_models.tara import traced
from assay.types import Episode, Task

Label = float | None

SAID = ("chosen", "rejected", "completion")
"""Fields with whole responses."""


@dataclass(frozen=True, slots=True)
class StepExample:
    """A solution in steps, and what is known of each.

    Attributes:
        task: what it solves.
        steps: their texts.
        labels: the value in [0, 1] of the beginning that ends with the step, 0 wrong and 1 right; ``None`` where that
            is not known. None at all for what is only to be scored.
        episode: its tokens, with a span of kind ``step`` for each step; ``None`` where there is the text alone.
        rationales: why each step is right or wrong, for a scorer that writes; none at all where nobody says.
    """

    task: Task
    steps: tuple[str, ...]
    labels: tuple[Label, ...] = ()
    episode: Episode | None = None
    rationales: tuple[str, ...] = ()

    @property
    def known(self) -> int:
        """How many steps have a label."""
        return sum(label is not None for label in self.labels)

    @property
    def reversed(self) -> StepExample:
        """The same with the last step first, as text."""
        return StepExample(self.task, self.steps[::-1], self.labels[::-1])


@dataclass(frozen=True, slots=True)
class StepPair:
    """Two solutions of one task that share their steps before ``fork``; at it and after it ``better`` is better, by
    ``strength`` where somebody said how much."""

    better: StepExample
    worse: StepExample
    fork: int
    strength: float = 1.0


Row = StepExample | StepPair


def truth_of(labels: Sequence[Label], cut: float = 0.0) -> int | None:
    """Return the first step whose value is not above ``cut``, -1 where all are; ``None`` where that is not known.

    It is known where the first wrong step is found and every step before it has a label, or the solution has no wrong
    step and no unknown one.
    """
    for k, label in enumerate(labels):
        if label is None:
            return None
        if label <= cut:
            return k
    return -1


def read_examples(path: Path) -> list[Row]:
    """Read rows of a file, each of one of these forms.

    - ``prompt``, ``completions`` (the steps) and ``labels`` (true, false, a number in [0, 1] or null for each), as
      TRL's stepwise supervision has them; perhaps with ``rationales``, a text for each;
    - ``problem``, ``steps`` and ``label`` (index of the first wrong step, -1 for none), as ProcessBench has them: of
      steps after the first wrong one nothing is known;
    - ``prompt``, ``chosen`` and ``rejected`` (their steps) and ``fork`` (steps that they share);
    - ``prompt``, ``chosen`` and ``rejected``, or ``prompt``, ``completion`` and ``label``, as texts: preferences and
      judged responses, each a solution of one step; a preference may have a ``strength`` above 0, and its two
      responses may be tables of ``answer``, ``calls`` of tools (each ``name`` and ``arguments``, perhaps the ``output``
      that is on record) that tell what it is worth, and ``rationale``, what is to be said of it then;
    - comparisons with calls of tools as TARA's files have them, see :mod:`assay.rewards.step_models.tara`;
    - ``problem``, ``problem_id``, ``eval_solution`` (its steps) and ``solution_type``, as RewardMATH has them: each
      chosen solution of a problem is put against each rejected one. The path ``rewardmath``, if there is no such file,
      is that benchmark on the Hugging Face hub;
    - people's ratings and preferences as HelpSteer2's files have them, see :mod:`assay.rewards.step_models.people`;
      pairs that nobody prefers or that people do not agree on are left out.

    An ``id`` says which rows are of one task; the prompt does where there is none. A run's folder is read as what was
    sampled in it, guided episodes among the others: each judged response a solution of one step, in the words of the
    prompt that is trained.

    Raises:
        UsageError: no rows, or one of no such form, with its place.
    """
    found: list[Row] = []
    for where, row in sampled(path) if path.is_dir() else paired(placed_rows(path)):
        if not isinstance(row, Mapping):
            raise UsageError(f"{where} is no record")
        try:
            made = _read(row)
        except (KeyError, TypeError, ValueError) as wrong:
            said = f"lacks {wrong}" if isinstance(wrong, KeyError) else str(wrong)
            raise UsageError(
                f"{where}: {said}; a row has prompt, completions and labels, or problem, steps and label, or prompt, "
                "chosen, rejected and fork"
            ) from None
        if made is not None:
            found.append(made)
    if not found:
        raise UsageError(f"{path} has no rows")
    return found


def sampled(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the judged responses that a run keeps, with their places."""
    for path in sorted((folder / "rollouts").glob("step-*.parquet")):
        for where, row in read_rows(path):
            if row["passed"] is not None and row["response"]:
                label = float(row["passed"])
                yield (
                    where,
                    {"id": row["task_id"], "prompt": row["prompt"], "completion": row["response"], "label": label},
                )


def write_examples(path: Path, rows: Iterable[Row]) -> None:
    """Write what :func:`read_examples` reads, one JSON object a line."""
    write_text(path, "".join(json.dumps(plain_row(row), ensure_ascii=False) + "\n" for row in rows))


def _read(row: Mapping[str, Any]) -> Row | None:
    row = _spoken(told(traced(row)))
    if not row:
        return None
    prompt = row["problem"] if "problem" in row else row["prompt"]
    if not isinstance(prompt, str):
        prompt = tuple(map(message, prompt))
    task = Task(str(row.get("id", prompt)), prompt)
    if "chosen" in row:
        fork = row["fork"] if isinstance(row["chosen"], list) else row.get("fork", 0)
        better, worse = (_side(task, row[name]) for name in ("chosen", "rejected"))
        if not isinstance(fork, int) or not 0 <= fork < min(len(better.steps), len(worse.steps)):
            raise ValueError(f"fork {fork!r} is no step of both solutions")
        strength = float(row.get("strength", 1.0))
        if not 0 < strength < math.inf:
            raise ValueError(f"strength {strength:g} must be a number above 0")
        return StepPair(better, worse, fork, strength)
    if "completion" in row:
        row = {"completions": _whole(row["completion"]), "labels": [row["label"]], **row}
    elif "label" in row:
        example, error = _example(task, row["steps"]), row["label"]
        if isinstance(error, bool) or not isinstance(error, int) or not -1 <= error < len(example.steps):
            raise ValueError(f"label {error!r} is neither a step nor -1")
        return replace(example, labels=labels_of(error, len(example.steps)))
    example = _example(task, row["completions"])
    labels = tuple(None if x is None else float(x) for x in row["labels"])
    if len(labels) != len(example.steps) or any(x is not None and not 0 <= x <= 1 for x in labels):
        raise ValueError(f"the labels of {len(example.steps)} steps are as many numbers in [0, 1], not {row['labels']}")
    why = row.get("rationales") or []
    if not isinstance(why, list) or len(why) not in (0, len(labels)) or not all(isinstance(text, str) for text in why):
        raise ValueError(f"the rationales of {len(labels)} steps are as many texts, not {str(why)[:80]}")
    return replace(example, labels=labels, rationales=tuple(why))


def _spoken(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with texts for responses that are chat messages: of each the last, and what conversations
    have before it is the prompt."""
    said = {name: list(map(message, row[name])) for name in SAID if _is_chat(row.get(name))}
    if not said:
        return row
    before = [messages[:-1] for messages in said.values()]
    if any(other != before[0] for other in before):
        raise ValueError("conversations differ in their last message alone")
    if before[0] and "prompt" in row and not among(row["prompt"], before[0]):
        raise ValueError("the prompt is not in the conversations")
    prompt = {"prompt": before[0]} if before[0] else {}
    return {**row, **prompt, **{name: messages[-1]["content"] for name, messages in said.items()}}


def _is_chat(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(m, Mapping) and "role" in m for m in value)


def labels_of(error: int, count: int) -> tuple[Label, ...]:
    """Return the labels of ``count`` steps of which ``error`` is the first wrong one, -1 for none."""
    if error < 0:
        return (1.0,) * count
    return (1.0,) * error + (0.0,) + (None,) * (count - error - 1)


def _side(task: Task, told: Any) -> StepExample:
    """One of two solutions, perhaps with the calls and the rationale that say what it is worth."""
    if not isinstance(told, Mapping):
        return _example(task, _whole(told))
    calls, rationale = told.get("calls", []), told.get("rationale", "")
    if not isinstance(rationale, str) or not all(
        isinstance(c, Mapping) and isinstance(c.get("name"), str) and isinstance(c.get("arguments"), Mapping)
        for c in calls
    ):
        raise ValueError("calls are tables of name and arguments, and a rationale is a text")
    meta = {**task.meta, "plan": [dict(c) for c in calls], "rationale": rationale}
    return _example(replace(task, meta=meta), _whole(told["answer"]))


def _whole(text: Any) -> Any:
    """A solution that is told as a text is one step."""
    return [text] if isinstance(text, str) and text else text


def _example(task: Task, steps: Any) -> StepExample:
    if not isinstance(steps, list) or not steps or not all(isinstance(s, str) for s in steps):
        raise ValueError(f"{steps!r} is no list of steps")
    return StepExample(task, tuple(steps))


def plain_row(row: Row) -> dict[str, Any]:
    """Return a row as JSON has it; tokens are left out."""
    if isinstance(row, StepPair):
        pair: dict[str, Any] = {"chosen": _plain(row.better), "rejected": _plain(row.worse), "fork": row.fork}
        if row.strength != 1:
            pair["strength"] = row.strength
        return {"id": row.better.task.id, "prompt": row.better.task.prompt, **pair}
    return {
        "id": row.task.id,
        "prompt": row.task.prompt,
        "completions": list(row.steps),
        "labels": list(row.labels),
        **({"rationales": list(row.rationales)} if row.rationales else {}),
    }


def _plain(row: StepExample) -> Any:
    if "plan" not in row.task.meta:
        return list(row.steps)
    return {"answer": row.steps[0], "calls": row.task.meta["plan"], "rationale": row.task.meta["rationale"]}
