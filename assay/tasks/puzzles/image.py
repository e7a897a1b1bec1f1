"""A container's recipe carried out in the sandbox: its files, its commands, and the service that it starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import join, normpath

from assay.errors import RunError
from assay.sandbox.types import MIB, Limits
from assay.sandbox.workspace import FOLDER, Workspace
from assay.tasks.puzzles.recipe import instructions, matched, repaired, sources

LIMITS = Limits(cpu_seconds=20, wall_seconds=20, memory=512 * MIB, output=8 * MIB, file_size=4 * MIB, disk=4 * MIB)
ROOT = f"/tmp/{FOLDER}"
"""Where the image's files are: there is no root of its own."""
FLAG = "flag"
INSTALLS = re.compile(r"^\s*(?:sudo\s+)?(?:apt(?:-get)?|apk|yum|dnf|pip3?|python3? -m pip|npm|gem)\b")


@dataclass(frozen=True, slots=True)
class Image:
    """What a recipe leaves.

    Attributes:
        files: by their paths without the slash before them.
        folder: that commands begin in, without that slash.
        environment: of commands.
        command: of sh, that starts the service; empty for none.
    """

    files: Mapping[str, bytes]
    folder: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    command: str = ""


def built(recipe: str, files: Mapping[str, bytes]) -> tuple[Image, list[str]]:
    """Return what a recipe makes of a challenge's files, and why it does not, if so, in lines.

    ``COPY``, ``ADD``, ``RUN``, ``WORKDIR``, ``ENV``, ``ARG``, ``CMD`` and ``ENTRYPOINT`` are carried out in
    a folder of the sandbox, without a network. The programs are this machine's, whatever the base image: commands that
    install some are passed over, those in the same ``RUN`` too, up to where it goes on with ``&&``. Absolute paths of
    folders that the recipe itself makes, and ``/flag``, are taken to that folder, in commands and in texts.

    Raises:
        RunError: the sandbox failed.
        SandboxUnavailable: this machine cannot run programs in isolation.
    """
    space, folder = Workspace(limits=LIMITS), ""
    environment: dict[str, str] = {}
    said: dict[str, str] = {}
    lines = instructions(repaired(recipe))
    tops = {_inside("/", rest.split()[-1]).partition("/")[0] for name, rest in lines if name == "WORKDIR" and rest}
    wrong = ["it has several stages"] if sum(name == "FROM" for name, _ in lines) > 1 else []
    for name, rest in lines:
        if name == "WORKDIR" and rest:
            folder = _inside(folder, rest)
        elif name in ("ENV", "ARG"):
            environment |= _assigned(rest)
        elif name in ("CMD", "ENTRYPOINT"):
            said[name] = _command(rest)
        elif name in ("COPY", "ADD"):
            goal = _words(rest)[-1] if _words(rest) else "."
            for path, place in _copied(rest, files, _inside(folder, goal), goal.endswith("/") or goal in (".", "./")):
                tops.add(place.partition("/")[0])
                space.write(place, files[path])
        elif name == "RUN":
            command = " && ".join(part for part in _command(rest).split("&&") if not INSTALLS.match(part)).strip()
            if command:
                space.write(f"{folder}/.keep" if folder else ".keep", b"")
                outcome = space.run(["sh", "-e", "-c", _moved(command, tops)], at=folder, environment=environment)
                if outcome.failed_here:
                    raise RunError(f"the sandbox failed on RUN {rest[:60]}: {outcome.reason}")
                if outcome.status != "ok":
                    last = outcome.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
                    wrong.append("; ".join([f"RUN {rest[:80]}", outcome.reason, *last])[:400])
    command = _moved(" ".join(filter(None, (said.get("ENTRYPOINT", ""), said.get("CMD", "")))), tops)
    left = {p: _told(data, tops) for p, data in space.files.items() if p.rpartition("/")[2] != ".keep"}
    return Image(left, folder, environment, command), wrong


def visited(image: Image, flag: str, text: str, limits: Limits = LIMITS) -> tuple[str, str]:
    """Return what a service answers to a text, and why it cannot be reached, if so.

    It is visited as under inetd: it begins anew for each visit, in a sandbox of its own with the flag in ``/flag``,
    reads the text from its standard input and writes to its standard output.

    Raises:
        RunError: the sandbox failed.
    """
    space = Workspace({**image.files, FLAG: flag}, limits)
    if image.folder:
        space.write(f"{image.folder}/.keep", b"")
    outcome = space.run(["sh", "-c", image.command], text, image.folder, environment=dict(image.environment))
    if outcome.failed_here:
        raise RunError(f"the sandbox failed on the service: {outcome.reason}")
    said = outcome.stdout.decode("utf-8", "replace")
    if outcome.status == "ok" or (outcome.status == "error" and said):
        return said, ""
    return said, (outcome.stderr.decode("utf-8", "replace").strip() or outcome.reason)[-300:]


def _inside(folder: str, path: str) -> str:
    """Return a path of the image, from a folder of it, without the slash before it."""
    return normpath(join("/", folder, path)).lstrip("/")


def _words(rest: str) -> list[str]:
    if rest.startswith("["):
        return re.findall(r'"((?:[^"\\]|\\.)*)"', rest)
    return [word for word in rest.split() if not word.startswith("--")]


def _copied(rest: str, files: Mapping[str, bytes], goal: str, folder: bool) -> list[tuple[str, str]]:
    """Return the files that are copied, each with its place."""
    out: list[tuple[str, str]] = []
    for source in sources(rest):
        plain = source.removeprefix("./").strip("/")
        found = sorted(matched(source, files))
        for path in found:
            if path == plain and not folder and len(found) == 1 and not out:
                out.append((path, goal))
                continue
            inside = plain in ("", ".") or (path != plain and path.startswith(f"{plain}/"))
            short = path[len(plain) + 1 :] if inside and plain not in ("", ".") else path
            out.append((path, _inside(goal, short if inside else path.rpartition("/")[2])))
    return out


def _assigned(rest: str) -> dict[str, str]:
    words = shlex.split(rest, posix=True) if rest.count("'") % 2 == 0 and rest.count('"') % 2 == 0 else rest.split()
    if words and "=" not in words[0]:
        return {words[0]: " ".join(words[1:])} if len(words) > 1 else {}
    return dict(word.split("=", 1) for word in words if "=" in word)


def _command(rest: str) -> str:
    """Return what is run as a command of sh, also where it is told as a list."""
    if not rest.startswith("["):
        return rest
    return shlex.join(_words(rest))


def _moved(text: str, tops: set[str]) -> str:
    """Return a text with the absolute paths of the image's own folders, and its flag's, where they are."""
    own = "|".join(re.escape(top) for top in sorted(tops | {FLAG}) if top)
    return re.sub(rf"(?<![\w./-])/({own})(?![\w-])", rf"{ROOT}/\1", text)


def _told(data: bytes, tops: set[str]) -> bytes:
    try:
        return _moved(data.decode(), tops).encode()
    except UnicodeDecodeError:
        return data
