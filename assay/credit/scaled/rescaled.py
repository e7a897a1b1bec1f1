"""What credits that rescale another's advantages have of it."""

from __future__ import annotations

from typing import Any

from assay.registry import build


class Rescaled:
    """A credit whose ``credit`` gives the advantages that it multiplies: in what it needs and reads it is like that."""

    __slots__ = ()
    credit: Any

    def __post_init__(self) -> None:
        self.credit = build("credit", self.credit)

    @property
    def members(self) -> list[Any]:
        return [self.credit]

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset(getattr(self.credit, "needs", ()))

    @property
    def group_relative(self) -> bool:
        return bool(getattr(self.credit, "group_relative", False))

    @property
    def level(self) -> str:
        return str(getattr(self.credit, "level", "response"))

    @property
    def summary(self) -> dict[str, str]:
        return dict(getattr(self.credit, "summary", {}))
