"""Responses on record: demonstrations, preferences, judged responses, as rows of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.records.messages import among, message
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.files.fields import PROMPTS, instructed
from assay.tasks.seeded import check_index
from assay.types import Message, Prompt, Task

FORMS = (
    "prompt and completion; prompt, chosen and rejected; prompt, completion and label; messages; "
    "or prompt and responses"
)


@part("tasks", "recorded")
class RecordedTasks:
    """Tasks with responses that are on record, for rollout ``recorded``: nothing is generated and nobody is asked.

    Rows have one of the usual forms, texts or chat messages:

    - ``prompt`` and ``completion``, or ``messages`` that end with the assistant's: a demonstration;
    - ``prompt``, ``chosen`` and ``rejected``: a preference; both may be whole conversations;
    - ``prompt``, ``completion`` and ``label`` (true, false, or a number in [0, 1]): a judged response; those to one
      prompt are one task's;
    - ``prompt`` and ``responses``, a list of texts or of tables with ``text`` and ``reward`` in [0, 1].

    ``question`` and other usual names do for ``prompt``, as does ``instruction`` with what it is about, ``input``;
    ``response``, ``output``, ``solution`` and ``answer`` for ``completion``.

    Args:
        path: a JSONL, JSON, CSV, TSV or Parquet file.
        chat: put prompts that are texts in a user message, so that the model's chat template is applied.

    Raises:
        UsageError: no such file, no rows, or a row of no such form, with its line.
    """

    def __init__(self, path: Path, chat: bool = False):
        path, self.count = Path(path), 0
        self.tasks: list[Task] = []
        judged: dict[Any, list[Any]] = {}
        for where, row in read_rows(path):
            if not isinstance(row, Mapping):
                raise UsageError(f"{where} is no record")
            try:
                prompt, responses = _read(row)
            except (KeyError, TypeError, ValueError) as wrong:
                said = f"lacks {wrong}" if isinstance(wrong, KeyError) else str(wrong)
                raise UsageError(f"{where}: {said}; a row has {FORMS}") from None
            self.count += len(responses)
            if chat and isinstance(prompt, str):
                prompt = (Message(role="user", content=prompt),)
            key = repr(prompt)
            if "label" in row and key in judged:
                judged[key] += responses
                continue
            task = Task(f"{path.name}/{len(self.tasks)}", prompt, kind="none", meta={"responses": responses})
            self.tasks.append(task)
            if "label" in row:
                judged[key] = responses
        if not self.tasks:
            raise UsageError(f"{path} has no rows")
        self.described = f"{path}: {self.count:,} responses on record to {len(self.tasks):,} prompts"

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def _read(row: Mapping[str, Any]) -> tuple[Prompt, list[dict[str, Any]]]:
    """Return a row's prompt and its responses with their rewards."""
    if "chosen" in row:
        asked = next((row[name] for name in PROMPTS if name in row), None)
        if asked is None or (not isinstance(row["chosen"], str) and len(row["chosen"]) > 1):
            shared, (chosen, rejected) = _common(_chat(row["chosen"]), _chat(row["rejected"]))
            if asked is not None and not among(asked, shared):
                raise ValueError("the prompt is not in the conversations")
            prompt: Prompt = shared
        else:
            prompt, chosen, rejected = _prompt(row), row["chosen"], row["rejected"]
        texts = _text(chosen), _text(rejected)
        if texts[0] == texts[1]:
            raise ValueError("chosen and rejected are the same")
        return prompt, [{"text": text, "reward": reward} for text, reward in zip(texts, (1.0, 0.0), strict=True)]
    if "responses" in row:
        found = [{"text": r, "reward": 1.0} if isinstance(r, str) else dict(r) for r in row["responses"]]
        if not found or not all(isinstance(r.get("text"), str) for r in found):
            raise ValueError("responses is a list of texts, or of tables with text and reward")
        return _prompt(row), [{"text": r["text"], "reward": _reward(r.get("reward"))} for r in found]
    if "messages" in row and "completion" not in row:
        *before, last = _chat(row["messages"])
        if last["role"] != "assistant" or not before:
            raise ValueError("messages end with one of the assistant, after others")
        return tuple(before), [{"text": _text([last]), "reward": _reward(row.get("label", True))}]
    for name in ("completion", "response", "output", "solution", "answer"):
        if name in row:
            return _prompt(row), [{"text": _text(row[name]), "reward": _reward(row.get("label", True))}]
    raise KeyError("completion")


def _prompt(row: Mapping[str, Any]) -> Prompt:
    name = next((name for name in PROMPTS if name in row), None)
    if name is None:
        raise KeyError("prompt")
    row = instructed(row) if name == "instruction" else row
    return row[name] if isinstance(row[name], str) else tuple(_chat(row[name]))


def _chat(messages: Any) -> list[Message]:
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise ValueError(f"{str(messages)[:60]!r} is no list of messages")
    return [message(m) for m in messages]


def _common(chosen: list[Message], rejected: list[Message]) -> tuple[tuple[Message, ...], tuple[Any, Any]]:
    """Return what two conversations begin with alike, and their last messages."""
    if chosen[:-1] != rejected[:-1] or len(chosen) < 2:
        raise ValueError("chosen and rejected, without a prompt, are conversations that differ in their last message")
    return tuple(chosen[:-1]), (chosen[-1:], rejected[-1:])


def _text(response: Any) -> str:
    if isinstance(response, str):
        text = response
    else:
        messages = _chat(response)
        if len(messages) != 1:
            raise ValueError("beside a prompt, a response is one message")
        if messages[0].get("tool_calls"):
            raise ValueError("a response is a text, and this message calls tools")
        text = messages[0]["content"]
    if not text:
        raise ValueError("a response is empty")
    return text


def _reward(label: Any) -> float:
    if isinstance(label, bool):
        return float(label)
    if isinstance(label, str) and label.strip().lower() in ("true", "false"):  # of a CSV file
        return float(label.strip().lower() == "true")
    value = float(label)
    if not 0 <= value <= 1:
        raise ValueError(f"label {label!r} is not true, false or in [0, 1]")
    return value
