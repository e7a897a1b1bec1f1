"""A reward model that consults tools before it scores: a language model that writes, with a number beside its head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from assay.batch import Batch
from assay.engines.asking import seed_of
from assay.engines.base import Engine, Sampling
from assay.engines.hf import HFEngine
from assay.environments.checking.consulting import judging
from assay.errors import UsageError
from assay.rewards.step_models.classifier import packed
from assay.rewards.step_models.examples import Row, StepExample, StepPair
from assay.rewards.step_models.on_states import StatesPRM, StepHead
from assay.rewards.step_models.training import StepModel, StepTraining
from assay.rollout.turns.multi_turn import MultiTurn
from assay.types import Ask, Episode, Group, Task

if TYPE_CHECKING:
    import numpy as np


class TracedRM(StatesPRM):
    """Scores a response by z = w h, h the state that predicts the last token of a trace about it.

    A trace is an episode of an environment in which the model is shown question and response, calls tools, is told what
    they return, and says what it makes of the response. Scoring plays it, greedily; a response whose trace failed has
    no score. z is made 2 s(z) - 1 in [-1, 1], as scorers of steps have it, which keeps its order.

    Args:
        policy: a :class:`~assay.policies.causal_lm.CausalLM`, which writes traces and is read.
        reader: linear.
        environment: name or table of the environment.
        calls: turns of a trace before the last, at most.
        max_tokens: of a turn.
        budget: tokens of a pass.
        engine: generates with the policy.
    """

    def __init__(
        self,
        policy: Any,
        reader: StepHead,
        environment: Any = "consulting",
        calls: int = 3,
        max_tokens: int = 256,
        budget: int = 8192,
        engine: Engine | None = None,
    ):
        StatesPRM.__init__(self, policy, reader, budget=budget)
        table = dict(environment) if isinstance(environment, Mapping) else {"name": environment}
        self.player = MultiTurn({**table, "calls": calls}, Sampling(max_tokens, 0.0), turns=calls + 1)
        self.engine: Engine = HFEngine(policy) if engine is None else engine

    def demonstrated(self, row: StepExample, rationale: bool = True) -> StepExample:
        """Return a response with the trace that its plan makes: ``meta["plan"]``, its calls, and ``meta["rationale"]``.

        Raises:
            EnvironmentFailure: a tool failed for a reason of its own.
        """
        task = self.judging(row)
        meta = task.meta if rationale else {**task.meta, "rationale": ""}
        return replace(row, episode=self.player.demonstrate(replace(task, meta=meta), self.engine))

    def judging(self, row: StepExample) -> Task:
        """Return the task of judging a response."""
        told = {k: row.task.meta[k] for k in ("plan", "rationale") if k in row.task.meta}
        return judging(row.task.question, "\n".join(row.steps), row.task.id, **told)

    @torch.no_grad()
    def score_examples(self, rows: Sequence[StepExample]) -> list[list[float] | None]:  # type: ignore[override]
        self.train(False)
        tasks = [self.judging(row) for row in rows]
        groups = self.player.play([Ask(t, 1) for t in tasks], [seed_of(t.question) for t in tasks], self.engine)
        episodes = [group.episodes[0] for group in groups]
        traced = [(i, e) for i, e in enumerate(episodes) if e.stop != "error" and len(e.tokens)]
        out: list[list[float] | None] = [None] * len(rows)
        for part in packed([_length(e) for _, e in traced], self.budget):
            values = self.passed([traced[j][1] for j in part])[1]
            for j, z in zip(part, values.tolist(), strict=True):
                out[traced[j][0]] = [float(torch.tensor(z / 2).tanh())]
        return out

    def passed(self, traces: Sequence[Episode]) -> tuple[Float[Tensor, "N T"], Float[Tensor, "N"]]:
        """Return the log-probabilities of the tokens of traces, and z of each, from one pass."""
        batch = Batch.from_groups([Group(Ask(Task(str(i), ""), 1), (e,)) for i, e in enumerate(traces)])
        found = self.policy.forward(batch, {"hidden"})
        hidden = found.live["hidden"]
        last = torch.tensor([len(e.tokens) - 1 for e in traces], device=hidden.device)
        states = hidden[torch.arange(len(traces), device=hidden.device), last]
        linear: Any = self.reader.linear
        return found.logprobs, linear(states.to(linear.weight.dtype))[:, 0]


@dataclass(frozen=True, slots=True)
class TracedTraining(StepTraining):
    """Both heads learn at once, from pairs whose responses have a plan and a rationale:

        L = mean over tokens of -log p(token) + weight mean over pairs of -log sigmoid(z+ - z-)

    over the tokens of both traces of every pair; the question and the response are not among them.

    Args:
        weight: see above.
        observations: what tools return is learned as well; else it is only read.
        rationale: traces end with a rationale, and not with the last observation.

    Raises:
        UsageError: ``weight`` not above 0; of a fit, no pairs, or another model.
    """

    weight: float = 0.5
    observations: bool = True
    rationale: bool = True

    def __post_init__(self) -> None:
        StepTraining.__post_init__(self)
        if self.weight <= 0:
            raise UsageError(f"traces: the weight {self.weight:g} of preferences must be above 0")

    def fit(self, model: StepModel, data: Sequence[Row], rng: np.random.Generator) -> list[float]:
        if not isinstance(model, TracedRM):
            raise UsageError("traces are learned by a model that writes them; leave out --kind")
        pairs = [row for row in data if isinstance(row, StepPair)]
        if not pairs:
            raise UsageError("a reward model with tools learns from pairs, rows of prompt, chosen and rejected")
        better, worse = (
            [model.demonstrated(row, self.rationale) for row in rows]
            for rows in ([p.better for p in pairs], [p.worse for p in pairs])
        )
        traced = [replace(p, better=b, worse=w) for p, b, w in zip(pairs, better, worse, strict=True)]
        return StepTraining.fit(self, model, traced, rng)

    def pieces(self, model: StepModel, rows: Sequence[Row]) -> Iterator[Tensor]:
        assert isinstance(model, TracedRM)
        pairs = [(_trace(row.better), _trace(row.worse)) for row in rows if isinstance(row, StepPair)]
        tokens = sum(int(self.learned(e).sum()) for pair in pairs for e in pair)
        for part in packed([max(map(_length, pair)) for pair in pairs], max(model.budget // 2, 1)):
            traces = [pairs[i][side] for side in (0, 1) for i in part]
            logprobs, z = model.passed(traces)
            told = [self.learned(e).to(logprobs.device) for e in traces]
            written = [row[: len(own)][own].sum() for row, own in zip(logprobs, told, strict=True)]
            gaps = z[: len(part)] - z[len(part) :]
            yield -torch.stack(written).sum() / max(tokens, 1) - self.weight * logsigmoid(gaps).sum() / len(pairs)

    def learned(self, trace: Episode) -> Tensor:
        """Return which tokens of a trace are learned."""
        own = torch.from_numpy(trace.mask)
        return torch.ones_like(own) if self.observations else own


def _trace(row: StepExample) -> Episode:
    assert row.episode is not None
    return row.episode


def _length(trace: Episode) -> int:
    return len(trace.prompt) + len(trace.tokens)
