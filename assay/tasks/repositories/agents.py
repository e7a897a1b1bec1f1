"""Models that make a pull request a task: one explores, one prepares the folder, one writes the script, one looks at
both."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from assay.engines.asking import filled
from assay.engines.writing import pieces
from assay.errors import RunError, UsageError
from assay.sandbox.confine import interpreter
from assay.sandbox.types import MIB, Limits
from assay.sandbox.workspace import Workspace
from assay.tasks.making.work import Dropped, Here, Reply, Want, Work, child
from assay.tasks.repositories.examine import SCRIPT, Examined, Part, PullRequest, examine
from assay.tasks.repositories.source import request_of
from assay.types import Task

BUILDING = Limits(cpu_seconds=30, wall_seconds=30, memory=512 * MIB, output=8 * MIB, file_size=4 * MIB, disk=4 * MIB)
SHOWN = 4000
"""Characters of a file, or of what a script wrote, that a model is shown."""

EXPLORE = """You find out what the tests of a repository need to run: interpreter, settings, files that have to be
made first. There is no network, and nothing can be installed.

The issue: {issue}
At the top are: {top}
The tests to run are: {tests}
{seen}
Reply with one line, `list FOLDER`, `read PATH` or `search TEXT`, and look deeper only where you have to; or, when you
know enough, with what you have found between <digest> and </digest>."""
SETUP = """Write a bash script that prepares this repository for its tests, run once in its folder, before any of the
tests is there. There is no network. It must end with code 0 and must not touch what the pull request changes: {kept}.
Where nothing has to be prepared, write only `true`.

What is known: {digest}
{before}
Write it between <setup> and </setup>."""
EVALUATE = """Write a bash script that runs these tests and no others in the folder of the repository, {tests}, with
the interpreter "$PYTHON", and at last prints OPENSWE_EXIT_CODE= and the exit code of the tests. This often does:
{usual}
What is known: {digest}
{before}
Write it between <script> and </script>."""
ANALYSE = """Two scripts prepare a repository and run the tests of a pull request. They were run without the fix,
which has to fail, and with it, which has to pass. Say whether that shows what the issue is about.

The issue: {issue}
Setup:
{setup}
Script:
{script}
{found}

End with one line: `accept`; or `script: WHY` or `environment: WHY`, if that has to be written again; or `task: WHY`, if
the pull request is of no use."""
_SAID = re.compile(
    r"^[ \t`*]*(accept|script|environment|task)\b[ \t`*]*:?[ \t]*(.*?)[ \t`]*$", re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Build:
    """Has models prepare the folder of a pull request and write its script, until both hold; drops it where they don't.

    An explorer looks around, shallow first, and hands on a digest. One writer prepares the folder: its script is run in
    the sandbox on the files before the pull request, and what it leaves is what the task begins with. Another writes
    the script that runs the tests. Both are run, without and with the fix
    (:func:`~assay.tasks.repositories.examine.examine`), and an analyst is shown what came, also where all is well. Who
    has to mend it is told why and writes again, up to ``rounds`` times; where the rules refuse a script, the analyst
    cannot accept it. ``meta`` has ``files`` as prepared, ``script``, ``setup``, ``digest`` and the number of
    ``rounds``.

    Args:
        rounds: of writing and running, at least 1.
        looks: replies of the explorer, at most.
        by: roles of explorer, of who prepares, of who writes the script, and of the analyst.

    Raises:
        UsageError: a number below 1.

    Source: daVinci-Env (arXiv 2603.13023), OpenSWE; its container is a folder in the sandbox here.
    """

    rounds: int = 5
    looks: int = 8
    by: tuple[str, str, str, str] = ("writer", "writer", "writer", "judge")

    def __post_init__(self) -> None:
        if min(self.rounds, self.looks) < 1:
            raise UsageError(f"step build: rounds {self.rounds} and looks {self.looks} must be at least 1")

    def check(self, tasks: Sequence[Task]) -> None:
        if none := [task.id for task in tasks if "fix" not in task.meta]:
            raise UsageError(f'step build: task {none[0]} is no pull request; take --seeds "repositories(path=...)"')

    def __call__(self, task: Task, here: Here) -> Work:
        request = request_of(task)
        digest = yield from self._explored(request)
        setup, script, why, image = "", "", {"environment": "", "script": ""}, dict(request.files)
        found = Examined("")
        for number in range(1, self.rounds + 1):
            if not setup or why["environment"]:
                asked = self._asked(SETUP, request, digest, setup, why["environment"])
                setup = yield from self._written("setup", 1, asked)
                made = prepared(request, setup) if setup else "no script is written"
                if isinstance(made, str):
                    why["environment"] = made
                    continue
                image, why["environment"] = made, ""
            if not script or why["script"]:
                asked = self._asked(EVALUATE, request, digest, script, why["script"])
                script = yield from self._written("script", 2, asked)
                why["script"] = "" if script else "no script is written"
            if why["script"]:
                continue
            tried = replace(request, files=image, script=script)
            found = examine(tried)
            part, reason = yield from self._analysed(tried, setup, found)
            if not part and found.accepted:
                built = {"files": image, "script": script, "setup": setup, "digest": digest, "rounds": number}
                return child(task, "build", 0, meta={**built, "collected": found.collected})
            part, reason = (part, reason) if part else (found.part, found.reason)
            if part == "task":
                return Dropped(f"of no use: {found.reason or 'says the analyst'}")
            why[part] = reason or "it does not do what it should"
        return Dropped("not built in all rounds")

    def _explored(self, request: PullRequest) -> Generator[list[Want], list[list[Reply]], str]:
        seen: list[str] = []
        for _ in range(self.looks):
            top = ", ".join(sorted({path.partition("/")[0] + ("/" if "/" in path else "") for path in request.files}))
            shown = {"issue": request.issue, "top": top, "tests": ", ".join(sorted(request.tests))}
            [[reply]] = yield [Want(filled(EXPLORE, **shown, seen="\n".join(seen)), 1, by=self.by[0])]
            if digests := pieces(reply.text, "digest"):
                return digests[-1].strip()
            seen.append(looked(request, reply.text))
        return "\n".join(seen)

    def _asked(self, template: str, request: PullRequest, digest: str, last: str, why: str) -> str:
        before = f"The last one was\n{last}\nand had to be written again: {why}" if why else ""
        shown = {"kept": ", ".join(sorted({*request.fix, *request.tests})), "tests": ", ".join(sorted(request.tests))}
        usual = SCRIPT.format(tests=" ".join(p.removesuffix(".py").replace("/", ".") for p in sorted(request.tests)))
        return filled(template, **shown, digest=digest, before=before, usual=usual)

    def _written(self, tag: str, role: int, prompt: str) -> Generator[list[Want], list[list[Reply]], str]:
        [[reply]] = yield [Want(prompt, 1, by=self.by[role])]
        found = pieces(reply.text, tag)
        return found[-1].strip() if found else ""

    def _analysed(
        self, request: PullRequest, setup: str, found: Examined
    ) -> Generator[list[Want], list[list[Reply]], tuple[Part, str]]:
        """Return who has to mend it and why, nobody where the analyst accepts or cannot be read."""
        ran = [output[-SHOWN:] for output in found.outputs]
        told = f"Without the fix:\n{ran[0]}\nWith it:\n{ran[1]}\nBy rule: {found.reason or 'all is well'}"
        shown = {"issue": request.issue, "setup": setup, "script": request.script, "found": told}
        [[reply]] = yield [Want(filled(ANALYSE, **shown), 1, by=self.by[3])]
        said = _SAID.findall(reply.text)
        word, reason = (said[-1][0].lower(), said[-1][1]) if said else ("accept", "")
        parts: dict[str, Part] = {"script": "script", "environment": "environment", "task": "task"}
        return parts.get(word, ""), reason


def looked(request: PullRequest, said: str) -> str:
    """Return what an explorer is shown for a line: what is in a folder, a file, or where a text stands."""
    line = said.strip().splitlines()[-1].strip(" `") if said.strip() else ""
    verb, _, what = line.partition(" ")
    what = what.strip()
    if verb == "list":
        inside = what.strip("./")
        rest = [
            path.removeprefix(f"{inside}/") for path in request.files if not inside or path.startswith(f"{inside}/")
        ]
        names = sorted({path.partition("/")[0] + ("/" if "/" in path else "") for path in rest})
        return f"> {line}\n{', '.join(names) or 'there is no such folder'}"
    if verb == "read":
        return f"> {line}\n{request.files.get(what, 'there is no such file')[:SHOWN]}"
    if verb == "search" and what:
        rows = (
            f"{path}:{number}: {text.strip()}"
            for path, whole in sorted(request.files.items())
            for number, text in enumerate(whole.splitlines(), 1)
            if what in text
        )
        return f"> {line}\n{chr(10).join(rows)[:SHOWN] or 'it stands nowhere'}"
    return f"> {line[:200]}\nthat is none of list, read, search or a digest"


def prepared(request: PullRequest, setup: str) -> dict[str, str] | str:
    """Return the files as a script leaves them, or what is wrong with it, in a line.

    Raises:
        RunError: the sandbox failed.
        SandboxUnavailable: this machine cannot run programs in isolation.
    """
    space = Workspace(request.files, BUILDING)
    outcome = space.run(["bash", "-e", "-c", setup], environment={"PYTHON": interpreter()})
    if outcome.failed_here:
        raise RunError(f"the sandbox failed on {request.id}: {outcome.reason}")
    if outcome.status != "ok":
        last = outcome.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return "; ".join(["the setup did not end well", outcome.reason, *last])[:500]
    left = {path: data for path, data in space.files.items() if "__pycache__" not in path.split("/")}
    for path in sorted({*request.fix, *request.tests}):
        if left.get(path) != (request.files[path].encode() if path in request.files else None):
            return f"the setup touches {path}, which the pull request changes"
    try:
        return {path: data.decode() for path, data in left.items()}
    except UnicodeDecodeError:
        return "the setup leaves a file that is no text"
