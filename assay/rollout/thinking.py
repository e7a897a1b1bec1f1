"""How a thought ends, by itself or by force, and how an answer begins."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from assay.engines.base import Engine, Sampling

END = "</think>"

Judged = Literal["answer", "response"]


@dataclass(frozen=True, slots=True)
class Marks:
    """The texts between thinking and answering.

    Attributes:
        end: ends the thinking; none if empty: thought and answer are then one text.
        forced: put after a thought that is cut.
        header: put before an answer.
        stop: whether generation stops at ``end``, rather than being cut there afterwards.
        judged: what the verifier sees: the ``answer`` with its header, or the whole ``response``.
    """

    end: str
    forced: str
    header: str
    stop: bool
    judged: Judged

    @classmethod
    def of(
        cls,
        engine: Engine,
        end: str | None = None,
        forced: str | None = None,
        header: str | None = None,
        stop: bool = True,
        judged: Judged = "answer",
    ) -> Marks:
        """Fill in what is ``None``.

        ``</think>``, a text that breaks off and ``**Final Answer**`` where ``</think>`` is one token of the engine's,
        nothing elsewhere. Without an end the whole response is judged.
        """
        if end is None:
            end = END if len(engine.encode_response(END, end=False)) == 1 else ""
        if forced is None:
            forced = f"...\n\n...\n\n{end}" if end else ""
        if header is None:
            header = "\n\n**Final Answer**\n" if end else ""
        return cls(end, forced, header, stop and bool(end), judged if end else "response")

    def think(self, sampling: Sampling, tokens: int) -> Sampling:
        """How a thought of at most this many tokens is sampled."""
        return replace(sampling, max_tokens=tokens, stop=(*sampling.stop, self.end) if self.stop else sampling.stop)

    def finished(self, tokens: Sequence[int], engine: Engine) -> int | None:
        """Return after how many tokens the thought has ended by itself, ``None`` if it has not."""
        if not self.end or not self.ends(tokens, engine):
            return None
        if not self.ends(tokens[:-1], engine):
            return len(tokens)  # as it is where generation stopped there
        return bisect_left(range(len(tokens)), True, key=lambda k: self.ends(tokens[: k + 1], engine)) + 1

    def ends(self, tokens: Sequence[int], engine: Engine) -> bool:
        """Whether the end of thinking is among the tokens; also where a decoder leaves it out as special."""
        ids = engine.encode_response(self.end, end=False).tolist()
        size = len(ids)
        whole = size > 0 and any(list(tokens[k : k + size]) == ids for k in range(len(tokens) - size + 1))
        return whole or self.end in engine.decode(tokens)

    def after(self, complete: bool, engine: Engine) -> tuple[int, ...]:
        """Return the tokens between a thought, whole or cut, and its answer."""
        text = self.header if complete else self.forced + self.header
        return tuple(engine.encode_response(text, end=False).tolist()) if text else ()
