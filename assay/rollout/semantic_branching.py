"""Responses that branch from earlier ones where the next word was open in meaning, not merely in wording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.engines.base import Engine, Request, Sampling
from assay.engines.joined import beginning, joined, stopped
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import full_prompt
from assay.types import Ask, Episode, Group, Prompt, Task


def semantic_entropy(
    p: Float[Tensor, "... K"], unit: Float[Tensor, "... K D"], entropy: Float[Tensor, "..."] | None = None
) -> Float[Tensor, "..."]:
    """Return SE = H * SD: H the entropy of the next token, SD = -sum_{i != j} p_i p_j cos(e_i, e_j) of the likeliest.

    Two equally likely synonyms have SD = -1/2, two opposites 1/2, two unrelated tokens 0.

    Args:
        p: probabilities of the likeliest tokens.
        unit: these tokens' embeddings, of length 1.
        entropy: H; without it -sum p ln p, the likeliest tokens being all there are.
    """
    if entropy is None:
        entropy = torch.special.entr(p).sum(-1)
    mean = (p[..., None] * unit).sum(-2)
    # The sum over i = j, p_i^2, is in the square of the mean's length too.
    spread = (p.square() * unit.square().sum(-1)).sum(-1) - mean.square().sum(-1)
    return entropy * spread


@torch.no_grad()
def semantic_entropies(
    policy: Any, episodes: Sequence[Episode], top: int = 20, temperature: float = 1.0, budget: int = 8192
) -> list[np.ndarray]:
    """Return the semantic entropy at each token of each response, of the choice that was made there.

    The entropy is that of all tokens; how far apart they are in meaning is that of the ``top`` likeliest, by input
    embeddings. Tokens of a tabular policy, which have no embeddings, are taken to be equally unlike each other.

    Args:
        policy: whose choices and embeddings they are.
        episodes: prompts and responses.
        top: see above.
        temperature: of sampling.
        budget: tokens of a pass.
    """
    if not episodes:
        return []
    batch = Batch.from_groups([Group(Ask(Task("", ""), 1), (e,)) for e in episodes])
    out: list[np.ndarray] = [np.zeros(0)] * len(episodes)
    table = _embeddings(policy)
    for rows in policy.micro_batches(batch, budget):
        part_ = batch.rows(rows)
        hidden = policy.forward(part_, {"hidden"}, temperature).live["hidden"]
        inside = torch.arange(hidden.shape[1]) < torch.tensor([len(e.tokens) for e in part_.episodes])[:, None]
        flat = hidden[inside.to(hidden.device)]
        values = [_of_choices(logp, table, top) for logp in _choices(policy, flat, temperature)]
        pieces = torch.cat([torch.zeros(0), *values]).split(inside.sum(-1).tolist())
        for i, piece in zip(rows.tolist(), pieces, strict=True):
            out[i] = piece.numpy()
    return out


def _embeddings(policy: Any) -> Tensor:
    """Unit embeddings of all tokens."""
    if getattr(policy, "tree", None) is not None:
        width = policy.tree.children.shape[1]
        apart = torch.eye(width) - 1 / width
        return torch.nn.functional.normalize(apart, dim=-1)
    return torch.nn.functional.normalize(policy.model.get_input_embeddings().weight.float(), dim=-1)


def _choices(policy: Any, hidden: Tensor, temperature: float) -> Iterator[Tensor]:
    """Log-probabilities of the tokens that hidden states predict, in blocks."""
    if getattr(policy, "tree", None) is not None:
        yield policy.log_policy(temperature)[hidden.argmax(-1)]
        return
    for h in hidden.split(policy.head.rows()):
        yield policy.head.logits(h, temperature).float().log_softmax(-1)


def _of_choices(logp: Tensor, table: Tensor, top: int) -> Tensor:
    """Semantic entropy of choices among all tokens."""
    p = logp.exp()
    kept, tokens = p.topk(min(top, logp.shape[-1]), dim=-1)
    return semantic_entropy(kept.float(), table[tokens], torch.special.entr(p).sum(-1).float()).cpu()


@dataclass(slots=True)
class Grown:
    """The responses to one prompt: each whole, where it branched, and what had to be generated for it."""

    episodes: list[Episode]
    nodes: list[tuple[int, ...]]
    fresh: list[int]


def grow(
    prompts: Sequence[Prompt],
    counts: Sequence[int],
    engine: Engine,
    sampling: Sampling,
    rng: np.random.Generator,
    eps: float,
    top: int,
) -> list[Grown]:
    """Sample ``counts[i]`` responses to each prompt, one after the other, see :class:`SemanticBranching`."""
    policy = getattr(engine, "policy", None)
    if policy is None:
        raise UsageError("semantic branching reads the policy itself, which this engine does not give")
    grown = [Grown([], [], []) for _ in prompts]
    entropies: list[list[np.ndarray]] = [[] for _ in prompts]
    used: list[set[tuple[int, ...]]] = [set() for _ in prompts]
    for turn in range(max(counts, default=0)):
        rows = [i for i, n in enumerate(counts) if turn < n]
        heads: list[Episode | None] = []
        for i in rows:
            found = None
            if turn and rng.random() >= eps:
                found = _openest(grown[i].episodes, entropies[i], used[i])
            heads.append(None if found is None else beginning(grown[i].episodes[found[0]], found[1], engine))
            if found is not None:
                used[i].add(tuple(int(t) for t in grown[i].episodes[found[0]].tokens[: found[1]]))
        requests = []
        for i, head in zip(rows, heads, strict=True):
            prefix = () if head is None else tuple(int(t) for t in head.tokens)
            drawn = replace(sampling, max_tokens=sampling.max_tokens - len(prefix))
            requests.append(Request(prompts[i], 1, drawn, int(rng.integers(2**63)), prefix))
        new = [many[0] for many in engine.generate(requests)]
        whole = [stopped(joined(h, e, engine), sampling.stop, engine) for h, e in zip(heads, new, strict=True)]
        found_se = semantic_entropies(policy, whole, top, sampling.temperature or 1.0)
        for i, rest, episode, se in zip(rows, new, whole, found_se, strict=True):
            grown[i].episodes.append(episode)
            grown[i].fresh.append(len(rest.tokens))
            entropies[i].append(se)
    for g, prefixes in zip(grown, used, strict=True):
        g.nodes = [_through(e, prefixes) for e in g.episodes]
    return grown


def _openest(
    episodes: Sequence[Episode], entropies: Sequence[np.ndarray], used: set[tuple[int, ...]]
) -> tuple[int, int] | None:
    """Return (response, position) of the largest semantic entropy where nothing branched yet, the first of equals."""
    order = sorted(
        ((-float(v), r, t) for r, row in enumerate(entropies) for t, v in enumerate(row) if t > 0),
    )
    for _, r, t in order:
        if tuple(int(x) for x in episodes[r].tokens[:t]) not in used:
            return r, t
    return None


def _through(episode: Episode, prefixes: set[tuple[int, ...]]) -> tuple[int, ...]:
    """Return how many tokens stand before each branch point that a response runs through, the root's 0 first."""
    tokens = tuple(int(t) for t in episode.tokens)
    return (0, *sorted(len(p) for p in prefixes if tokens[: len(p)] == p))


@part("rollout", "semantic_branching")
@dataclass(frozen=True, slots=True)
class SemanticBranching:
    """The first response is from the prompt; each further one is so with probability ``eps``, and else it branches.

    It branches at the position of largest semantic entropy (see :func:`semantic_entropies`) of all responses so far at
    which none has branched: the tokens before it are kept and what follows is sampled anew. Episodes say in
    ``meta["nodes"]`` after how many tokens they pass a branch point, the prompt's 0 first.

    A position is known by the tokens before it, so that branches of different responses are told apart. With ``eps`` 1
    it is ``single_turn``.

    Source: ROSE (arXiv 2601.05053).

    Args:
        sampling: supplied by the run.
        eps: in [0, 1].
        top: tokens whose meanings the semantic entropy looks at.

    Raises:
        UsageError: an option out of range, or an engine that does not give its policy.
    """

    sampling: Sampling
    eps: float = 0.5
    top: int = 20

    def __post_init__(self) -> None:
        if not 0 <= self.eps <= 1 or self.top < 2:
            raise UsageError(
                f"rollout 'semantic_branching': eps {self.eps:g} must be in [0, 1] and top {self.top} at least 2"
            )

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        prompts = [full_prompt(a) for a in asks]
        grown = grow(prompts, [a.n for a in asks], engine, self.sampling, rng, self.eps, self.top)
        return [
            Group(
                ask,
                tuple(
                    replace(e, meta={**e.meta, "nodes": nodes}) for e, nodes in zip(g.episodes, g.nodes, strict=True)
                ),
            )
            for ask, g in zip(asks, grown, strict=True)
        ]
