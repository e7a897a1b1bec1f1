"""A disposable process that runs one module's functions under limits, started by :mod:`assay.verify.isolate.workers`.

Protocol: on stdin first a pickled ``(sys.path, module, setup, memory, writes)``, then pickled lists of ``(pickled
(function, arguments), processor seconds, wall seconds)``; on stdout one JSON line per call as soon as it is done,
``{"value": x}`` or ``{"error": "...", "cause": "..."}``. Replies are JSON because what comes back from a process that
read untrusted text is not unpickled.
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

SPENT = '{"error": "ran out of memory", "cause": "memory"}'
LONGEST = 64 << 20
"""Characters of the longest reply."""


def load(name: str, setup: tuple[Any, ...], memory: int, writes: bool) -> ModuleType:
    """Import the module, let it prepare, and set the limits that hold from then on."""
    module = importlib.import_module(name)
    getattr(module, "prepare", lambda: None)(*setup)
    # Where this process may write, it may also start programs, and those may need more address space: raising a soft
    # limit is allowed to them.
    limit(resource.RLIMIT_AS, memory, final=not writes)
    if not writes:
        limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_CORE, 0)
    return module


def limit(what: int, value: int, final: bool = True) -> None:
    """Set a limit; one inherited from the process that started this one is never raised."""
    _, most = resource.getrlimit(what)
    if most != resource.RLIM_INFINITY:
        value = min(value, most)
    resource.setrlimit(what, (value, value if final else most))


def reply(module: ModuleType, request: bytes) -> str:
    try:
        function, arguments = pickle.loads(request)
        line = json.dumps({"value": getattr(module, function)(*arguments)})
        return line if len(line) <= LONGEST else failure(f"a reply of {len(line)} characters", "memory")
    except MemoryError:
        return SPENT
    except BaseException as error:
        return failure(f"{type(error).__name__}: {error}"[:200], "raised")


def failure(reason: str, cause: str) -> str:
    return json.dumps({"error": reason, "cause": cause})


def main() -> None:
    # Whatever the functions print must not reach the pipe, nor may what they start hold it or eat the requests.
    requests, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for alarm in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(alarm, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM, signal.SIGPROF})

    sys.path[:], name, *limits = pickle.load(requests)
    module = failed = None
    try:
        module = load(name, *limits)
    except Exception as error:
        failed = failure(f"{name} could not be loaded: {type(error).__name__}: {error}"[:300], "unloaded")
    print("{}", file=out, flush=True)
    while True:
        try:
            calls = pickle.load(requests)
        except EOFError:
            return
        for request, processor, wall in calls:
            signal.setitimer(signal.ITIMER_PROF, processor)
            signal.setitimer(signal.ITIMER_REAL, wall)
            line = reply(module, request) if module is not None else failed
            print(line, file=out, flush=True)
            if line is SPENT:
                return
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
