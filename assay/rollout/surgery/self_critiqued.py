"""What is wrong with a response is said by the policy itself, where its verifier only says that it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.engines.base import Engine, Request
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import fits
from assay.rollout.surgery.base import Surgeon, plain_prompt
from assay.rollout.templates import check_template, through_template
from assay.types import Ask, Group, Verdict

CRITIQUE = (
    "{question}\n\nAn attempt that failed:\n{attempt}\n\nSay in two sentences at most what is wrong with it and what "
    "to do instead."
)


@part("rollout", "self_critiqued")
@dataclass(slots=True)
class SelfCritiqued(Surgeon):
    """Each wrong response is shown to the policy, which says what is wrong; that becomes its verdict's feedback.

    The critic is the policy of the moment. It knows that the attempt failed and no more: neither the answer nor what
    other responses say. Its words are not learned from here; they are for what reads feedback, such as S031 and S147.
    Responses themselves, their scores and prompts stay as they are. Nothing is asked where the context has no room.

    Args:
        template: of the critic's prompt, with ``{attempt}`` and ``{question}``; of a chat, the last user message is put
            through it.
        max_tokens: of a critique.
        over: take the place of what the verifier has said, too; else only of nothing.

    Raises:
        UsageError: ``max_tokens`` below 1, ``when`` or ``share`` given, or a template without ``{attempt}``.
    """

    template: str = CRITIQUE
    max_tokens: int = 128
    over: bool = False

    def __post_init__(self) -> None:
        Surgeon.__post_init__(self)
        if self.when != "none" or self.share != 0.5 or self.max_tokens < 1:
            raise UsageError(
                f"rollout 'self_critiqued' goes by each response: leave out when and share; max_tokens "
                f"{self.max_tokens} must be at least 1"
            )
        check_template(self.template, "attempt", "rollout 'self_critiqued'")

    def wants(self, group: Group) -> bool:
        """Whether there is something to say."""
        return any(map(self._silent, group.verdicts))

    def operate(self, groups: list[Group], cases: Sequence[int], engine: Engine, rng: np.random.Generator) -> None:
        sampling = replace(self.sampling, max_tokens=self.max_tokens)
        asked: list[tuple[int, int, Request]] = []
        silent = [(i, k) for i in cases for k, v in enumerate(groups[i].verdicts) if self._silent(v)]
        for i, k in silent:
            attempt, seed = groups[i].episodes[k].text, int(rng.integers(2**63))
            prompt = through_template(plain_prompt(groups[i]), self.template, attempt=attempt)
            if fits(Ask(replace(groups[i].task, prompt=prompt), 1), engine, sampling):
                asked.append((i, k, Request(prompt, 1, sampling, seed)))
        found = engine.generate([request for *_, request in asked]) if asked else []
        for (i, k, _), [said] in zip(asked, found, strict=True):
            self.spend([said])
            text = said.text.strip()
            if said.stop == "error" or not text:
                continue
            verdicts = list(groups[i].verdicts)
            verdicts[k] = replace(verdicts[k], feedback=text)
            groups[i] = replace(groups[i], verdicts=tuple(verdicts))
            self._seen["surgery/mended"] += 1

    def _silent(self, verdict: Verdict) -> bool:
        return verdict.passed is False and (self.over or not verdict.feedback)
