"""reasoning-gym's scorers, safe for untrusted answers; loaded in worker processes by :mod:`assay.verify.puzzles.gym`.

Some of those scorers call ``eval`` or SymPy's ``parse_expr`` on the answer, and some never return on ``1e999999999``.
Here ``eval`` reads literals only and ``parse_expr`` knows elementary functions only; the worker bounds time and memory.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import sys
from collections.abc import Callable
from typing import Any

_FUNCTIONS = re.compile(r"a?(?:sin|cos|tan)h?|arc(?:sin|cos|tan)|cot|sec|csc|exp|log|ln|sqrt|abs|Abs|pi")
_WORD = re.compile(r"[A-Za-z_]\w*")


def harmless(text: str) -> bool:
    """Say whether ``text`` is plain algebra: numbers, one-letter symbols, elementary functions, nothing else."""
    if not text.isascii() or re.search(r"""["'\[\]{}:;@\\`]|\.\s*[A-Za-z_]""", text):
        return False
    return all(len(word) == 1 or _FUNCTIONS.fullmatch(word) for word in _WORD.findall(text))


_ENORMOUS = re.compile(
    r"\d\.?[eE][-+]?0*[1-9]\d{4}"  # 1e99999
    r"|(?:\*\*|\^)[-+({\s]{0,9}\d{1,9}[)}\s]{0,9}(?:\*\*|\^)"  # 9**9**9
    r"|(?:\*\*|\^)[-+({\s]{0,9}\d{6}"  # 2**999999
    r"|\d{6}\s{0,9}!"  # 999999!
)


def enormous(text: str) -> bool:
    """Say whether ``text`` has a number that would take long to be written out: a tower of powers, an exponent."""
    return _ENORMOUS.search(text) is not None


def prepare() -> None:
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


def score(dataset: str, config: str, entry: dict[str, Any], answer: str) -> float:
    """Return what the data set's scorer gives ``answer``; whatever it raises is the caller's to report."""
    return float(scorer(dataset, config)(answer, entry))
