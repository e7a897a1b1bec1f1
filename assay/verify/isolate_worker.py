"""A disposable process that runs one module's functions under limits, started by :mod:`assay.verify.isolate`.

Protocol: on stdin first a pickled ``(sys.path, module, memory)``, then one pickled ``(function, arguments, processor
seconds, wall seconds)`` per request; on stdout one JSON line per reply, ``{"value": x}`` or ``{"error": "..."}``.
Replies are JSON because what comes back from a process that read untrusted text is not unpickled.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import resource
import signal
import sys
from types import ModuleType
from typing import Any


def load(name: str, memory: int) -> ModuleType:
    """Import the module, let it prepare, and set the limits that hold from then on."""
    module = importlib.import_module(name)
    getattr(module, "prepare", lambda: None)()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return module


def reply(module: ModuleType, function: str, arguments: tuple[Any, ...]) -> str:
    try:
        return json.dumps({"value": getattr(module, function)(*arguments)})
    except MemoryError:
        return json.dumps({"error": "ran out of memory"})
    except BaseException as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}"[:200]})


def main() -> None:
    # Whatever the functions print must not reach the pipe.
    out = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for alarm in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(alarm, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM, signal.SIGPROF})

    sys.path[:], name, memory = pickle.load(sys.stdin.buffer)
    module = failed = None
    try:
        module = load(name, memory)
    except Exception as error:
        failed = json.dumps({"error": f"{name} could not be loaded: {type(error).__name__}: {error}"[:300]})
    print("{}", file=out, flush=True)
    while True:
        try:
            function, arguments, processor, wall = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, processor)
        signal.setitimer(signal.ITIMER_REAL, wall)
        line = reply(module, function, arguments) if module is not None else failed
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(line, file=out, flush=True)


if __name__ == "__main__":
    main()
