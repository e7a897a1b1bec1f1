"""How long prompts are, and may be, in a model's context."""

from __future__ import annotations

from collections.abc import Callable

from assay.policies.conversation import opening
from assay.policies.loading import ModelConfig, load_tokenizer
from assay.types import Message, Prompt

CHARACTERS = 16
"""Characters of a prompt for each token of a model's context. Prose has about four to a token, so what is longer cannot
fit, and is refused before it is tokenised, which takes seconds a megabyte."""


def prompt_counter(model: ModelConfig) -> Callable[[Prompt], int]:
    """Return what counts a prompt's tokens, those of the chat template with it; pictures are not counted.

    Raises:
        UsageError: the model's tokenizer is not here; of the counter, that the template refuses a prompt.
    """
    tokenizer = load_tokenizer(model)
    chat = model.chat == "auto" and bool(getattr(tokenizer, "chat_template", None))

    def count(prompt: Prompt) -> int:
        asked = [Message(role="user", content=prompt)] if isinstance(prompt, str) else prompt
        return len(opening(tokenizer, chat, asked, ()))

    return count
