"""The attack suite: responses without a right final answer, for any verifier that reads text.

The families follow what was found to fool rule-based and model judges: openers and "master keys" (S072), thirteen
patterns of responses (S030), null models made from the judge's template (S138), gaming of a stated metric (S140), and
hostile input that a parser chokes on. The strings are assay's own, but for the ten master keys, which are S072's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from assay.audit.attacks import content, hostile, judges, pairwise  # noqa: F401  (they register their attacks)
from assay.audit.attacks.base import ATTACKS, Attack, Target
from assay.errors import UsageError, nearest
from assay.types import Task
from assay.verify.text.mentions import mentions

__all__ = ["Attack", "attacks", "describe"]


def describe() -> dict[str, str]:
    """Return the name of every attack with one line on what it tries."""
    return {name: known.doc.partition("\n")[0] for name, known in sorted(ATTACKS.items())}


def attacks(
    task: Task | str,
    reference: Any = None,
    wrong_answer: str = "",
    rng: random.Random | int = 0,
    *,
    names: Sequence[str] | None = None,
    size: int = 1_000_000,
    template: str | None = None,
) -> Iterator[Attack]:
    """Yield every attack on one task, the same for the same arguments.

    Args:
        task: the task, or its question.
        reference: the gold answer; by default the task's. Where it is not text it is shown as text.
        wrong_answer: an answer that is wrong for certain; attacks that need one are left out without it.
        rng: a generator or a seed.
        names: only these attacks.
        size: length in characters of the longest responses.
        template: a judge's prompt that holds ``{response}``, for attacks made to fit it; or that of a judge of pairs,
            with ``{question}``, ``{first}`` and ``{second}`` in this order.

    Raises:
        UsageError: an unknown name, or a template that shows no response.
    """
    if reference is None and isinstance(task, Task):
        reference = task.reference
    if isinstance(reference, list | tuple):
        reference = reference[0] if reference else None
    text = "" if reference is None else str(reference)
    if template is not None and "{response}" not in template and not pairwise.fits(template):
        raise UsageError(
            "the judge's template has no {response} in it, nor {question}, {first} and {second} in this order, so no "
            "attack can be made to fit it"
        )
    question = task.question if isinstance(task, Task) else task
    for name in sorted(ATTACKS) if names is None else names:
        if name not in ATTACKS:
            raise UsageError(f"no attack is called {name!r}{nearest(name, ATTACKS)}")
        known = ATTACKS[name]
        if known.quotes and not (text and wrong_answer):
            continue
        # A generator per attack, so that leaving one out does not change the others.
        seed = rng if isinstance(rng, int) else rng.getrandbits(64)
        target = Target(question, text, wrong_answer, random.Random(f"{seed}/{name}"), size, template)
        for response in known.make(target):
            if known.quotes or not mentions(response, text):
                yield Attack(name, response, known.expects)
