"""One HTTP connection, with deadlines: none is held for a client that neither sends nor reads."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from assay.serve import limits
from assay.serve.asked import Refusal


class Connection(H11Protocol):
    """uvicorn's protocol, which bounds a request's head in size but not in time.

    What is no proper request is refused in OpenAI's shape too. What comes while a request is being answered is thrown
    away, and the connection closed after the answer: uvicorn would stop reading, and then no hang-up is seen.
    """

    def __init__(self, *given: Any, **named: Any):
        super().__init__(*given, **named)
        self.head_due: asyncio.TimerHandle | None = None
        self.read_due: asyncio.TimerHandle | None = None
        self.upgraded = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override, unused-ignore]
        super().connection_made(transport)
        if len(self.connections) > 2 * limits.CONNECTIONS:
            transport.abort()
        else:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self.head_due, self.read_due):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._answering:
            self.cycle.keep_alive = False
            return
        super().data_received(data)
        if self.upgraded:
            return
        if self.cycle is not None and not self.cycle.response_complete:
            if self.head_due is not None:
                self.head_due.cancel()
                self.head_due = None
        elif self.head_due is None:
            self._expect_head()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection on to what speaks WebSocket, which has deadlines of its own."""
        self.upgraded = True
        if self.head_due is not None:
            self.head_due.cancel()
        super().handle_websocket_upgrade(event)

    @property
    def _answering(self) -> bool:
        """Whether a request is all here, and its answer is not out."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _expect_head(self) -> None:
        self.head_due = self.loop.call_later(limits.HEAD, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.read_due is None:
            self.read_due = self.loop.call_later(limits.UNREAD, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.read_due is not None:
            self.read_due.cancel()
            self.read_due = None

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # to close would wait until the answer is read
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        body = json.dumps(Refusal("no proper HTTP request").plain()).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events = (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage())
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
