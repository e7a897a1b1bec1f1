"""assay: reinforcement learning with verifiable rewards.

``assay.train(model=..., tasks=..., method=...)`` trains; the nouns (:class:`Task`, :class:`Verdict`, ...) are here too.
Names load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from assay.version import __version__ as __version__

if TYPE_CHECKING:
    from assay.api import Result, train
    from assay.batch import Batch, Loss, Reward
    from assay.errors import AssayError, RunError, UsageError
    from assay.method import Method, make_method
    from assay.training.callbacks import Callback
    from assay.types import Ask, Episode, Group, Task, Verdict

_HOME = {
    "Ask": "assay.types",
    "AssayError": "assay.errors",
    "Batch": "assay.batch",
    "Callback": "assay.training.callbacks",
    "Episode": "assay.types",
    "Group": "assay.types",
    "Loss": "assay.batch",
    "Method": "assay.method",
    "Result": "assay.api",
    "Reward": "assay.batch",
    "RunError": "assay.errors",
    "Task": "assay.types",
    "UsageError": "assay.errors",
    "Verdict": "assay.types",
    "make_method": "assay.method",
    "train": "assay.api",
}

__all__ = [
    "Ask",
    "AssayError",
    "Batch",
    "Callback",
    "Episode",
    "Group",
    "Loss",
    "Method",
    "Result",
    "Reward",
    "RunError",
    "Task",
    "UsageError",
    "Verdict",
    "make_method",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'assay' has no attribute {name!r}")
