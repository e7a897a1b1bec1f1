"""The group surgeon: which judged groups are changed, what is asked for it, and what that costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.registry import build
from assay.rollout.base import Rollout
from assay.rollout.single_turn import SingleTurn, fits, full_prompt
from assay.types import Ask, Episode, Group, Prompt, Task
from assay.verify.kind import KindVerifier

When = Literal["none", "share", "always"]
TrainUnder = Literal["hinted", "plain", "both"]


@dataclass(slots=True)
class Surgeon(ABC):
    """Groups as the rollout inside samples them, judged, of which :meth:`operate` changes some.

    A group is changed whose share of right responses, among those with a verdict, is 0 (``when = "none"``), below
    ``share`` (``"share"``), or whatever it is (``"always"``); one in which every verdict is an abstention never is.
    It is the verdict that counts, not a shaped reward. What is asked on is judged by the run's verifier, on the task as
    it was; it is asked in one turn, so what the rollout inside brings must be of one turn too. An episode that was
    sampled under another prompt than the plain one says so in ``prompt`` and ``sampled_prompt``. Advantages come
    afterwards, over the groups as they then are; curricula learn of the responses ``before`` (:class:`Group`).

    Args:
        sampling, judge, more, curriculum, answer, progress: supplied by the run.
        inner: the rollout that answers what is asked.
        when, share: see above.
        after: steps of the run before which nothing is changed.

    Raises:
        UsageError: ``share`` outside [0, 1], or ``after`` below 0; of a step, a response of several turns.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    more: Any = None
    curriculum: Any = None
    answer: Any = field(default_factory=lambda: KindVerifier().answer)
    progress: Callable[[], tuple[int, int]] = lambda: (0, 1)
    inner: Any = "single_turn"
    when: When = "none"
    share: float = 0.5
    after: int = 0
    _inner: Rollout = field(init=False, repr=False)
    _seen: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.after < 0:
            raise UsageError(
                f"rollout {type(self).__name__}: share {self.share:g} must be in [0, 1], after {self.after} at least 0"
            )
        given = {"sampling": self.sampling, "judge": self.judge, "more": self.more, "curriculum": self.curriculum}
        self._inner = build("rollout", self.inner, **given, answer=self.answer, progress=self.progress)

    @abstractmethod
    def operate(self, groups: list[Group], cases: Sequence[int], engine: Engine, rng: np.random.Generator) -> None:
        """Change the judged ``groups`` at ``cases`` in place; what stands there afterwards has verdicts."""

    def judged(self, groups: Sequence[Group], engine: Engine) -> list[Group]:
        """Return groups with what is said of their responses: verdicts, and whatever else :meth:`operate` goes by."""
        return self.judge(groups)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError if nothing could be done for any of ``tasks``."""
        return None

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = self.judged(self._inner.collect(asks, engine, rng), engine)
        if any(episode.turns for group in groups for episode in group.episodes):
            raise UsageError(
                f"rollout {type(self).__name__} changes responses of one turn, and those of "
                f"{type(self._inner).__name__} inside it have several; take another rollout inside"
            )
        plain = list(groups)
        cases = [i for i, group in enumerate(groups) if not group.derived and self.wants(group)]
        if self.progress()[0] < self.after:
            cases = []
        self._seen = Counter({f"surgery/{name}": 0 for name in ("sampled", "tokens", "mended")})
        if cases:
            self.operate(groups, cases, engine, rng)
        for i in cases:
            if groups[i] is not plain[i]:
                groups[i] = replace(groups[i], before=plain[i])
        self._seen["surgery/cases"] = len(cases)
        self._seen["surgery/pass_rate_before"] = right_share(plain)  # type: ignore[assignment]
        return groups

    def metrics(self) -> dict[str, float]:
        """Those of the rollout inside; ``surgery/cases``, groups that were to be changed; ``mended``, those that were,
        and at what ``level``, a mean, where there are several; what it cost, responses ``sampled`` and their
        ``tokens``; ``pass_rate_before``, what the policy does unaided.
        """
        found = {k: float(v) for k, v in self._seen.items()}
        level = found.pop("surgery/level", 0.0)
        if level:
            found["surgery/level"] = level / found["surgery/mended"]
        return {**getattr(self._inner, "metrics", dict)(), **found}

    def idle(self) -> str | None:
        """Why nothing was done in the last step for the groups that were to be changed; ``None`` if something was."""
        cases = self._seen["surgery/cases"]
        if not cases or self._seen["surgery/sampled"] or self._seen["surgery/mended"]:
            return None
        return (
            f"rollout {type(self).__name__} was to change {cases} groups and could do nothing for any of them: there "
            "were no hints to ask with, no response to go on from, or no room in the context"
        )

    def wants(self, group: Group) -> bool:
        """Whether a judged group is one to be changed."""
        known = [v.passed for v in group.verdicts if v.passed is not None]
        if not known:
            return False
        share = sum(known) / len(known)
        return self.when == "always" or (share == 0 if self.when == "none" else share < self.share)

    def ask(
        self,
        groups: Sequence[Group],
        prompts: Sequence[Prompt],
        n: Sequence[int],
        engine: Engine,
        rng: Any,
        begun: Sequence[str] | None = None,
    ) -> list[Group]:
        """Return judged responses to other prompts of groups' tasks; none where a prompt leaves no room for one.

        Args:
            groups: whose tasks they are judged by.
            prompts: what is asked, one for each group.
            n: responses, one number for each group.
            begun: what stands before the responses in what is judged, one text for each group; nothing if left out.
        """
        asked = [
            Ask(replace(group.task, prompt=prompt), many)
            for group, prompt, many in zip(groups, prompts, n, strict=True)
        ]
        room = [fits(ask, engine, self.sampling) for ask in asked]
        found = iter(SingleTurn(self.sampling).collect([a for a, r in zip(asked, room, strict=True) if r], engine, rng))
        made = [
            Group(replace(group.ask, n=ask.n if r else 0), next(found).episodes if r else ())
            for group, ask, r in zip(groups, asked, room, strict=True)
        ]
        self.spend(e for group in made for e in group.episodes)
        if begun is None:
            return self.judged(made, engine)
        whole = [
            replace(group, episodes=tuple(replace(e, text=text + e.text) for e in group.episodes))
            for group, text in zip(made, begun, strict=True)
        ]
        return [group.judged(found.verdicts) for group, found in zip(made, self.judge(whole), strict=True)]

    def spend(self, episodes: Iterable[Episode]) -> None:
        """Count what was sampled."""
        for episode in episodes:
            self._seen["surgery/sampled"] += 1
            self._seen["surgery/tokens"] += len(episode.tokens)


def plain_prompt(group: Group) -> Prompt:
    """The prompt that a group was asked with, the ask's own hint and instruction in it."""
    return full_prompt(group.ask)


def right_share(groups: Sequence[Group]) -> float:
    """Share of right responses among those with a verdict; 0 where there is none."""
    known = [v.passed for g in groups if not g.derived for v in g.verdicts if v.passed is not None]
    return sum(known) / len(known) if known else 0.0


def under(episode: Episode, prompt: np.ndarray) -> Episode:
    """Return an episode that is trained under another prompt than it was sampled under, of which it keeps the
    log-probabilities."""
    return replace(episode, prompt=prompt, sampled_prompt=episode.prompt)


def own_group(group: Group, episodes: Sequence[Episode], role: str, rng: np.random.Generator) -> list[Episode]:
    """Return episodes as an advantage group of their own: ``role``, with a draw that no other group has."""
    key = f"{group.task.id}/{role}/{int(rng.integers(2**62))}"
    return [replace(e, advantage_group=key, meta={**e.meta, "role": role}) for e in episodes]


def helpers(rollout: Any) -> Iterator[Any]:
    """Those that help with hints, among a rollout and those inside it, outermost first."""
    while rollout is not None:
        if hasattr(rollout, "check_tasks"):
            yield rollout
        rollout = getattr(rollout, "_inner", None)
