"""``assay verify``: judge a response, or a file of them."""

from __future__ import annotations

import inspect
import json
import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, Unprotected, print_table, protect, say
from assay.errors import UsageError
from assay.printable import printable

if TYPE_CHECKING:
    from assay.verify.batch_file import BatchFile, Tally
    from assay.verify.isolate.pool import VerifierPool

WRONG, ABSTAINED = 1, 3
"""Exit codes of ``--strict``; the second also where every verdict is an abstention."""


def verify(
    kind: Annotated[str | None, Positional, tyro.conf.arg(metavar="[KIND]")] = None,
    words: Annotated[tuple[str, ...], Positional, tyro.conf.arg(metavar="[FILE] [option=value ...]")] = (),
    reference: str | None = None,
    response: str | None = None,
    prompt: str = "",
    out: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    fields: tuple[str, ...] = (),
    prefix: str = "",
    verifier: str | None = None,
    workers: int | None = None,
    seconds: float = 30.0,
    wall: float | None = None,
    strict: bool = False,
    as_json: AsJson = False,
    list_kinds: Annotated[bool, tyro.conf.arg(name="list")] = False,
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Judge one response, or every row of a JSONL file; exits with 3 if no verdict can be told.

    assay verify number --reference 42 --response "It is 42."

    assay verify number rows.jsonl --out judged.jsonl

    Example: assay verify math --reference 1/2 --response 'so it is 0.5'

    Args:
        kind: the verifier, see --list; by_kind goes by each row's field "kind"; or one of your own, as
            package.module:name or path/to/file.py:name.
        words: a JSONL file whose rows have a reference and a response, and options of the verifier.
        reference: what is right; JSON where it is an object or a list.
        response: the response to judge; - reads it from standard input.
        prompt: what was asked, for verifiers that look at it.
        out: the file to write; each row of FILE with score, passed, feedback and parts. What judged them is noted in
            OUT.verifier.json beside it.
        resume: go on after the rows that are in the output already, with the same verifier, options and fields.
        overwrite: replace the output file.
        fields: names of fields in FILE, e.g. reference=answer response=output.text; "reference=" if there is none.
        prefix: put before the names of the fields that are added.
        verifier: the same as KIND.
        workers: processes; the number of cores unless given.
        seconds: processor time one check may take; longer ones abstain.
        wall: wall time one check may take; ten times as much unless given.
        strict: exit with 1 if any response is wrong, else with 3 if any verdict is an abstention.
        as_json: print JSON.
        list_kinds: list the verifiers, or the options of KIND.
    """
    if verifier is not None:
        words, kind = (() if kind is None else (kind, *words)), verifier
    if list_kinds:
        return _list(as_json) if kind is None else _show(kind, as_json)
    if kind is None:
        raise UsageError("name a verifier, e.g. assay verify exact --reference 4 --response 4; see assay verify --list")
    files = [w for w in words if Path(w).exists() or not re.match(r"[A-Za-z_][\w.]*=", w)]
    spec = _spec(kind, [w for w in words if w not in files])
    if len(files) > 1:
        raise UsageError(f"one file at a time, not {' and '.join(files)}; options are option=value")
    if bool(files) == (response is not None):
        raise UsageError("give either a FILE with --out, or a --response with its --reference")
    from assay.verify.isolate.pool import VerifierPool

    protect(unsafe_no_sandbox)
    if response is not None:
        if out is not None or resume or overwrite or fields:
            raise UsageError("--out, --resume, --overwrite and --fields are for a FILE")
        with VerifierPool(spec, 1, seconds, wall) as pool:
            return _one(pool, kind, reference, response, prompt, strict, as_json)
    from assay.engines.target import files_mark
    from assay.verify.batch_file import BatchFile

    if out is None:
        raise UsageError(f"say where the verdicts on {files[0]} go: --out FILE")
    if reference is not None or prompt:
        raise UsageError("--reference and --prompt are for a --response; the rows of a FILE have their own")
    if out.exists() and not (resume or overwrite):
        raise UsageError(f"{out} exists; go on with --resume, begin again with --overwrite, or write to another file")
    if resume and overwrite:
        raise UsageError("--resume keeps what --overwrite replaces; give one of them")
    # A verifier of the same name is another one when its file has changed.
    judging = {"verifier": spec, "files": files_mark(spec), "limits": {"seconds": seconds, "wall": wall}}
    rows = BatchFile(Path(files[0]), out, _mapping(fields), prefix, judging)
    with VerifierPool(spec, workers, seconds, wall) as pool:
        return _file(rows, pool, resume, strict, as_json)


def _spec(kind: str, options: list[str]) -> dict[str, Any]:
    from assay.config import apply_override

    # A module or file of one's own is found as a script's would be.
    if ":" in kind and "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    spec: dict[str, Any] = {"name": kind}
    for option in options:
        apply_override(spec, option)
    return spec


def _mapping(fields: tuple[str, ...]) -> dict[str, str]:
    for field in fields:
        if "=" not in field:
            raise UsageError(f"--fields {field!r} is not of the form reference=NAME")
    return {role: name for role, _, name in (f.partition("=") for f in fields)}


def _one(
    pool: VerifierPool, kind: str, reference: str | None, response: str, prompt: str, strict: bool, as_json: bool
) -> int:
    from assay.types import Task
    from assay.verify.batch_file import Tally

    if response == "-":
        response = sys.stdin.read()
    value: Any = reference
    if reference is not None and reference.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(reference)
        except ValueError:
            value = reference
    task = Task("command line", prompt, value, kind)
    pool.check((task,))
    verdict = pool(task, response)
    if as_json:
        shown = {
            "score": None if verdict.passed is None else verdict.score,
            "passed": verdict.passed,
            "feedback": verdict.feedback,
            "parts": dict(verdict.parts),
        }
        print(json.dumps(shown))
    else:
        say(str(verdict))
    tally = Tally()
    tally.count(1, verdict.passed, verdict.feedback)
    return _code(strict, tally)


def _file(rows: BatchFile, pool: VerifierPool, resume: bool, strict: bool, as_json: bool) -> int:
    from assay.console import Reporter
    from assay.types import Task
    from assay.verify.batch_file import Tally

    reporter = Reporter()
    kinds = rows.scan()
    pool.check(Task(f"of {rows.path}", "", kind=k) for k in kinds)
    tally, length = rows.finished() if resume else (Tally(), 0)
    first, total = tally.rows, kinds.total()
    if first:
        reporter.line(f"{first} of {total} rows are in {rows.out} already")
    struck: list[int] = []

    def strike(number: int, frame: Any) -> None:
        # The second time at once, wherever it strikes.
        if struck:
            raise KeyboardInterrupt
        struck.append(number)
        rows.stop()

    before = {n: signal.signal(n, strike) for n in (signal.SIGINT, signal.SIGTERM)}
    start = shown = time.monotonic()
    try:
        with reporter.progress(rows.path.name, total, first) as tick:

            def progress(done: int) -> None:
                nonlocal shown
                if (now := time.monotonic()) - shown > 0.1 or done == total:
                    shown = now
                    tick(done)

            tally = rows.run(pool, tally, length, progress)
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)
    _report(rows, tally, tally.rows - first, time.monotonic() - start, as_json)
    if struck and tally.rows < total:
        name = signal.Signals(struck[0]).name
        reporter.line(
            f"assay: stopped by {name} with {tally.rows} of {total} rows in {rows.out}; "
            "go on with the same command and --resume"
        )
        return 128 + struck[0]
    return _code(strict, tally)


def _report(rows: BatchFile, tally: Tally, new: int, taken: float, as_json: bool) -> None:
    rate = new / max(taken, 1e-9)
    if as_json:
        counts = {"right": tally.right, "wrong": tally.wrong, "abstained": tally.abstained}
        print(json.dumps({"rows": tally.rows, **counts, "seconds": taken, "rows_per_second": rate}))
        return
    said = f"{tally.rows} rows: {tally.right} right, {tally.wrong} wrong, {tally.abstained} abstained"
    say(f"{said}; {new} in {taken:.1f} s ({rate:.4g} rows/s) -> {rows.out}")
    if tally.abstained:
        say(f"first abstention, {' '.join(tally.abstention.split())[:300]}")


def _code(strict: bool, tally: Tally) -> int:
    """The exit code; where nothing could be judged, a line on standard error says why."""
    if tally.abstained and tally.abstained == tally.rows:
        reason = " ".join(tally.abstention.split())[:300]
        print(f"assay: nothing was judged: every verdict abstained; the first, {printable(reason)}", file=sys.stderr)
        return ABSTAINED
    if not strict:
        return 0
    return WRONG if tally.wrong else ABSTAINED if tally.abstained else 0


def _list(as_json: bool) -> int:
    from assay.registry import find, names

    rows = [(name, (inspect.getdoc(find("verify", name)) or "").partition("\n")[0]) for name in names("verify")]
    if as_json:
        print(json.dumps([{"name": name, "doc": doc} for name, doc in rows]))
    else:
        print_table(("verifier", "what it does"), rows)
    return 0


def _show(kind: str, as_json: bool) -> int:
    from assay.registry import find

    made = find("verify", kind)
    doc, parameters = inspect.getdoc(made) or "", inspect.signature(made).parameters.values()
    options = [
        {"name": p.name, "type": str(p.annotation), "default": None if p.default is p.empty else p.default}
        | {"required": p.default is p.empty}
        for p in parameters
    ]
    if as_json:
        print(json.dumps({"name": kind, "doc": doc, "options": options}, default=str))
    else:
        from rich.markup import escape

        print(f"{kind}: {doc}")
        if options:
            print()
            print_table(tuple(options[0]), [tuple(escape(str(v)) for v in o.values()) for o in options])
    return 0
