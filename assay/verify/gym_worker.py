"""A disposable process that runs reasoning-gym's scorers, started by :mod:`assay.verify.gym`.

Some of those scorers call ``eval`` or SymPy's ``parse_expr`` on the answer, and some never return on ``1e999999999``.
An answer is untrusted text, so it is scored here: with ``eval`` reading literals only, ``parse_expr`` restricted to
elementary functions, no file writable, bounded memory, and a kernel timer that ends the process.

Protocol: one pickled ``(dataset, config, entry, answer, seconds)`` per request on stdin; one JSON line per reply on
stdout, ``{"score": x}`` or ``{"error": "..."}``. The first line written says that imports are done.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import pickle
import re
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

MEMORY = 4 << 30

_FUNCTIONS = re.compile(r"a?(?:sin|cos|tan)h?|arc(?:sin|cos|tan)|cot|sec|csc|exp|log|ln|sqrt|abs|Abs|pi")
_WORD = re.compile(r"[A-Za-z_]\w*")


def harmless(text: str) -> bool:
    """Say whether ``text`` is plain algebra: numbers, one-letter symbols, elementary functions, nothing else."""
    if not text.isascii() or re.search(r"""["'\[\]{}:;@\\`]|\.\s*[A-Za-z_]""", text):
        return False
    return all(len(word) == 1 or _FUNCTIONS.fullmatch(word) for word in _WORD.findall(text))


def disarm() -> None:
    """Take ``eval`` and SymPy's unrestricted ``parse_expr`` from the modules that define scorers."""
    import sympy
    from reasoning_gym.factory import DATASETS

    parse = sympy.parse_expr

    @functools.wraps(parse)
    def guarded(text: str, *args: Any, **kwargs: Any) -> Any:
        if not harmless(text):
            raise ValueError("not plain algebra")
        return parse(text, *args, **kwargs)

    sympy.parse_expr = guarded
    for dataset, _ in DATASETS.values():
        names = vars(sys.modules[dataset.__module__])
        names["eval"] = ast.literal_eval
        if names.get("parse_expr") is parse:
            names["parse_expr"] = guarded


@functools.lru_cache(maxsize=256)
def scorer(dataset: str, config: str) -> Callable[..., Any]:
    """Return ``score_answer`` of a data set made with the JSON options ``config``."""
    from reasoning_gym.factory import create_dataset

    return create_dataset(dataset, **{**json.loads(config), "seed": 0, "size": 1}).score_answer


def reply(dataset: str, config: str, entry: dict[str, Any], answer: str) -> dict[str, Any]:
    try:
        return {"score": float(scorer(dataset, config)(answer, entry))}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def main() -> None:
    # Whatever a scorer prints must not reach the pipe.
    out = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    sys.dont_write_bytecode = True
    disarm()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    print("{}", file=out, flush=True)
    while True:
        try:
            dataset, config, entry, answer, seconds = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, seconds)
        line = json.dumps(reply(dataset, config, entry, answer))
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(line, file=out, flush=True)


if __name__ == "__main__":
    main()
