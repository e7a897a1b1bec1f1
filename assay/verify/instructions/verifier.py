"""Whether a response follows verifiable instructions, as IFEval scores them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.instructions.kinds import KINDS, BadInstruction, CannotTell, follows
from assay.verify.instructions.passage import Passage


@part("verify", "instructions")
@dataclass(frozen=True, slots=True)
class Instructions:
    """Right iff every instruction is followed; the score is the fraction followed.

    ``task.reference`` is a row of the IFEval data set, ``{"instruction_id_list": [...], "kwargs": [...]}``, or a list
    of ``{"id": ..., **arguments}``. ``parts`` are the ids, the second of the same id with ``#2``; one that cannot be
    checked is ``None``, and unless another is violated the verifier then abstains. A blank response follows none.

    Args:
        mode: ``strict``: the response as it is; ``loose``: an instruction counts as followed if any of IFEval's eight
            variants follows it: the response without its first line, its last, or both, each with and without
            asterisks.
        last_tag: judge only what follows the last occurrence of this text, such as ``</think>``; where it does not
            occur, all of it.
    """

    mode: Literal["strict", "loose"] = "strict"
    last_tag: str | None = None

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            asked = _asked(task.reference)
        except BadInstruction as error:
            return Verdict.abstain(f"task {task.id}: {error}")
        _load()
        if self.last_tag:
            response = response.rpartition(self.last_tag)[2]
        texts = variants(response) if self.mode == "loose" else [response]
        passages = [Passage(t, task.question) for t in texts if t.strip()]
        parts: dict[str, float | None] = {}
        unknown: list[str] = []
        for name, arguments in asked:
            part_name, n = name, 1
            while part_name in parts:
                n += 1
                part_name = f"{name}#{n}"
            try:
                # The arguments of the instruction are checked even where there is no response to hold against it.
                met = any(follows(name, arguments, p) for p in passages or [Passage("x", task.question)])
                parts[part_name] = float(met and bool(passages))
            except (BadInstruction, CannotTell) as error:
                parts[part_name] = None
                unknown.append(str(error))
        broken = [name for name, met in parts.items() if met == 0.0]
        score = sum(v or 0.0 for v in parts.values()) / len(parts)
        if broken:
            return Verdict(score, False, parts, f"not followed: {', '.join(broken)}"[:300])
        if unknown:
            return Verdict(0.0, None, parts, f"task {task.id}: {'; '.join(unknown)}"[:300])
        return Verdict(score, True, parts)


def variants(response: str) -> list[str]:
    """Return IFEval's eight variants of a response for loose scoring, without repetitions."""
    lines = response.split("\n")
    cut = [response, *("\n".join(some).strip() for some in (lines[1:], lines[:-1], lines[1:-1]))]
    return list(dict.fromkeys([*cut, *(text.replace("*", "") for text in cut)]))


def known() -> list[str]:
    """Return the ids of every instruction kind, sorted."""
    _load()
    return sorted(KINDS)


@functools.cache
def _load() -> None:
    """Import the modules that register kinds."""
    import assay.verify.instructions.ifeval
    import assay.verify.instructions.more  # noqa: F401


def _asked(reference: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """Return ids and arguments; raise BadInstruction if the reference has neither form."""
    if isinstance(reference, Mapping):
        names, kwargs = reference.get("instruction_id_list"), reference.get("kwargs")
        if not _is_list(names) or not names:
            raise BadInstruction("reference has no instruction_id_list")
        if kwargs is None:
            kwargs = [{}] * len(names)
        if not _is_list(kwargs) or len(kwargs) != len(names):
            raise BadInstruction("reference needs one entry of kwargs for each instruction")
        asked = list(zip(names, [k or {} for k in kwargs], strict=True))
    elif _is_list(reference) and reference and all(isinstance(r, Mapping) and "id" in r for r in reference):
        asked = [(r["id"], {k: v for k, v in r.items() if k != "id"}) for r in reference]
    else:
        raise BadInstruction("reference is neither {'instruction_id_list', 'kwargs'} nor a list of {'id', ...}")
    for name, arguments in asked:
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            raise BadInstruction(f"{name!r} with {arguments!r} is not an instruction"[:200])
    return asked


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
