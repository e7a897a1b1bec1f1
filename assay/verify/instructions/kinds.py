"""The table of instruction kinds: an id, a check, and how its arguments are validated."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from assay.errors import AssayError
from assay.verify.instructions.passage import Passage

Relation = Literal["less than", "at least", "at most", "more than", "exactly"]
Check = Callable[..., bool]

KINDS: dict[str, Check] = {}
"""Instruction id to its check; ``check(passage, **arguments)`` says whether the passage follows the instruction."""


class BadInstruction(AssayError):
    """The task's instruction cannot be checked: unknown id or wrong arguments."""


class CannotTell(AssayError):
    """The check needs something that is not there (an optional package)."""


def kind(name: str) -> Callable[[Check], Check]:
    """Register a check under an instruction id."""

    def register(check: Check) -> Check:
        if name in KINDS:
            raise ValueError(f"instruction {name!r} is registered twice")
        KINDS[name] = check
        return check

    return register


def holds(count: int, relation: Relation, limit: int) -> bool:
    """Say whether ``count`` is in ``relation`` to ``limit``."""
    if relation == "less than":
        return count < limit
    if relation == "at most":
        return count <= limit
    if relation == "more than":
        return count > limit
    return count == limit if relation == "exactly" else count >= limit


def follows(name: str, arguments: Mapping[str, Any], passage: Passage) -> bool:
    """Say whether ``passage`` follows the instruction.

    Arguments that are ``None`` or not-a-number count as not given: tables fill empty cells with them.

    Raises:
        BadInstruction: unknown id; an argument is missing, unknown or of the wrong type.
        CannotTell: an optional package is missing.
    """
    from pydantic import ValidationError

    if name not in KINDS:
        raise BadInstruction(f"no instruction is called {name!r}")
    given = {k: v for k, v in arguments.items() if v is not None and not (isinstance(v, float) and math.isnan(v))}
    try:
        return bool(_validated(name)(passage, **given))
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInstruction(f"{name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except TypeError as error:
        raise BadInstruction(f"{name}: {error}") from None


@functools.cache
def _validated(name: str) -> Check:
    from pydantic import ConfigDict, validate_call

    return validate_call(config=ConfigDict(arbitrary_types_allowed=True, coerce_numbers_to_str=True))(KINDS[name])
