"""Talking to a running program, line by line, over its standard input and output."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress


class Dialogue:
    """The host's end of a conversation; reading and writing end when the program does, and raise nothing.

    Attributes:
        flooded: whether the program wrote more than it may; reading then says that it ended.
        renewed: whether the program was given its time anew.
    """

    on_renewal: Callable[[], None] | None = None

    def __init__(self, reader: int, writer: int, most: int):
        self._reader, self._writer, self._left = reader, writer, most
        self._buffer, self._searched = bytearray(), 0
        self.flooded = self.renewed = False

    def renew(self) -> None:
        """Let the program have its processor and wall seconds anew from here on, as for another test."""
        if self.on_renewal is not None:
            self.renewed = True
            self.on_renewal()

    def readline(self) -> bytes:
        """Return the program's next line without its line end; ``b""`` with :attr:`ended` true when there is none."""
        # Each byte is looked at and moved once, however small the pieces and the lines.
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if not self._more():
                end = len(self._buffer)
                break
        line = bytes(self._buffer[:end])
        cut = end < len(self._buffer)
        del self._buffer[: end + 1]
        self._searched = 0
        return line.removesuffix(b"\r") if cut else line

    @property
    def ended(self) -> bool:
        """Whether everything the program wrote has been read and no more can come."""
        return not self._buffer and self._reader < 0

    def writeline(self, line: bytes | str) -> bool:
        """Send ``line`` and a line end; return false if the program no longer reads."""
        data = (line.encode() if isinstance(line, str) else line) + b"\n"
        try:
            while data and self._writer >= 0:
                data = data[os.write(self._writer, data) :]
        except OSError:
            return False
        return not data

    def finish(self) -> None:
        """Say that no more input comes."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1

    def close(self) -> None:
        self.finish()
        self._stop()

    def _more(self) -> bool:
        if self._reader < 0:
            return False
        piece = b""
        with suppress(OSError):
            piece = os.read(self._reader, 65536)
        self._left -= len(piece)
        self.flooded = self.flooded or self._left < 0
        if not piece or self.flooded:
            self._stop()
            return False
        self._buffer += piece
        return True

    def _stop(self) -> None:
        if self._reader >= 0:
            os.close(self._reader)
            self._reader = -1


def pipes(most: int) -> tuple[Dialogue, list[int]]:
    """Return a dialogue of at most ``most`` bytes of output, and the program's standard input and output."""
    program_in, our_out = os.pipe()
    our_in, program_out = os.pipe()
    return Dialogue(our_in, our_out, most), [program_in, program_out]
