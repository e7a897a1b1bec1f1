"""When an event happens, read from noisy frames by a network that knows one kind of video from before."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.tabular import TabularVerifier
from assay.lab.settings._tabular import Spent, Training, train
from assay.lab.settings.bandits.unseen import Answering, Shape
from assay.lab.settings.tree import Counting
from assay.policies.tabular import text_of
from assay.types import Task
from assay.verify.geometry.times import interval_iou


@dataclass(frozen=True, slots=True)
class Setting:
    """Videos of ``frames`` frames of two channels; a response is a first and a last frame, its score the overlap.

    In a plain video the event stands in the first channel, and nothing in the second. In an odd one it stands in the
    second, and something else in the first. Beforehand the network reads plain videos with their events, so that it
    knows these and is misled by the others. RL asks ``videos`` new ones, and ``unseen`` further ones measure it.

    Args:
        frames: of a video.
        plain: share of plain videos.
        noise: standard deviation of what is seen, where 1 tells an event.
        videos, unseen, read: how many of each.
        hidden: size of the network.
        warmup: supervised steps of Adam, at a rate of 0.01, on 128 of the videos read.
        rollouts: training ends after the step in which so many responses have been sampled.
        prompts, group, lr: of training, by Adam.
    """

    frames: int = 5
    plain: float = 0.7
    noise: float = 0.3
    videos: int = 256
    unseen: int = 128
    read: int = 512
    hidden: int = 48
    warmup: int = 200
    rollouts: int = 4096
    prompts: int = 8
    group: int = 8
    lr: float = 0.003

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact mean overlaps on unseen videos: ``start`` and ``final``, before and after training, ``odd`` and
        ``plain`` of each kind at the end, ``r1``, the probability of an overlap of at least a half, and ``rollouts``.
        """
        policy, odd = self.world(seed)
        new = np.arange(self.videos + self.unseen) >= self.videos
        tasks = [Task(str(i), text_of(policy.paths[i]), kind="tabular") for i in range(self.videos)]
        start, engine = policy.chances()[new], Counting(policy)
        verifier = TabularVerifier(policy.tree)

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            if engine.sampled >= self.rollouts:
                raise Spent

        training = Training(self.rollouts, self.prompts, self.group, self.lr, "adam")
        with suppress(Spent):
            train(policy, tasks, verifier, dict(arm), training, seed, watch, engine)
        final = policy.chances()
        hits = (policy.answers() * (policy.correct >= 0.5)).sum(-1)
        return {
            "start": float(start.mean()),
            "final": float(final[new].mean()),
            "odd": float(final[new & odd].mean()),
            "plain": float(final[new & ~odd].mean()),
            "r1": float(hits[new].mean()),
            "rollouts": float(engine.sampled),
        }

    def world(self, seed: int) -> tuple[Answering, np.ndarray]:
        """Return the policy at the start, over the videos asked and then the unseen ones, and which of them are odd."""
        rng = np.random.default_rng([seed, 73])
        count, frames = self.read + self.videos + self.unseen, self.frames
        odd = (rng.random(count) >= self.plain) & (np.arange(count) >= self.read)
        long = rng.integers(1, frames, (count, 2))
        first = rng.integers(0, frames - long + 1)
        at = np.arange(frames)
        seen = ((at >= first[..., None]) & (at < (first + long)[..., None])).astype(float)
        seen[~odd, 1] = 0
        x = (seen + self.noise * rng.standard_normal(seen.shape)).reshape(count, -1)
        event = odd.astype(int)
        wanted = np.stack([first, first + long], -1)[np.arange(count), event]
        shape = Shape(frames, 2)
        overlaps = np.array([[overlap(a, b, *span) for a, b in shape.steps[1].tolist()] for span in wanted.tolist()])
        inputs, rest = shape.inputs(x), slice(self.read, None)
        inner = torch.from_numpy(rng.standard_normal((self.hidden, inputs.shape[-1])) * inputs.shape[-1] ** -0.5)
        out = torch.from_numpy(rng.standard_normal((frames, self.hidden)) * self.hidden**-0.5)
        reader = Answering(shape, inputs[: self.read], overlaps[: self.read], inner, out)
        right = torch.from_numpy((overlaps[: self.read] == 1).argmax(-1))
        optimizer = torch.optim.Adam(reader.module.parameters(), lr=0.01)
        for step in range(self.warmup):
            some = (torch.arange(128) + 128 * step) % self.read
            z = torch.tanh(reader.inputs[some] @ reader.inner.mT) @ reader.out.mT
            loss = -shape.log_answers(z).gather(1, right[some][:, None]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        weights = (reader.inner.detach(), reader.out.detach())
        return Answering(shape, inputs[rest], overlaps[rest], *weights), odd[rest]


def overlap(first: int, last: int, start: int, end: int) -> float:
    """Overlap of the frames ``[first, last]`` with ``[start, end)``; 0 for a span that ends before it starts."""
    return interval_iou([(first, last + 1)], [(start, end)]) if last >= first else 0.0
