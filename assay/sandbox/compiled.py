"""Compiled programs: each is compiled once, in the sandbox, while it is remembered."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from assay.sandbox.languages import Language
from assay.sandbox.types import MIB, Limits, Outcome, Program

COMPILING = Limits(
    cpu_seconds=30,
    wall_seconds=90,
    memory=2048 * MIB,
    # What it makes comes back as output does.
    output=32 * MIB,
    file_size=64 * MIB,
    disk=512 * MIB,
    processes=64,
)
MADE = 2000
"""Files a compiler may make of one program."""
SAID = 64 * 1024
"""Bytes of what a compiler wrote that are kept."""
KEPT, LARGEST = 64, 256 * MIB
"""Compiled programs that are kept, and bytes of all together."""


class Compiled:
    """The programs compiled so far; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[Any, ...], Mapping[str, bytes] | Outcome] = OrderedDict()
        self._bytes = 0

    def made(
        self, program: Program, chosen: Language, command: Callable[..., Outcome]
    ) -> Mapping[str, bytes] | Outcome:
        """Return the files that a compiler makes of ``program``, or how it failed.

        ``command`` runs a tool, as :meth:`assay.sandbox.pool.Sandbox.command` does.
        """
        key = (program.language, program.source, program.options, tuple(sorted(program.files.items())))
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        made = _compile(program, chosen, command)
        if isinstance(made, Outcome) and made.failed_here:
            return made
        with self._lock:
            if key not in self._made:
                self._made[key] = made
                self._bytes += _size(made)
            while len(self._made) > KEPT or (self._bytes > LARGEST and len(self._made) > 1):
                self._bytes -= _size(self._made.popitem(last=False)[1])
        return made

    def forget(self) -> None:
        """In a forked child: nobody else holds the lock."""
        self._lock = threading.Lock()


def _compile(program: Program, chosen: Language, command: Callable[..., Outcome]) -> Mapping[str, bytes] | Outcome:
    outcome = command(
        chosen.words(chosen.compile, program.source, sorted(program.files), program.options),
        {**program.files, chosen.file_of(program.source): program.source},
        replace(COMPILING, cpu_seconds=chosen.compiling, wall_seconds=3 * chosen.compiling),
        outputs=(chosen.made,),
        readable=chosen.folders(),
        environment=chosen.environment,
    )
    if outcome.failed_here:
        return outcome
    if outcome.exit_code in (126, 127):
        said = outcome.stderr.decode("utf-8", "replace").strip()[:200]
        return replace(outcome, status="infrastructure", reason=f"the compiler could not be started: {said}")
    if outcome.status == "ok" and 0 < len(outcome.files) <= MADE:
        return outcome.files
    reason = outcome.reason if outcome.status not in ("ok", "error") else "it does not compile"
    reason = f"it compiles to more than {MADE} files" if len(outcome.files) > MADE else reason
    out, err = outcome.stdout[:SAID], outcome.stderr[:SAID]
    return replace(outcome, status="compile_error", stdout=out, stderr=err, files={}, reason=reason)


def _size(made: Mapping[str, bytes] | Outcome) -> int:
    return 0 if isinstance(made, Outcome) else sum(map(len, made.values()))
