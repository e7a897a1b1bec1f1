"""The engine and the verifier of a run whose recipe puts them on a cluster, as its training ranks see them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assay.config import RunConfig
from assay.console import Reporter
from assay.engines.base import Engine, Request
from assay.engines.ended import listening
from assay.policies.base import Policy
from assay.scale.faults import Faults
from assay.scale.ranks import Ranks
from assay.scale.ray.cluster import Cluster
from assay.scale.ray.engine import RayEngine
from assay.scale.ray.gpus import gpus_of
from assay.scale.ray.verifier import RayVerifier
from assay.scale.setup import device_type
from assay.types import Episode, Prompt, Task, Verdict
from assay.verify.base import Verifier


def cluster_of(config: RunConfig, ranks: Ranks, reporter: Reporter) -> Cluster | None:
    """Return the cluster, not joined yet, if ``scale.engines`` or ``scale.verifiers`` asks for one.

    Rank 0 alone has actors; on the other ranks this only says that there are some.
    """
    scale = config.scale
    if not scale.engines and not scale.verifiers:
        return None
    gpus = gpus_of(config, device_type(config.model.device), ranks.size)
    return Cluster(scale, Faults(Path(config.run.dir), reporter.line), gpus)


def remote_verifier(cluster: Cluster, config: RunConfig, ranks: Ranks) -> Verifier:
    """Return a verifier on ``scale.verifiers`` actors."""
    own = RayVerifier(cluster, config.tasks.verify, max(1, config.tasks.verify_workers))
    return own if ranks.size == 1 else FirstVerifier(own, ranks.apart())


def remote_engine(cluster: Cluster, config: RunConfig, policy: Any, ranks: Ranks) -> Engine:
    """Join the cluster; return an engine on ``scale.engines`` actors.

    Raises:
        UsageError: no such cluster; it has less than is asked of it.
    """
    spec = {"name": config.engine.name, **config.engine.options}
    ranks.once(cluster.join)
    engine = RayEngine(policy, cluster, spec, config.model, config.rollout.max_rows, config.seed)
    if ranks.first:
        # They load beside what else there is to do before the first call.
        engine.crew.start()
    return engine if ranks.size == 1 else FirstEngine(engine, ranks.apart())


class FirstEngine:
    """Rank 0's engine, asked by all ranks together: rank 0 asks it, and the others are told what it said."""

    def __init__(self, engine: RayEngine, ranks: Ranks):
        self.engine, self.ranks = engine, ranks

    def encode(self, prompt: Prompt) -> np.ndarray:
        return self.engine.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.engine.encode_response(text, end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return self.engine.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`; rank 0's error is raised on every rank.

        Nobody hears of responses as they end: rank 0 alone would, and ranks judge together.
        """
        with listening(None):
            return self.ranks.once(lambda: self.engine.generate(requests))

    def follow(self, policy: Policy) -> None:
        """Send the weights from rank 0. All ranks go through them together, as each has a part of every one."""
        if self.ranks.first:
            self.engine.follow(policy)
        else:
            deque(policy.merged_state(), maxlen=0)  # type: ignore[attr-defined]

    def close(self) -> None:
        if self.ranks.first:
            self.engine.close()


class FirstVerifier:
    """Rank 0's verifier, asked by all ranks together."""

    def __init__(self, verifier: RayVerifier, ranks: Ranks):
        self.verifier, self.ranks = verifier, ranks

    def __call__(self, task: Task, response: str) -> Verdict:
        return self.ranks.once(lambda: self.verifier(task, response))

    def map(self, pairs: Iterable[tuple[Task, str]]) -> Iterator[Verdict]:
        asked = list(pairs)
        return iter(self.ranks.once(lambda: list(self.verifier.map(asked))))

    def ready(self) -> None:
        self.verifier.ready()

    def check(self, tasks: Iterable[Task]) -> None:
        self.verifier.check(tasks)
