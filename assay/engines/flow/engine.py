"""The engine of a flow: steps from noise to samples, those in a window with noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from assay.engines.base import Request, Sampling
from assay.engines.flow.sampling import FlowSampling
from assay.errors import UsageError
from assay.ops.denoising import grid, step, step_logprob
from assay.policies.flow.policy import FlowPolicy
from assay.policies.flow.samples import read, split, written
from assay.registry import part
from assay.types import Drawing, Episode, Prompt


class FlowEngine:
    """Draws with the very weights that are trained, in ``sampling.max_tokens`` steps.

    At temperature 0 no step is noisy: the ODE's sample, with nothing decided. An episode's text is the sample
    (:mod:`assay.policies.flow.samples`), its tokens number the noisy steps, its :class:`~assay.types.Drawing` says the
    rest.

    Args:
        policy: the flow.
        max_rows: samples drawn together.
    """

    def __init__(self, policy: FlowPolicy, max_rows: int = 1024):
        self.policy = policy
        self.max_rows = max_rows

    def observe(self, step: int) -> None:
        """Called before each step of a drawing; for whoever wants to end it."""

    def encode(self, prompt: Prompt) -> np.ndarray:
        return self.policy.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.policy.encode_response(text, end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return self.policy.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`.

        Raises:
            UsageError: a request has what only text has: stop strings, a prefix, a catalogue, a beam, top-p or top-k.
        """
        alike: dict[Sampling, list[int]] = {}
        for i, request in enumerate(requests):
            if request.within is not None or request.beam or request.prefix:
                raise UsageError("a flow draws whole samples: no prefix to go on from, no catalogue, no beam")
            if request.sampling.stop or request.sampling.top_p != 1 or request.sampling.top_k:
                raise UsageError("a flow has no tokens: rollout.stop, top_p and top_k are not for it; leave them out")
            alike.setdefault(request.sampling, []).append(i)
        out: list[list[Episode]] = [[] for _ in requests]
        for sampling, members in alike.items():
            rows = [(i, k) for i in members for k in range(requests[i].n)]
            how = _Plan(self.policy, sampling, [requests[i] for i in members])
            for start in range(0, len(rows), self.max_rows):
                chosen = rows[start : start + self.max_rows]
                prompts = [self.encode(requests[i].prompt) for i, _ in chosen]
                drawn = how.draw(slice(start, start + self.max_rows), prompts, self.observe)
                for (i, _), episode in zip(chosen, drawn, strict=True):
                    out[i].append(episode)
        return out


class _Plan:
    """What requests of one sampling draw: noise and noisy steps of every row, by the requests' seeds alone."""

    def __init__(self, policy: FlowPolicy, sampling: Sampling, requests: Sequence[Request]):
        how = (
            sampling if isinstance(sampling, FlowSampling) else FlowSampling(sampling.max_tokens, sampling.temperature)
        )
        begin, end = how.window()
        self.policy, self.steps, self.temperature = policy, how.max_tokens, how.temperature
        self.sampler = how.sampler or policy.config.sampler
        self.noise = policy.config.noise if how.noise is None else how.noise
        self.count = 0 if how.temperature == 0 else how.trained or end - begin
        starts, noise, begins = [], [], []
        for request in requests:
            rng = np.random.default_rng(request.seed)
            parties = -(-request.n // how.branch)
            party = np.arange(request.n) // how.branch
            starts.append(rng.standard_normal((parties, policy.size), dtype=np.float32)[party])
            begins.append((begin + rng.integers(end - begin - self.count + 1, size=parties))[party])
            noise.append(rng.standard_normal((request.n, self.count, policy.size), dtype=np.float32))
        self.starts, self.kicks, self.begins = np.concatenate(starts), np.concatenate(noise), np.concatenate(begins)
        self.levels = how.strength * grid(how.max_tokens, policy.config.shift)
        self.draft: np.ndarray | None = None
        if how.draft:
            self.draft = read(split(how.draft)[1], policy.config.shape)
            self.starts = np.float32(1 - how.strength) * self.draft.reshape(1, -1) + how.strength * self.starts

    @torch.no_grad()
    def draw(self, rows: slice, prompts: Sequence[np.ndarray], observe: Callable[[int], None]) -> list[Episode]:
        """Return the episodes of some rows; ``observe`` is told of every step."""
        policy, device = self.policy, self.policy.device
        kicks, begins = torch.from_numpy(self.kicks[rows]).to(device), torch.from_numpy(self.begins[rows]).to(device)
        levels, every = self.levels, torch.arange(len(prompts), device=device)
        said, x = policy.prompts(prompts), torch.from_numpy(self.starts[rows]).to(device)
        states, logprobs = [x], torch.zeros(len(x), self.count, device=device)
        drafts = policy.drafts([self.draft] * len(x))
        for k in range(self.steps):
            observe(k)
            level, following = levels[k].to(device).expand(len(x), 1), levels[k + 1].to(device).expand(len(x), 1)
            v = policy.velocity(x, level[:, 0], said, drafts)
            place = k - begins
            noisy = (place >= 0) & (place < self.count)
            after = x + v * (following - level)
            if bool(noisy.any()):
                at, own = every[noisy], place[noisy]
                first = levels[1].to(device).expand(len(at), 1)
                heat = torch.full((len(at), 1), self.noise * self.temperature, device=device)
                mean, deviation = step(x[at], v[at], level[at], following[at], first, heat, self.sampler)
                after[at] = mean + deviation * kicks[at, own]
                logprobs[at, own] = step_logprob(after[at], mean, deviation, self.sampler)
            x = after
            states.append(x)
        path = torch.stack(states, 1).reshape(len(x), -1, *policy.config.shape).cpu().numpy()
        return [self._episode(prompts[i], path[i], levels.numpy(), int(begins[i]), logprobs[i]) for i in range(len(x))]

    def _episode(
        self, prompt: np.ndarray, states: np.ndarray, levels: np.ndarray, begin: int, logprobs: torch.Tensor
    ) -> Episode:
        tokens = np.arange(self.count, dtype=np.int64)
        return Episode(
            prompt=prompt,
            tokens=tokens,
            mask=np.ones(self.count, dtype=bool),
            logprobs=logprobs.cpu().numpy(),
            text=written(states[-1]),
            stop="eos",
            drawing=Drawing(states, levels, begin + tokens, self.noise, self.sampler, self.draft),
        )


@part("engine", "flow")
def flow_engine(policy: FlowPolicy, max_rows: int = 1024) -> FlowEngine:
    """Return the engine of a flow in training.

    Args:
        policy: what is trained.
        max_rows: samples drawn together.

    Raises:
        UsageError: the policy is no flow.
    """
    if not isinstance(policy, FlowPolicy):
        raise UsageError("engine flow draws from a flow; the model is a language model: leave engine.name out")
    return FlowEngine(policy, max_rows)
