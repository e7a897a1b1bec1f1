"""What tests of rewards made of a reference's likelihood share: a small tree that reads as text, and a nano model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.engines.tabular import TabularEngine
from assay.lab.settings.open_ended.references import Spelled
from assay.learning.signals import compute_signals, wants_reference
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.tabular import Tree, enumerate_groups
from assay.signals.base import Models
from assay.types import Ask, Episode, Group, Task, Verdict

NANO = {"hidden": 16, "layers": 2, "heads": 2, "context": 128, "alphabet": "0123456789+=<>/answer think\n"}


def tree(seed: int = 0, thoughts: int = 2, answers: int = 3) -> Spelled:
    """Responses "=k", "a=k", "b=k" ...: a thought or none, then one of some answers, all with random logits."""
    end = [float(k == 1) for k in range(answers)]
    made = Tree.of([[end, *([end] for _ in range(thoughts))]])
    return Spelled.random(made, seed)


def all_groups(policy: Spelled, size: int, reference: str = "a") -> tuple[Batch, torch.Tensor]:
    """Every ordered group of responses as a batch, each sample weighted by the probability of its group."""
    groups, chance = enumerate_groups(policy, size)
    made = []
    task = Task("0", "0", reference, kind="tabular")
    prompt = np.zeros(1, dtype=np.int64)
    tokens = torch.tensor([[*path[1:], 0, 0, 0][:3] for path in policy.tree.paths])
    lengths = torch.tensor([len(path) - 1 for path in policy.tree.paths])
    leaves = policy.episodes(tokens, lengths, prompts=[prompt] * len(tokens))
    for row in groups.tolist():
        episodes = tuple(spelled(policy, leaves[leaf]) for leaf in row)
        right = tuple(Verdict.right() if e.text.endswith("=" + reference) else Verdict.wrong() for e in episodes)
        made.append(Group(Ask(task, size), episodes, right))
    batch = Batch.from_groups(made, torch.float64)
    weights = chance.detach()[:, None].expand(-1, size).flatten()
    batch.weights = weights.clone()
    return batch, weights


def spelled(policy: Spelled, episode: Episode) -> Episode:
    from dataclasses import replace

    return replace(episode, text=policy.decode(episode.tokens))


def valued(method: Any, policy: Any, batch: Batch) -> Batch:
    """The batch with signals, rewards and advantages; weights stay what they are."""
    reference = policy.twin() if wants_reference(method.needs) else None
    encode = policy.encode if hasattr(policy, "encode") else TabularEngine(policy).encode
    compute_signals(batch, method.needs, Models(policy, reference, encode=encode))
    weights = batch.weights
    method.value(batch)
    batch.weights = weights
    return batch


def loss_gradient(method: Any, policy: Any, batch: Batch) -> torch.Tensor:
    """Gradient of the objective times its number of samples, for a tabular policy."""
    getattr(method.objective, "prepare", lambda _: None)(batch)
    output = policy.forward(batch, method.live)
    batch.live = output.live
    policy.logits.grad = None
    method.objective(output.logprobs, batch).value.backward()
    assert batch.totals is not None
    return policy.logits.grad * batch.totals.sequences


def nano(seed: int = 0) -> CausalLM:
    """A language model of a few characters, its weights far from their start."""
    torch.manual_seed(seed)
    made = CausalLM.load(ModelConfig(source="nano", nano=NANO), seed)
    for parameter in made.module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return made


def responses(
    policy: CausalLM,
    texts: Sequence[str],
    reference: Any = "42",
    passed: Sequence[bool | None] | None = None,
    stop: str = "eos",
    meta: dict[str, Any] | None = None,
    prompt: str = "40+2=",
) -> Batch:
    """Responses of these texts to one prompt, as one group."""
    episodes, verdicts = [], []
    for i, text in enumerate(texts):
        tokens = policy.encode_response(text, end=stop == "eos")
        uncertain = np.linspace(0, 1, len(tokens), dtype=np.float32)
        logprobs = np.full(len(tokens), -1, dtype=np.float32)
        mask = np.ones(len(tokens), dtype=bool)
        made = Episode(policy.encode(prompt), tokens, mask, logprobs, text, stop, uncertain, meta=meta or {})  # type: ignore[arg-type]
        episodes.append(made)
        told = passed[i] if passed else False
        verdicts.append(Verdict(float(bool(told)), told, {}, "" if told is not None else "timed out"))
    task = Task("t", prompt, reference)
    return Batch.from_groups([Group(Ask(task, len(texts)), tuple(episodes), tuple(verdicts))], torch.float64)


def alone(policy: CausalLM, prefix: str, told: str, prompt: str = "40+2=") -> list[float]:
    """Log-probabilities of ``told`` after prompt and prefix, as one sequence by itself."""
    before = np.concatenate([policy.encode(prompt), policy.encode_response(prefix, end=False)])
    tokens = policy.encode_response(told, end=False)
    episode = Episode(before, tokens, np.ones(len(tokens), dtype=bool), None, "", "stop")
    one = Batch.from_groups([Group(Ask(Task("t", prompt), 1), (episode,))], torch.float64)
    with torch.no_grad():
        return policy.forward(one).logprobs[0].tolist()
