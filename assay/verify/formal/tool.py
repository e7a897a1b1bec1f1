"""What verifiers with a tool of their own share: finding it, running it, reading the response."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.errors import UsageError
from assay.types import Verdict
from assay.verify.code.response import fenced
from assay.verify.text.exact import shorten

LONGEST = 200_000
"""Characters of a response that are looked at; a longer one is wrong."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program of this machine.

    Attributes:
        name: of the executable, looked for in ``PATH``.
        install: how to get it.
        readable: files and folders it needs beside its own, where they exist.
    """

    name: str
    install: str
    readable: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """Why it cannot be used, or nothing."""
        return "" if shutil.which(self.name) else f"{self.name} is not installed: {self.install}"

    def require(self, verifier: str) -> None:
        """Raise UsageError if the tool is not there."""
        if self.missing:
            raise UsageError(f"verifier {verifier!r}: {self.missing}")

    def run(
        self,
        arguments: Sequence[str],
        files: Mapping[str, str | bytes],
        seconds: float,
        outputs: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Result:
        """Run it on ``files`` in the sandbox, for ``seconds`` of processor time at most."""
        from assay.sandbox import Limits, SandboxUnavailable, sandbox

        limits = Limits(
            cpu_seconds=seconds,
            wall_seconds=min(3600.0, 3 * seconds + 10),
            memory=2048 << 20,
            output=4 << 20,
            file_size=64 << 20,
            disk=256 << 20,
            processes=64,
        )
        found = shutil.which(self.name)
        if found is None:
            return Result("fault", self.missing)
        extra = [p for p in self.readable if os.path.exists(p)]
        real = os.path.realpath(found)
        if not real.startswith(("/usr/", "/bin/")):
            # A tool in a folder of its own, such as ~/.elan/toolchains/X/bin/lean, brings its libraries beside it.
            extra.append(os.path.dirname(os.path.dirname(real)))
        try:
            got = sandbox().command(
                [self.name, *arguments], files, limits, outputs=outputs, readable=extra, environment=environment
            )
        except SandboxUnavailable as error:
            return Result("fault", str(error))
        text = got.stdout.decode("utf-8", "replace")
        errors = got.stderr.decode("utf-8", "replace")
        if got.failed_here:
            return Result("fault", got.reason)
        status = {"ok": "ok", "error": "refused"}.get(got.status, "limit")
        return Result(status, got.reason, text, errors, dict(got.files))


@dataclass(frozen=True, slots=True)
class Result:
    """How a tool ended: ``ok``, ``refused`` (exit code), ``limit`` (time, memory, output), or a ``fault`` of ours."""

    status: str
    reason: str = ""
    stdout: str = ""
    stderr: str = ""
    files: Mapping[str, bytes] = ()  # type: ignore[assignment]

    @property
    def ok(self) -> bool:
        return self.status == "ok"


class Unstable(Exception):
    """Raised through a cache by a result that is not to be remembered: another attempt may fare better."""

    def __init__(self, result: Result):
        super().__init__(result.reason)
        self.result = result


def program_of(response: str, tags: Sequence[str]) -> str | None:
    """Return the last fenced block marked with one of ``tags``, else the last unmarked one, else the whole response.

    ``None`` for a response that is too long, or has fenced blocks of other languages only.
    """
    if len(response) > LONGEST:
        return None
    blocks = fenced(response.rpartition("</think>")[2]) or fenced(response)
    if not blocks:
        return response.rpartition("</think>")[2].strip("\n")
    for wanted in ([b for b in blocks if b.tag in tags], [b for b in blocks if not b.tag]):
        if wanted:
            return wanted[-1].text
    return None


@dataclass(frozen=True, slots=True)
class Syntax:
    """Comments and texts of a language.

    ``nested``: block comments nest. ``escape``: a backslash hides a quote. ``quoting``: a text within a comment hides
    what would end the comment.
    """

    line: str | None
    block: tuple[str, str]
    nested: bool
    escape: bool
    quoting: bool = False


def blank(source: str, syntax: Syntax) -> str:
    """Return ``source`` with comments and the insides of ``"texts"`` as spaces, line breaks kept; linear time."""
    opening, closing = map(re.escape, syntax.block)
    pieces = [opening, closing, '"', "\n"] + ([re.escape(syntax.line)] if syntax.line else [])
    if syntax.escape:
        pieces.insert(0, r"\\.")
    out, depth, state, end = [], 0, "code", 0

    def keep(text: str) -> str:
        return text if state == "code" else re.sub(r"[^\n]", " ", text)

    for match in re.finditer("|".join(pieces), source, re.DOTALL):
        token = match.group()
        out.append(keep(source[end : match.start()]))
        end = match.end()
        before = state
        if state == "code":
            if token == '"':
                state = "text"
            elif token == syntax.line:
                state = "line"
            elif token == syntax.block[0]:
                state, depth = "block", 1
        elif state == "text":
            state = "code" if token == '"' else state
        elif state == "line":
            state = "code" if token == "\n" else state
        elif state == "inner":
            state = "block" if token == '"' else state
        elif token == '"' and syntax.quoting:
            state = "inner"
        elif token == syntax.block[0] and syntax.nested:
            depth += 1
        elif token == syntax.block[1]:
            depth -= 1
            state = "block" if depth else "code"
        visible = before == state == "code" or {before, state} == {"code", "text"} or token == "\n"
        out.append(token if visible else re.sub(r"[^\n]", " ", token))
    out.append(keep(source[end:]))
    return "".join(out)


def escape_in(code: str, pattern: re.Pattern[str]) -> str:
    """Return the first forbidden word of blanked ``code``, or nothing."""
    match = pattern.search(code)
    return " ".join(match.group().split()) if match else ""


def balanced(code: str) -> bool:
    """Whether the braces of blanked ``code`` close in order, never more of them than were opened before."""
    depth = 0
    for brace in re.findall(r"[{}]", code):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def first_error(text: str, pattern: str = r"error") -> str:
    """Return the first line that looks like a complaint, short enough for a feedback line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = next((line for line in lines if re.search(pattern, line, re.IGNORECASE)), lines[0] if lines else "")
    return shorten(chosen, 200)


def verdict(parts: Mapping[str, float | None], complaint: str) -> Verdict:
    """Right where nothing is complained of."""
    return Verdict(float(not complaint), not complaint, parts, complaint)
