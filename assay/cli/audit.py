"""``assay audit``: how far can a verifier be trusted?"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, Unprotected, protect
from assay.errors import RunError, UsageError

if TYPE_CHECKING:
    from assay.audit.labelled import Row
    from assay.audit.robustness import Attempt
    from assay.audit.run import Audit
    from assay.audit.subject import Subject

HUGE, LARGE = 1_000_000, 2_000
"""Characters of the longest attacks, on the first task and on the others: size costs the same on every task."""

Words = Annotated[tuple[str, ...], Positional, tyro.conf.arg(metavar="KIND|module:function [FILE] [option=value]")]


def audit(
    words: Words = (),
    command: str | None = None,
    fields: str = "",
    generate: int | None = None,
    seed: int = 0,
    families: str = "",
    against: str | None = None,
    environment: str | None = None,
    attack: bool = False,
    attack_tasks: int = 50,
    tau: float = 0.01,
    seconds: float = 10.0,
    startup: float = 60.0,
    threshold: float = 0.5,
    workers: int = 0,
    out: Path | None = None,
    as_json: AsJson = False,
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Measure a verifier on responses whose label is known: error rates with exact intervals, latency, attacks.

    The verifier is a registered one (`assay audit number rows.jsonl`), `by_kind` for the one each row's kind names, a
    function (`module:function` or `file.py:function`), or a program (--command). Rows have `reference`, `response` and
    `label`, and may have `question`, `category`, `id` and `kind`. In place of a file there are sets that others have
    published, by name, from the Hugging Face hub or as NAME=FILE: verifybench, verifybench-hard, sci-verifybench,
    verifierbench.

    Example: assay audit math --generate 500 --attack

    Args:
        words: the verifier (unless --command), a JSONL, JSON, CSV, TSV or Parquet file, or a published set, and options
            of the verifier.
        command: a program that reads one JSON row per line and writes one verdict per line, instead of a verifier.
        fields: names of the fields in the file, e.g. label=correct,response=output.
        generate: judge this many generated cases instead of a file: those whose label holds for the verifier's option
            `unmarked` (last, unless it is given as an option). Of an environment, the tasks that are played (50).
        seed: of the generated cases, and of the choice of tasks to attack.
        families: kinds of generated cases, separated by commas; all unless given.
        against: a second verifier, with options after it: "number marker='####'", or "command: PROGRAM ARGUMENTS".
        environment: audit this world instead of a verifier (a name or `file.py:Class`, with its options): its own plan
            passes, who does nothing or only claims does not, episodes repeat and do not mix, a kill is no zero.
        attack: also send responses that hold no answer, and count those that are accepted.
        attack_tasks: most tasks that are attacked.
        tau: success rate up to which an attack is resisted.
        seconds: longest time for one answer of a program or function.
        startup: seconds more for a program's first answer.
        threshold: score from which a program's or function's bare number passes.
        workers: processes at once; 0 for one per core.
        out: folder for audit.json, audit.html, verdicts.jsonl and the record of the rates.
        as_json: print the report as JSON.
    """
    from assay.audit.run import Audit
    from assay.verify.isolate.workers import MOST

    if (
        not 0 <= tau < 1
        or not 0 < threshold <= 1
        or not 0 < seconds < math.inf
        or not 0 <= startup < math.inf
        or attack_tasks < 1
    ):
        raise UsageError(
            "--tau must be in [0, 1), --threshold in (0, 1], --seconds (a finite number) and --attack-tasks above 0"
        )
    if not 0 <= workers <= MOST:
        raise UsageError(f"--workers {workers} must be 0, one for each core, or 1 to {MOST}")
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; give a folder")
    if environment is not None:
        from assay.cli.audit_environment import audit_environment

        return audit_environment(environment, words, 50 if generate is None else generate, seed, workers, out, as_json)
    spec, file, options = _parse(words, command)
    protect(unsafe_no_sandbox)

    def program(words: str) -> Subject:
        from assay.audit.command import Command
        from assay.audit.subject import CORES, Program

        return Program(Command(words, seconds, startup, threshold), workers or CORES)

    def made(spec: str, options: dict[str, Any]) -> Subject:
        from assay.audit.subject import CORES, Isolated

        return Isolated(spec, options, seconds, threshold, workers or CORES)

    first = program(command) if command is not None else made(spec, options)
    second = None if against is None else _against(against, made, program)
    kind = first.name if command is None and ":" not in first.name and first.name != "by_kind" else None
    unmarked = str(options.get("unmarked", "last"))
    found, source = _rows(file, fields, generate, seed, families, kind, unmarked)
    rows, aside = [r for r in found if r.counted], [r for r in found if not r.counted]
    for each in (first, second):
        if each is not None:
            each.check(row.task for row in found)
    attempts, counts = _attempts(rows, attack_tasks, seed) if attack else ((), (0, 0))
    done = Audit(first, rows, source, second, attempts, counts, tau, aside)
    try:
        with _progress(as_json) as tick:
            done.run(tick)
        return _finish(done, out, as_json)
    finally:
        first.close()
        if second is not None:
            second.close()


def _parse(words: Sequence[str], command: str | None) -> tuple[str, Path | None, dict[str, Any]]:
    """Tell verifier, file and options apart."""
    from assay.audit.published import published
    from assay.config import apply_override

    options: dict[str, Any] = {}
    plain = []
    for word in words:
        first, equals, _ = word.partition("=")
        if first.isidentifier() and equals and first not in published() and not Path(word).exists():
            apply_override(options, word)
        else:
            plain.append(word)
    if command is not None:
        if options:
            raise UsageError("a --command takes no option=value; put its arguments inside the quotes")
        plain.insert(0, "")
    if not plain:
        raise UsageError("name a verifier, module:function or --command; see assay audit --help")
    if len(plain) > 2:
        raise UsageError(f"too many words: {' '.join(plain[2:])}; give one verifier (or --command) and one file")
    return plain[0], Path(plain[1]) if len(plain) == 2 else None, options


def _against(text: str, made: Callable[[str, dict[str, Any]], Subject], program: Callable[[str], Subject]) -> Subject:
    if text.startswith("command:"):
        return program(text.removeprefix("command:").strip())
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--against {text!r} cannot be split into words: {error}") from None
    if not words:
        raise UsageError("--against is empty; name a verifier")
    spec, file, options = _parse(words, None)
    if file is not None:
        raise UsageError(f"--against {text!r}: {file} is no option=value")
    return made(spec, options)


def _rows(
    file: Path | None, fields: str, generate: int | None, seed: int, families: str, kind: str | None, unmarked: str
) -> tuple[list[Row], str]:
    from assay.audit.labelled import Row, parse_fields, read_labelled
    from assay.audit.published import published, published_rows

    if (file is None) == (generate is None):
        raise UsageError("give a labelled file or --generate N" + ("" if file is None else ", not both"))
    if file is not None:
        if families:
            raise UsageError("--families chooses generated cases; a file is judged as a whole")
        name, equals, path = str(file).partition("=")
        if name in published() and not file.exists():
            if fields:
                raise UsageError(f"--fields are those of a file; what {name} has is known")
            return published_rows(name, path if equals else None, kind or "exact"), str(file)
        return read_labelled(file, kind or "exact", parse_fields(fields)), str(file)
    assert generate is not None
    if generate < 1:
        raise UsageError(f"--generate {generate}: at least one case is needed")
    from assay.audit.generate import cases

    chosen = tuple(f.strip() for f in families.split(",") if f.strip()) or None
    made = cases(seed, generate, chosen, unmarked)
    name = f"generated cases (n={generate}, seed={seed}{', ' + families if families else ''})"
    return [Row.of(case, kind) for case in made], name


def _attempts(rows: Sequence[Row], most: int, seed: int) -> tuple[list[Attempt], tuple[int, int]]:
    """The attacks on at most ``most`` of the rows' tasks, and how many of how many tasks that is."""
    import random

    from assay.audit.attacks import attacks
    from assay.audit.labelled import tasks_of
    from assay.audit.robustness import Attempt

    tasks = tasks_of(rows)
    chosen = tasks if len(tasks) <= most else random.Random(seed).sample(tasks, most)
    attempts = [
        Attempt(a.name, a.expects, row.task, a.response, row.category)
        for i, row in enumerate(chosen)
        for a in attacks(row.task, wrong_answer=row.wrong, rng=seed + i, size=HUGE if i == 0 else LARGE)
    ]
    return attempts, (len(chosen), len(tasks))


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Progress on standard error, one bar at a time."""
    from contextlib import ExitStack

    from assay.console import Reporter

    reporter = Reporter(quiet=quiet)
    with ExitStack() as bars:
        shown: dict[str, Any] = {}

        def tick(stage: str, done: int, total: int) -> None:
            if stage not in shown:
                shown[stage] = bars.enter_context(reporter.progress(stage, total))
            # A verifier may take microseconds: drawing each row would cost more than judging it.
            if done == total or done % 64 == 0 or total < 1000:
                shown[stage](done)

        yield tick


def _finish(done: Audit, out: Path | None, as_json: bool) -> int:
    from rich.console import Console

    from assay.audit.console import print_audit

    if done.failure is not None and not done.clean.outcomes:
        raise done.failure
    report = done.report()
    written = _write(done, report, out) if out is not None else []
    if as_json:
        print(json.dumps(report, ensure_ascii=True, default=str))
    else:
        console = Console(highlight=False)
        if not console.is_terminal:
            # Piped output keeps its columns, however narrow the terminal beyond the pipe.
            console = Console(highlight=False, width=160)
        print_audit(report, console)
        for path in written:
            console.print(f"wrote {path}", markup=False, soft_wrap=True, style="dim")
    if done.failure is not None:
        raise done.failure
    return 130 if done.interrupted else 0


def _write(done: Audit, report: dict[str, Any], out: Path) -> list[Path]:
    from assay.audit.html import render
    from assay.records.audit import FOLDER, save
    from assay.records.files import write_text

    try:
        out.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(v) + "\n" for v in done.verdicts())
        write_text(out / "verdicts.jsonl", lines)
        write_text(out / "audit.json", json.dumps(report, indent=1, default=str) + "\n")
        write_text(out / "audit.html", render(report))
        record = save(done.record(), out / FOLDER)
    except OSError as error:
        raise RunError(f"could not write to {out}: {error.strerror or error}") from None
    return [out / "audit.html", out / "audit.json", out / "verdicts.jsonl", record]
