"""Tasks whose prompts are not too long to be asked."""

from __future__ import annotations

from assay.policies.context import CHARACTERS, prompt_counter
from assay.policies.loading import ModelConfig
from assay.types import Task


class Fits:
    """Says of a task whether its prompt has at most so many of a model's tokens.

    Args:
        model: whose tokenizer and chat template count.
        most: tokens of a prompt.

    Raises:
        UsageError: the tokenizer is not here.
    """

    def __init__(self, model: ModelConfig, most: int):
        self.most = most
        self._count = prompt_counter(model)
        self._around = self._count("")

    def __call__(self, task: Task) -> bool:
        # A token covers a byte or more, and what stands around several messages is about as long for each of them.
        turns = 1 if isinstance(task.prompt, str) else len(task.prompt)
        if len(task.question.encode("utf-8", "replace")) + turns * self._around <= self.most:
            return True
        return len(task.question) <= CHARACTERS * self.most and self._count(task.prompt) <= self.most
