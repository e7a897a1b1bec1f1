"""Cutting the tokens of an answer at separators outside all brackets."""

from __future__ import annotations

from typing import Self

from assay.verify.math.expressions.nodes import Unreadable
from assay.verify.math.expressions.values import Value
from assay.verify.math.read.tokens import Token

OPEN, CLOSE = "([{⦃⟨⟪⌊⌈", ")]}⦄⟩⟫⌋⌉"
MAX_NESTING = 12


class Cutter:
    """A run of tokens to be read; parts of it are read by :meth:`sub`, and nesting is bounded.

    Raises:
        Unreadable: no tokens, or nested too deep.
    """

    def __init__(self, tokens: list[Token], nesting: int = 0):
        if not tokens or nesting > MAX_NESTING:
            raise Unreadable("nothing to read")
        self.tokens, self.nesting = tokens, nesting
        self.texts = {token.text for token in tokens}

    def sub(self, tokens: list[Token]) -> Self:
        return type(self)(tokens, self.nesting + 1)

    def value(self) -> Value:
        """Return the likeliest reading; raise Unreadable if there is none."""
        raise NotImplementedError

    def readings(self) -> list[Value]:
        """Return every reading, the likeliest first."""
        raise NotImplementedError

    def split(self, *separators: str) -> list[list[Token]]:
        """Cut at separators outside all brackets."""
        if self.texts.isdisjoint(separators):
            return [self.tokens]
        parts: list[list[Token]] = [[]]
        depth = 0
        for token in self.tokens:
            if token.kind == "op":
                if token.text in OPEN:
                    depth += 1
                elif token.text in CLOSE:
                    depth -= 1
            if depth == 0 and token.text in separators and token.kind in ("op", "word", "id"):
                parts.append([])
            else:
                parts[-1].append(token)
        return parts if depth == 0 or len(parts) > 1 else [self.tokens]

    def closes_at_end(self) -> bool:
        """Say whether the first token is a bracket that the last token closes (of whatever kind)."""
        if len(self.tokens) < 2 or not (self.tokens[0].kind == "op" and self.tokens[0].text in OPEN):
            return False
        depth = 0
        for place, token in enumerate(self.tokens):
            if token.kind == "op":
                depth += (token.text in OPEN) - (token.text in CLOSE)
                if depth == 0:
                    return place == len(self.tokens) - 1
        return False
