"""What the sandbox's tests share."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection

import pytest

from assay.errors import UsageError
from assay.sandbox import Sandbox, SandboxUnavailable
from assay.sandbox.languages import language


@functools.cache
def why_not() -> str:
    """Why this machine cannot run programs, or nothing."""
    with Sandbox(1) as box:
        try:
            box.check()
        except SandboxUnavailable as error:
            return str(error)
    return ""


needs_sandbox = pytest.mark.skipif(bool(why_not()), reason=why_not() or "available")


def descendants(root: int) -> list[int]:
    """Return the processes below ``root``."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as file:
                    children = [int(word) for word in file.read().split()]
                found += children
                waiting += children
        except OSError:
            continue
    return found


def processes_below(root: int, others: Collection[int] = ()) -> list[str]:
    """Return the command lines of the processes below ``root`` but ``others``; a zombie's is empty."""
    lines = []
    for pid in set(descendants(root)).difference(others):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                lines.append(file.read().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return lines


def needs_language(name: str) -> None:
    """Skip the test where programs in the language cannot be run, with the reason."""
    try:
        language(name)
    except UsageError as error:
        pytest.skip(str(error))
