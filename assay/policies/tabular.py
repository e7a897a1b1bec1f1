"""A softmax policy over a small decision tree, whose expectations are exact.

Everything a sampled method estimates (expected reward, its gradient, divergences, expectations over whole groups) is
here a sum over leaves, so this policy is the oracle that credits and objectives are tested against.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from assay.batch import Batch, pad
from assay.errors import UsageError
from assay.policies.base import QUANTITIES, PolicyOutput
from assay.policies.probes import asked, padded
from assay.types import Episode

FILE = "model.safetensors"


@dataclass(frozen=True, slots=True)
class Leaf:
    """An end of the tree: its reward and a name for people."""

    reward: float = 0.0
    label: str = ""


@dataclass(frozen=True, eq=False)
class Tree:
    """A finite decision tree: K internal nodes with up to W children each, L leaves, at most D decisions to a leaf.

    Make one with :meth:`of`, :meth:`uniform` or :meth:`bandit`. Node 0 is the root; leaves are numbered from left to
    right. A *token* is the index of a child, a *path* the tokens from the root to a leaf.

    Attributes:
        children: ``(K, W)`` int64: the internal node that a token leads to; ``-1 - leaf`` for a leaf; 0 for no child.
        rewards: ``(L,)`` float64.
        labels: L names.
    """

    children: Int[Tensor, "K W"]
    rewards: Float[Tensor, "L"]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, root: Sequence[Any]) -> Tree:
        """Build from nested sequences: a sequence is a node, a number or a :class:`Leaf` is an end.

        ``Tree.of([0, [1, 0], [0, [0, 1]]])`` has paths of one to three tokens and a root with three children.

        Raises:
            UsageError: the root is not a node, a node has no children, or an entry is something else.
        """
        rows: list[list[int]] = []
        leaves: list[Leaf] = []
        todo: list[tuple[Any, int, int]] = [(root, -1, 0)]
        while todo:
            item, parent, token = todo.pop()
            if isinstance(item, (list, tuple)) and item:
                code = len(rows)
                rows.append([0] * len(item))
                todo.extend((child, code, i) for i, child in reversed(list(enumerate(item))))
            elif isinstance(item, (Leaf, int, float)) and parent >= 0:
                leaves.append(item if isinstance(item, Leaf) else Leaf(float(item)))
                code = -len(leaves)
            else:
                raise UsageError(f"a tree is non-empty lists that end in numbers or Leaf(reward, label), not {item!r}")
            if parent >= 0:
                rows[parent][token] = code
        children = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.int64)
        for row, codes in zip(children, rows, strict=True):
            row[: len(codes)] = torch.tensor(codes)
        rewards = torch.tensor([x.reward for x in leaves], dtype=torch.float64)
        return cls(children, rewards, tuple(x.label for x in leaves))

    @classmethod
    def uniform(cls, branching: int, depth: int, rewards: Sequence[float] | None = None) -> Tree:
        """Every node has ``branching`` children, every path ``depth`` tokens; rewards from left to right, or 0.

        Raises:
            UsageError: a size below 1, or not one reward per leaf.
        """
        if branching < 1 or depth < 1:
            raise UsageError(f"a tree needs branching >= 1 and depth >= 1, not {branching} and {depth}")
        rewards = [0.0] * branching**depth if rewards is None else rewards
        if len(rewards) != branching**depth:
            raise UsageError(f"{len(rewards)} rewards for a tree of {branching**depth} leaves; give one for each")
        level: list[Any] = [float(r) for r in rewards]
        for _ in range(depth):
            level = [level[i : i + branching] for i in range(0, len(level), branching)]
        return cls.of(level[0])

    @classmethod
    def bandit(cls, arms: int, rewards: Sequence[float] | None = None) -> Tree:
        """One decision among ``arms``."""
        return cls.uniform(arms, 1, rewards)

    def __len__(self) -> int:
        """Number of leaves."""
        return len(self.rewards)

    @cached_property
    def paths(self) -> list[tuple[int, ...]]:
        """The path to each leaf."""
        paths: list[tuple[int, ...]] = []
        todo: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        while todo:
            code, path = todo.pop()
            if code < 0:
                paths.append(path)
                continue
            row = [c for c in self.children[code].tolist() if c]
            todo.extend((c, (*path, i)) for i, c in reversed(list(enumerate(row))))
        return paths

    @cached_property
    def lengths(self) -> Int[Tensor, "L"]:
        """Tokens to each leaf."""
        return torch.tensor([len(p) for p in self.paths])

    @cached_property
    def tokens(self) -> Int[Tensor, "L D"]:
        """Paths as a tensor, 0 after their end."""
        tokens = torch.zeros(len(self), int(self.lengths.max()), dtype=torch.int64)
        for row, path in zip(tokens, self.paths, strict=True):
            row[: len(path)] = torch.tensor(path)
        return tokens

    @cached_property
    def nodes(self) -> Int[Tensor, "L D"]:
        """The node at which each token of each path is chosen, 0 after their end."""
        return self.walk(self.tokens, self.lengths)

    @property
    def depth(self) -> int:
        """Tokens of the longest path."""
        return self.tokens.shape[1]

    def node(self, path: Sequence[int]) -> int | None:
        """Return the internal node that a path from the root leads to, or ``None`` if it leads to none."""
        node = 0
        for token in path:
            if not 0 <= token < self.children.shape[1] or (node := int(self.children[node, token])) <= 0:
                return None
        return node

    def walk(
        self, tokens: Int[Tensor, "N T"], lengths: Int[Tensor, "N"], starts: Int[Tensor, "N"] | None = None
    ) -> Int[Tensor, "N T"]:
        """Return the node at which each of a row's first ``lengths`` tokens is chosen, and 0 after them.

        Args:
            tokens: paths.
            lengths: tokens of each that count.
            starts: the nodes at which rows begin; the root if left out.

        Raises:
            UsageError: a token is not a child of the node reached, or follows a leaf.
        """
        nodes = torch.zeros_like(tokens)
        node = torch.zeros(len(tokens), dtype=torch.int64) if starts is None else starts
        for t in range(tokens.shape[1]):
            on, token = lengths > t, tokens[:, t]
            known = (node >= 0) & (token >= 0) & (token < self.children.shape[1])
            after = torch.where(known, self.children[node.clamp(min=0), torch.where(known, token, 0)], 0)
            if bool((on & (after == 0)).any()):
                row = int(torch.nonzero(on & (after == 0))[0, 0])
                path = text_of(tokens[row, : int(lengths[row])].tolist())
                raise UsageError(f"{path!r} is not a path of the tree: it leaves it at token {t}")
            nodes[:, t] = torch.where(on, node, 0)
            node = torch.where(on, after, node)
        return nodes


class TabularPolicy:
    """Independent softmax at every node of a tree: pi(path) = prod_t softmax(logits[node_t] / temperature)[token_t].

    Methods called ``exact_*`` and ``expected*`` enumerate the leaves. They are differentiable with respect to
    ``logits`` unless they say otherwise. A batch's episodes are paths of the tree, or pieces of paths: an episode's
    prompt is the path to the node where its tokens begin, empty for the root.

    Args:
        tree: the decisions.
        logits: ``(K, W)``, the only parameter, copied; zeros (uniform at every node) if left out. Entries without a
            child are never used.
        dtype: of the parameter.
    """

    quantities = QUANTITIES - {"next_logprob"}

    def __init__(self, tree: Tree, logits: Float[Tensor, "K W"] | None = None, dtype: torch.dtype = torch.float64):
        if logits is not None and logits.shape != tree.children.shape:
            raise UsageError(f"the tree needs logits of shape {tuple(tree.children.shape)}, not {tuple(logits.shape)}")
        start = torch.zeros(tree.children.shape) if logits is None else logits.detach().clone()
        self.tree = tree
        self.logits = torch.nn.Parameter(start.to(dtype))
        self.module: torch.nn.Module = torch.nn.ParameterDict({"logits": self.logits})

    @classmethod
    def random(cls, tree: Tree, seed: int, scale: float = 1.0) -> TabularPolicy:
        """Return a policy with normal logits of standard deviation ``scale``."""
        generator = torch.Generator().manual_seed(seed)
        return cls(tree, scale * torch.randn(tree.children.shape, generator=generator, dtype=torch.float64))

    # The policy protocol

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        """See :class:`assay.policies.base.Policy`. The hidden state of every layer is the node, as a one-hot vector.

        Raises:
            UsageError: an episode is no path of the tree, or the temperature is not positive.
        """
        device = self._device
        lengths = torch.tensor([len(e.tokens) for e in batch.episodes], dtype=torch.int64)
        tokens = batch.tokens.cpu()
        nodes = self.tree.walk(tokens, lengths, self.starts([e.prompt for e in batch.episodes])).to(device)
        inside = (torch.arange(tokens.shape[1]) < lengths[:, None]).to(device)
        logp = self.log_policy(temperature)
        out = PolicyOutput(torch.where(inside, logp[nodes, tokens.to(device)], 0))
        for name in live:
            if name == "continuation_logprobs":
                out.live[name] = asked(self, batch, temperature)
                continue
            values = self._quantity(name, nodes, tokens.to(device), temperature, batch)
            out.live[name] = torch.where(inside.reshape(*inside.shape, *[1] * (values.ndim - 2)), values, 0)
        return out

    def _quantity(
        self,
        name: str,
        nodes: Int[Tensor, "N T"],
        tokens: Int[Tensor, "N T"],
        temperature: float,
        batch: Batch,
    ) -> Tensor:
        """Return what :data:`assay.policies.base.QUANTITIES` describes, ``(N, T, ...)``."""
        logp = self.log_policy(temperature)
        legal, kind = self._legal, name.partition("@")[0]
        children = legal.sum(-1)
        if kind == "entropy":
            return self.node_entropy(temperature)[nodes]
        if kind == "self_certainty":
            z = self.logits.masked_fill(~legal, -torch.inf)
            return (z.logsumexp(-1) - torch.where(legal, self.logits, 0).sum(-1) / children)[nodes]
        if kind == "probability_gap":
            p = self.log_policy().exp().sort(descending=True).values
            return (p[:, 0] - p[:, 1:2].sum(-1))[nodes]
        if kind == "logit":
            return self.logits[nodes, tokens]
        if kind == "mean_logprob":
            return (torch.where(legal, logp, 0).sum(-1) / children)[nodes]
        if kind == "candidate_logprobs":
            return logp[nodes[..., None], batch.signals["candidates"].to(nodes.device)]
        return torch.nn.functional.one_hot(nodes, len(logp)).to(logp.dtype)

    def starts(self, prompts: Sequence[np.ndarray]) -> Int[Tensor, "N"]:
        """Return the node that each prompt, a path from the root, leads to.

        Raises:
            UsageError: a prompt leads to no node.
        """
        known: dict[tuple[int, ...], int] = {}
        for path in {tuple(p.tolist()) for p in prompts}:
            node = self.tree.node(path)
            if node is None:
                raise UsageError(f"the prompt {text_of(path)!r} leads to no node of the tree")
            known[path] = node
        return torch.tensor([known[tuple(p.tolist())] for p in prompts], dtype=torch.int64)

    def continuations(
        self,
        batch: Batch,
        at: Sequence[Sequence[int]],
        what: Sequence[Sequence[np.ndarray]],
        temperature: float = 1.0,
    ) -> Float[Tensor, "N K A"]:
        """See :class:`assay.policies.base.Policy`.

        Raises:
            UsageError: a continuation is no path of the tree.
        """
        nodes, tokens, lengths = self._probed(batch, at, what)
        return padded(self.log_policy(temperature)[nodes, tokens], lengths)

    @torch.no_grad()
    def continuation_ranks(
        self, batch: Batch, at: Sequence[Sequence[int]], what: Sequence[Sequence[np.ndarray]]
    ) -> Int[Tensor, "N K A"]:
        """See :class:`assay.policies.base.Policy`."""
        nodes, tokens, lengths = self._probed(batch, at, what)
        log_p = self.log_policy()[nodes]
        return padded((log_p > log_p.gather(-1, tokens[:, None])).sum(-1), lengths)

    def _probed(
        self, batch: Batch, at: Sequence[Sequence[int]], what: Sequence[Sequence[np.ndarray]]
    ) -> tuple[Int[Tensor, "S"], Int[Tensor, "S"], Int[Tensor, "N K"]]:
        """Return the nodes that the continuations' tokens leave, these tokens, and each continuation's length."""
        prompts = [
            np.concatenate([e.prompt, e.tokens[:after]])
            for e, points in zip(batch.episodes, at, strict=True)
            for after in points
        ]
        rows = [c for many in what for c in many]
        lengths = torch.zeros(len(what), max(map(len, what), default=0), dtype=torch.int64)
        for i, many in enumerate(what):
            lengths[i, : len(many)] = torch.tensor([len(c) for c in many], dtype=torch.int64)
        if not rows:
            return lengths.new_zeros(0), lengths.new_zeros(0), lengths
        sizes = torch.tensor([len(c) for c in rows], dtype=torch.int64)
        tokens = pad(rows, int(sizes.max()), np.int64)
        nodes = self.tree.walk(tokens, sizes, self.starts(prompts))
        inside = torch.arange(tokens.shape[1]) < sizes[:, None]
        return nodes[inside].to(self._device), tokens[inside].to(self._device), lengths

    def candidates(
        self, batch: Batch, n: int, temperature: float = 1.0, generator: torch.Generator | None = None
    ) -> Int[Tensor, "N T n"]:
        """Draw ``n`` tokens from the policy at every position of the responses, 0 after their end."""
        lengths = torch.tensor([len(e.tokens) for e in batch.episodes], dtype=torch.int64)
        nodes = self.tree.walk(batch.tokens.cpu(), lengths, self.starts([e.prompt for e in batch.episodes]))
        inside = torch.arange(nodes.shape[1]) < lengths[:, None]
        p = self.log_policy(temperature).detach().exp().cpu()[nodes.flatten()]
        drawn = torch.multinomial(p, n, replacement=True, generator=generator)
        return torch.where(inside[..., None], drawn.reshape(*nodes.shape, n), 0)

    @torch.no_grad()
    def likeliest(self, batch: Batch, n: int) -> Int[Tensor, "N T n"]:
        """See :class:`assay.policies.base.Policy`; where a node has fewer children, tokens without one come last."""
        lengths = torch.tensor([len(e.tokens) for e in batch.episodes], dtype=torch.int64)
        nodes = self.tree.walk(batch.tokens.cpu(), lengths, self.starts([e.prompt for e in batch.episodes]))
        inside = torch.arange(nodes.shape[1]) < lengths[:, None]
        log_p = self.log_policy().cpu()
        best = log_p.topk(min(n, log_p.shape[-1]), -1).indices
        return torch.where(inside[..., None], best[nodes], 0)

    def micro_batches(self, batch: Batch, budget: int) -> list[Int[Tensor, "M"]]:
        """See :class:`assay.policies.base.Policy`: rows in order, as many to a part as their tokens allow."""
        parts: list[list[int]] = []
        size = 0
        for row, episode in enumerate(batch.episodes):
            if not parts or size + len(episode.tokens) > budget:
                parts.append([])
                size = 0
            parts[-1].append(row)
            size += len(episode.tokens)
        return [torch.tensor(part, dtype=torch.int64) for part in parts]

    def save(self, folder: Path) -> None:
        """Write logits and tree to one safetensors file in ``folder``, which is made if need be."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        tensors = {"logits": self.logits.detach(), "children": self.tree.children, "rewards": self.tree.rewards}
        save_file(tensors, Path(folder) / FILE, metadata={"labels": json.dumps(self.tree.labels)})

    @classmethod
    def load(cls, folder: Path) -> TabularPolicy:
        """Return the policy that :meth:`save` wrote.

        Raises:
            UsageError: the folder holds no tabular policy.
        """
        path = Path(folder) / FILE
        if not path.is_file():
            raise UsageError(f"no tabular policy in {folder}: {path} does not exist")
        with safe_open(path, framework="pt") as file:
            if not {"logits", "children", "rewards"} <= set(file.keys()):
                raise UsageError(f"{path} holds no tabular policy (tensors logits, children, rewards)")
            tree = Tree(
                file.get_tensor("children"), file.get_tensor("rewards"), tuple(json.loads(file.metadata()["labels"]))
            )
            logits = file.get_tensor("logits")
        return cls(tree, logits, logits.dtype)

    def load_weights(self, folder: Path) -> None:
        """Take the logits that :meth:`save` wrote.

        Raises:
            UsageError: the folder holds no tabular policy, or one over another tree.
        """
        saved = TabularPolicy.load(folder)
        if not torch.equal(saved.tree.children, self.tree.children):
            raise UsageError(f"the policy in {folder} decides over another tree; load it with TabularPolicy.load")
        with torch.no_grad():
            self.logits.copy_(saved.logits)

    @property
    def width(self) -> int:
        """Number of nodes: a hidden state is one of them as a one-hot vector."""
        return len(self.logits)

    def twin(self) -> TabularPolicy:
        """Return a trainable copy with logits of its own."""
        return TabularPolicy(self.tree, self.logits, self.logits.dtype)

    def frozen(self, folder: Path) -> TabularPolicy:
        """Return the policy that :meth:`save` wrote, without gradients."""
        policy = TabularPolicy.load(folder)
        policy.module.requires_grad_(False)
        return policy

    # Single decisions

    def log_policy(self, temperature: float = 1.0) -> Float[Tensor, "K W"]:
        """Log-probability of each token at each node; minus infinity where there is no child."""
        if temperature <= 0:
            raise UsageError(f"log-probabilities need a temperature above 0, not {temperature}")
        return (self.logits / temperature).masked_fill(~self._legal, -torch.inf).log_softmax(-1)

    def node_entropy(self, temperature: float = 1.0) -> Float[Tensor, "K"]:
        """Entropy in nats of the decision at each node."""
        logp = self.log_policy(temperature)
        # -inf * 0 is NaN, in the gradient too, so it is removed before the product.
        return -(logp.exp() * torch.where(logp.isneginf(), 0, logp)).sum(-1)

    # Exact quantities, by enumeration of the leaves

    def leaf_logprobs(self, temperature: float = 1.0) -> Float[Tensor, "L"]:
        """Log-probability of each leaf."""
        return torch.where(self._inside, self.log_policy(temperature)[self._nodes, self._tokens], 0).sum(-1)

    def expected_reward(self, rewards: Float[Tensor, "L"] | None = None) -> Float[Tensor, ""]:
        """J = sum over leaves of pi(leaf) R(leaf); the tree's own rewards if none are given."""
        return (self.leaf_logprobs().exp() * self._rewards(rewards)).sum()

    def exact_gradient(self, rewards: Float[Tensor, "L"] | None = None) -> Float[Tensor, "K W"]:
        """Gradient of J with respect to ``logits``, in closed form and detached.

        dJ/dlogits[n, a] = reach(n) pi(a | n) (Q(n, a) - V(n)), with reach the probability to come through node n, Q and
        V the expected reward after taking a at n and before it.
        """
        with torch.no_grad():
            weighted = (self.leaf_logprobs().exp() * self._rewards(rewards))[:, None].expand(self._nodes.shape)
            through = torch.zeros_like(self.logits).index_put_(
                (self._nodes[self._inside], self._tokens[self._inside]), weighted[self._inside], accumulate=True
            )
            return through - self.log_policy().exp() * through.sum(-1, keepdim=True)

    def exact_kl(self, other: TabularPolicy) -> Float[Tensor, ""]:
        """KL(self || other) in nats over leaves; infinite if ``other`` rules out a leaf that ``self`` does not.

        Raises:
            UsageError: the two trees differ.
        """
        if not torch.equal(self.tree.children, other.tree.children):
            raise UsageError("the divergence of policies over different trees is not defined")
        mine, theirs = self.leaf_logprobs(), other.leaf_logprobs()
        gap = torch.where(mine.isneginf(), 0, mine - theirs)
        return (mine.exp() * gap).sum()

    def exact_entropy(self, temperature: float = 1.0) -> Float[Tensor, ""]:
        """Entropy in nats of the distribution over leaves."""
        logp = self.leaf_logprobs(temperature)
        return -(logp.exp() * torch.where(logp.isneginf(), 0, logp)).sum()

    def expected(self, function: Callable[[tuple[int, ...]], Any]) -> Tensor:
        """Expectation of ``function(path)``, a number or a tensor of any one shape."""
        values = torch.stack([torch.as_tensor(function(p), dtype=self.logits.dtype) for p in self.tree.paths])
        return torch.tensordot(self.leaf_logprobs().exp(), values, dims=1)

    # Episodes

    def episodes(
        self,
        tokens: Int[Tensor, "N T"],
        lengths: Int[Tensor, "N"],
        temperature: float = 1.0,
        prompts: Sequence[np.ndarray] | None = None,
    ) -> list[Episode]:
        """Return paths, or pieces of paths, as episodes with this policy's log-probabilities and entropies.

        Args:
            tokens, lengths: what was decided.
            temperature: at which.
            prompts: the path to where each piece begins; the root if left out.
        """
        prompts = [np.zeros(0, dtype=np.int64)] * len(tokens) if prompts is None else prompts
        with torch.no_grad():
            nodes = self.tree.walk(tokens, lengths, self.starts(prompts))
            logprobs = self.log_policy(temperature).cpu()[nodes, tokens].to(torch.float32).numpy()
            entropies = self.node_entropy(temperature).cpu()[nodes].to(torch.float32).numpy()
        ids, out = tokens.numpy(), []
        for i, n in enumerate(lengths.tolist()):
            ended = n > 0 and int(self.tree.children[nodes[i, n - 1], tokens[i, n - 1]]) < 0
            out.append(
                Episode(
                    prompt=prompts[i],
                    tokens=ids[i, :n].copy(),
                    mask=np.ones(n, dtype=bool),
                    logprobs=logprobs[i, :n].copy(),
                    text=text_of(ids[i, :n].tolist()),
                    stop="eos" if ended else "length",
                    entropies=entropies[i, :n].copy(),
                )
            )
        return out

    def leaf_episodes(self, leaves: Int[Tensor, "N"], temperature: float = 1.0) -> list[Episode]:
        """Return the paths to ``leaves`` as episodes."""
        return self.episodes(self.tree.tokens[leaves], self.tree.lengths[leaves], temperature)

    @property
    def _device(self) -> torch.device:
        # Not that of ``logits``, which other policies on a tree compute anew whenever they are asked for them.
        return next(self.module.parameters()).device

    @property
    def _legal(self) -> Bool[Tensor, "K W"]:
        return (self.tree.children != 0).to(self._device)

    @property
    def _nodes(self) -> Int[Tensor, "L D"]:
        return self.tree.nodes.to(self._device)

    @property
    def _tokens(self) -> Int[Tensor, "L D"]:
        return self.tree.tokens.to(self._device)

    @property
    def _inside(self) -> Bool[Tensor, "L D"]:
        return (torch.arange(self.tree.depth) < self.tree.lengths[:, None]).to(self._device)

    def _rewards(self, rewards: Float[Tensor, "L"] | None) -> Float[Tensor, "L"]:
        return (self.tree.rewards if rewards is None else rewards).to(self.logits)


def text_of(path: Sequence[int] | np.ndarray) -> str:
    """Write a path as text: tokens joined by slashes."""
    return "/".join(map(str, path))


def path_of(text: str) -> tuple[int, ...] | None:
    """Read a path that :func:`text_of` wrote; ``None`` for any other text."""
    parts = text.strip().split("/")
    return tuple(map(int, parts)) if all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts) else None


def enumerate_groups(policy: TabularPolicy, size: int) -> tuple[Int[Tensor, "M G"], Float[Tensor, "M"]]:
    """Return every ordered group of ``size`` leaves, M = L^size of them, and the probability of drawing each.

    The probabilities are differentiable and sum to 1, so that ``(probability * f(leaves)).sum()`` is the exact
    expectation of a group statistic f.

    Raises:
        UsageError: more than a million groups.
    """
    leaves = len(policy.tree)
    if size < 1 or leaves**size > 1_000_000:
        raise UsageError(f"{leaves}^{size} groups of leaves are not between 1 and a million; take a smaller tree")
    groups = torch.from_numpy(np.array(list(product(range(leaves), repeat=size)), dtype=np.int64))
    return groups, policy.leaf_logprobs()[groups.to(policy.logits.device)].sum(-1).exp()
