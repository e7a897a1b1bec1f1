"""The recipe's table ``[model.control]``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class ControlConfig(BaseModel):
    """A policy of numbers: what world it is for, and what its decisions are."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    environment: str | dict[str, Any] = "point_mass"
    """Played by numbers: its spaces say how many go in and out. A name, or a table with ``name`` and options."""
    decisions: Literal["gaussian", "bins"] = "gaussian"
    """``gaussian``: a step is one decision, a vector from a normal distribution; ``bins``: a decision for each level
    and dimension, one of so many parts of what is left of an interval."""
    hidden: list[Annotated[int, Field(gt=0, le=2**16)]] = [256, 256]
    """Widths of the layers."""
    levels: int = Field(3, gt=0, le=16)
    """Times that the bins are divided."""
    bins: int = Field(5, gt=1, le=1024)
    """Parts of an interval."""
    alpha: float = Field(0.001, gt=0)
    """Temperature of the bins' values, see :mod:`assay.policies.control.binned`."""
    conditioned: bool = True
    """Whether a bin is chosen in view of those chosen before it in the step."""
