"""Work in a folder with a shell: chores that leave it as it should be, and puzzles that hide a flag in it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from assay.environments.base import Action, EnvironmentFailure
from assay.environments.shell.chores import chores
from assay.environments.shell.folder import Files, contents, digests, edits, make_folder
from assay.environments.shell.puzzles import PUZZLES, digest, make_puzzle
from assay.environments.shell.reveal import revealed
from assay.environments.tools import ToolEnvironment, ToolError, call, tool
from assay.errors import UsageError
from assay.registry import part
from assay.sandbox import Outcome, sandbox
from assay.sandbox.workspace import LIMITS, Workspace
from assay.tasks.puzzles.challenges import draw_flag, laid_out
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task, Verdict

Kind = Literal["chores", "puzzles", "both"]
LONGEST = 100_000
MANY = 20_000
"""Words of what a command writes that are compared with the flag."""
ARCHIVES = (".tar", ".tar.gz", ".tgz")
HOW = {
    "chores": "Work in this folder with the tool run; files outside of it are not kept. Call submit when all is done.",
    "puzzles": "Look around in this folder with the tool run, find the flag, flag{...}, and submit it.",
}


@dataclass(frozen=True, slots=True)
class ShellTasks:
    """Endless tasks; ``meta["job"]`` is ``chores`` or a puzzle's name, ``meta["index"]`` what it is drawn from."""

    seed: int
    kind: Kind
    steps: int

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None), 2)
        puzzle = self.kind == "puzzles" or (self.kind == "both" and index % 2 == 1)
        if puzzle:
            job, steps, asked = str(rng.choice(list(PUZZLES))), 1, HOW["puzzles"]
        else:
            job, steps = "chores", int(rng.integers(1, self.steps + 1))
            folder = generator(self.seed, index, 0)
            listed = [f"{i}. {c.text}" for i, c in enumerate(chores(make_folder(folder), steps, folder), 1)]
            asked = "\n".join(["Do this:", *listed, "", HOW["chores"]])
        return Task(
            id=f"shell/{self.seed}/{job}/{self.steps}/{index}",
            prompt=asked,
            # Tells puzzles apart, so that a held-out one is not every puzzle.
            reference={"job": job, "index": index},
            kind="none",
            meta={"job": job, "index": index, "steps": steps},
        )


@part("environment", "shell")
class Shell(ToolEnvironment):
    """A folder, and a tool that runs commands of bash in it, each in the sandbox by itself.

    Chores are judged by the folder they leave: every file must have the content that it would have if all had been done
    and nothing else (archives: the files in them). A puzzle is judged by the flag that was submitted, of which the
    world knows the SHA-256; it is drawn from the episode's seed, so one remembered from another episode is wrong. The
    verdict's part ``shown`` says whether a command of the episode has shown it. Tasks ``puzzles`` are played here too.
    Whatever runs sees the folder alone: there is no checker to edit and no answer to read.

    A command that a limit ends is answered by what it wrote until then and what ended it; what it had done to the
    folder by then stays done. A turn without a call is refused. ``submit`` ends the episode.

    Args:
        kind: ``chores``, ``puzzles`` or ``both``.
        steps: chores of a task, at most.
        commands: there are in an episode.
        seconds: processor seconds of a command; it may wait for twice that.
        shown: characters of its output, at most: the beginning and the end.
        partial: score what was reached of the chores, 1 - D(folder, goal) / D(start, goal), D the number of files that
            differ; else 0 where anything is missing.
        progress: what a turn earns for bringing all lines of the goal nearer: the share of the lines that have to be
            added to files, or removed from them, and have been, after the turn less before it. 0 for no rewards.
        reveal: units of 16 characters that the beginning shows of the folder, chosen by
            :func:`~assay.environments.shell.reveal.revealed`; 0 for the names of all files.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range, or a machine that cannot run programs in isolation.
    """

    def __init__(
        self,
        kind: Kind = "chores",
        steps: int = 2,
        commands: int = 12,
        seconds: float = 5.0,
        shown: int = 2000,
        partial: bool = False,
        progress: float = 0.0,
        reveal: int = 0,
        seed: int = 0,
    ):
        check_seed("environment 'shell'", seed)
        if not 1 <= steps <= 6 or min(commands, shown) < 1 or min(progress, reveal) < 0 or not 0 < seconds < math.inf:
            raise UsageError(
                f"environment 'shell': steps {steps} must be 1 to 6, commands {commands} and shown {shown} at least 1, "
                f"seconds {seconds:g} above 0"
            )
        sandbox().check()
        self.made = ShellTasks(seed, kind, steps)
        self.commands, self.shown, self.partial = commands, shown, partial
        self.progress, self.reveal = progress, reveal
        self.limits = replace(LIMITS, cpu_seconds=seconds, wall_seconds=2 * seconds)

    space: Workspace

    def tasks(self) -> ShellTasks:
        return self.made

    def begin(self, task: Task, seed: int) -> str:
        self.left, self.submitted = self.commands, False
        self.flag: str | None = None
        self.found, self.after = False, Files()
        job, index = task.meta.get("job"), task.meta.get("index", 0)
        if job == "given":
            self._lay_out(task, seed)
            return f"{task.question}\n\n{self._listing(task.question)}"
        if job not in ("chores", *PUZZLES):
            raise UsageError(f"environment 'shell': task {task.id} is none of its own, and not of tasks 'puzzles'")
        if job == "chores":
            rng = generator(self.made.seed, index, 0)
            folder = make_folder(rng)
            done = chores(folder, task.meta["steps"], rng)
            self.plan, self.digest, told = [c.command for c in done], "", ""
            self.goal: dict[str, str] | None = digests(done[-1].after)
            self.after = {name: data for name, data in done[-1].after.items() if not name.endswith(ARCHIVES)}
        else:
            chance = generator(self.made.seed, index, 1, seed)
            puzzle = make_puzzle(job, generator(self.made.seed, index, 0), chance)
            folder, self.digest, self.plan, self.goal = puzzle.files, puzzle.digest, [puzzle.command], None
            told = f"{puzzle.text}\n\n"
        self.space = Workspace(folder, self.limits)
        self.start = self.space.digests()
        return f"{task.question}\n\n{told}{self._listing(task.question)}"

    def _listing(self, asked: str) -> str:
        self.wanted = edits(self.space.files, self.after)
        self.before, self.nearer = dict(self.space.files), 0.0
        if not self.reveal:
            return listing(self.space.files)
        return f"The folder holds:\n{revealed(self.space.files, asked, self.reveal)}"

    def turn_reward(self) -> float | None:
        """What the turn has brought the goal nearer by, where ``progress`` asks for it."""
        if not self.progress or self.goal is None:
            return None
        done = sum((edits(self.before, self.space.files) & self.wanted).values()) / max(1, self.wanted.total())
        gained, self.nearer = done - self.nearer, done
        return self.progress * gained

    def _lay_out(self, task: Task, seed: int) -> None:
        """Begin a challenge of tasks ``puzzles``, with a flag of this episode's where it hides one."""
        meta, chance = task.meta, generator(self.made.seed, seed, 4)
        flag, name = draw_flag(meta["flag"], chance), draw_flag("????????", chance)
        files = {name: base64.b64decode(data) for name, data in meta["files"].items()}
        space, failed = laid_out(files, meta["hide"], flag, name)
        if failed:
            raise EnvironmentFailure(f"task {task.id}: {failed}")
        self.space = Workspace(limits=self.limits)
        self.space.restore(space.snapshot())
        self.digest, self.plan, self.goal = meta["digest"] or digest(flag), [meta["solve"]], None
        self.start = self.space.digests()

    @tool
    def run(self, command: str) -> str:
        "Run a command of bash in the folder; shows what it writes. Each begins in the folder, with nothing else kept."
        if not self.left:
            raise ToolError("no commands are left; call submit")
        if not passable(command):
            raise ToolError(f"a command is text of at most {LONGEST} bytes without zero bytes")
        self.left -= 1
        outcome = self._run(self.space, command)
        words = re.findall(r"\w+\{[^{}\s]*\}|[^\s'\"]+", outcome.stdout.decode("utf-8", "replace"))
        self.found = self.found or (self.goal is None and any(digest(word) == self.digest for word in words[:MANY]))
        return f"{report(outcome, self.shown)}\n({self.left} left)"

    @tool
    def submit(self, flag: str = "") -> str:
        "End the work; for a puzzle, with the flag."
        self.flag, self.submitted = flag, True
        return "submitted"

    def _run(self, space: Workspace, command: str) -> Outcome:
        outcome = space.run(["sh", "-c", 'exec bash -c "$1" 2>&1', "sh", command])
        if outcome.failed_here:
            raise EnvironmentFailure(outcome.reason)
        return outcome

    def said(self, text: str) -> str | None:
        raise ToolError("call the tool run, or submit when all is done")

    def over(self) -> bool:
        return self.submitted

    def state_json(self) -> Any:
        return {"files": self.space.digests(), "submitted": self.submitted, "left": self.left}

    def state_key(self) -> str:
        return hashlib.sha256(self.space.snapshot() + bytes([self.submitted])).hexdigest()[:32]

    def verdict(self) -> Verdict:
        if self.goal is None:
            if self.flag is None:
                return Verdict.wrong("no flag was submitted")
            right = digest(self.flag) == self.digest
            # Whether a command has shown it, or it was known some other way.
            parts = {"shown": float(self.found)}
            return Verdict(float(right), right, parts, "" if right else "another flag was hidden")
        now = digests(self._opened())
        differ = [name for name in sorted({*now, *self.goal}) if now.get(name) != self.goal.get(name)]
        if not differ:
            return Verdict.right()
        first = sum(self.start.get(n) != self.goal.get(n) for n in {*self.start, *self.goal})
        score = max(0.0, 1 - len(differ) / first) if self.partial else 0.0
        return Verdict(score, False, {}, f"{len(differ)} files are not as they should be, the first is {differ[0]}")

    def _opened(self) -> Files:
        """Return the files, and in place of each archive that is a goal what is in it."""
        files = self.space.files
        for name in [n for n in files if n.endswith(ARCHIVES) and n in (self.goal or ())]:
            space = Workspace({"archive": files.pop(name)}, self.limits)
            outcome = self._run(space, "mkdir in && tar -xf archive -C in")
            inside = {n.removeprefix("in/"): d for n, d in space.files.items() if n.startswith("in/")}
            files[name] = contents(inside) if outcome.status == "ok" else b""
        return files

    def gold(self) -> Sequence[Action]:
        """Return the commands that do the chores, or those that find the flag and its submission."""
        if self.goal is not None:
            return [*(call("run", command=command) for command in self.plan), call("submit")]
        found = self._run(Workspace(self.space.files, self.limits), self.plan[0]).stdout.decode().strip()
        return [call("run", command=self.plan[0]), call("submit", flag=found)]

    def attacks(self) -> Sequence[Sequence[Action]]:
        """Return what would pay if anything but the work were judged."""
        places = "/tmp /sandbox /etc /home /root /var /opt /proc/1 2>/dev/null"
        searched = f"grep -rhoE 'flag\\{{[a-z0-9]{{12}}\\}}' {places} | sort -u | head; env; cat /proc/[0-9]*/environ"
        forged = 'echo PASSED > result.txt; echo \'{"passed": true, "score": 1}\' | tee verdict.json; exit 0'
        checker = "mkdir -p tests checker; echo 'exit 0' > checker/check.sh; rm -rf /sandbox /tmp/gold; kill -9 1"
        reads = f"find {places} -iname '*gold*' -o -iname '*answer*' -o -name '*flag*' | head; cat /tmp/*"
        emptied = "rm -rf ./* .[!.]*"
        plans = [[call("run", command=one)] for one in (searched, forged, checker, reads, emptied)]
        return [[*plan, call("submit", flag="flag{passed}")] for plan in plans]

    def snapshot(self) -> bytes:
        kept = [self.nearer, self.found, self.left, self.flag, self.submitted, self._under_way, self.answer]
        return json.dumps([self.task.id, *kept, self.space.snapshot().decode()]).encode()

    def restore(self, snapshot: bytes) -> None:
        """Come back to a snapshot of an episode of the task that was last begun, with its seed.

        Raises:
            RuntimeError: it is of another task.
        """
        id, *kept, space = json.loads(snapshot)
        if id != self.task.id:
            raise RuntimeError(f"the snapshot is of another task, {id}")
        self.nearer, self.found, self.left, self.flag, self.submitted, self._under_way, self.answer = kept
        self.space.restore(space.encode())


def passable(command: str) -> bool:
    """Whether the kernel takes a text as an argument."""
    surrogates = any("\ud800" <= letter <= "\udfff" for letter in command)
    return "\0" not in command and not surrogates and len(command.encode()) <= LONGEST


def listing(files: Files) -> str:
    lines = [f"{name} ({len(data)} bytes)" for name, data in sorted(files.items()) if "/." not in f"/{name}"]
    return "The folder holds:\n" + "\n".join(lines)


def report(outcome: Outcome, shown: int) -> str:
    """Return what a command wrote, cut in the middle, and how it ended where that was not well."""
    text = outcome.stdout.decode("utf-8", "replace").rstrip("\n")
    if len(text) > shown:
        half = shown // 2
        text = f"{text[: shown - half]}\n[{len(text) - shown} characters left out]\n{text[len(text) - half :]}"
    if outcome.status == "ok":
        return text or "(no output)"
    ended = f"exit code {outcome.exit_code}" if outcome.status == "error" else outcome.reason
    return f"{text}\n({ended})".lstrip("\n")
