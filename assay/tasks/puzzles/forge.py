"""Models that make a challenge of what a competition has left: its description, its flag, and its recipe."""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.asking import filled
from assay.engines.writing import pieces
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.listed import Listed
from assay.tasks.making.work import Dropped, Here, Reply, Want, Work, child
from assay.tasks.puzzles.challenges import (
    DIGEST,
    LEAST,
    PLACEHOLDER,
    TOLD,
    Challenge,
    asked_of,
    draw_flag,
    encoded,
    flawed,
)
from assay.tasks.puzzles.image import Image, built, visited
from assay.tasks.puzzles.recipe import issues
from assay.types import Task

SHOWN = 2000
"""Characters of a file that a model is shown."""
ABOUT = """A competition has left these files of a security challenge, {name}:
{files}
{digest}
Say in JSON what the challenge is:
- "description": what a player is told, complete in itself; it must not tell how the flag is judged;
- "service": true where a program reads the flag from /flag and gives it only to who has earned it, which is then
  visited by its standard input and output; false where the files themselves are all there is;
- "flag": how the flag looks, with at least {least} letters that are drawn as "?", such as "flag{????????????}", and
  whatever the files demand of it; leave it out where the files have a flag of their own;
- "hide": a command of sh that puts "$FLAG" into the files, not as it is; for a service leave it out;
- "solve": for files a command of sh that prints the flag; for a service the text to send it for the flag.
{before}
Write it between <about> and </about>."""
RECIPE = """Write the recipe (Dockerfile) of a container for this challenge, {name}:
{files}
The challenge: {about}
Start from one of the common base images, copy what the service needs and nothing that tells the flag, expose its port,
and start it: it reads one visit from its standard input and answers on its standard output, as under inetd; the flag
will be in /flag. There is no network while it is built.
{before}
Write it between <recipe> and </recipe>."""


@part("tasks", "artefacts")
def artefacts(path: Path) -> Listed:
    """Return what ``assay tasks make S143`` begins with: a task for each subfolder, with its files.

    Args:
        path: of a folder whose subfolders are challenges as they were left, without ``challenge.json``; a
            ``flag.sha256`` in one is the digest of its flag.

    Raises:
        UsageError: there is none.
    """
    tasks = []
    for folder in sorted(place for place in Path(path).iterdir() if place.is_dir()) if Path(path).is_dir() else ():
        own = [place for place in sorted(folder.rglob("*")) if place.is_file() and not place.is_symlink()]
        files = {place.relative_to(folder).as_posix(): place.read_bytes() for place in own}
        digest = files.pop(DIGEST, b"").decode("utf-8", "replace").split()[:1]
        meta = {"files": encoded(files), "digest": digest[0].lower() if digest else ""}
        tasks.append(Task(f"artefacts/{folder.name}", folder.name, kind="none", meta=meta))
    if not tasks:
        raise UsageError(f"{path}: no folder of challenges, each in a subfolder")
    return Listed(tasks)


@dataclass(frozen=True, slots=True)
class Forge:
    """Has a model say what a challenge is, and write the recipe of its service, until both hold when they are tried.

    What is said must describe it without telling who judges, and have a flag that can be drawn and is no placeholder.
    Files are tried as :func:`~assay.tasks.puzzles.challenges.flawed` does: the flag is found by the solution and stands
    nowhere. A recipe is looked at as text (:func:`~assay.tasks.puzzles.recipe.issues`), carried out, and visited
    (:mod:`assay.tasks.puzzles.image`): the solution is given the flag, twice another one, and nobody else is. What is
    wrong goes back to the model, up to ``tries`` times for each of the two; then the challenge is dropped.

    Args:
        tries: of each, at least 1.
        by: role of who writes.

    Raises:
        UsageError: ``tries`` below 1.

    Source: CTF-Dojo (arXiv 2508.18370), CTF-Forge.
    """

    tries: int = 10
    by: str = "writer"

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise UsageError(f"step forge: tries {self.tries} must be at least 1")

    def check(self, tasks: Sequence[Task]) -> None:
        if none := [task.id for task in tasks if not {"files", "digest"} <= set(task.meta)]:
            raise UsageError(f'step forge: task {none[0]} has no files; take --seeds "artefacts(path=...)"')

    def __call__(self, task: Task, here: Here) -> Work:
        files = {path: base64.b64decode(data) for path, data in task.meta["files"].items()}
        listed = "\n".join(f"--- {path} ({len(data)} bytes)\n{_text(data)}" for path, data in sorted(files.items()))
        digest = task.meta["digest"]
        shown = {"name": task.question, "files": listed, "least": str(LEAST)}
        shown["digest"] = f"The files have a flag of their own, whose SHA-256 is {digest}." if digest else ""
        about: dict[str, Any] = {}
        wrong, last = ["nothing was said"], ""
        for _ in range(self.tries):
            last = yield from self._written(ABOUT, "about", shown, last, wrong)
            about, wrong = _read(last, digest)
            made = Challenge(task.question, "", str(about.get("description", "")), files, digest=digest)
            hide, flag, solve = (str(about.get(key, getattr(made, key))) for key in ("hide", "flag", "solve"))
            made = replace(made, hide=hide, flag=flag, solve=solve)
            if not wrong and not about["service"]:
                wrong = flawed(made) if made.solve else ["it has no solution"]
            if not wrong:
                break
        if wrong:
            return Dropped("nothing that can be played is said of it")
        if not about["service"]:
            return _made(task, made, None)
        last, wrong, shown["about"] = "", ["no recipe was written"], made.description
        for _ in range(self.tries):
            last = yield from self._written(RECIPE, "recipe", shown, last, wrong)
            known = {**files, **({DIGEST: b""} if digest else {})}
            wrong = issues(last, known) if last else ["no recipe was written"]
            if not wrong:
                image, wrong = built(last, files)
                wrong = wrong or served_wrong(image, made)
                if not wrong:
                    return _made(task, replace(made, recipe=last), image)
        return Dropped("no recipe that holds is written")

    def _written(
        self, template: str, tag: str, shown: Mapping[str, str], last: str, wrong: Sequence[str]
    ) -> Generator[list[Want], list[list[Reply]], str]:
        before = f"The last one was\n{last}\nand has to be written again: {'; '.join(wrong)}" if last else ""
        [[reply]] = yield [Want(filled(template, **shown, before=before), 1, by=self.by)]
        found = pieces(reply.text, tag)
        return found[-1].strip() if found else ""


def _text(data: bytes) -> str:
    try:
        return data.decode()[:SHOWN]
    except UnicodeDecodeError:
        return "(no text)"


def _read(said: str, digest: str) -> tuple[dict[str, Any], list[str]]:
    """Return what was said of a challenge, and what is wrong with it."""
    try:
        about = json.loads(said)
        assert isinstance(about, dict)
    except (ValueError, AssertionError):
        return {}, ["it is no object of JSON"]
    wrong = []
    if not str(about.get("description", "")).strip():
        wrong.append("there is no description")
    if TOLD.search(str(about.get("description", ""))):
        wrong.append("the description mentions what judges the flag")
    about["service"] = about.get("service") is True
    flag = str(about.get("flag", ""))
    if about["service"] and digest:
        wrong.append("the files have a flag of their own, so there is no service")
    elif not digest and (flag.count("?") < LEAST or PLACEHOLDER.search(flag)):
        wrong.append(f"flag {flag!r}: a pattern with {LEAST} letters to be drawn, ?, is wanted")
    if about["service"] and not str(about.get("solve", "")).strip():
        wrong.append("it has no solution")
    return about, wrong


def served_wrong(image: Image, challenge: Challenge) -> list[str]:
    """Return what is wrong with a service: it gives any flag to who sends the solution, and to nobody else."""
    if not image.command:
        return ["no start command"]
    for seed in range(2):
        flag = draw_flag(challenge.flag, np.random.default_rng([seed, 11]))
        if any(flag.encode() in data for data in image.files.values()):
            return ["the flag stands in the image"]
        said, why = visited(image, flag, f"{challenge.solve}\n")
        if why:
            return [f"the service could not be visited: {why}"]
        if flag not in said:
            return [f"the solution is answered {said[-200:]!r}, without the flag"]
        for other in ("", "flag\n", f"{challenge.solve[::-1]}x\n"):
            if flag in visited(image, flag, other)[0]:
                return [f"the flag is given to who sends {other!r}"]
    return []


def _made(task: Task, challenge: Challenge, image: Image | None) -> Task:
    service = image is not None
    meta: dict[str, Any] = {"job": "given", "hide": challenge.hide, "flag": challenge.flag, "solve": challenge.solve}
    if image is not None:
        meta |= {"recipe": challenge.recipe, "files": {}, "image": encoded(image.files), "folder": image.folder}
        meta |= {"command": image.command, "environment": dict(image.environment)}
    return child(task, "forge", 0, prompt=asked_of(challenge.description, service), meta=meta)


def image_of(task: Task) -> Image | None:
    """Return the image of a task's service, if it has one."""
    if "image" not in task.meta:
        return None
    files = {path: base64.b64decode(data) for path, data in task.meta["image"].items()}
    return Image(files, task.meta["folder"], dict(task.meta["environment"]), task.meta["command"])
