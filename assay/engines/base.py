"""Who generates: the engine protocol, a request and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from assay.engines.trie import Trie
from assay.errors import UsageError
from assay.registry import build, find
from assay.types import Episode, Message, Prompt, Task, Tool

if TYPE_CHECKING:
    from assay.policies.base import Policy

T = TypeVar("T")
X = TypeVar("X")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
        max_tokens: longest response, in tokens.
        temperature: divides the logits; 0 is greedy.
        top_p: nucleus sampling, keep the smallest set of tokens with at least this probability; 1 keeps all.
        top_k: keep the k most likely tokens; 0 keeps all.
        stop: strings that end a response once they appear in it (they stay in the text).
    """

    max_tokens: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """``n`` responses to one prompt. The same seed gives the same responses whatever else is in the call.

    Attributes:
        prefix: token ids that the responses continue from, after the prompt's: an episode's ``prompt`` is then both,
            its tokens and text the continuation alone. After one that leaves no room in the model's context this has no
            token, and ``stop`` is ``context``; a prompt that leaves none is refused.
        within: the continuation is one of these token sequences, or what ``max_tokens`` leaves of one; anything if
            ``None``. Its log-probabilities are still those of the whole vocabulary.
        beam: the responses are not drawn but the ``n`` that a beam search of that width finds, best first, all
            different; fewer where there are not as many. It has no stop strings, top_p or top_k, and takes temperature
            0 for 1.
        session: key of a conversation that goes on: an engine that is :class:`Keeping` may then read its next turn's
            new tokens alone. Of requests for one response; what is generated does not depend on it.
    """

    prompt: Prompt
    n: int
    sampling: Sampling
    seed: int
    prefix: tuple[int, ...] = ()
    within: Trie | None = None
    beam: bool = False
    session: str | None = None


@runtime_checkable
class Engine(Protocol):
    """Generates responses with log-probabilities."""

    def encode(self, prompt: Prompt) -> np.ndarray:
        """Return the prompt's token ids ``(P,)`` int64, chat template applied where the model has one."""
        ...

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        """Return a response's token ids ``(T,)`` int64, with the end-of-sequence token last unless ``end`` is false."""
        ...

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """Return the text of response tokens, without special tokens."""
        ...

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """Return ``requests[i].n`` episodes for each i, in order (of a beam search, at most so many).

        Log-probabilities are those of the distribution sampled from *before* top-p and top-k truncation (after
        temperature), so that they equal the trainer's.
        """
        ...


class Conversing(Protocol):
    """An engine that says, in tokens, how a conversation opens and what stands between two of its turns.

    A response then goes on from what was sampled before (``Request.prefix``), which is never tokenised again.

    Optional method: ``drops_thinking(messages) -> bool``, whether a conversation is shown without a turn's thoughts
    once these messages have come after it.
    """

    @property
    def window(self) -> int:
        """Tokens of the longest prompt with its response."""
        ...

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        """Return the tokens ``(P,)`` before the first turn."""
        ...

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        """Return the tokens ``(B,)`` between a turn, which its last token ``ended`` or not, and the next."""
        ...


class Keeping(Protocol):
    """An engine that keeps, of a conversation with a session, what it has computed, until the session ends or its
    weights change."""

    def end_sessions(self, sessions: Iterable[str]) -> None:
        """Drop what is kept of sessions; those that are not known are none."""
        ...


class Dividing(Protocol):
    """One of several engines, in as many processes, that work together."""

    def divided(
        self,
        items: Sequence[X],
        work: Callable[[Sequence[X], Engine], Sequence[T]],
        cost: Callable[[X], float] = lambda _: 1.0,
    ) -> list[T]:
        """Return ``work(items, engine)``, each process doing its share with its own engine; all of them call this.

        Args:
            items: the same in every process.
            work: gives one result for each item, from its item alone.
            cost: of an item, to balance shares.
        """
        ...


@runtime_checkable
class Follower(Protocol):
    """An engine that generates with a copy of the weights of a policy that is being trained.

    One that shares a device with the policy may also have ``sleep(level)`` and ``wake()``: it is put to sleep, at level
    2, before the weights change, and woken and given the new ones before it is asked again.
    """

    def follow(self, policy: Policy) -> None:
        """Take over the policy's weights as they are now; what is generated from here on is theirs."""
        ...

    def close(self) -> None:
        """End what the engine has started."""
        ...


def can(engine: Engine, protocol: type) -> bool:
    """Whether an engine, or the one that it wraps, has what a protocol asks for."""
    return all(hasattr(engine, name) for name in vars(protocol) if not name.startswith("_"))


def engine_of(policy: Policy, spec: str | dict[str, Any], max_rows: int) -> Engine:
    """Return the engine that generates for a policy in training.

    Args:
        policy: what is trained; one that acts by numbers has the one engine there is for it.
        spec: an engine's name, or a table with ``name`` and options.
        max_rows: responses decoded together, for an engine that takes that.

    Raises:
        UsageError: no such engine, or one that cannot generate with a policy's weights.
    """
    spec = {"name": spec} if isinstance(spec, str) else spec
    own = getattr(policy, "engine", "hf")
    if spec["name"] == "hf":  # the policy's own weights, in the policy's own way
        spec = {**spec, "name": own}
    name = spec["name"]
    if own != "hf" and name != own:
        raise UsageError(f"engine {name} generates text, and the model does not; leave engine.name out")
    if "policy" not in signature(find("engine", name)).parameters:
        raise UsageError(
            f"engine {name} has weights of its own and cannot follow a policy in training; take hf, vllm or vllm-server"
        )
    return build("engine", spec, policy=policy, max_rows=max_rows)


def requests(tasks: Sequence[Task], samples: int, sampling: Sampling, rng: np.random.Generator) -> list[Request]:
    """Return one request per task, each with a seed of its own."""
    seeds = rng.integers(0, 2**63 - 1, size=len(tasks)).tolist()
    return [Request(t.prompt, samples, sampling, seed) for t, seed in zip(tasks, seeds, strict=True)]
