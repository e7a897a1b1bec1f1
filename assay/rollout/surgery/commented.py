"""Some responses go on with what a teacher has to say of them: an opinion, reasons, and how to do it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from assay.engines.asking import ask, filled, judge_of, shared
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.surgery.base import Surgeon
from assay.types import Episode, Group, Origin

Schedule = Literal["linear", "constant", "exponential", "cosine"]

ASK = """You are a teacher who thinks aloud in a student's place. You read a question and an attempt at it, and go
on from there. You do not know the answer; work it out. Write these three parts and nothing else:
<opinion>correct or incorrect</opinion>
<reason>in the first person, as if the attempt were yours: what holds in it, or where it goes wrong</reason>
<phrase>in the first person, the way on from there to the solution, with the final answer in the form that the
question asks for</phrase>

Question: Tom reads 12 pages a day for 5 days. How many pages has he read?
Attempt: 12 pages on each of 5 days are 12 x 5 = 60 pages. The answer is 60.
<opinion>correct</opinion>
<reason>Let me walk through this again. 12 pages on every one of 5 days is a product, and 12 x 5 is 60. Each
step follows from the one before.</reason>
<phrase>So I am sure of it, it all fits. The answer is 60.</phrase>

Question: Ann has 3 bags of 4 apples and eats 2. How many are left?
Attempt: 3 + 4 = 7, and 7 - 2 = 5. The answer is 5.
<opinion>incorrect</opinion>
<reason>Wait, what did I do there? I added bags to apples. Three bags of four apples each are a product, so
that does not agree with what is asked.</reason>
<phrase>Let me start again from what is given. 3 x 4 = 12 apples, and 12 - 2 = 10. The answer is 10.</phrase>

Question: A train goes 60 km in the first hour and 40 km in the next half hour. What is its mean speed?
Attempt: (60 + 40) / 2 = 50 km per hour. The answer is 50.
<opinion>incorrect</opinion>
<reason>Hmm, I am not sure about that 2. My old physics teacher would ask: "How long did it really travel?" And
it is an hour and a half, not two hours.</reason>
<phrase>All right, then with the time as it is: 100 km in 1.5 hours are 100 / 1.5 = 66.7 km per hour. The
answer is 66.7.</phrase>

Question: A shop sells 2 lamps at 35 dollars and 3 chairs at 48 dollars. What does it take in?
Attempt: 70 + 144 = 214. The answer is 214.
<opinion>correct</opinion>
<reason>The sum may well be right, but I wrote down products that I never showed. With money I ought to check
every one of them.</reason>
<phrase>So, properly this time: 2 x 35 = 70, 3 x 48 = 144, and 70 + 144 = 214. It is the same, and now I know
it. The answer is 214.</phrase>

Question: {question}
Attempt: {response}
"""

_REASON, _PHRASE = (re.compile(rf"<{name}>(.*?)</{name}>", re.DOTALL) for name in ("reason", "phrase"))


@part("rollout", "commented")
@dataclass(slots=True)
class Commented(Surgeon):
    """k = max(1, floor(share x eligible)) of a group's responses, drawn at random, go on with a teacher's comment.

    Eligible is what ended by itself, with one end token, right or wrong. The teacher is shown question and response,
    not the reference, and answers greedily. Where its reply has a ``<reason>`` and a ``<phrase>``, the response
    becomes its text, a blank line, the reason, a blank line, the phrase and the end, cut to the longest response, and
    is judged anew. All its tokens, one's own too, are then of origin ``TEACHER``, their log-probabilities unknown.
    Another reply leaves the response as it was.

    The share goes from ``first`` to ``last`` over the first ``over`` of the run's steps, as the schedule says; once
    it is at most ``least`` + 0.01 the teacher is asked no more.

    Args:
        teacher: an engine, or what specifies one: the base model, with weights of its own.
        first, last, schedule, over, least: see above; shares in [0, 1], ``over`` in (0, 1].
        template: asks the teacher, with ``{question}`` and ``{response}``.
        max_tokens: of a comment.

    Raises:
        UsageError: a number out of range, or ``first`` so low that nobody is ever asked; no teacher, or a template
            without ``{response}``.
    """

    teacher: Any = None
    first: float = 0.1
    last: float = 0.01
    schedule: Schedule = "linear"
    over: float = 1 / 3
    least: float = 0.05
    template: str = ASK
    max_tokens: int = 512
    when: Any = "always"

    def __post_init__(self) -> None:
        Surgeon.__post_init__(self)
        if not (0 <= self.last <= self.first <= 1 and 0 < self.over <= 1 and self.least >= 0) or self.max_tokens < 1:
            raise UsageError(
                f"rollout 'commented': 0 <= last {self.last:g} <= first {self.first:g} <= 1, over {self.over:g} in "
                f"(0, 1], least {self.least:g} not negative, max_tokens {self.max_tokens} at least 1"
            )
        if 0 < self.first <= self.least + 0.01:
            raise UsageError(
                f"rollout 'commented': the teacher would never be asked, as first {self.first:g} is not above least "
                f"{self.least:g} + 0.01"
            )
        if "{response}" not in self.template:
            raise UsageError("rollout 'commented': the template does not show the teacher the {response}")
        self.teacher = judge_of(self.teacher, "rollout 'commented'")

    def share_at(self, step: int, steps: int) -> float:
        """Return the share of eligible responses that are commented in a step of a run of so many."""
        length = steps * self.over
        x = min(step / length, 1.0) if length > 0 else 1.0
        if self.schedule == "constant":
            return self.first
        if self.schedule == "cosine":
            return self.last + (self.first - self.last) * (1 + math.cos(math.pi * x)) / 2
        if self.schedule == "exponential":
            return self.first * (max(self.last, 1e-12) / max(self.first, 1e-12)) ** x
        return self.first + (self.last - self.first) * x

    def operate(self, groups: list[Group], cases: Sequence[int], engine: Engine, rng: np.random.Generator) -> None:
        share = self.share_at(*self.progress())
        if share <= self.least + 0.01:
            return
        ends = ends_of(engine)
        chosen: list[tuple[int, int, np.ndarray]] = []
        for i in cases:
            able = [(k, body) for k, e in enumerate(groups[i].episodes) if (body := attempt(e, ends)) is not None]
            many = min(len(able), max(1, math.floor(share * len(able) + 1e-9)))
            picked = sorted(rng.choice(len(able), size=many, replace=False).tolist()) if able else []
            chosen += [(i, *able[p]) for p in picked]
        prompts = [
            filled(self.template, question=groups[i].task.question, response=groups[i].episodes[k].text)
            for i, k, _ in chosen
        ]
        sampling = Sampling(self.max_tokens, 0.0)
        replies = shared(engine, prompts, lambda some: ask(self.teacher, some, sampling))
        self.spend(replies)
        self._seen["surgery/asked"] = len(chosen)
        made = [
            (i, k, self._augmented(groups[i].episodes[k], body, said, engine))
            for (i, k, body), reply in zip(chosen, replies, strict=True)
            if (said := comment(reply)) is not None
        ]
        judged = self.judge([Group(replace(groups[i].ask, n=1), (episode,)) for i, _, episode in made])
        self._seen["surgery/mended"] = len(made)
        for (i, k, _), found in zip(made, judged, strict=True):
            episodes, verdicts = list(groups[i].episodes), list(groups[i].verdicts)
            episodes[k], verdicts[k] = found.episodes[0], found.verdicts[0]
            groups[i] = replace(groups[i], episodes=tuple(episodes), verdicts=tuple(verdicts))

    def _augmented(self, old: Episode, body: np.ndarray, said: str, engine: Engine) -> Episode:
        """Return the response with the comment before its end."""
        end = old.tokens[len(body) :]
        added = np.asarray(engine.encode_response(f"\n\n{said}", end=False), dtype=np.int64)
        tokens = np.concatenate([np.concatenate([body, added])[: self.sampling.max_tokens - len(end)], end])
        return replace(
            old,
            tokens=tokens,
            mask=np.ones(len(tokens), dtype=bool),
            logprobs=None,
            text=engine.decode(tokens),
            entropies=None,
            spans=(),
            origins=np.full(len(tokens), Origin.TEACHER, dtype=np.uint8),
            meta={**old.meta, "attempt": len(body)},
        )


def ends_of(engine: Engine) -> np.ndarray:
    """Return the tokens that end a response, any of them; none where an engine does not show them."""
    ids = getattr(getattr(engine, "policy", None), "stop_ids", None)
    return np.asarray(engine.encode_response("") if ids is None else ids, dtype=np.int64)


def attempt(episode: Episode, ends: np.ndarray) -> np.ndarray | None:
    """Return the response's tokens before its end; ``None`` where it did not end by itself, with one end token."""
    n = len(episode.tokens) - bool(len(ends))
    if episode.stop != "eos" or n < 1 or not np.isin(episode.tokens[n:], ends).all():
        return None
    body = episode.tokens[:n]
    return None if np.isin(body, ends).any() else body


def comment(reply: Episode) -> str | None:
    """Return reason, blank line and phrase of a teacher's reply; ``None`` where it has not both."""
    found = [] if reply.stop == "error" else [form.search(reply.text) for form in (_REASON, _PHRASE)]
    texts = [m[1].strip() for m in found if m is not None]
    return "\n\n".join(texts) if len(texts) == 2 and all(texts) else None
