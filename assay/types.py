"""The nouns of assay: small frozen records that travel along the seams.

This module needs NumPy only, so that tasks and verifiers load without a tensor library. The padded tensors the
seams to the right of ``verify`` work on are in :mod:`assay.batch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal, NotRequired

import numpy as np
from typing_extensions import TypedDict  # the one that pydantic reads on every Python

from assay.media import Picture


class Message(TypedDict):
    """One chat message; ``role`` is ``system``, ``user``, ``assistant`` or ``tool``.

    An assistant's may have ``tool_calls`` as OpenAI writes them; a tool's says which one it answers, and the tool's
    ``name``. One with ``images`` has :data:`assay.media.MARK` in its content for each of them, in order.
    """

    role: str
    content: str
    tool_calls: NotRequired[Sequence[Mapping[str, Any]]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]
    images: NotRequired[Sequence[Picture]]


Prompt = str | tuple[Message, ...]


def pictures(prompt: Prompt) -> list[Picture]:
    """Return a prompt's pictures in order."""
    return [] if isinstance(prompt, str) else [picture for message in prompt for picture in message.get("images", ())]


@dataclass(frozen=True, slots=True)
class Task:
    """Something that can be asked and whose answer can be checked.

    Attributes:
        id: unique and stable within its source.
        prompt: plain text, or chat messages to which the model's chat template is applied.
        reference: what the verifier compares with (an answer, tests, an entry of a data set), if needed.
        kind: name of the verifier that judges responses to this task.
        solution: a worked response, used by the supervised warm-up; ``None`` if there is none.
        hints: texts a curriculum may reveal, weakest first.
        meta: anything else (category, difficulty, provenance).
        parent: id of the task whose judged responses it was made from within a step; ``None`` for one that was asked.
    """

    id: str
    prompt: Prompt
    reference: Any = None
    kind: str = "exact"
    solution: str | None = None
    hints: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    parent: str | None = None

    @property
    def question(self) -> str:
        """The prompt as plain text: chat messages joined by newlines."""
        return self.prompt if isinstance(self.prompt, str) else "\n".join(m["content"] for m in self.prompt)


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for ``n`` responses to ``task``.

    Attributes:
        task: what is asked.
        n: responses.
        hint: put before the question.
        instruction: put before everything else: of a chat, its system message.
    """

    task: Task
    n: int
    hint: str | None = None
    instruction: str | None = None


NOTE = " | "
"""What stands in the name of a verdict's part between a piece and what is noted of it: ``test 3 | seconds``."""


Fault = Literal["", "tests", "infrastructure"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier says of one response.

    Attributes:
        score: degree of correctness in [0, 1].
        passed: ``True`` right, ``False`` wrong, ``None`` the verifier abstains (it could not tell, or it failed);
            an abstention is never a wrong answer, the sample leaves the update and the group's statistics.
        parts: verdicts on pieces (tests, steps, rubric items) by name, each a score in [0, 1] or ``None``. A name with
            :data:`NOTE` in it is no score but a note on the piece before it: a measurement, in the unit it names.
        feedback: what a person or a model can learn from it; for an abstention, the reason.
        fault: of an abstention, whose fault it is, where the verifier knows: of the task's ``tests`` or of the
            ``infrastructure``. It is never the response's: what a response causes is wrong.
    """

    score: float
    passed: bool | None
    parts: Mapping[str, float | None] = field(default_factory=dict)
    feedback: str = ""
    fault: Fault = ""

    @classmethod
    def right(cls, feedback: str = "") -> Verdict:
        return cls(1.0, True, {}, feedback)

    @classmethod
    def wrong(cls, feedback: str = "") -> Verdict:
        return cls(0.0, False, {}, feedback)

    @classmethod
    def abstain(cls, reason: str, fault: Fault = "") -> Verdict:
        return cls(0.0, None, {}, reason, fault)

    def __str__(self) -> str:
        """One line: ``wrong, score 0.5 [format 1, value 0, units ?]: equals 5, not 6``."""
        line = {True: "right", False: "wrong", None: "abstains"}[self.passed]
        if self.fault:
            line += f" (fault of the {self.fault})"
        if self.passed is not None and self.score != self.passed:
            line += f", score {self.score:.3g}"
        if self.parts:
            shown = [f"{k} {'?' if v is None else f'{v:.3g}'}" for k, v in self.parts.items()]
            more = [f"{len(shown) - 12} more"] if len(shown) > 12 else []
            line += f" [{', '.join(shown[:12] + more)}]"
        feedback = " ".join(self.feedback.split())
        return line + (f": {feedback if len(feedback) <= 500 else feedback[:497] + '...'}" if feedback else "")


class Origin(IntEnum):
    """Who wrote a token of an episode."""

    OWN = 0
    TEACHER = 1
    HINT = 2
    TOOL = 3


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens ``[start, end)`` of an episode's response, e.g. a turn, a step, a tool's output."""

    kind: str
    start: int
    end: int
    meta: Mapping[str, Any] = field(default_factory=dict)


Problem = Literal["", "not_json", "unclosed", "no_name", "unknown_tool", "bad_arguments"]
"""Why something that stands there as a tool call is none; empty for one that can be made."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function a model may call.

    Attributes:
        name, description: for the model.
        parameters: JSON Schema of its arguments, an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wrote as a call of a tool. One with a ``problem`` is never made.

    Attributes:
        name: of the tool; empty where it cannot be read.
        arguments: as JSON has them; ``None`` where they cannot be read.
        start, end: where it stands, ``[start, end)``: in characters of the text it was read from, in response tokens
            once it belongs to an episode's turn.
        problem: see :data:`Problem`.
        reason: the problem in words, for the model.
        id: tells it from the other calls of its turn.
    """

    name: str
    arguments: Mapping[str, Any] | None
    start: int
    end: int
    problem: Problem = ""
    reason: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One of the policy's turns in an episode, and what came of it.

    Attributes:
        index: of the turn in its trajectory, from 0.
        start, end: its own tokens, ``[start, end)`` of the episode's response.
        calls: the tool calls it made, as tokens.
        reward: of this turn alone, where the environment gives one.
        verdict: on this turn's action alone, where there is an oracle.
        state, next_state: keys of the state it was taken in and of the one it led to: equal for states that are
            equivalent; ``None`` where the environment tells none.
        valid: whether the action was one that could be taken.
        error: what the environment said was wrong with it.
        tag: what kind of turn it is, for credit that tells kinds apart.
        terminated: the environment ended with it; ``truncated``: a limit did.
        reset: no return flows across it, nor back from it.
        info: what else the environment has noted of it; plain data.
        text: what was said in it; empty where that is not kept.
        reply: what the environment said to it; likewise.
    """

    index: int
    start: int
    end: int
    calls: tuple[ToolCall, ...] = ()
    reward: float | None = None
    verdict: Verdict | None = None
    state: str | None = None
    next_state: str | None = None
    valid: bool = True
    error: str = ""
    tag: str | None = None
    terminated: bool = False
    truncated: bool = False
    reset: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    reply: str = ""


@dataclass(frozen=True, slots=True)
class Fork:
    """Where an episode goes on from another context than what stands before: earlier thinking was dropped, say.

    Attributes:
        start: first response token that was sampled after it.
        prompt: ``(P,)`` int64, all that it was sampled after.
    """

    start: int
    prompt: np.ndarray


Sampler = Literal["sde", "cps"]
"""How noise enters a step of a drawing: ``sde`` keeps the flow's marginals (Flow-GRPO), ``cps`` each state's share of
data and noise."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a sample came out of noise, step by step (:mod:`assay.ops.denoising`): of policies that draw.

    Attributes:
        states: ``(K + 1, *shape)`` float32, noise first; the last one is the sample.
        levels: ``(K + 1,)`` float32, the noise level of each.
        taken: ``(T,)`` int64, the noisy steps: decision t led from ``states[taken[t]]`` to the one after it.
        draft: ``(*shape)`` float32, what was drawn over, for a policy that sees it.
        noise: how much of it steps had at temperature 1.
        sampler: how it entered them.
    """

    states: np.ndarray
    levels: np.ndarray
    taken: np.ndarray
    noise: float
    sampler: Sampler
    draft: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """What a policy of numbers has seen and done in K steps; those of an episode follow each other.

    Attributes:
        states: ``(K, S)`` float32, seen before each step.
        actions: ``(K, A)`` float32, as they were decided on: a world takes the part of them that lies in [-1, 1].
        after: ``(K, S)`` float32, seen after each step.
    """

    states: np.ndarray
    actions: np.ndarray
    after: np.ndarray

    def __len__(self) -> int:
        return len(self.states)


Stop = Literal["eos", "stop", "length", "context", "turns", "limit", "error"]
"""Why an episode ended; of several turns also for its number of ``turns``, or another ``limit`` (tokens, time)."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One sampled sequence of decisions and what is known of how it was made. ``T`` is the number of response tokens.

    Attributes:
        prompt: ``(P,)`` int64, the prompt the episode is *trained* under.
        tokens: ``(T,)`` int64, the response; for policies that are not language models, the action indices.
        mask: ``(T,)`` bool, true for the decisions the policy made and may learn from.
        logprobs: ``(T,)`` float32, log-probabilities when sampled, after temperature; ``None`` for an outside author.
        text: the response decoded.
        stop: why it ended; all but ``eos``, ``stop`` and ``error`` mean truncated.
        entropies: ``(T,)`` float32, entropy in nats of each sampling distribution, where the engine reports it.
        sampled_prompt: the prompt it was *sampled* under, if another (hints, drafts, feedback).
        origins: ``(T,)`` uint8 of :class:`Origin`; ``None`` means all ``OWN``.
        spans: named ranges of response tokens.
        advantage_group: key of the samples it is compared with; ``None`` means its prompt's group.
        turns: the policy's turns, in order; empty where the response is one turn.
        forks: in order, where its tokens go on from another prompt; a policy reads it as :attr:`rows`, while rewards,
            credit and statistics see one response.
        trajectory: key of the trajectory it is a part of, where that is trained as several episodes.
        drawing: how it was drawn, where it is a sample of a policy that draws; its text is then the sample, its tokens
            number the noisy steps.
        path: of a policy of numbers, the steps that its decisions were; equally many tokens are a step's.
        meta: anything else (role, version of the weights that sampled it).
    """

    prompt: np.ndarray
    tokens: np.ndarray
    mask: np.ndarray
    logprobs: np.ndarray | None
    text: str
    stop: Stop
    entropies: np.ndarray | None = None
    sampled_prompt: np.ndarray | None = None
    origins: np.ndarray | None = None
    spans: tuple[Span, ...] = ()
    advantage_group: str | None = None
    turns: tuple[Turn, ...] = ()
    forks: tuple[Fork, ...] = ()
    trajectory: str | None = None
    drawing: Drawing | None = None
    path: Path | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def truncated(self) -> bool:
        return self.stop in ("length", "context", "turns", "limit")

    @property
    def rows(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The prompts and responses that it is made of, one without forks; every token stands in one response."""
        prompts = [self.prompt, *(fork.prompt for fork in self.forks)]
        return list(zip(prompts, np.split(self.tokens, [fork.start for fork in self.forks]), strict=True))

    @property
    def reading(self) -> int:
        """Tokens that a policy reads of it, the first prompt apart."""
        return len(self.tokens) + sum(len(fork.prompt) for fork in self.forks)


@dataclass(frozen=True, slots=True)
class Group:
    """A task and the episodes sampled for it: the natural unit of group-relative methods.

    ``verdicts`` is empty before verification and as long as ``episodes`` after it. ``before`` is the group as the
    policy answered it by itself, where responses were changed or put in since (hints, retries, a teacher's).
    """

    ask: Ask
    episodes: tuple[Episode, ...]
    verdicts: tuple[Verdict, ...] = ()
    before: Group | None = None

    @property
    def task(self) -> Task:
        return self.ask.task

    @property
    def derived(self) -> bool:
        """Whether its task was made from judged responses to another one, rather than asked."""
        return self.task.parent is not None

    def judged(self, verdicts: Sequence[Verdict]) -> Group:
        """Return the group with one verdict per episode."""
        if len(verdicts) != len(self.episodes):
            raise ValueError(f"{len(verdicts)} verdicts for {len(self.episodes)} episodes of task {self.task.id}")
        return replace(self, verdicts=tuple(verdicts))
