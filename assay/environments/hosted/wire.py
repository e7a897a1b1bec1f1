"""What an environment's methods take and return, as it travels between processes.

What goes to an environment is pickled. What comes back is JSON, read into the records it stands for: a process in which
a policy acts is not trusted to say which code is to run here.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from assay.environments.base import Action, Agreement, Observation, Step
from assay.types import Verdict

RETURNS: dict[str, Any] = {
    "reset": Observation,
    "step": Step,
    "verdict": Verdict,
    "judge": Verdict,
    "gold": tuple[Action, ...],
    "attacks": tuple[tuple[Action, ...], ...],
    "compare": Agreement,
    "snapshot": bytes,
    "state_json": Any,
}
"""Of the methods that return something; what a method is not asked for by name it cannot be asked for."""
METHODS = frozenset({*RETURNS, "restore", "close"})
OPTIONAL = ("judge", "gold", "attacks", "compare", "snapshot", "restore", "state_json")
"""Methods that some environments have."""


@functools.cache
def _adapter(method: str) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    # In a list, because an adapter of a dataclass by itself takes no configuration.
    made: Any = types.GenericAlias(list, RETURNS[method])
    return TypeAdapter(
        made,
        config=ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants"),
    )


def packed(method: str, value: Any) -> bytes:
    """Return what ``method`` returned as JSON.

    Raises:
        ValueError: JSON has no such value.
    """
    if method not in RETURNS:
        return b"[null]"
    made: bytes = _adapter(method).dump_json([value], warnings=False)
    return made


def unpacked(method: str, data: bytes) -> Any:
    """Return the value that :func:`packed` wrote.

    Raises:
        ValueError: it is not what the method is to return.
    """
    return _adapter(method).validate_json(data)[0] if method in RETURNS else None
