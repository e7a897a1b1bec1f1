"""What of a method cannot act: told before the run where tasks show it, and from the first step's own rollouts else.

The policy generates nothing for it, so that a run is bit for bit what it would be without; a server that a part asks
is asked for one token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import held
from assay.rewards.function import FunctionReward
from assay.rollout.recorded import Recorded, recorded
from assay.rollout.surgery.base import helpers
from assay.signals.answer_tokens import AnswerTokens
from assay.signals.base import Signal
from assay.signals.likelihood import ReferenceLikelihood, text_of_reference
from assay.signals.reasoning import ANSWER, Sections
from assay.signals.reread.second_view import SecondView
from assay.types import Task
from assay.verify.base import Verifier
from assay.verify.guard import judge

BOUND = r"(weight in |log-ratio in )?\[[^\]]*\](, gradient kept|, one side)?"
"""What an objective says of itself that does nothing but bound ratios."""

LOOKED_AT = 4
"""Tasks that are looked at before a run."""


def before(
    method: Method, tasks: Sequence[Task], verifier: Verifier, rollout: Any = None, steps: int | None = None
) -> list[str]:
    """Return a line for each part that comes down to the plain verdict on tasks such as these.

    There is one too for a rollout that would begin to act, by its ``after``, when the ``steps`` of the run are over. A
    part that reads more than a verdict's score, if there is more, says what in ``reads_more``, and whether there is
    nothing of it in ``plain(task, verdict)``. Each task is judged once, on its worked solution or an empty response.

    Raises:
        UsageError: a part reads the reference answer of tasks none of which has one that is a text or a number; a
            rollout helps with hints that no task has; a part asks a server that does not answer, or cannot act on
            these tasks (``check_tasks``).
    """
    asked = [(seam, part, engine) for seam, part in method.parts.items() for engine in _asked(part)]
    # A rollout is made from its name once the run is; what it holds besides a teacher, such as all tasks, asks nobody.
    for seam, part, engine in (*asked, *(("rollout", rollout, engine) for engine in _asked(rollout, depth=1))):
        try:
            engine.reach()
        except UsageError as error:
            raise UsageError(f"method.{seam} {type(part).__name__} asks a model: {error}") from None
    some = list(islice(tasks, LOOKED_AT))
    for part in method.parts.values():
        if hasattr(part, "check_tasks"):
            part.check_tasks(some)
    late = []
    for helper in helpers(rollout):
        helper.check_tasks(list(tasks))
        if steps is not None and 0 < steps <= (after := getattr(helper, "after", 0)):
            late.append(
                f"rollout {_name(helper)} changes nothing before step {after}, and there are {steps}; set after"
            )
    if some and not any(text_of_reference(task) for task in some):
        for signal in _signals(method):
            if isinstance(signal, ReferenceLikelihood):
                raise UsageError(
                    f"the method reads how likely the reference answer is (signal {signal.name!r}), and task "
                    f"{some[0].id} has none that is a text or a number; give its tasks one, or take another method"
                )
    readers = [(seam, part) for seam, part in method.parts.items() if hasattr(part, "reads_more")]
    if not readers or not some:
        return late
    verdicts = [judge(verifier, task, task.solution or "") for task in some]
    judged = [(task, verdict) for task, verdict in zip(some, verdicts, strict=True) if verdict.passed is not None]
    return late + [
        f"method.{seam} {type(part).__name__} is the plain verdict on these tasks: {part.reads_more}"
        for seam, part in readers
        if judged and all(part.plain(task, verdict) for task, verdict in judged)
    ]


def check_pairs(objective: Any, tasks: Sequence[Task], rollout: Any) -> None:
    """Raise UsageError for an objective that learns from pairs, of tasks with none on record."""
    of_pairs = hasattr(objective, "pair_loss") or hasattr(getattr(objective, "loss", None), "pair_loss")
    if not (of_pairs and isinstance(rollout, Recorded)) or any(map(comparable, tasks)) or not tasks:
        return
    raise UsageError(
        f"objective {_name(objective)} learns from pairs of responses, and no task has two on record of which one is "
        "better: rows need chosen and rejected, or responses with a reward each; objective sft learns from single ones"
    )


def comparable(task: Task) -> bool:
    """Whether two of a task's recorded responses differ in reward, or are for a verifier to judge."""
    rewards = [reward for _, reward in recorded(task)]
    return len(rewards) > 1 and (None in rewards or len(set(rewards)) > 1)


def unused_bound(objective: Any) -> str | None:
    """Say of an objective that bounds ratios otherwise than GRPO that it does not where every ratio is 1."""
    words: tuple[str, ...] = getattr(objective, "words", tuple)()
    if not words or words == ClippedSurrogate().words() or ";" in words[0] or not re.fullmatch(BOUND, words[1]):
        return None
    return (
        f"objective {_name(objective)} bounds ratios ({words[1]}), and with train.mini_batches = 1 and train.epochs = "
        "1 every ratio is 1: the bound acts where a step has several updates"
    )


def at_first(method: Method, batch: Batch, rollout: Any = None) -> list[str]:
    """Return a line for each part that the first step's valued batch shows not to act, and for each rollout that could
    do nothing for the groups it was to change."""
    idle = [why for helper in helpers(rollout) if (why := getattr(helper, "idle", lambda: None)())]
    return [*idle, *(_silent(method, batch) if len(batch) else ())]


def _silent(method: Method, batch: Batch) -> Iterator[str]:
    abstained = [v.feedback for v in batch.verdicts if v.passed is None]
    if len(abstained) == len(batch):
        yield f"every verdict of the first step is an abstention: {abstained[0]}"
        return
    if all(episode.stop == "context" and not len(episode.tokens) for episode in batch.episodes):
        yield "what the environment says first fills the model's context, so nobody has a turn; take a longer context"
    if not bool(batch.valid.any()):
        yield f"reward {_name(method.reward)} gave no response of the first step a reward"
    elif (left := int((~batch.valid).sum()) - len(abstained)) > 0:
        drops = getattr(method.reward, "skips", None) is False
        yield (
            f"reward {_name(method.reward)} gave {left} of {len(batch)} responses of the first step no reward, though "
            "they were judged: they are left out of the update"
            + (', whatever its other terms say; untold = "skip" leaves out the term alone' if drops else "")
        )
    if getattr(method.reward, "of_turns", False) and not any(e.turns for e in batch.episodes):
        yield f"reward {_name(method.reward)} is of turns, and no response has any: set rollout multi_turn"
    for signal in sorted(_signals(method), key=lambda s: s.name):
        if (why := _empty(signal, batch)) is not None:
            yield f"signal {signal.name!r} is empty in the first step: {why}"
    replays = getattr(method.select, "replays_alone", False)
    if not replays and bool(batch.valid.any()) and not bool((batch.weights[batch.valid] != 0).any()):
        yield f"select {_name(method.select)} left out every response of the first step"


def _empty(signal: Signal, batch: Batch) -> str | None:
    """Why nothing was found where a signal looks, or ``None`` where something was."""
    found = batch.signals.get(signal.name)
    if found is None:
        return None
    mark = getattr(signal, "open", None) or getattr(signal, "rules", None)
    where = f"no response has an answer marked by {mark!r}" if mark else "the verifier reads no answer in any response"
    if isinstance(signal, AnswerTokens):
        return None if bool(found.any()) else where
    if isinstance(signal, Sections):
        return None if bool((found == ANSWER).any()) else where
    if isinstance(signal, SecondView):
        shown = bool(batch.signals["shown"].any())
        return None if shown else "there is nothing to show a teacher, or it leaves no room in the model's context"
    if isinstance(signal, ReferenceLikelihood):
        told = found.numel() > 0 and not bool(found.isnan().all())
        return None if told else f"{where}, or the reference does not fit into the model's context"
    return None


def _signals(method: Method) -> list[Signal]:
    return [need for need in method.needs if not isinstance(need, str)]


def _asked(part: Any, depth: int = 4) -> Iterator[Any]:
    """Yield what in a part is an engine that asks a server: it can be ``reach``ed."""
    if hasattr(part, "reach"):
        yield part
    elif depth and not isinstance(part, str | bytes | int | float | type(None) | Tensor | type):
        inner = part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple) else None
        for one in held(part).values() if inner is None else inner:
            yield from _asked(one, depth - 1)


def _name(part: Any) -> str:
    """Return a part's class, or the function that it was made of."""
    return part.name if isinstance(part, FunctionReward) else type(part).__name__
