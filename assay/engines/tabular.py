"""Draws paths of a tree from a tabular policy, and judges them by the leaf they reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from assay.engines.base import Request, Sampling
from assay.engines.beam import Beams, check_beam
from assay.engines.sampling import draw, uniforms
from assay.engines.trie import Trie
from assay.errors import UsageError
from assay.policies.tabular import TabularPolicy, Tree, path_of, text_of
from assay.types import Episode, Prompt, Task, Verdict


class TabularEngine:
    """Samples the very logits that are trained. An episode's text is its path, such as ``"0/2/1"``.

    A prompt that reads as the beginning of a path, such as ``"0/2"``, is where the response starts; any other starts at
    the root. A path cut by ``max_tokens`` stops with ``length``, one that reaches a leaf with ``eos``. At
    temperature 0 the most likely token is taken and the log-probabilities are those at temperature 1.
    """

    def __init__(self, policy: TabularPolicy):
        self.policy = policy

    def encode(self, prompt: Prompt) -> np.ndarray:
        """Return the tokens of a prompt that leads to a node, else none."""
        path = path_of(prompt) if isinstance(prompt, str) else None
        if path is None or self.policy.tree.node(path) is None:
            path = ()
        return np.asarray(path, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        """Return the tokens of a path; it has no end-of-sequence token.

        Raises:
            UsageError: the text is not of the form ``"0/2/1"``.
        """
        path = path_of(text)
        if path is None:
            raise UsageError(f"a response of the tabular engine is a path such as 0/2/1, not {text[:60]!r}")
        return np.asarray(path, dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return text_of(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`.

        Raises:
            UsageError: a request has stop strings, which paths cannot contain, a prefix that leads to no node, or may
                only be what is no path.
        """
        alike: dict[tuple[Sampling, Trie | None, int | None], list[int]] = {}
        for i, request in enumerate(requests):
            if request.sampling.stop:
                raise UsageError("the tabular engine has no stop strings, a path ends at a leaf; leave them empty")
            check_beam(request)
            key = request.sampling, request.within, request.n if request.beam else None
            alike.setdefault(key, []).append(i)
        out: list[list[Episode]] = [[] for _ in requests]
        for (sampling, within, beam), members in alike.items():
            depth = min(sampling.max_tokens, self.policy.tree.depth)
            starts = [
                np.concatenate([self.encode(requests[i].prompt), np.asarray(requests[i].prefix, dtype=np.int64)])
                for i in members
            ]
            if beam is not None:
                for i, found in zip(members, self._search(starts, sampling, within, beam, depth), strict=True):
                    out[i] = found
                continue
            noise = np.concatenate([uniforms(requests[i])[:, :depth] for i in members])
            prompts = [start for i, start in zip(members, starts, strict=True) for _ in range(requests[i].n)]
            episodes = iter(self._sample(torch.from_numpy(noise), sampling, within, prompts))
            for i in members:
                out[i] = [next(episodes) for _ in range(requests[i].n)]
        return out

    @torch.no_grad()
    def _sample(
        self, noise: torch.Tensor, sampling: Sampling, within: Trie | None, prompts: Sequence[np.ndarray]
    ) -> list[Episode]:
        """Return one episode per row of ``noise`` ``(N, T)`` and prompt."""
        children, temperature = self.policy.tree.children, sampling.temperature or 1.0
        logp = self.policy.log_policy(temperature).cpu()
        tokens = torch.zeros(noise.shape, dtype=torch.int64)
        lengths = torch.zeros(len(noise), dtype=torch.int64)
        rows, node = torch.arange(len(noise)), self.policy.starts(prompts)
        at = np.zeros(len(noise), dtype=np.int64)
        for t in range(noise.shape[1]):
            allowed = None
            if within is not None:
                allowed = torch.from_numpy(within.mask(at, children.shape[1])) & ~logp[node].isneginf()
                if not bool(allowed.any(-1).all()):
                    raise UsageError("a catalogue leads out of the tree; its sequences must be paths to leaves")
            greedy = sampling.temperature == 0
            token = draw(logp[node], noise[rows, t], greedy, sampling.top_k, sampling.top_p, allowed)
            tokens[rows, t] = token
            lengths[rows] = t + 1
            node = children[node, token]
            going = node > 0
            if within is not None:
                at = within.follow(at, token.numpy())
                going &= ~torch.from_numpy(within.complete(at))
                at = at[going.numpy()]
            rows, node = rows[going], node[going]
        return self.policy.episodes(tokens, lengths, temperature, prompts)

    @torch.no_grad()
    def _search(
        self, prompts: Sequence[np.ndarray], sampling: Sampling, within: Trie | None, width: int, depth: int
    ) -> list[list[Episode]]:
        """Return what a beam search finds from each prompt."""
        children, temperature = self.policy.tree.children, sampling.temperature or 1.0
        logp = self.policy.log_policy(temperature).cpu()
        entropy = self.policy.node_entropy(temperature).cpu()
        beams = Beams(len(prompts), width, depth, within)
        node = self.policy.starts(prompts).repeat_interleave(width)

        def ends(parents: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
            return children[node[parents], token] < 0

        for _ in range(depth):
            parents, token = beams.advance(*beams.offers(logp[node], 0), entropy[node], ends)
            node = children[node[parents], token].clamp(min=0)
            if beams.over:
                break
        alive = (~beams.dead).nonzero()[:, 0]
        where = [prompts[row // width] for row in alive.tolist()]
        found = iter(self.policy.episodes(beams.tokens[alive], beams.lengths[alive], temperature, where))
        counts = (~beams.dead).reshape(-1, width).sum(-1).tolist()
        return [[next(found) for _ in range(n)] for n in counts]


class TabularVerifier:
    """Scores a path by the reward of its leaf; anything else than a path to a leaf is wrong.

    A response goes on from where the task's prompt leads, as with :class:`TabularEngine`.

    Args:
        tree: its rewards are the scores; a leaf's label is the feedback.
        threshold: a path passes when its score is at least this.

    Raises:
        UsageError: a reward of the tree is outside [0, 1].
    """

    def __init__(self, tree: Tree, threshold: float = 1.0):
        outside = [r for r in tree.rewards.tolist() if not 0 <= r <= 1]
        if outside:
            raise UsageError(f"scores lie in [0, 1], but a leaf of the tree has reward {outside[0]:g}; rescale them")
        self.verdicts = {
            text_of(path): Verdict(reward, reward >= threshold, {}, label)
            for path, reward, label in zip(tree.paths, tree.rewards.tolist(), tree.labels, strict=True)
        }

    def __call__(self, task: Task, response: str) -> Verdict:
        start = task.prompt if isinstance(task.prompt, str) and path_of(task.prompt) else ""
        path = "/".join(part for part in (start, response.strip()) if part)
        return self.verdicts.get(path, Verdict.wrong("not a path from the root to a leaf"))
