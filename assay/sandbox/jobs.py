"""What a zygote is told about one program, and what is read from its results."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.errors import UsageError
from assay.sandbox.confine import ENVIRONMENT
from assay.sandbox.inside import codec
from assay.sandbox.types import MIB, Call, Limits, Program

RESERVED = 1024 * MIB
"""Data that a runtime which reserves address space may have beyond the memory limit, which is then measured."""


def script(program: Program, limits: Limits) -> dict[str, Any]:
    return {
        "mode": "run",
        "source": program.source,
        "args": list(program.args),
        "files": _files({**program.files, **program.inputs}),
        "limits": kernel_limits(limits),
        "interactive": False,
    }


def start(
    argv: Sequence[str],
    files: Mapping[str, str | bytes],
    limits: Limits,
    outputs: Sequence[str],
    reserves: bool,
    executable: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    tree: str = "",
    made: Mapping[str, tuple[bytes, int]] | None = None,
) -> dict[str, Any]:
    """Return the job of a tool; ``tree`` is the folder that is wanted back whole, ``made`` what is in it, by path."""
    below = {_relative(f"{tree}/{name}"): one for name, one in (made or {}).items()}
    if reserves:
        limits = replace(limits, memory=limits.memory + RESERVED, stack=min(limits.stack, 8 * MIB))
    return {
        "mode": "start",
        "argv": list(argv),
        "environment": {**ENVIRONMENT, **(environment or {})},
        "files": _files(files, executable) | ({tree: (b"", stat.S_IFDIR | 0o755)} if tree else {}) | below,
        "limits": kernel_limits(limits),
        "outputs": [_relative(name) for name in outputs],
        "tree": tree,
        "reserves": reserves,
        "interactive": False,
    }


def kernel_limits(limits: Limits) -> tuple[int, ...]:
    """Whole seconds of processor time, the largest file, memory, stack, processes and disk: without names, as each name
    would be looked up in every program's process."""
    largest = max(limits.file_size, limits.output + 1)
    return int(limits.cpu_seconds), largest, limits.memory, limits.stack, limits.processes, limits.disk


def _files(files: Mapping[str, str | bytes], executable: Sequence[str] = ()) -> dict[str, tuple[bytes, int]]:
    return {_relative(name): (to_bytes(content), 0o755 * (name in executable)) for name, content in files.items()}


def _relative(name: str) -> str:
    if not name or name.startswith("/") or "\0" in name or any(p in ("", ".", "..") for p in name.split("/")):
        raise UsageError(f"the file name {name!r} must be a relative path without . and ..")
    return name


def check_name(function: str) -> None:
    if not all(piece.isidentifier() for piece in function.split(".")) or function.count(".") > 1:
        raise UsageError(f"{function!r} must be a function's name or Class.method")


def to_bytes(text: bytes | str) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


def read_calls(result: bytes, most: int) -> list[Call]:
    """Read the lines a program wrote as its results; stop at the first that is none."""
    done: list[Call] = []
    for line in result.split(b"\n")[:-1][:most]:
        try:
            made = json.loads(line)
            seconds = made["s"]
            if type(seconds) is not float:
                break
            if "v" in made:
                done.append(Call(True, codec.decode(made["v"]), "", seconds))
            else:
                done.append(Call(False, None, str(made["e"])[:500], seconds))
        except (ValueError, KeyError, TypeError, RecursionError):
            break
    return done
