"""A judge of chains of thought: several opinions on each, and what they come to."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from assay.engines.asking import filled, judge_of
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError, nearest
from assay.verify.critique import said

Rule = Literal["any", "majority", "all"]

Votes = tuple[bool | None, ...]
"""Opinions on one chain; ``None`` for one that failed or says neither."""

TEMPLATE = r"""Question:
{question}

Proposed solution:
{response}

Is this solution right? Look above all at its reasoning, and not only at its final answer.
1. Go through it step by step: are its computations accurate, do its steps follow from one another, are the concepts \
understood, is the argument valid and complete?
2. List every fault of the reasoning, also where the final answer is right, each with its kind (error of calculation, \
error of logic, error of concept, omission, other) and a short explanation. An omission is a step or a justification \
that is missing, or a part of the question that is left out.
3. Decide whether the reasoning is sound and free of errors, and end with \boxed{yes} if it is and \boxed{no} if not."""


def check_rule(rule: str) -> None:
    """Raise UsageError unless ``rule`` names a way to settle votes."""
    if rule not in get_args(Rule):
        known = get_args(Rule)
        raise UsageError(f"votes on a chain are settled by {', '.join(known)}, not by {rule!r}{nearest(rule, known)}")


def settle(votes: Sequence[bool | None], rule: Rule = "majority") -> bool | None:
    """Return what opinions come to: those that are ``None`` do not count, and without others there is no verdict.

    A majority is more than half.
    """
    known = [v for v in votes if v is not None]
    if not known:
        return None
    return {"any": any(known), "all": all(known), "majority": 2 * sum(known) > len(known)}[rule]


@dataclass(frozen=True, slots=True)
class ChainJudge:
    """Opinions of an engine on chains of thought.

    Source: "Reinforcement Learning with Verifiable Rewards Implicitly Incentivizes Correct Reasoning in Base LLMs"
    (arXiv 2506.14245), which asks a strong reasoning model three times; the template asks for what the paper's asks
    for, in our words.

    Args:
        engine: who judges: an engine, the specification of one, or ``None`` for the one that made the response.
        n: opinions about each chain.
        template: with ``{question}`` and ``{response}``; the last box of the reply is to hold yes or no.
        sampling: of the opinions.

    Raises:
        UsageError: no engine, ``n`` below 1, or a template that shows no response.
    """

    engine: Any = None
    n: int = 3
    template: str = TEMPLATE
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=4096))

    def __post_init__(self) -> None:
        if self.n < 1 or "{response}" not in self.template:
            raise UsageError("a judge of chains has 1 vote or more, and a template that shows the {response}")
        if self.engine is not None:
            object.__setattr__(self, "engine", judge_of(self.engine, "a judge of chains"))

    def votes(self, pairs: Sequence[tuple[str, str]], engine: Engine | None = None) -> list[Votes]:
        """Return n opinions on each response to a question, ``None`` where one failed or says neither.

        Equal pairs are asked once, with a seed of their own.

        Args:
            pairs: questions and responses.
            engine: asked where the judge has none.
        """
        asked_of: Engine | None = self.engine if self.engine is not None else engine
        if asked_of is None:
            raise UsageError("a judge of chains needs an engine")
        prompts = [filled(self.template, question=q, response=r) for q, r in pairs]
        once = list(dict.fromkeys(prompts))
        asked = [Request(p, self.n, self.sampling, zlib.crc32(p.encode("utf-8", "replace"))) for p in once]
        replies = dict(zip(once, asked_of.generate(asked) if asked else [], strict=True))
        return [tuple(None if r.stop == "error" else said(r.text) for r in replies[p]) for p in prompts]


def as_chain_judge(spec: Any, votes: int = 3) -> ChainJudge | None:
    """Return the judge of chains that something stands for; ``None`` for what is a scorer instead.

    ``judge`` is the model itself; ``openai:MODEL@http://host/v1`` a model behind an endpoint; a table with the name
    ``judge`` has options of :class:`ChainJudge`; an engine judges.

    Raises:
        UsageError: an option that there is not, or an endpoint that is not written so.
    """
    from assay.engines.target import endpoint
    from assay.registry import call

    if isinstance(spec, ChainJudge):
        return spec
    if isinstance(spec, str) and spec.startswith("openai:"):
        return ChainJudge(endpoint(spec), votes)
    if isinstance(spec, dict) and spec.get("name") == "judge":
        options = {"n": votes, **{k: v for k, v in spec.items() if k != "name"}}
        made: ChainJudge = call(ChainJudge, options, "chain judge")
        return made
    if spec == "judge":
        return ChainJudge(None, votes)
    return ChainJudge(spec, votes) if isinstance(spec, Engine) else None
