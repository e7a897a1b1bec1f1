"""What users said of responses, as demonstrations of how a user speaks: a model that plays one learns from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.records.messages import message
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.seeded import check_index
from assay.types import Message, Prompt, Task

OPENING = "Ask me something, please, and then tell me what you think of my answer."
"""The first turn of a conversation in which the model plays the user."""


def swapped(messages: Sequence[Message], opening: str) -> list[Message]:
    """Return a conversation with the roles of user and assistant swapped, after an opening turn of the user's.

    A system message stays where it is, before the opening.
    """
    swap = {"user": "assistant", "assistant": "user"}
    turned: list[Message] = [{**m, "role": swap.get(m["role"], m["role"])} for m in messages]
    turned.insert(int(bool(turned) and turned[0]["role"] == "system"), Message(role="user", content=opening))
    return turned


@part("tasks", "feedback")
class Feedback:
    """Tasks for rollout ``recorded`` and objective ``sft``: the response is what a user said of an answer.

    Rows are ``prompt`` (a text, or messages), ``response`` and ``feedback``; or ``messages`` that end with the user's
    feedback on the assistant's turn before. The prompt is the conversation with roles swapped (:func:`swapped`), so
    that the feedback is the model's turn; for a model without a chat template it is one text, the prompt, the response
    and ``turn``. A reward ``follow_up`` with the same ``opening``, or the same ``turn``, reads just what was trained.

    Args:
        path: a JSONL, JSON, CSV, TSV or Parquet file.
        opening: the first turn of a chat.
        chat: whether the model has a chat template.
        turn: what stands between a response and what is said of it, where it has none.

    Raises:
        UsageError: no such file, no rows, or a row of no such form, with its line.

    Source: the fine-tuned scorer of Follow-up Likelihood as Reward (arXiv 2409.13948).
    """

    def __init__(self, path: Path, opening: str = OPENING, chat: bool = True, turn: str = "\n"):
        self.tasks: list[Task] = []
        for where, row in read_rows(Path(path)):
            try:
                before, said = _read(row)
            except (KeyError, TypeError, ValueError) as wrong:
                why = f"lacks {wrong}" if isinstance(wrong, KeyError) else str(wrong)
                raise UsageError(
                    f"{where}: {why}; a row has prompt, response and feedback, or messages that end with a user's"
                ) from None
            if chat:
                prompt: Prompt = tuple(swapped(before, opening))
            else:
                prompt = "\n".join(m["content"] for m in before[:-1]) + before[-1]["content"] + turn
            meta = {"responses": [{"text": said, "reward": 1.0}]}
            self.tasks.append(Task(f"{Path(path).name}/{len(self.tasks)}", prompt, kind="none", meta=meta))
        if not self.tasks:
            raise UsageError(f"{path} has no rows")
        self.described = f"{path}: what users said of {len(self.tasks):,} responses"

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def _read(row: Any) -> tuple[list[Message], str]:
    """Return a row's conversation, which ends with the assistant's turn, and what the user said then."""
    if not isinstance(row, Mapping):
        raise TypeError("is no record")
    if "feedback" in row:
        prompt, response, said = row["prompt"], row["response"], row["feedback"]
        before = [Message(role="user", content=prompt)] if isinstance(prompt, str) else _chat(prompt)
        before.append(Message(role="assistant", content=response))
    else:
        *before, last = _chat(row["messages"])
        said = last["content"] if last["role"] == "user" else None
    if len(before) < 2 or before[-1]["role"] != "assistant":
        raise ValueError("feedback follows a turn of the assistant, which follows one of the user")
    texts = [m["content"] for m in before]
    if not all(isinstance(text, str) for text in (*texts, said)) or not said.strip():
        raise ValueError("feedback, response and messages are texts, and feedback is not blank")
    return before, said


def _chat(messages: Any) -> list[Message]:
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise ValueError(f"{str(messages)[:60]!r} is no list of messages")
    return [message(m) for m in messages]
