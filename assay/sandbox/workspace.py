"""A folder that commands work on, one after another, and that is plain data between them."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace

from assay.errors import UsageError
from assay.sandbox.inside import codec
from assay.sandbox.jobs import to_bytes
from assay.sandbox.pool import Sandbox, sandbox
from assay.sandbox.types import MIB, Limits, Outcome

FOLDER = "space"
"""What the folder is called where commands run: ``/tmp/space``."""
LIMITS = Limits(cpu_seconds=5, wall_seconds=10, memory=256 * MIB, output=8 * MIB, file_size=4 * MIB, disk=4 * MIB)
USUAL = stat.S_IFREG | 0o644
# Quoting is nobody's business here: folder and command are its arguments.
ENTER = 'cd -- "$1" || exit 125; shift; exec "$@"'


class Workspace:
    """Files, folders and links that commands change.

    Every command runs in a sandbox of its own that holds this folder as it was left: no process, no descriptor and
    nothing outside the folder lasts. So a workspace costs nothing between commands, a copy of its data is a snapshot,
    and a command that a limit ends leaves the folder as it was at that moment. Times are not kept: files are listed
    as made at the beginning of 2024.

    Args:
        files: contents by relative path.
        limits: of each command; ``disk`` bounds the folder too.
        packages: Python packages that commands find in ``/sandbox/packages``.
        box: where commands run; the process's own sandbox unless given.

    Raises:
        UsageError: a path that leads out of the folder, or a ``disk`` that could not be brought back as ``output``.
    """

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        limits: Limits = LIMITS,
        packages: Sequence[str] = (),
        box: Sandbox | None = None,
    ):
        if 2 * limits.disk > limits.output:
            raise UsageError(f"a workspace of {limits.disk} bytes needs an output limit of twice that")
        self.limits, self.packages, self._box = limits, tuple(packages), box
        self.entries: dict[str, tuple[bytes, int]] = {}
        for name, content in (files or {}).items():
            self.write(name, content)

    def run(
        self,
        argv: Sequence[str],
        stdin: bytes | str = b"",
        at: str = "",
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Run a command in the folder, or in the folder ``at`` of it; ``limits`` in place of the workspace's.

        Raises:
            SandboxUnavailable: this machine cannot run programs in isolation.
        """
        limits = limits or self.limits
        limits = replace(limits, output=max(limits.output, self.limits.output), disk=self.limits.disk)
        outcome = (self._box or sandbox()).command(
            ["sh", "-c", ENTER, "sh", f"{FOLDER}/{at}" if at else FOLDER, *argv],
            limits=limits,
            stdin=stdin,
            packages=self.packages,
            environment={"HOME": f"/tmp/{FOLDER}", **(environment or {})},
            tree=FOLDER,
            made=self.entries,
        )
        if outcome.tree is None and not outcome.failed_here:
            lost = f"what it did is undone: the folder could not be kept within {limits.disk >> 20} MiB"
            return replace(outcome, status="output", reason="; ".join(filter(None, (outcome.reason, lost))))
        if outcome.tree is not None:
            self.entries = {name: (data, mode) for name, (data, mode) in outcome.tree.items() if name}
        return outcome

    def write(self, name: str, content: str | bytes) -> None:
        """Put a file there, with the folders that it needs; an old one keeps its mode.

        Raises:
            UsageError: the path leads out of the folder, or through something that is no folder.
        """
        if not name or name.startswith("/") or "\0" in name or any(p in ("", ".", "..") for p in name.split("/")):
            raise UsageError(f"the file name {name!r} must be a relative path without . and ..")
        mode = self.entries.get(name, (b"", USUAL))[1]
        if not stat.S_ISREG(mode):
            raise UsageError(f"{name!r} is no file")
        pieces = name.split("/")
        above = ["/".join(pieces[:i]) for i in range(1, len(pieces))]
        for folder in above:
            if not stat.S_ISDIR(self.entries.setdefault(folder, (b"", stat.S_IFDIR | 0o755))[1]):
                raise UsageError(f"{folder!r} is no folder")
        self.entries[name] = to_bytes(content), mode

    @property
    def files(self) -> dict[str, bytes]:
        """The contents of all files, by path."""
        return {name: data for name, (data, mode) in sorted(self.entries.items()) if stat.S_ISREG(mode)}

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file's content, by path: what two equal folders have in common."""
        return {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}

    def snapshot(self) -> bytes:
        """Return all of the folder; :meth:`restore` comes back to it."""
        return codec.dumps(self.entries).encode()

    def restore(self, snapshot: bytes) -> None:
        self.entries = codec.loads(snapshot.decode())
