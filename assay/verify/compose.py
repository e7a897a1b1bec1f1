"""Verifiers made of verifiers, in the logic of three values: right, wrong, cannot tell.

========== ============================== ============================== =========================== ==================
part       right                          wrong                          abstains                    score
========== ============================== ============================== =========================== ==================
all_of     all are right                  any is wrong                   otherwise                   the lowest
any_of     any is right                   all are wrong                  otherwise                   the highest
weighted   mean score >= threshold        mean score < threshold         any does, or is left out    weighted mean
gated      gate right and then right      gate wrong, or then wrong      the one that decides does   0 or then's
first      the first that can tell says   the first that can tell says   all do                      the first's
ensemble   ``need`` or more are right     no longer can be right         otherwise                   share of right
========== ============================== ============================== =========================== ==================

So a wrong verdict stands whatever an abstaining neighbour in ``all_of`` might have said, as a right one does in
``any_of``. Scores are over the checks that do not abstain. A check's score is the part with its name (``None`` where
it abstains or was not run), and its own parts follow as ``name/part``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from assay.errors import UsageError, nearest
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.place import marked
from assay.verify.answer.spans import Span
from assay.verify.base import Locates, Verifier
from assay.verify.guard import judge
from assay.verify.kind import check_ready
from assay.verify.make import make_verifier

Checks = Mapping[str, Any] | Sequence[Any]
"""Verifiers by name, or a list of them to be named after what they are; each a name, a table or a callable."""


class _Composed:
    __slots__ = ()
    _made: dict[str, Verifier]

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`: where the first check that says so reads the answer."""
        told = [v for v in self._made.values() if isinstance(v, Locates)]
        if not told:
            return marked(response, fallback="none")
        return next((place for v in told if (place := v.answer(task, response)) is not None), None)

    def ready(self) -> None:
        """Raise UsageError where this machine lacks what one of them needs."""
        for verifier in self._made.values():
            check_ready(verifier)


@part("verify", "all_of")
@dataclass(frozen=True, slots=True)
class AllOf(_Composed):
    """Right iff every check is: wrong if one is wrong, whatever the others say; else abstains if one does.

    The score is the lowest of those that do not abstain.

    Args:
        checks: verifiers by name, or a list of them.

    Raises:
        UsageError: when made, for no checks, or one that cannot be made.
    """

    checks: Checks
    _made: dict[str, Verifier] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_made", _make(self.checks, "all_of"))

    def __call__(self, task: Task, response: str) -> Verdict:
        said = _ask(self._made, task, response)
        return _combined(said, _decided(said, False), min(_scores(said), default=0.0))


@part("verify", "any_of")
@dataclass(frozen=True, slots=True)
class AnyOf(_Composed):
    """Right iff any check is, whatever the others say; else abstains if one does; else wrong.

    The score is the highest of those that do not abstain.

    Args:
        checks: verifiers by name, or a list of them.

    Raises:
        UsageError: when made, for no checks, or one that cannot be made.
    """

    checks: Checks
    _made: dict[str, Verifier] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_made", _make(self.checks, "any_of"))

    def __call__(self, task: Task, response: str) -> Verdict:
        said = _ask(self._made, task, response)
        return _combined(said, _decided(said, True), max(_scores(said), default=0.0))


@part("verify", "weighted")
@dataclass(frozen=True, slots=True)
class Weighted(_Composed):
    """Score sum_k w_k s_k / sum_k w_k; right iff it reaches the threshold.

    A check of weight 0 is reported and decides nothing.

    Args:
        checks: verifiers by name, or a list of them.
        weights: numbers >= 0 by name; 1 where left out.
        threshold: right iff score >= threshold, in (0, 1].
        on_abstain: ``abstain`` if a check does, or ``renormalise``: take the mean over the others, if any are left.

    Raises:
        UsageError: when made, for no checks, one that cannot be made, a weight below 0 or for no check, no weight
            above 0, or a threshold out of range.
    """

    checks: Checks
    weights: Mapping[str, float] = field(default_factory=dict)
    threshold: float = 1.0
    on_abstain: Literal["abstain", "renormalise"] = "abstain"
    _made: dict[str, Verifier] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        made = _make(self.checks, "weighted")
        for name, weight in self.weights.items():
            if name not in made:
                raise UsageError(f"verifier 'weighted' has a weight but no check called {name!r}{nearest(name, made)}")
            if not (math.isfinite(weight) and weight >= 0):
                raise UsageError(f"verifier 'weighted': the weight {weight} of {name!r} is not a number >= 0")
        if not any(self.weights.get(name, 1.0) for name in made):
            raise UsageError("verifier 'weighted': every weight is 0; give one above 0")
        if not 0 < self.threshold <= 1:
            raise UsageError(f"verifier 'weighted': threshold {self.threshold} must be in (0, 1]")
        object.__setattr__(self, "_made", made)

    def __call__(self, task: Task, response: str) -> Verdict:
        said = _ask(self._made, task, response)
        counted = {n: w for n in said if (w := float(self.weights.get(n, 1.0)))}
        judged = {n: w for n, w in counted.items() if said[n].passed is not None}
        if not judged or (self.on_abstain == "abstain" and len(judged) < len(counted)):
            return Verdict(0.0, None, _parts(said), _feedback({n: v for n, v in said.items() if v.passed is None}))
        score = math.fsum(w * said[n].score for n, w in judged.items()) / math.fsum(judged.values())
        return Verdict(min(score, 1.0), score >= self.threshold, _parts(said), _feedback(said))


@part("verify", "gated")
@dataclass(frozen=True, slots=True)
class Gated(_Composed):
    """The verdict of ``then`` for what passes ``gate``; what does not is wrong, with score 0, and ``then`` is not run.

    Abstains if the gate does, or if ``then`` does. The parts are ``gate`` and ``then``.

    Args:
        gate: a verifier (name, table or callable) that has to be right first, such as one of the format.
        then: the verifier that counts.

    Raises:
        UsageError: when made, for a verifier that cannot be made.
    """

    gate: Any
    then: Any
    _made: dict[str, Verifier] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_made", _make({"gate": self.gate, "then": self.then}, "gated"))

    def __call__(self, task: Task, response: str) -> Verdict:
        gate = judge(self._made["gate"], task, response, "gate")
        if not gate.passed:
            parts = {**_parts({"gate": gate}), "then": None}
            return Verdict(0.0, gate.passed, parts, _feedback({"gate": gate}))
        then = judge(self._made["then"], task, response, "then")
        score = 0.0 if then.passed is None else then.score
        return Verdict(score, then.passed, _parts({"gate": gate, "then": then}), _feedback({"then": then}))


@part("verify", "first")
@dataclass(frozen=True, slots=True)
class First(_Composed):
    """The verdict of the first check that does not abstain; those after it are not run.

    Abstains if all do, with all their reasons.

    Args:
        checks: verifiers by name, or a list of them, cheapest first.

    Raises:
        UsageError: when made, for no checks, or one that cannot be made.
    """

    checks: Checks
    _made: dict[str, Verifier] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_made", _make(self.checks, "first"))

    def __call__(self, task: Task, response: str) -> Verdict:
        said: dict[str, Verdict] = {}
        for name, verifier in self._made.items():
            said[name] = verdict = judge(verifier, task, response, name)
            if verdict.passed is not None:
                return Verdict(verdict.score, verdict.passed, _parts(said), _feedback({name: verdict}))
        return Verdict(0.0, None, _parts(said), _feedback(said))


Need = int | Literal["all", "majority"]
"""How many of a number of opinions have to be positive; a majority is more than half."""


def tally(opinions: Sequence[bool | None], need: Need = "all") -> bool | None:
    """Return what opinions come to, some of which abstain: right if ``need`` of them are, wrong if too many are wrong.

        right if r >= m;  wrong if w > n - m;  else it depends on those that abstain, and so abstains

    with n opinions, r right and w wrong, and m = n for ``all``, floor(n / 2) + 1 for a ``majority``.

    Raises:
        UsageError: no opinions, or another ``need`` than there can be.
    """
    n = len(opinions)
    m = {"all": n, "majority": n // 2 + 1}.get(need, 0) if isinstance(need, str) else need
    if isinstance(m, bool) or not 1 <= m <= n:
        raise UsageError(f"of {n} opinions 'all', a 'majority' or 1 to {n} may be needed, not {need!r}")
    right, wrong = sum(o is True for o in opinions), sum(o is False for o in opinions)
    return True if right >= m else False if wrong > n - m else None


@part("verify", "ensemble")
@dataclass(frozen=True, slots=True)
class Ensemble(_Composed):
    """Right iff ``need`` of the checks are: ``all`` is a veto by each, ``majority`` more than half, a number m of n.

    Wrong where too many are wrong for that; else abstains, see :func:`tally`. The score is the share of right ones
    among those that do not abstain.

    Args:
        checks: verifiers by name, or a list of them.
        need: see above.

    Raises:
        UsageError: when made, for no checks, one that cannot be made, or another ``need`` than there can be.
    """

    checks: Checks
    need: Need = "all"
    _made: dict[str, Verifier] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        made = _make(self.checks, "ensemble")
        tally([None] * len(made), self.need)
        object.__setattr__(self, "_made", made)

    def __call__(self, task: Task, response: str) -> Verdict:
        said = _ask(self._made, task, response)
        known = [v.passed for v in said.values() if v.passed is not None]
        score = sum(known) / len(known) if known else 0.0
        return _combined(said, tally([v.passed for v in said.values()], self.need), score)


def _make(checks: Checks, who: str) -> dict[str, Verifier]:
    if isinstance(checks, str) or not isinstance(checks, Mapping | Sequence) or not checks:
        raise UsageError(f"verifier {who!r} needs checks: verifiers by name, or a list of them")
    if not isinstance(checks, Mapping):
        named: dict[str, Any] = {}
        for spec in checks:
            name, n = _name(spec), 1
            while name in named:
                n += 1
                name = f"{_name(spec)}-{n}"
            named[name] = spec
        checks = named
    return {name: make_verifier(spec) for name, spec in checks.items()}


def _name(spec: Any) -> str:
    if isinstance(spec, Mapping):
        spec = spec.get("name")
    return spec if isinstance(spec, str) else getattr(spec, "__name__", type(spec).__name__).lower()


def _ask(made: Mapping[str, Verifier], task: Task, response: str) -> dict[str, Verdict]:
    return {name: judge(verifier, task, response, name) for name, verifier in made.items()}


def _decided(said: Mapping[str, Verdict], decisive: bool) -> bool | None:
    """One decisive verdict decides; then one abstention abstains; else the opposite."""
    passed = [v.passed for v in said.values()]
    if decisive in passed:
        return decisive
    return None if None in passed else not decisive


def _combined(said: Mapping[str, Verdict], passed: bool | None, score: float) -> Verdict:
    # What decided is what a reader wants to know of: the wrong ones of a wrong verdict, and so on.
    deciding = {n: v for n, v in said.items() if v.passed is passed}
    return Verdict(0.0 if passed is None else score, passed, _parts(said), _feedback(deciding))


def _scores(said: Mapping[str, Verdict]) -> Iterable[float]:
    return (v.score for v in said.values() if v.passed is not None)


def _parts(said: Mapping[str, Verdict]) -> dict[str, float | None]:
    parts: dict[str, float | None] = {}
    for name, verdict in said.items():
        parts[name] = None if verdict.passed is None else verdict.score
        parts.update({f"{name}/{key}": value for key, value in verdict.parts.items()})
    return parts


def _feedback(said: Mapping[str, Verdict]) -> str:
    """One line: ``answer: expected 4; format: no <answer> tag``."""
    return "; ".join(f"{n}: {' '.join(v.feedback.split())}" for n, v in said.items() if v.feedback.strip())
