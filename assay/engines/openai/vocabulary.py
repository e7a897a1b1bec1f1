"""Token ids for what a server said: of a tokenizer that we have too, or of an alphabet of our own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from assay.engines.tokens import Tokens
from assay.errors import UsageError
from assay.policies.conversation import bridge, opening
from assay.types import Message, Prompt, Tool, pictures

Piece = tuple[str, bytes]
"""A token as a server shows it: its name, and the bytes of text it stands for (none for a special token)."""


class Vocabulary(Protocol):
    """Turns text into token ids and back."""

    def encode(self, prompt: Prompt) -> np.ndarray: ...

    def encode_response(self, text: str, end: bool) -> np.ndarray: ...

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str: ...

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        """See :class:`assay.engines.base.Conversing`."""
        ...

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        """See :class:`assay.engines.base.Conversing`."""
        ...

    def align(self, pieces: Sequence[Piece], ids: Sequence[int] | None) -> np.ndarray | None:
        """Return the ids of a response's tokens, given as pieces and perhaps as the server's ids; none if unknown."""
        ...


class Alphabet:
    """Ids of our own, where the server's tokenizer is not at hand.

    Ids 0 to 255 are bytes, 256 ends a response. A token that a server shows as several bytes has an id that is a hash
    of them, the same in every process. These ids mean nothing to a model.
    """

    END = 256

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {self.END: b""}

    def encode(self, prompt: Prompt) -> np.ndarray:
        """Return the bytes of a prompt, chat messages joined by newlines; ids as they are."""
        if isinstance(prompt, Tokens):
            return prompt.ids
        return self._bytes(prompt if isinstance(prompt, str) else "\n".join(m["content"] for m in prompt))

    def encode_response(self, text: str, end: bool) -> np.ndarray:
        data = self._bytes(text)
        return np.append(data, self.END) if end else data

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """Return the text of tokens.

        Raises:
            UsageError: a token that this engine has not given out.
        """
        try:
            data = b"".join(bytes([t]) if 0 <= t < 256 else self._known[t] for t in map(int, tokens))
        except KeyError as unknown:
            raise UsageError(f"token {unknown} is none of this engine's; give engine 'openai' a tokenizer") from None
        return data.decode("utf-8", "replace")

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        return self.encode(tuple(messages))

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        return self.encode(tuple(messages))

    def align(self, pieces: Sequence[Piece], ids: Sequence[int] | None) -> np.ndarray | None:
        return np.array([self._id(*piece) for piece in pieces], dtype=np.int64)

    def _id(self, name: str, data: bytes) -> int:
        if len(data) == 1:
            return data[0]
        digest = hashlib.blake2b(data or name.encode(), digest_size=6, person=b"bytes" if data else b"special").digest()
        token = 257 + int.from_bytes(digest, "big")
        self._known[token] = data
        return token

    @staticmethod
    def _bytes(text: str) -> np.ndarray:
        return np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8).astype(np.int64)


class Tokenizer:
    """The model's own ids.

    Args:
        tokenizer: of transformers.
    """

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, source: str) -> Tokenizer:
        """Return the tokenizer of a folder, a GGUF file, a hub id, or of ``nano``.

        Raises:
            UsageError: there is none.
        """
        from assay.policies.loading import ModelConfig, load_tokenizer

        try:
            return cls(load_tokenizer(ModelConfig(source=source)))
        except UsageError as error:
            raise UsageError(f"engine 'openai': {error}") from error

    def encode(self, prompt: Prompt) -> np.ndarray:
        """Return a prompt's ids, in the chat template where the tokenizer has one, as our own models are asked."""
        if isinstance(prompt, Tokens):
            return prompt.ids
        if pictures(prompt):
            raise UsageError('prompts with pictures go to a server as messages: api = "chat", and no tokenizer')
        if self._chat:
            messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
            text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        else:
            ids = self.tokenizer(prompt if isinstance(prompt, str) else "\n".join(m["content"] for m in prompt))[
                "input_ids"
            ]
        return np.asarray(ids, dtype=np.int64)

    @property
    def _chat(self) -> bool:
        return bool(getattr(self.tokenizer, "chat_template", None))

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        ids = opening(self.tokenizer, self._chat, messages, tools)
        return ids if len(ids) else self.encode("")

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        return bridge(self.tokenizer, self._chat, messages, ended, [self.tokenizer.eos_token_id])

    def encode_response(self, text: str, end: bool) -> np.ndarray:
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        last = [self.tokenizer.eos_token_id] if end and self.tokenizer.eos_token_id is not None else []
        return np.asarray([*ids, *last], dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    def align(self, pieces: Sequence[Piece], ids: Sequence[int] | None) -> np.ndarray | None:
        """Return the server's ids; else those of the text, if as many and of the same pieces."""
        if ids is None:
            text = b"".join(data for _, data in pieces).decode("utf-8", "replace")
            ids = self.encode_response(text, end=bool(pieces) and not pieces[-1][1]).tolist()
        return np.asarray(ids, dtype=np.int64) if len(ids) == len(pieces) else None
