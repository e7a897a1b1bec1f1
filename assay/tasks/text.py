"""Tasks made from running text: predict what comes next, or what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assay.errors import UsageError, nearest
from assay.records.rows import READERS, read_rows
from assay.registry import part
from assay.tasks.seeded import check_index
from assay.tasks.sentences import Unit, segments
from assay.types import Message, Task
from assay.verify.text.continuation import CLOSE, OPEN

PLAIN = (".txt", ".md")
NEXT = """Predict how the text goes on: write its next {unit}.

Think step by step about what is most likely to follow. Then give the {unit} between {open} and {close}.

### Text
{before}"""
MIDDLE = """A {unit} of the text is missing, at the mark <MASK>. Write it.

Think step by step about what fits what stands before and after it. Then give the {unit} between {open} and {close}.

### Text
{before}

<MASK>

{after}"""


@part("tasks", "text")
class Text:
    """Next and missing segments of documents, with no labels but the text itself.

    A document of segments s_1 ... s_n gives for every i from 2 to n - 1 the task to write s_i from what stands before
    it, and to a share of these, the task to write it from that and s_(i+1). The reference is s_i and the segments after
    it; verifier ``continuation`` judges. Tasks of the two sorts take turns. Documents that are there already are left
    out. Tasks of one document overlap: what one asks for, the next one shows. Hold documents out by giving evaluation
    files of its own, should memory of them matter.

    Source: RLPT (arXiv 2509.19249), section 3.2; the wording of the prompts is a choice.

    Args:
        path: a ``.txt`` or ``.md`` file, which is one document; a folder of such files; or a table of any format that
            tasks ``file`` reads, one document a row.
        field: of the table, that holds the text.
        unit: ``sentence``, ``line`` (as of code and worked solutions) or ``paragraph``.
        middle: tasks with what follows per task without, in [0, 1]: the weight of their rewards in the objective.
        min_chars, max_chars: bounds of s_i, inclusive; others only stand in contexts.
        context: characters of the text before s_i that are shown, at most; whole segments, one at least.
        following: segments of the reference after s_i, at most.
        open, close: marks that a prediction is to stand between.

    Raises:
        UsageError: an option out of range, no such file or field, or no text long enough for a task.
    """

    def __init__(
        self,
        path: Path,
        field: str = "text",
        unit: Unit = "sentence",
        middle: float = 1.0,
        min_chars: int = 20,
        max_chars: int = 400,
        context: int = 2000,
        following: int = 3,
        open: str = OPEN,
        close: str = CLOSE,
    ):
        path = Path(path)
        if not 0 <= middle <= 1:
            raise UsageError(f"tasks 'text': middle {middle:g} must be in [0, 1]")
        if not 1 <= min_chars <= max_chars or context < 1 or following < 0:
            raise UsageError(
                "tasks 'text': 1 <= min_chars <= max_chars must hold, context be 1 or more, and following 0 or more"
            )
        self.unit, self.middle, self.bounds, self.context, self.following = (
            unit,
            middle,
            (min_chars, max_chars),
            context,
            following,
        )
        self.marks = {"unit": unit, "open": open, "close": close}
        self.tasks: list[Task] = []
        seen: set[tuple[str, ...]] = set()
        targets = 0
        for name, text in documents(path, field):
            pieces = tuple(segments(text, unit))
            if pieces in seen:
                continue
            seen.add(pieces)
            for i in range(1, len(pieces) - 1):
                if min_chars <= len(pieces[i]) <= max_chars:
                    # In exactly the share ``middle`` of the targets so far, rounded down.
                    both = int((targets + 1) * middle + 1e-9) > int(targets * middle + 1e-9)
                    targets += 1
                    self.tasks += [self._task(name, pieces, i, sort) for sort in ("next", "middle")[: 1 + both]]
        if not self.tasks:
            raise UsageError(
                f"{path} has no {unit} of {min_chars} to {max_chars} characters between two others; lower min_chars or "
                "choose another unit"
            )

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]

    def _task(self, name: str, pieces: tuple[str, ...], i: int, sort: str) -> Task:
        first, room = i - 1, self.context - len(pieces[i - 1])
        while first > 0 and len(pieces[first - 1]) + 1 <= room:
            first -= 1
            room -= len(pieces[first]) + 1
        glue = {"sentence": " ", "line": "\n", "paragraph": "\n\n"}[self.unit]
        template = NEXT if sort == "next" else MIDDLE
        prompt = template.format(before=glue.join(pieces[first:i]), after=pieces[i + 1], **self.marks)
        return Task(
            id=f"{name}/{i + 1}/{sort}",
            prompt=(Message(role="user", content=prompt),),
            reference=list(pieces[i : i + 1 + self.following]),
            kind="continuation",
            meta={"source": "text", "document": name, "sort": sort},
        )


def documents(path: Path, field: str = "text") -> Iterator[tuple[str, str]]:
    """Yield name and text of each document, see :class:`Text`.

    Raises:
        UsageError: no such file or folder, one that cannot be read or holds nothing of the kind, or a row without the
            field.
    """
    if path.suffix.lower() in READERS:
        for number, (where, row) in enumerate(read_rows(path), 1):
            yield f"{path.name}/{number}", _field(row, field, where)
        return
    files = sorted(f for f in path.rglob("*") if f.suffix.lower() in PLAIN) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{path} holds no files that end in {' or '.join(PLAIN)}")
    for file in files:
        if not file.is_file() or file.suffix.lower() not in PLAIN:
            known = ", ".join([*PLAIN, *READERS])
            raise UsageError(f"no file {file}" if not file.is_file() else f"{file}: unknown format; known: {known}")
        try:
            text = file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"{file} is not UTF-8 text: {error}") from None
        except OSError as error:
            raise UsageError(f"{file} cannot be read: {error}") from None
        yield str(file.relative_to(path)) if file != path else file.name, text


def _field(row: Any, field: str, where: str) -> str:
    if not isinstance(row, Mapping) or not isinstance(row.get(field), str):
        hint = nearest(field, map(str, row)) if isinstance(row, Mapping) else ""
        raise UsageError(f"{where} has no text in a field {field!r}{hint}")
    return str(row[field])
