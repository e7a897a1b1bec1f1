r"""Labelled cases for auditing verifiers: answers that are right or wrong by construction.

A family draws an exact object (a fraction, a set, a polynomial, a date), writes it in many ways (label true), and
writes others that differ from it as objects (label false). No verifier has a say in a label.

    for case in stream(seed=0):                      # endless, balanced over families and labels
        verifier(case.task(), case.response).passed == case.label

    cases(0, 100, ["echo"])                          # a hundred of one family

The rule of the labels: the mark is the commitment. A marked right value is right whatever prose says beside it; a
response without a mark is right only for a verifier that takes the last value (``Case.unmarked`` says so).

``values/`` holds the families of values, one kind of mathematics to a file, with their words in ``tables.toml``.
``responses.py`` makes whole responses from templates: ``shells.toml`` is what honest ones put around an answer,
``cheats.toml`` a family for each kind of response that earns nothing. A module of ``values`` that calls
:func:`~assay.audit.generate.base.family` adds a family; :func:`load` adds a folder of such modules from elsewhere.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import pkgutil
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from assay.audit.case import Case
from assay.audit.generate import responses, values
from assay.audit.generate.base import FAMILIES, LAST, REFUSE, Draw, family, find
from assay.audit.generate.exact import show
from assay.errors import UsageError

__all__ = ["Case", "Draw", "case", "cases", "families", "family", "load", "stream"]

ATTEMPTS = 100


@functools.cache
def _discover() -> None:
    for module in pkgutil.iter_modules(values.__path__, f"{values.__name__}."):
        importlib.import_module(module.name)


def load(folder: str | Path) -> None:
    """Add the families in a folder of modules, as if they were in ``values``; raise UsageError if it is none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder of families of cases")
    if str(folder) not in values.__path__:
        values.__path__.append(str(folder))
    importlib.invalidate_caches()
    _discover.cache_clear()
    _discover()


def families() -> dict[str, str]:
    """Return every family's name with one line on what it covers, sorted by name."""
    _discover()
    return {name: FAMILIES[name].doc for name in sorted(FAMILIES)}


def case(family_name: str, seed: int, number: int, label: bool) -> Case:
    """Make one case: the same for the same arguments, whatever other families there are."""
    _discover()
    chosen = find(family_name)
    for attempt in range(ATTEMPTS):
        rng = random.Random(f"{family_name}/{seed}/{number}/{label}/{attempt}")
        draw = chosen.draw(rng)
        answer = draw.pick(label, rng)
        if answer is None:
            continue
        response, shell, holds = answer.text, "whole", answer.holds
        if answer.form != "whole":
            response, around = responses.wrap(answer, draw, rng)
            shell, holds = around.style, (REFUSE, LAST) if around.marked or not label else (LAST,)
        said = None if answer.value is None else show(answer.value)
        return Case(
            id=f"{family_name}/{seed}/{number}/{'right' if label else 'wrong'}",
            question=draw.question,
            reference=draw.reference,
            response=response,
            label=label,
            family=family_name,
            kind=answer.kind,
            answer=answer.said if answer.form == "whole" else answer.text,
            verifier=draw.verifier,
            unmarked=holds,
            counted=chosen.counted,
            meta={"gold": show(draw.gold), "said": said, "form": answer.form, "shell": shell},
        )
    raise ValueError(f"family {family_name!r} made no {label} case in {ATTEMPTS} attempts")


def stream(seed: int, families: Sequence[str] | None = None, unmarked: str | None = None) -> Iterator[Case]:
    """Yield cases without end, by turns of family and label; every prefix of ``2 * len(families)`` is balanced.

    Args:
        seed: of everything random.
        families: names of families; all by default.
        unmarked: leave out the cases whose label does not hold for a verifier with this setting of ``unmarked``,
            ``refuse`` or ``last``; the balance is then only nearly exact.

    Raises:
        UsageError: a family is unknown, or ``unmarked`` is neither.
    """
    _discover()
    chosen = sorted(FAMILIES) if families is None else [find(name).name for name in families]
    if not chosen:
        raise UsageError("no families of cases were chosen")
    if unmarked not in (None, REFUSE, LAST):
        raise UsageError(f"unmarked is {REFUSE!r} or {LAST!r}, not {unmarked!r}")
    for number in itertools.count():
        for index, name in enumerate(chosen):
            made = case(name, seed, number, (number + index) % 2 == 0)
            if unmarked is None or unmarked in made.unmarked:
                yield made


def cases(seed: int, n: int, families: Sequence[str] | None = None, unmarked: str | None = None) -> list[Case]:
    """Return the first ``n`` cases of :func:`stream`."""
    return list(itertools.islice(stream(seed, families, unmarked), n))
