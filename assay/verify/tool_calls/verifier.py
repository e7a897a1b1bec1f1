"""The tool calls that a response makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.lists.matching import best_pairs, f_beta, ordered_pairs
from assay.verify.structured.find import NoValue, load_json
from assay.verify.text.exact import shorten
from assay.verify.tool_calls.formats import BadCall, Call, Format, calls_of, read_calls
from assay.verify.tool_calls.match import Values, Wanted

MAX_CALLS = 100
"""Calls of a response that are compared; one that makes more is wrong."""


@part("verify", "tool_calls")
@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Right iff the response makes the calls of the reference and no other.

    ``task.reference`` is a list of ``{"name": ..., "arguments": {...}}`` (an OpenAI message with ``tool_calls``, or
    JSON text, will do), or of BFCL's possible answers ``{name: {argument: [accepted, ...]}}``, in which an empty text
    among the accepted values makes the argument optional. An empty list says that no call is right.

    Calls are paired one to one so that most arguments agree. With s = the share of arguments that are right in each
    pair (0 where the names differ), score = 2 sum(s) / (calls made + calls asked for). ``parts``: ``format``, ``names``
    (F1 of the names), ``arguments`` (mean share over the calls asked for), ``order`` (calls that are paired in order,
    as a share of the longer side).

    Args:
        ordered: the order of calls matters; pairs are then those of an alignment.
        form: the notation of the calls; all of them unless given.
        any_of: in ``{"name", "arguments"}``, each argument of the reference is a list of accepted values.
        coerce: ``"5"`` equals ``5`` and ``"true"`` equals ``true``.
        strings: how text is compared, see :class:`~assay.verify.tool_calls.match.Values`.
        tolerance: relative difference of equal numbers.
        max_chars: a longer response is wrong.
    """

    ordered: bool = False
    form: Format = "auto"
    any_of: bool = False
    coerce: bool = False
    strings: Literal["exact", "ignore_case", "loose"] = "exact"
    tolerance: float = 1e-9
    max_chars: int = 1_000_000

    def __post_init__(self) -> None:
        if self.tolerance < 0:
            raise UsageError(f"verifier 'tool_calls': tolerance {self.tolerance} must be at least 0")

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = read_reference(task.reference, self.any_of)
        if wanted is None:
            return Verdict.abstain(f"task {task.id}: reference is no list of calls")
        if len(response) > self.max_chars:
            return Verdict(0.0, False, {"format": 0.0}, f"longer than {self.max_chars} characters")
        try:
            calls = read_calls(response, self.form)
        except BadCall as error:
            return Verdict(0.0, False, {"format": 0.0}, str(error))
        if len(calls) > max(MAX_CALLS, len(wanted)):
            return Verdict(0.0, False, {"format": 1.0}, f"makes {len(calls)} calls")
        return self._compare(calls, wanted)

    def _compare(self, calls: list[Call], wanted: list[Wanted]) -> Verdict:
        if not calls or not wanted:
            right = not calls and not wanted
            feedback = "" if right else f"calls {shorten(calls[0].name)!r}" if calls else "makes no call"
            return Verdict(float(right), right, {"format": 1.0, "names": float(right)}, feedback)
        values = Values(self.tolerance, self.coerce, self.strings)
        same_name = np.array([[float(c.name == w.name) for w in wanted] for c in calls])
        share = np.array([[w.share(c.arguments, values) if c.name == w.name else 0.0 for w in wanted] for c in calls])
        # A name alone is worth less than any argument that is right, but tells which pair is meant.
        worth = share + 1e-6 * same_name
        pairs = ordered_pairs(worth) if self.ordered else best_pairs(worth)
        total = sum(share[pair] for pair in pairs)
        common = (Counter(c.name for c in calls) & Counter(w.name for w in wanted)).total()
        parts: dict[str, float | None] = {
            "format": 1.0,
            "names": f_beta(common / len(calls), common / len(wanted)),
            "arguments": float(total / len(wanted)),
            "order": len(ordered_pairs(_chosen(best_pairs(worth), share.shape))) / max(len(calls), len(wanted)),
        }
        exact = len(pairs) == len(calls) == len(wanted) and all(share[pair] == 1 for pair in pairs)
        score = 1.0 if exact else float(2 * total / (len(calls) + len(wanted)))
        return Verdict(score, exact, parts, "" if exact else _complaint(calls, wanted, share, pairs))


def _chosen(pairs: list[tuple[int, int]], shape: tuple[int, ...]) -> np.ndarray:
    table = np.zeros(shape)
    for pair in pairs:
        table[pair] = 1.0
    return table


def _complaint(calls: list[Call], wanted: list[Wanted], share: np.ndarray, pairs: list[tuple[int, int]]) -> str:
    for i, j in pairs:
        if share[i, j] < 1:
            return f"arguments of {shorten(wanted[j].name)!r} differ"
    missing = set(range(len(wanted))) - {j for _, j in pairs}
    if missing:
        return f"does not call {shorten(wanted[min(missing)].name)!r}"
    return f"calls {shorten(calls[min(set(range(len(calls))) - {i for i, _ in pairs})].name)!r}, which is not asked for"


def read_reference(reference: Any, any_of: bool = False) -> list[Wanted] | None:
    """Return the calls of a reference, ``None`` if it is no list of calls."""
    try:
        value = load_json(reference) if isinstance(reference, str) else reference
        if isinstance(value, Mapping) and "tool_calls" not in value and "name" not in value and "function" not in value:
            value = [value]
        if value is None or not isinstance(value, Mapping | list | tuple):
            return None
        value = list(value) if isinstance(value, tuple) else value
        possible = [_possible(item) for item in value] if isinstance(value, list) else [None]
        if value and all(item is not None for item in possible):
            return [item for item in possible if item is not None]
        calls = calls_of(value)
    except (NoValue, BadCall):
        return None
    return None if calls is None else [Wanted(call.name, call.arguments, any_of) for call in calls]


def _possible(item: Any) -> Wanted | None:
    """Return a call of BFCL's possible answers: one key, the name, with lists of accepted values."""
    if not isinstance(item, Mapping) or len(item) != 1:
        return None
    [(name, arguments)] = item.items()
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        return None
    return Wanted(name, arguments, True) if all(isinstance(v, list) for v in arguments.values()) else None
