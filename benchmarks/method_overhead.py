"""What a method costs beside the model's own passes, as a share of a step of the nano model.

    python benchmarks/method_overhead.py [--repeats 20] [NAME ...]

Takes a few steps of the quickstart's model and recipe with GRPO: generation, verification, the passes of the update.
Then, on the last step's batch, reward, selection, credit, and the loss forward and backward down to log-probabilities,
for every standard method and every paper that asks for no pass and no response of its own. Medians; the bar is 2 % of a
step.
"""

from __future__ import annotations

import argparse
import time
import tomllib
from collections.abc import Callable, Iterator
from importlib import resources
from statistics import median
from typing import Any

import numpy as np
import torch

from assay import papers
from assay.batch import Batch
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.method import Method, make_method
from assay.objectives.table import METHODS
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.registry import build
from assay.signals.base import Models
from assay.training.step import sample
from assay.training.update import update
from assay.types import Ask
from assay.verify import KindVerifier

BAR = 0.02


def methods() -> Iterator[tuple[str, Method]]:
    """Every method that can be made from its name alone and needs the plain rollout and no signal."""
    for name, (credit, objective, _) in METHODS.items():
        yield name, make_method("grpo", credit=dict(credit), objective=dict(objective))
    for row in papers.rows():
        try:
            made = row.factory() if row.factory is not None else None
        except TypeError:
            continue
        if isinstance(made, Method):
            yield f"{row.id} {row.name}", made


def step(recipe: dict[str, Any]) -> tuple[float, Batch]:
    """Return the seconds of a GRPO step and its valued batch."""
    policy = CausalLM.load(ModelConfig(**recipe["model"]), 0)
    source, settings = build("tasks", recipe["tasks"]["source"]), recipe["rollout"]
    rollout = build("rollout", "single_turn", sampling=Sampling(settings["max_tokens"]))
    engine, verifier, method, models = HFEngine(policy), KindVerifier(), Method(), Models(policy)
    optimizer = torch.optim.AdamW(policy.module.parameters(), lr=1e-5)
    rng, seconds = np.random.default_rng(0), []
    for i in range(4):
        asks = [Ask(source[i * settings["prompts"] + j], settings["group"]) for j in range(settings["prompts"])]
        start = time.perf_counter()
        _, batch = sample(asks, rollout, engine, verifier, method, models, rng)
        batch.totals = batch.count()
        # Verdicts of an untrained model are all wrong; half right is what a step in the middle of a run has.
        batch.advantages = torch.where(batch.mask, torch.randn(len(batch), 1), 0)
        update(policy, method.objective, batch, optimizer)
        seconds.append(time.perf_counter() - start)
    return median(seconds[1:]), batch


def milliseconds(work: Callable[[], Any], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * median(times)


def parts(method: Method, batch: Batch, repeats: int) -> list[float]:
    """Milliseconds of reward with selection and credit, and of the loss."""
    generator = torch.Generator().manual_seed(0)
    now = batch.logprobs + 0.05 * torch.randn(batch.logprobs.shape, generator=generator)

    def value() -> None:
        batch.valid, batch.weights = torch.ones_like(batch.valid), torch.ones_like(batch.weights)
        method.value(batch)

    def learn() -> None:
        logprobs = now.clone().requires_grad_(True)
        getattr(method.objective, "prepare", lambda _: None)(batch)
        loss = method.objective(logprobs, batch).value
        if loss.requires_grad:
            loss.backward()

    return [milliseconds(value, repeats), milliseconds(learn, repeats)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="papers or methods; all by default")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    text = resources.files("assay").joinpath("recipes/quickstart.toml").read_text(encoding="utf-8")
    seconds, batch = step(tomllib.loads(text))
    print(f"a step: {seconds:.3f} s, {len(batch)} responses of up to {batch.tokens.shape[1]} tokens")
    rng = np.random.default_rng(1)
    batch.verdicts = [
        type(v)(float(x), bool(x), v.parts, v.feedback)
        for v, x in zip(batch.verdicts, rng.integers(0, 2, len(batch)), strict=True)
    ]
    worst = 0.0
    for name, method in methods():
        if options.names and not any(n in name for n in options.names):
            continue
        own = [n if isinstance(n, str) else n.name for n in method.needs] + list(method.live)
        if own or method.rollout != "single_turn" or method.learners:
            print(f"{name:34} needs {', '.join(own) or 'responses of its own'}")
            continue
        value, loss = parts(method, batch, options.repeats)
        share = (value + loss) / 1e3 / seconds
        worst = max(worst, share)
        print(f"{name:34} value {value:6.2f} ms  loss {loss:6.2f} ms  {share:7.2%}", flush=True)
    print(f"the most: {worst:.2%} (bar {BAR:.0%})")


if __name__ == "__main__":
    main()
