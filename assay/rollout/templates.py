"""A prompt put through a template: an attempt, an answer or an instruction written around its question."""

from __future__ import annotations

from assay.errors import UsageError
from assay.types import Message, Prompt


def through_template(prompt: Prompt, template: str, **fields: object) -> Prompt:
    """Return the prompt, of a chat its last user message, as the ``{question}`` of ``template``.

    Args:
        prompt: text or chat.
        template: may name ``{question}`` and any of ``fields``; other braces are written twice.
        fields: what else it may name.
    """
    if isinstance(prompt, str):
        return template.format(question=prompt, **fields)
    last = max(i for i, m in enumerate(prompt) if m["role"] == "user")
    text = template.format(question=prompt[last]["content"], **fields)
    asked: Message = {**prompt[last], "content": text}
    return (*prompt[:last], asked, *prompt[last + 1 :])


def check_template(template: str, name: str, where: str, *also: str) -> None:
    """Raise UsageError unless ``template`` names ``{name}`` and besides it at most ``{question}`` and ``also``."""
    try:
        found = "\0" in template.format(question="", **dict.fromkeys(also, ""), **{name: "\0"})
    except (KeyError, IndexError, ValueError):
        found = False
    if not found:
        may = " and ".join(f"{{{other}}}" for other in ("question", *also))
        raise UsageError(
            f"{where}: the template has to contain {{{name}}}, may contain {may}, and writes other braces twice"
        )
