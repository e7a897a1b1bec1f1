"""Benchmarks by name: the data sets that everybody reports, as tasks with their prompts and verifiers."""

from __future__ import annotations

import functools
import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from assay.errors import UsageError, nearest
from assay.recipes import DATA
from assay.records.rows import READERS, read_rows
from assay.registry import part
from assay.tasks.files.fields import Fields
from assay.tasks.files.huggingface import load
from assay.tasks.seeded import check_index
from assay.types import Task


@part("tasks", "benchmark")
class Benchmark:
    """All tasks of a published benchmark, as ``assay benchmarks`` lists them.

    The prompt is one user message. What ``assay eval MODEL NAME`` asks; see :func:`expanded`.

    Args:
        which: its name, e.g. ``gsm8k``.
        path: where its rows are, in the data set's own fields: a file (JSONL, JSON, CSV, TSV, Parquet), a folder
            written by ``save_to_disk``, or another name on the hub; its own there unless given.

    Raises:
        UsageError: no such benchmark, it cannot be loaded, or a row lacks a field.
    """

    def __init__(self, which: str, path: str | None = None):
        entry = benchmark(which)
        reference = entry.get("reference", ("answer", "options"))
        fields = Fields(
            prompt=entry["prompt"],
            reference=tuple(reference) if isinstance(reference, list) else reference,
            solution=None,
            id=entry.get("id"),
            kind=entry["kind"],
            system=None,
            chat=True,
            reference_after=entry.get("reference_after"),
            meta=tuple(entry.get("meta", ())),
            source=which,
        )
        options, answer = entry.get("options"), entry.get("answer", "")
        self.tasks = fields.tasks(
            (where, row if options is None else _lettered(row, options, answer, where))
            for where, row in _rows(which, entry, path)
        )

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


@functools.cache
def benchmarks() -> dict[str, dict[str, Any]]:
    """Return every benchmark's entry by its name."""
    return tomllib.loads(resources.files(__package__).joinpath("benchmarks.toml").read_text(encoding="utf-8"))


def benchmark(name: str) -> dict[str, Any]:
    """Return a benchmark's entry.

    Raises:
        UsageError: there is none of this name.
    """
    if name not in benchmarks():
        raise UsageError(f"no benchmark is called {name!r}{nearest(name, benchmarks())}")
    return benchmarks()[name]


def expanded(words: Sequence[str]) -> list[str]:
    """Return changes to a configuration in which a benchmark, ``NAME`` or ``NAME=PATH``, stands for the settings that
    ask every task of it, once, in one turn, and have it judged as its kind is; other words go before these. A file of
    tasks stands for ``tasks.eval_source``.

    Raises:
        UsageError: two benchmarks, or a word that is neither one nor ``a.b.c=value``.
    """
    named = [word for word in words if word.partition("=")[0] in benchmarks()]
    others = [made for word in words if word not in named for made in _of_file(word)]
    for word in others:
        if "=" not in word:
            raise UsageError(f"{word!r} is neither a change, a.b.c=value, nor a benchmark{nearest(word, benchmarks())}")
    if len(named) > 1:
        raise UsageError(f"one benchmark at a time, not {' and '.join(named)}: each has its own prompts and lengths")
    if not named:
        return others
    name, _, path = named[0].partition("=")
    source = f'{{name = "benchmark", which = "{name}"' + (f", path = {json.dumps(path)}}}" if path else "}")
    return [
        f"tasks.eval_source={source}",
        "tasks.eval_size=auto",
        "tasks.verify=by_kind",
        f"rollout.max_tokens={benchmark(name)['max_tokens']}",
        "rollout.stop=[]",
        "method.rollout=single_turn",
        *others,
    ]


def _of_file(word: str) -> list[str]:
    """Return the changes that measure on all of a file of tasks; any other word as it is."""
    if "=" in word or Path(word).suffix.lower() not in DATA:
        return [word]
    return [f"tasks.eval_source={json.dumps(word)}", "tasks.eval_size=auto"]


def _rows(name: str, entry: Mapping[str, Any], path: str | None) -> Iterator[tuple[str, Any]]:
    """Yield the benchmark's rows, each with the place to name in an error."""
    if path is not None and Path(path).suffix.lower() in READERS:
        yield from read_rows(Path(path).expanduser())
        return
    own = path is None
    for config in entry.get("config", [None]) if own or not Path(str(path)).is_dir() else [None]:
        try:
            data = load(str(path or entry["path"]), config, entry["split"])
        except UsageError as error:
            raise UsageError(f"{error}" + (f"; of a file or folder: {name}=PATH" if own else "")) from error
        yield from ((f"{path or entry['path']} row {number}", row) for number, row in enumerate(data, 1))


def _lettered(row: Any, options: str | Sequence[str], answer: str, where: str) -> Any:
    """Return a row of multiple choice with ``options``, a list, ``answer``, the letter of the right one, and
    ``lettered``, the options as they are shown.

    Args:
        options: the field with a list of texts, or with a table of ``text`` and ``label``; or the fields, the right one
            first, which are then put into an order that their content says.
        answer: the field that says which is right: a number from 0, a letter or a label.
    """
    if not isinstance(row, Mapping):
        return row
    try:
        if isinstance(options, str):
            given, said = row[options], row[answer]
            texts = [str(text) for text in (given["text"] if isinstance(given, Mapping) else given)]
            labels = list(given["label"]) if isinstance(given, Mapping) else list(ascii_uppercase[: len(texts)])
            right = said if isinstance(said, int) else labels.index(said)
        else:
            correct = str(row[options[0]]).strip()
            texts = sorted((str(row[name]).strip() for name in options), key=_digest)
            right = texts.index(correct)
        letter = ascii_uppercase[: len(texts)][right]
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise UsageError(f"{where}: its choices and answer cannot be read ({type(error).__name__}: {error})") from None
    shown = "\n".join(f"{label}. {text}" for label, text in zip(ascii_uppercase, texts, strict=False))
    return {**row, "options": texts, "answer": letter, "lettered": shown}


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode()).digest()
