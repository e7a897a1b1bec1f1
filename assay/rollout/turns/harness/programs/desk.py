"""The tools of our harnesses: commands in the folder, in the sandbox; its files; the service that work may need."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.rollout.turns.harness.folder import put, taken
from assay.rollout.turns.harness.programs.chat import OPENER
from assay.sandbox.workspace import LIMITS, Workspace

SHOWN = 4000
BUSY = 503


def _tool(name: str, description: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {key: {"type": "string", "description": told} for key, told in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "parameters": schema}


RUN = _tool("run", "Run a command of bash in the folder; shows what it writes.", command="the command")
READ = _tool("read", "Show a file of the folder.", path="of the file")
WRITE = _tool("write", "Write a file of the folder.", path="of the file", content="all of it")
GET = _tool("get", "Ask the service for a path; the answer goes into a file.", path="such as /", to="the file")


class Desk:
    """Works in a folder; every call is answered by a text and whether it went well.

    Args:
        folder: where the work is.
    """

    def __init__(self, folder: Path | None = None):
        self.folder = Path.cwd() if folder is None else folder
        self.service = os.environ.get("SERVICE_URL", "")
        self.tools = [RUN, READ, WRITE, *([GET] if self.service else [])]

    @property
    def space(self) -> Workspace:
        """The folder as it is."""
        made = Workspace(limits=LIMITS)
        made.entries = taken(self.folder, LIMITS.disk)
        return made

    def listing(self) -> str:
        """Return the files there are."""
        return "\n".join(f"{name} ({len(data)} bytes)" for name, data in self.space.files.items()) or "(no files)"

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Make a call; what it cannot be made of is an answer too."""
        known = {tool["name"]: tool["parameters"]["properties"] for tool in self.tools}
        if name not in known or set(arguments) != set(known[name]):
            return f"error: there is no {name}({', '.join(arguments)})", False
        if not all(isinstance(value, str) for value in arguments.values()):
            return "error: arguments are texts", False
        try:
            made: tuple[str, bool] = getattr(self, name)(**arguments)
            return made
        except (UsageError, OSError, ValueError) as error:
            return f"error: {error}", False

    def run(self, command: str) -> tuple[str, bool]:
        if "\0" in command:
            raise ValueError("a command has no zero bytes")
        space = self.space
        ran = space.run(["bash", "-c", f"exec 2>&1\n{command}"])
        if ran.failed_here:
            raise SystemExit(f"the sandbox failed: {ran.reason}")
        put(space.entries, self.folder)
        text = ran.stdout.decode("utf-8", "replace").rstrip("\n")[:SHOWN]
        if ran.status == "ok":
            return text or "(no output)", True
        ended = f"exit code {ran.exit_code}" if ran.status == "error" else ran.reason
        return f"{text}\n(error: {ended})".lstrip("\n"), False

    def read(self, path: str) -> tuple[str, bool]:
        data = self.space.files.get(path.removeprefix("./"))
        return (f"error: there is no file {path}", False) if data is None else (data.decode("utf-8", "replace"), True)

    def write(self, path: str, content: str) -> tuple[str, bool]:
        space = self.space
        space.write(path.removeprefix("./"), content)
        put(space.entries, self.folder)
        return "written", True

    def get(self, path: str, to: str) -> tuple[str, bool]:
        try:
            with OPENER.open(f"{self.service}/{path.lstrip('/')}") as answer:
                body = answer.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            return f"error: {error.code} {error.read().decode('utf-8', 'replace')[:200]}", False
        if to:
            self.write(to, body)
        return body[:SHOWN], True
