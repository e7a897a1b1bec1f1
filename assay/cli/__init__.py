"""The command line, one file a command. Each imports what it needs when it runs, so that help is instant."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

import tyro

from assay.cli.audit import audit
from assay.cli.citations.check import citations_check, citations_train
from assay.cli.citations.search import citations_expansions, citations_train_retriever
from assay.cli.compare import compare
from assay.cli.diagnose import diagnose
from assay.cli.evaluate import evaluate, report
from assay.cli.heads import train_head
from assay.cli.hub.export import export
from assay.cli.hub.push import card, push
from assay.cli.lab import lab
from assay.cli.league import league
from assay.cli.papers import papers_list, papers_show
from assay.cli.parts import config, new, parts
from assay.cli.plan import plan
from assay.cli.power import power
from assay.cli.prm import train_prm
from assay.cli.recipes import init, recipes
from assay.cli.serve import serve
from assay.cli.serve_env import serve_env
from assay.cli.tasks.benchmarks import benchmarks
from assay.cli.tasks.browse import tasks_list, tasks_sample, tasks_show
from assay.cli.tasks.make import tasks_make
from assay.cli.train import quickstart, train
from assay.cli.verify import verify
from assay.cli.view import view
from assay.errors import AssayError
from assay.printable import printable

Commands = dict[str, Callable[..., int]]


def commands() -> tuple[Commands, dict[str, tuple[str, Commands]]]:
    """Return every command, and those that have commands of their own, with what they are for."""
    first: Commands = {"init": init, "recipes": recipes, "config": config, "parts": parts, "new": new}
    first["benchmarks"] = benchmarks
    top: Commands = {"train": train, "quickstart": quickstart, "plan": plan, "eval": evaluate, "report": report}
    judging: Commands = {"verify": verify, "audit": audit, "compare": compare, "power": power, "diagnose": diagnose}
    shared: Commands = {"export": export, "push": push, "card": card}
    others: Commands = {"view": view, "lab": lab, "league": league, "serve": serve, "serve-env": serve_env}
    tasks: Commands = {"list": tasks_list, "show": tasks_show, "sample": tasks_sample, "make": tasks_make}
    papers: Commands = {"list": papers_list, "show": papers_show}
    citations: Commands = {
        "check": citations_check,
        "expansions": citations_expansions,
        "train": citations_train,
        "train-retriever": citations_train_retriever,
    }
    return {**top, **first, **judging, "train-head": train_head, "train-prm": train_prm, **shared, **others}, {
        "tasks": ("Browse tasks, and make new ones.", tasks),
        "citations": ("Find claims that their sources do not support.", citations),
        "papers": ("Browse the papers.", papers),
    }


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the ``assay`` command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        from assay.version import __version__

        print(f"assay {__version__}")
        return
    top, nested = commands()
    # Above all commands there is a line for each; what else one says stands in its own help.
    app = _app(top, brief=not arguments or arguments[0].startswith("-"))
    for name, (about, inner) in nested.items():
        app.command(_app(inner), name=name, help=about)
    if arguments in (["tasks"], ["papers"]):
        arguments = [*arguments, "list"]
    try:
        code = _guarded(lambda: app.cli(prog="assay", description="RL with verifiable rewards.", args=arguments))
    except SystemExit as stop:  # of the parser: errors of ours become codes
        if stop.code == 2 and (dashed := _dashed(arguments)) is not None:
            print(f"assay: settings of a recipe have no dashes: {dashed}", file=sys.stderr)
        elif stop.code == 2 and (late := _late(arguments)) is not None:
            print(f"assay: settings of a recipe stand before the first --option; move {late}", file=sys.stderr)
        raise
    sys.exit(code)


def _dashed(arguments: list[str]) -> str | None:
    """Return the first setting that is written as an option, ``--train.steps=5`` or ``--train.steps 5``, as it should
    be."""
    for place, text in enumerate(arguments):
        if re.fullmatch(r"--[a-z_]+(?:\.[a-z_]+)+(?:=.*)?", text):
            setting = text.removeprefix("--")
            return setting if "=" in setting else f"{setting}={''.join(arguments[place + 1 : place + 2])}"
    return None


def _late(arguments: list[str]) -> str | None:
    """Return the first setting, ``train.steps=5``, that stands behind an option."""
    options = [place for place, text in enumerate(arguments) if text.startswith("--")]
    behind = arguments[options[0] + 2 :] if options else []
    return next((text for text in behind if re.match(r"[a-z_]+(?:\.[a-z_]+)*=", text)), None)


def _app(commands: Commands, brief: bool = False) -> tyro.extras.SubcommandApp:
    app = tyro.extras.SubcommandApp()
    for name, command in commands.items():
        app.command(name=name, help=_first(command) if brief else None)(command)
    return app


def _first(command: Callable[..., int]) -> str:
    """Return the first sentence of what a command says of itself."""
    return " ".join((command.__doc__ or "").partition("\n\n")[0].split())


def _guarded(command: Callable[[], int]) -> int:
    """Run a command; an error of ours, or an interrupt, ends it with one line and an exit code."""
    try:
        code = command()
        # Here, not when the interpreter ends, where a reader that went away would make a trace.
        sys.stdout.flush()
        return code
    except AssayError as error:
        print(f"assay: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("assay: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does.
        _drop_output()
        return 0
    except OSError as error:
        # What no command expected of the system: a folder that may not be entered, a limit, a device that is full.
        _drop_output()
        where = f"{error.filename}: " if error.filename is not None else ""
        print(f"assay: {where}{error.strerror or error}; mend that, or name another place", file=sys.stderr)
        return 1


def _drop_output() -> None:
    """Let what is left in the buffer of standard output go nowhere when the interpreter ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ValueError:  # it has been replaced by something that is no file
        return
