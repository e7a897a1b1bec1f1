"""Running programs without protection, for machines without namespaces: only ever because somebody said so."""

from __future__ import annotations

import os
import sys

VARIABLE = "ASSAY_UNSAFE_NO_SANDBOX"
"""Tells processes started from this one; worth nothing in the environment of any other."""
WARNING = (
    "warning: --unsafe-no-sandbox: programs from responses run as you do, with limits and without protection; "
    "use it only for programs you trust"
)


def run_unprotected() -> None:
    """From now on run programs *unprotected*, in this process and in those it starts, and say so on standard error.

    It holds for every :class:`~assay.sandbox.pool.Sandbox` made from now on without ``unsafe_no_sandbox``, and for the
    one that :func:`~assay.sandbox.pool.sandbox` returns. There is no other way: a machine that cannot protect itself
    is refused.
    """
    os.environ[VARIABLE] = str(os.getpid())
    print(WARNING, file=sys.stderr, flush=True)


def unprotected() -> bool:
    """Whether this process, or the one that started it, called :func:`run_unprotected`."""
    return os.environ.get(VARIABLE) in (str(os.getpid()), str(os.getppid()))
