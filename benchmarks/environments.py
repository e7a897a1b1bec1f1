"""What environments in processes cost, and what they survive.

``python benchmarks/environments.py`` plays a small model in worlds that are slow, break, hang and die, and prints

- arrival: own tokens a second where the answers of a world take exponential time with the mean of a turn's generation,
  lock-step and by arrival, interleaved;
- faults: the verdicts of a step with 5 % of resets raising, 2 % of steps hanging and a process killed, and its time
  beside that of a step without faults;
- many: 256 live episodes, and what 10,000 episodes leave behind, in that world and in ``shop``, which has a database
  for each;
- steps: steps of ``shop`` in a second of processor time, one process, its own plans.

Names of these as arguments run them alone: ``python benchmarks/environments.py steps many``.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.environments.base import Action, Observation, Step
from assay.environments.hosted.worlds import Worlds
from assay.environments.played import Played
from assay.environments.shop.environment import Shop
from assay.environments.tools import say
from assay.policies.causal_lm import CausalLM
from assay.policies.nano import NanoConfig, nano_model, nano_tokenizer
from assay.rollout.turns.multi_turn import MultiTurn
from assay.tasks.listed import Listed
from assay.types import Ask, Message, Task, Verdict

HERE = f"{Path(__file__).resolve()}:Slow"


class Slow:
    """Says ``go on`` after an exponential time with mean ``latency``; raises and hangs now and then.

    What goes wrong does so by chance, and another chance the next time: the world fails, not the episode.
    """

    def __init__(self, latency: float = 0.0, turns: int = 4, raising: float = 0.0, hanging: float = 0.0) -> None:
        self.latency, self.turns, self.raising, self.hanging = latency, turns, raising, hanging
        self.chance = random.Random()

    def tasks(self) -> Listed:
        return Listed([Task(str(i), f"task {i}") for i in range(256)])

    def reset(self, task: Task, seed: int) -> Observation:
        if self.chance.random() < self.raising:
            raise OSError("no world")
        self.left, self.time = self.turns, random.Random(f"{task.id} {seed}")
        return Observation((Message(role="user", content=task.question),))

    def step(self, action: Action) -> Step:
        if self.chance.random() < self.hanging:
            time.sleep(1e6)
        time.sleep(self.time.expovariate(1 / self.latency) if self.latency else 0)
        self.left -= 1
        return Step(Observation((Message(role="user", content="go on"),)), terminated=not self.left)

    def verdict(self) -> Verdict:
        return Verdict.right() if not self.left else Verdict.wrong()

    def close(self) -> None:
        pass


def engine() -> HFEngine:
    """Return a small model; hardly a turn ends before its length."""
    config = NanoConfig(hidden=128, layers=4, heads=4, context=512)
    tokenizer = nano_tokenizer(config)
    return HFEngine(CausalLM(nano_model(config, len(tokenizer), seed=0), tokenizer), max_rows=256)


def step(
    by: HFEngine,
    worlds: dict[str, Any],
    seconds: float = 60.0,
    arrival: bool = False,
    attempts: int = 2,
    patience: float | None = None,
) -> tuple[float, int, list[Verdict]]:
    """Play 16 tasks, 8 episodes each; return seconds, own tokens and verdicts."""
    rollout = MultiTurn(
        {"name": HERE, **worlds},
        Sampling(32),
        workers=2,
        seconds=seconds,
        arrival=arrival,
        attempts=attempts,
        patience=patience,
    )
    rollout.worlds.start()
    asks = [Ask(Task(str(i), f"{i}+{i}="), 8) for i in range(16)]
    before = time.perf_counter()
    groups = rollout.collect(asks, by, np.random.default_rng(0))
    took = time.perf_counter() - before
    rollout.worlds.close()
    own = sum(int(e.mask.sum()) for g in groups for e in g.episodes)
    return took, own, [v for g in groups for v in g.verdicts]


def arrivals(by: HFEngine, repeats: int = 3) -> None:
    quick, _, _ = step(by, {})
    latency = quick / 4
    rates: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(repeats):
        for arrival in rates:
            took, own, verdicts = step(by, {"latency": latency}, arrival=arrival)
            assert all(v.passed for v in verdicts)
            rates[arrival].append(own / took)
    waiting, arriving = (statistics.median(rates[a]) for a in (False, True))
    print(
        f"arrival: a turn is generated in {latency:.2f} s, answers take as long on average; lock-step {waiting:.0f} "
        f"own tokens/s, by arrival {arriving:.0f}, {arriving / waiting:.2f} times"
    )


def faults(by: HFEngine, arrival: bool, attempts: int, patience: float | None = None, limit: float = 5.0) -> None:
    quiet, _, _ = step(by, {}, arrival=arrival)

    def kill() -> None:
        family = psutil.Process()
        while len(found := [p for p in family.children() if "hosted" in " ".join(p.cmdline())]) < 2:
            time.sleep(0.01)
        time.sleep(1 + quiet / 2)
        os.kill(found[0].pid, signal.SIGKILL)

    threading.Thread(target=kill).start()
    took, _, verdicts = step(by, {"raising": 0.05, "hanging": 0.02}, limit, arrival, attempts, patience)
    wrong, lost = sum(v.passed is False for v in verdicts), sum(v.passed is None for v in verdicts)
    how = f"{'by arrival' if arrival else 'lock-step'}, attempts {attempts}"
    how += "" if patience is None else f", patience {patience:g}"
    print(
        f"faults, {how}: {len(verdicts)} episodes, {wrong} wrongly 0, {lost} abstained; {took:.1f} s beside "
        f"{quiet:.1f} s without faults, with a limit of {limit:g} s a step",
        flush=True,
    )


PLAIN = "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1"
"""Without the caches of free memory that malloc has for each of 256 threads: they fill over tens of thousands of
episodes, by 9% of the whole in the first ten thousand, and would hide what is kept."""


def many(environment: str = HERE, live: int = 256, whole: int = 10_000) -> None:
    # A place of its own for temporary files, of which others on the machine know nothing.
    folder = tempfile.mkdtemp()
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    worlds = Worlds(environment, workers=2)
    worlds.start()
    here = psutil.Process()
    source = worlds.here().tasks()
    kinds = [source[i] for i in range(64)]
    calls = 0

    def play(number: int) -> tuple[bool, int]:
        episode = Played(worlds, kinds[number % len(kinds)], 0)
        episode.reset()
        world: Any = episode.world
        plan = world.gold() if environment == "shop" else [say("x")] * 4
        for action in plan:
            episode.step(action)
        verdict = episode.verdict()
        episode.close()
        return verdict.passed is True, len(plan) + 2

    with ThreadPoolExecutor(live) as beside:
        # Once through what is kept between episodes, which is bounded, before it is counted.
        assert all(passed for passed, _ in beside.map(play, range(4 * live)))

        def held() -> tuple[int, int, int, int]:
            family = [here, *here.children()]
            left = sum(len(files) for _, _, files in os.walk(folder))
            return sum(p.memory_info().rss for p in family), sum(p.num_fds() for p in family), len(family), left

        memory, descriptors, processes, files = held()
        before = time.perf_counter()
        for passed, made in beside.map(play, range(whole)):
            assert passed
            calls += made
        took = time.perf_counter() - before
        after = held()
    print(
        f"many, {environment.rpartition('/')[2]}: {whole} episodes, {live} at a time, {calls / took:.0f} calls/s; "
        f"memory {after[0] / memory - 1:+.1%}, descriptors {after[1] - descriptors:+d}, "
        f"processes {after[2] - processes:+d}, temporary files {after[3] - files:+d}",
        flush=True,
    )
    worlds.close()
    shutil.rmtree(folder)
    os.environ.pop("TMPDIR")
    tempfile.tempdir = None


def steps(episodes: int = 100, rounds: int = 10) -> None:
    world = Shop()
    source = world.tasks()
    plans = []
    for i in range(episodes):
        world.reset(source[i], 0)
        plans.append((source[i], world.gold()))
    made, stepping, before = 0, 0.0, time.process_time()
    for _ in range(rounds):
        for task, plan in plans:
            world.reset(task, 0)
            begun = time.process_time()
            for action in plan:
                world.step(action)
            stepping += time.process_time() - begun
            made += len(plan)
            assert world.verdict().passed
    whole = time.process_time() - before
    world.close()
    print(
        f"steps: {made / stepping:.0f} of shop in a second of processor time, {made / whole:.0f} with its share of "
        f"beginnings and verdicts ({made / len(plans) / rounds:.1f} steps an episode)",
        flush=True,
    )


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["many", "steps", "arrival", "faults"]
    if "many" in chosen:
        if os.environ.get("GLIBC_TUNABLES") != PLAIN:  # read when a process begins
            os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "GLIBC_TUNABLES": PLAIN})
        many()
        many("shop")
    if "steps" in chosen:
        steps()
    if {"arrival", "faults"} & set(chosen):
        model = engine()
    if "arrival" in chosen:
        arrivals(model)
    if "faults" in chosen:
        for by_arrival in (False, True):
            for tries, patience in ((1, None), (4, None), (4, 0.5)):
                faults(model, by_arrival, tries, patience)
