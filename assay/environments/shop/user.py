"""The user on the other side: one that answers by a script, one that an engine speaks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Engine, Sampling
from assay.environments.base import EnvironmentFailure

UNKNOWN = "That is all I can tell you. Please do as you think best."
STOP = "###STOP###"
TEMPLATE = """You are a customer who talks to an assistant. What you want, in this order:

{wishes}

Speak as that customer, in one or two sentences. Tell what you want when you are asked, and nothing that does not \
stand above. When the assistant says that all is done, or that it cannot be done, write {stop} and nothing else.

So far:
{talk}
Customer:"""


class User(Protocol):
    """Somebody who is spoken to."""

    def answer(self, text: str) -> str | None:
        """Return what is answered to what the policy said; ``None`` where there is nothing left to talk of."""
        ...


@dataclass(frozen=True, slots=True)
class Scripted:
    """Tells of whatever a question touches by a word of it, and takes what is no question for a goodbye.

    Args:
        slots: words that touch a detail, in lower case, and the detail.
    """

    slots: Sequence[tuple[Sequence[str], str]] = ()

    def answer(self, text: str) -> str | None:
        if "?" not in text:
            return None
        asked = text.lower()
        told = [reply for words, reply in self.slots if any(word in asked for word in words)]
        return " ".join(told) or UNKNOWN


@dataclass(slots=True)
class Spoken:
    """An engine speaks for the user.

    Args:
        engine: an engine, or the specification of one, with weights of its own.
        wishes: what the user wants, in words.
        opening: what he has said first.
        sampling: of what he says.
    """

    engine: Engine
    wishes: str
    opening: str
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=128))
    talk: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.talk.append(f"Customer: {self.opening}")

    def answer(self, text: str) -> str | None:
        """See :class:`User`.

        Raises:
            EnvironmentFailure: the engine failed, or said nothing: nobody's fault here.
        """
        self.talk.append(f"Assistant: {text}")
        prompt = filled(TEMPLATE, wishes=self.wishes, stop=STOP, talk="\n".join(self.talk))
        [reply] = ask(self.engine, [prompt], self.sampling)
        said = reply.text.partition("\nAssistant:")[0].strip()
        if reply.stop == "error" or not said:
            raise EnvironmentFailure(f"the user's engine failed: {reply.meta.get('error', 'it said nothing')}")
        self.talk.append(f"Customer: {said}")
        return None if STOP in said else said


def speaker(spec: Any) -> Engine:
    """Return the engine that speaks for users.

    Raises:
        UsageError: it is none.
    """
    return judge_of(spec, "environment 'shop', user")
