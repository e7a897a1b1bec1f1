"""What a recipe or a caller may write where a reward is wanted."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from assay.errors import UsageError
from assay.from_file import is_reference
from assay.registry import build
from assay.rewards.base import RewardPart
from assay.rewards.function import FunctionReward, load_function


def reward_of(spec: Any) -> RewardPart:
    """Return the reward that ``spec`` describes.

    Args:
        spec: a part's name, a table with ``name`` and options, ``"path/to/file.py:name"``, a table with ``function``
            and no name, a function of the user's, a part already made, or a list of these: a weighted sum, see
            :class:`assay.rewards.shaping.weighted.WeightedSum`.

    Raises:
        UsageError: none of these, or something does not fit.
    """
    if isinstance(spec, str) and is_reference(spec):
        made = load_function(spec)
        return build("reward", spec) if inspect.isclass(made) else FunctionReward(made)
    if isinstance(spec, Mapping) and "name" not in spec:
        if "function" not in spec:
            raise UsageError(
                "a reward's table needs a name, of a part, or a function, 'file.py:NAME'; it has "
                f"{', '.join(map(str, spec)) or 'nothing'}"
            )
        return build("reward", {"name": "function", **spec})
    if isinstance(spec, str | Mapping):
        return build("reward", spec)
    if isinstance(spec, Sequence):
        return build("reward", {"name": "weighted", "terms": spec})
    if not callable(spec):
        raise UsageError(f"reward is a {type(spec).__name__}; give a function, a reward part or 'file.py:name'")
    return spec if is_part(spec) else FunctionReward(spec)


def is_part(reward: Any) -> bool:
    """Whether a callable is a reward part, whose only parameter is the batch."""
    try:
        return list(inspect.signature(reward).parameters) == ["batch"]
    except (TypeError, ValueError):
        return False


def name_of(spec: Any) -> str:
    """Return what the reward that ``spec`` describes is called in the log, unless it is given another name."""
    if isinstance(spec, Mapping):
        spec = spec.get("name", "function") if spec.get("name", "function") != "function" else spec.get("function", "")
    if isinstance(spec, str):
        return spec.rpartition(":")[2] if is_reference(spec) else spec
    return str(getattr(spec, "name", None) or getattr(spec, "__name__", None) or type(spec).__name__)
