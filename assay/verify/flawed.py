"""A verifier with known faults: how does a method stand what its verifier gets wrong?"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.spans import Span
from assay.verify.base import Verifier, answer_place
from assay.verify.guard import judge
from assay.verify.kind import check_ready
from assay.verify.make import make_verifier


@part("verify", "flawed")
@dataclass(frozen=True, slots=True)
class Flawed:
    """What another verifier says, with errors at known rates and a bonus for length.

    A wrong response is called right with probability ``false_positive``, a right one wrong with ``false_negative``. The
    draw is a hash of seed, task and response: equal responses to a task share their verdict, as with the errors of real
    verifiers, and a run repeats itself. An error turns the score s into 1 - s. Then the score becomes
    (1 - length) s + length min(1, characters / limit), whoever is right; ``passed`` is not touched by that. Parts and
    feedback are left out, which would give the truth away. An abstention stays one.

    Meant for ``tasks.train_verify``, which leaves what is measured as it is.

    Args:
        verifier: the other one, see :func:`~assay.verify.make.make_verifier`; ``None`` goes by each task's kind.
        false_positive, false_negative: in [0, 1].
        length: weight of the bonus in [0, 1].
        limit: characters at which the bonus is whole, at least 1.
        seed: of the errors.

    Raises:
        UsageError: when made, for an option out of range.
    """

    verifier: Any = None
    false_positive: float = 0.0
    false_negative: float = 0.0
    length: float = 0.0
    limit: int = 256
    seed: int = 0
    _made: Verifier = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("false_positive", "false_negative", "length"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"verifier 'flawed': {name} {getattr(self, name):g} must be in [0, 1]")
        if self.limit < 1 or self.seed < 0:
            raise UsageError(f"verifier 'flawed': limit {self.limit} must be at least 1, seed {self.seed} at least 0")
        object.__setattr__(self, "_made", make_verifier(self.verifier))

    def __call__(self, task: Task, response: str) -> Verdict:
        said = judge(self._made, task, response)
        if said.passed is None:
            return said
        score, passed = said.score, said.passed
        if self._chance(task, response) < (self.false_negative if passed else self.false_positive):
            score, passed = 1 - score, not passed
        score = (1 - self.length) * score + self.length * min(1.0, len(response) / self.limit)
        return Verdict(score, passed)

    def _chance(self, task: Task, response: str) -> float:
        """Return a number, uniform on [0, 1), that belongs to the seed, the task's content and the response."""
        text = json.dumps([self.seed, task.question, response])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) / 2**64

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`: where the other verifier reads the answer."""
        return answer_place(self._made, task, response)

    def ready(self) -> None:
        """Raise UsageError where this machine lacks what the other verifier needs."""
        check_ready(self._made)
