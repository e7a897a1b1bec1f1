"""The command line. Every command imports what it needs when it runs, so that help is instant."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from assay.errors import AssayError, RunError, UsageError

if TYPE_CHECKING:
    from assay.api import Result

Commands = dict[str, Callable[..., int]]
Overrides = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="a.b.c=value")]


def train(
    recipe: Annotated[str | None, Positional, tyro.conf.arg(metavar="[RECIPE]")] = None,
    overrides: Overrides = (),
    resume: Path | None = None,
    quiet: bool = False,
) -> int:
    """Train a model by a recipe.

    Args:
        recipe: a TOML file; see the recipes folder. Without one, overrides change the defaults.
        overrides: changes to the recipe, e.g. train.steps=50 method.credit=grpo.
        resume: continue the run in this folder from its last checkpoint, bit for bit.
        quiet: print nothing but errors.
    """
    from assay.api import train as run

    if recipe is not None and "=" in recipe and not Path(recipe).exists():
        overrides, recipe = (recipe, *overrides), None
    if resume is not None and recipe is not None:
        raise UsageError(f"--resume takes the recipe from {resume}; leave out {recipe}")
    if recipe is None and resume is None and not overrides:
        raise UsageError("name a recipe, assay train recipes/quickstart.toml, or continue a run with --resume RUN")
    return _outcome(run(recipe, overrides=overrides, resume=resume, quiet=quiet))


def quickstart(overrides: Overrides = (), quiet: bool = False) -> int:
    """Train a nano model from scratch on arithmetic, in minutes: warm-up, RL, report.

    Args:
        overrides: changes to the built-in recipe, e.g. seed=1 run.dir=runs/seed1.
        quiet: print nothing but errors.
    """
    from assay.api import train as run

    if not any(o.startswith("run.dir=") for o in overrides):
        overrides = (*overrides, f'run.dir="{_free(Path("runs") / "quickstart")}"')
    return _outcome(run(Path(__file__).parent / "recipes" / "quickstart.toml", overrides=overrides, quiet=quiet))


def evaluate(
    target: Annotated[str, Positional],
    overrides: Overrides = (),
    samples: int = 4,
    out: Path | None = None,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Measure a run, a recipe's model, or any model on held-out tasks: pass@k with 95% intervals.

    Args:
        target: a run folder, a recipe, or a model (hub id, folder, GGUF file).
        overrides: changes to its configuration, e.g. tasks.source=countdown tasks.eval_size=200.
        samples: responses per task.
        out: store every response and verdict in this Parquet file.
        as_json: print the metrics as JSON.
    """
    from assay.api import evaluate as run
    from assay.training.console import Reporter

    evaluation = run(target, overrides=overrides, samples=samples, quiet=as_json)
    if out is not None:
        try:
            evaluation.to_parquet(out)
        except OSError as error:
            raise RunError(f"could not write {out}: {error.strerror or error}") from None
    metrics = evaluation.metrics()
    if as_json:
        print(json.dumps(metrics))
        return 0
    from rich.table import Table

    table = Table("metric", "value", "95% interval")
    for key, value in metrics.items():
        if not key.endswith(("/low", "/high", "/tasks")):
            low, high = metrics.get(f"{key}/low"), metrics.get(f"{key}/high")
            table.add_row(key, f"{value:.4g}", "" if low is None else f"{low:.3f} to {high:.3f}")
    Reporter().console.print(table)
    return 0


def report(run: Annotated[Path, Positional]) -> int:
    """Write (again) the HTML report of a run folder.

    Args:
        run: the run's folder.
    """
    from assay.report.html import write_report

    if not (run / "config.toml").is_file():
        raise UsageError(f"{run} is no run folder: it holds no config.toml")
    print(write_report(run))
    return 0


def tasks_list(as_json: Annotated[bool, tyro.conf.arg(name="json")] = False) -> int:
    """List the task sources.

    Args:
        as_json: print JSON.
    """
    from assay.tasks.browse import list_sources

    rows = list_sources()
    if as_json:
        print(json.dumps([_plain(r) for r in rows]))
    else:
        _table(("source", "what it asks"), [(_plain(r)["name"], _plain(r)["doc"]) for r in rows])
    return 0


def tasks_show(name: Annotated[str, Positional], as_json: Annotated[bool, tyro.conf.arg(name="json")] = False) -> int:
    """Show a task source's options.

    Args:
        name: the source, e.g. arithmetic.
        as_json: print JSON.
    """
    from assay.tasks.browse import show

    found = _plain(show(name))
    if as_json:
        print(json.dumps(found))
    else:
        print(f"{found['name']}: {found['doc']}")
        options = [_plain(o) for o in found["options"]]
        _table(tuple(options[0]) if options else ("option",), [tuple(str(v) for v in o.values()) for o in options])
    return 0


def tasks_sample(
    name: Annotated[str, Positional],
    options: Annotated[tuple[str, ...], Positional, tyro.conf.arg(metavar="option=value")] = (),
    n: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 3,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Print a few tasks of a source.

    Args:
        name: the source, e.g. arithmetic.
        options: its options, e.g. digits=3.
        n: how many.
        as_json: print JSON lines.
    """
    from assay.config import apply_override
    from assay.tasks.browse import sample

    spec: dict[str, Any] = {"name": name}
    for option in options:
        apply_override(spec, option)
    for row in sample(spec, n):
        task = _plain(row)
        if as_json:
            print(json.dumps(task, default=str, ensure_ascii=False))
        else:
            shown = {k: v for k, v in task.items() if v not in (None, (), [], {})}
            print("\n".join(f"{k:>10}  {v}" for k, v in shown.items()), "\n")
    return 0


def papers_list(as_json: Annotated[bool, tyro.conf.arg(name="json")] = False) -> int:
    """List the 226 papers, the seams each changes, and the state of its implementation.

    Args:
        as_json: print JSON.
    """
    from collections import Counter

    from assay.papers import rows

    found = rows()
    if as_json:
        print(json.dumps([_plain(r) for r in found]))
        return 0
    _table(
        ("id", "state", "seams", "title"),
        [(r.id, r.state, " ".join(r.seams), r.title) for r in found],
    )
    counts = Counter(r.state for r in found)
    print(f"{len(found)} papers: " + ", ".join(f"{n} {state}" for state, n in counts.items()))
    return 0


def papers_show(key: Annotated[str, Positional], as_json: Annotated[bool, tyro.conf.arg(name="json")] = False) -> int:
    """Show one paper's row.

    Args:
        key: its id, e.g. S014.
        as_json: print JSON.
    """
    from assay.papers import find

    row = _plain(find(key))
    if as_json:
        print(json.dumps(row))
    else:
        print("\n".join(f"{k:>8}  {' '.join(v) if isinstance(v, list | tuple) else v}" for k, v in row.items() if v))
    return 0


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the ``assay`` command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        from assay import __version__

        print(f"assay {__version__}")
        return
    app = _app({"train": train, "quickstart": quickstart, "eval": evaluate, "report": report})
    tasks: Commands = {"list": tasks_list, "show": tasks_show, "sample": tasks_sample}
    papers: Commands = {"list": papers_list, "show": papers_show}
    app.command(_app(tasks), name="tasks", help="Browse tasks.")
    app.command(_app(papers), name="papers", help="Browse the papers.")
    if arguments in (["tasks"], ["papers"]):
        arguments = [*arguments, "list"]
    sys.exit(_guarded(lambda: app.cli(prog="assay", description="RL with verifiable rewards.", args=arguments)))


def _app(commands: Commands) -> tyro.extras.SubcommandApp:
    app = tyro.extras.SubcommandApp()
    for name, command in commands.items():
        app.command(name=name)(command)
    return app


def _guarded(command: Callable[[], int]) -> int:
    """Run a command; an error of ours, or an interrupt, ends it with one line and an exit code."""
    try:
        code = command()
        # Here, not when the interpreter ends, where a reader that went away would make a trace.
        sys.stdout.flush()
        return code
    except AssayError as error:
        print(f"assay: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("assay: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does; what is left in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _free(path: Path) -> Path:
    """The path itself, or the first of path-2, path-3, ... that does not exist."""
    tried, n = path, 1
    while tried.exists():
        n += 1
        tried = path.with_name(f"{path.name}-{n}")
    return tried


def _outcome(result: Result) -> int:
    """Exit code of a finished or stopped run; says how to go on with a stopped one."""
    if result.stopped_by is None:
        return 0
    again = f"assay train --resume {result.folder}"
    print(f"assay: stopped by {result.stopped_by}; continue with: {again}", file=sys.stderr)
    return 128 + int(signal.Signals[result.stopped_by])


def _plain(row: Any) -> dict[str, Any]:
    """A record as a dictionary that JSON can hold."""
    if is_dataclass(row) and not isinstance(row, type):
        row = asdict(row)
    return {k: v for k, v in row.items() if k != "factory"}


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    # Piped output keeps its lines whole, whatever the width.
    console.print(table, soft_wrap=not console.is_terminal, crop=console.is_terminal)


if __name__ == "__main__":
    main()
