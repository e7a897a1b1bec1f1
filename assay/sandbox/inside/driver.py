"""Running a Python program in this process, the way the interpreter runs a script; it never returns.

The program shares the process with this code and can change all of it. That is why nothing here knows a right answer:
values go out, and are compared elsewhere.
"""

from __future__ import annotations

import atexit
import builtins
import io
import linecache
import os
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import codec

NAME = "main.py"
RESULT = 3
"""The descriptor that results of calls are written to."""


def run(job: Mapping[str, Any], paths: list[str]) -> NoReturn:
    """Run the script ``job["source"]``."""
    namespace = prepare(job, paths)
    _leave(lambda: exec(compile(job["source"], NAME, "exec"), namespace))


def call(job: Mapping[str, Any], paths: list[str]) -> NoReturn:
    """Run the script as a module, then call its function with each of ``job["calls"]`` and write what comes of it."""
    namespace = prepare(job, paths, "solution")

    def work() -> None:
        exec(compile(job["source"], NAME, "exec"), namespace)
        owner, _, method = job["function"].rpartition(".")
        owner = owner or _owner(namespace, method, job["method_of"])
        if owner:
            make, name = namespace[owner], method
        elif job["function"] in namespace:
            make, name = None, job["function"]
        else:
            raise NameError(f"the program defines no {job['function']!r}")
        for args, kwargs in codec.loads(job["calls"]):
            start = time.process_time()
            try:
                # A fresh object for each call: state left by one must not be what another is judged by.
                function = getattr(make(), name) if make is not None else namespace[name]
                value = function(*args, **kwargs)
                spent = time.process_time() - start
                line = f'{{"s":{spent!r},"v":{codec.dumps(value)}}}\n'
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                spent = time.process_time() - start
                line = f'{{"s":{spent!r},"e":{codec.dumps(_one_line(error))}}}\n'
            data = line.encode()
            while data:
                data = data[os.write(RESULT, data) :]

    _leave(work)


def _owner(namespace: Mapping[str, Any], name: str, owner: str) -> str:
    """Return ``owner`` if ``name`` is a method of it rather than a function of the program's own."""
    kind, function = namespace.get(owner), namespace.get(name)
    own = getattr(function, "__module__", None) == namespace["__name__"]
    return owner if isinstance(kind, type) and hasattr(kind, name) and not own else ""


def _one_line(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:
        text = "?"
    return f"{type(error).__name__}: {text}"[:500].splitlines()[0]


def prepare(job: Mapping[str, Any], paths: list[str], name: str = "__main__") -> dict[str, Any]:
    main = types.ModuleType(name)
    main.__dict__.update(__builtins__=builtins, __file__=NAME)
    for mine in ("codec", "driver", "jail", "messages", "monitor", "program", "zygote"):
        sys.modules.pop(mine, None)
    sys.modules["__main__"] = sys.modules[name] = main
    sys.argv[:] = [NAME, *job["args"]]
    sys.path[:] = [os.getcwd(), *paths]
    if job["interactive"]:
        # The interpreter's own streams were made on a file, and hold lines back.
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), "utf-8", "surrogateescape")
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    source = job["source"]
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    return main.__dict__


def _leave(work: Callable[[], object]) -> NoReturn:
    """Do ``work`` and end the process as the interpreter would: threads, exit handlers, buffers, exit code."""
    stdout, stderr, code = sys.stdout, sys.stderr, 0
    try:
        try:
            work()
        except SystemExit as leaving:
            code = _code(leaving.code)
        except BaseException as error:
            code = 1
            skip = error.__traceback__
            while skip is not None and skip.tb_frame.f_code.co_filename == __file__:
                skip = skip.tb_next
            traceback.print_exception(type(error), error, skip, file=stderr)
        # Where there is nothing to wait for, or to be told, the call would only cost time.
        if threading.active_count() > 1 or getattr(threading, "_threading_atexits", True):
            threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:
        code = code or 1
    if not flush(sys.stdout, stdout, stderr):
        # What CPython exits with when the last flush fails.
        code = code or 120
    os._exit(code)


def flush(*streams: Any) -> bool:
    good = True
    for stream in streams:
        try:
            stream.flush()
        except BaseException:
            good = False
    return good


def _code(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1
