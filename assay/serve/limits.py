"""What one client, and all of them together, may ask of the server; beyond it a request is refused, never queued."""

from __future__ import annotations

from assay.policies.context import CHARACTERS

RESPONSES = 4096
"""Responses in one request: prompts times n."""

TOKENS = 1 << 20
"""Responses times their longest length, in one request: as many random numbers are drawn for it."""

WAITING = 16 * TOKENS
"""The same of all requests that wait or are being answered."""

STOPS, STOP = 64, 1024
"""Stop strings in a request, and characters in one: responses are searched for each at every token."""

TOOLS = 512
"""Tools in a request."""

CONNECTIONS = 512
"""Connections whose requests are answered. Twice as many are held, so that the others hear why they are not."""

BODIES = 256 << 20
"""Bytes of all bodies that are being read at a time."""

HEAD = 30.0
"""Seconds until the first byte to the last of a request's head are here."""

IDLE = 30
"""Seconds that a connection is kept for a next request."""

BODY = 60.0
"""Seconds until a request's body is here."""

CLOSING = 1
"""Seconds that answers have to end in, once the server stops."""

SESSIONS = 256
"""Episodes that are played at a time, where an environment is served."""

MESSAGE = 4 << 20
"""Bytes of one message in such an episode."""

SILENCE = 900.0
"""Seconds between two messages of a client that is still playing."""

UNREAD = 60.0
"""Seconds that a client may leave what it is sent unread before it counts as gone."""


def characters(context: int) -> int:
    """Return how many characters a prompt may have for a model of ``context`` tokens."""
    return CHARACTERS * context


def body(context: int) -> int:
    """Return how many bytes a body may have: room for one longest prompt at four bytes a character, or many short."""
    return 4 * characters(context) + (1 << 20)
