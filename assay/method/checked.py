"""What parts return, looked at where they do: a wrong shape would broadcast, or fail far from whoever made it."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assay.batch import Batch, Loss, Reward
from assay.errors import AssayError, RunError, UsageError

OWN = Path(__file__).resolve().parents[1]


@contextmanager
def blamed(seam: str, part: Any) -> Iterator[None]:
    """Say of an error in a user's part which part it was, and where; errors in those of assay itself stay as they are.

    Raises:
        RunError: the part raised anything but an error of assay's.
    """
    try:
        yield
    except AssayError:
        raise
    except Exception as error:
        file = _file(part)
        if file is None or OWN in file.parents:
            raise
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == file]
        where = f" at {file.name}:{lines[-1]}" if lines else f" when assay used what {file.name} returned"
        said = " ".join(str(error).split())[:300]
        raise RunError(f"{seam} {name_of(part)} raised {type(error).__name__}{where}: {said}") from error


def checked_reward(part: Any, found: Any, batch: Batch) -> Reward:
    """Return what a reward gave, if it is one number for each sample, known wherever it is said to be.

    Raises:
        UsageError: another type or shape.
        RunError: a number is not finite.
    """
    who = f"reward {name_of(part)}"
    if not isinstance(found, Reward):
        raise UsageError(f"{who} returned a {type(found).__name__}; return assay.Reward(values), values (N,)")
    shapes = {"values": (len(batch),), "tokens": tuple(batch.tokens.shape), "valid": (len(batch),)}
    for field, shape in shapes.items():
        value = getattr(found, field)
        if value is not None or field == "values":
            _shaped(f"{who}, {field}", value, shape, floating=field != "valid")
    for name, term in found.terms.items():
        _shaped(f"{who}, term {name!r}", term, (len(batch),), floating=False)
    known = torch.ones(len(batch), dtype=torch.bool) if found.valid is None else found.valid
    _finite(who, found.values, known, batch, "valid=... leaves out samples without one")
    return found


def checked_weights(part: Any, found: Any, batch: Batch) -> Tensor:
    """Return the weights that a selection gave, if they are one number of 0 or more for each sample.

    Raises:
        UsageError: another type or shape.
        RunError: a number is negative, which would turn its sample's gradient round, or not finite.
    """
    who = f"select {name_of(part)}"
    weights = _shaped(who, found, (len(batch),), floating=True)
    _finite(who, weights, torch.ones_like(weights, dtype=torch.bool), batch, "0 leaves a sample out")
    if len(batch) and float(weights.min()) < 0:
        raise RunError(f"{who} gave a weight of {float(weights.min()):g}; 0 leaves a sample out, and none is below")
    return weights


def checked_advantages(part: Any, found: Any, batch: Batch) -> Tensor:
    """Return the advantages that a credit gave, if they are one number for each token.

    Raises:
        UsageError: another type or shape.
        RunError: one that is learned from is not finite.
    """
    who = f"credit {name_of(part)}"
    advantages = _shaped(who, found, tuple(batch.tokens.shape), floating=True)
    _finite(who, advantages, batch.mask & batch.active[:, None], batch, "0 learns nothing from a token")
    return advantages


def checked_loss(part: Any, found: Any) -> Loss:
    """Return what an objective gave, if it is a number with a gradient, and numbers to log.

    Raises:
        UsageError: another type or shape, no gradient, or metrics that are no numbers or called as the update's own.
    """
    who = f"objective {name_of(part)}"
    if not isinstance(found, Loss):
        raise UsageError(f"{who} returned a {type(found).__name__}; return assay.Loss(value, metrics)")
    if not isinstance(found.value, Tensor) or found.value.ndim:
        shape = f" {tuple(found.value.shape)}" if isinstance(found.value, Tensor) else ""
        raise UsageError(f"{who}: its loss is a {type(found.value).__name__}{shape}; return a tensor of one number")
    if not found.value.requires_grad:
        raise UsageError(f"{who}: its loss has no gradient; it depends on logprobs by a path that nothing detaches")
    for name, value in found.metrics.items():
        if not isinstance(value, Real):
            raise UsageError(f"{who}: its metric {name!r} is a {type(value).__name__}; make it a float")
        if name in ("loss", "grad_norm"):
            raise UsageError(f"{who}: its metric {name!r} has the name of the update's own; call it otherwise")
    return found


def name_of(part: Any) -> str:
    """Return what a part is called: a class's name, or a function's."""
    return getattr(part, "__name__", type(part).__name__)


def _shaped(who: str, value: Any, shape: tuple[int, ...], floating: bool) -> Tensor:
    wanted = f"a tensor {'(N,)' if len(shape) == 1 else '(N, T)'}, here {shape}"
    if not isinstance(value, Tensor):
        raise UsageError(f"{who}: returned a {type(value).__name__}; return {wanted}")
    if tuple(value.shape) != shape:
        raise UsageError(f"{who}: returned a tensor {tuple(value.shape)}; return {wanted}")
    if floating and not value.is_floating_point():
        raise UsageError(f"{who}: returned numbers of type {value.dtype}; return floating-point ones")
    return value


def _finite(who: str, values: Tensor, where: Tensor, batch: Batch, hint: str) -> None:
    wrong = where.to(values.device) & ~values.isfinite()
    if bool(wrong.any()):
        at = wrong.nonzero()[0].tolist()
        token = f", token {at[1]}" if len(at) > 1 else ""
        raise RunError(
            f"{who} gave {float(values[tuple(at)]):g} for {int(wrong.sum())} of {int(where.sum())}, first for sample "
            f"{at[0]} (task {batch.tasks[at[0]].id}){token}; {hint}"
        )


def _file(part: Any) -> Path | None:
    try:
        found = inspect.getsourcefile(part if inspect.isroutine(part) else type(part))
    except TypeError:
        return None
    return None if found is None else Path(found).resolve()
