"""A pipeline of tasks over a served model: what it costs beside its engine, and whether being killed costs anything.

1000 sums are varied by a model, which then answers what it wrote four times; what two answers agree on is kept. The
process is killed at random while it does so, several times, with SIGKILL, and begun again. Every request is written
down before it is put: one that was answered may not be put again, and of those that were under way at a kill there are
at most as many as requests are open at a time. Then the same requests of some seeds are put to the engine at once,
without a pipeline, in turns with the pipeline itself.

    python benchmarks/making.py [--seeds 1000] [--model models/SmolLM2-135M-Instruct.Q4_1.gguf] [--kills 5]

That comparison is of wall time: it counts what a machine that is busy otherwise does to one side of it, and that
answers can only be asked for when the sum is written. Exits 1 if anything that was answered is asked twice, or if no
model was at work for over 5 % of the time of a pipeline.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.engines.base import Request, Sampling
from assay.engines.target import resolve
from assay.tasks.arithmetic import Arithmetic
from assay.tasks.making.card import card_of
from assay.tasks.making.filters import Agreement
from assay.tasks.making.journal import Journal, key_of
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.operators import Vary
from assay.tasks.making.overlap import Distinct
from assay.tasks.making.task_file import write_tasks
from assay.tasks.making.work import Pipeline
from assay.types import Task

GGUF = Path(__file__).parents[1] / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
VARY = "Write another sum, such as {question} Write only the sum.\n"
LINE = Sampling(20, 0.8, stop=("\n",))
ALLOWED = 0.05


def pipeline(tokens: int) -> Pipeline:
    line = replace(LINE, max_tokens=tokens)
    vary, agree = Vary(1, VARY, None, line), Agreement(4, 2, sampling=line)
    return Pipeline("sums", (("vary", vary), ("agreement", agree), ("distinct", Distinct())))


class Logged:
    """An engine that writes down what it is asked before it is."""

    def __init__(self, engine: Any, log: Path):
        self.engine, self.log = engine, log.open("a")
        self.requests: list[Request] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def generate(self, requests: Sequence[Request]) -> Any:
        self.requests += requests
        self.log.write("".join(key_of("served", r) + "\n" for r in requests))
        self.log.flush()
        return self.engine.generate(requests)


def seeds(n: int, first: int = 0) -> list[Task]:
    source = Arithmetic(digits=2)
    return [
        replace(source[first + i], prompt=f"What is {str(source[first + i].prompt).rstrip('=')}?") for i in range(n)
    ]


def make(url: str, folder: Path, n: int, tokens: int, first: int = 0, name: str = "full") -> Any:
    """Run the pipeline, remembering in ``folder``; return what was made and the requests that were put."""
    engine = Logged(resolve(url).open(), folder / f"{name}.log")
    calls = 2 * int(engine.engine.server.concurrency)
    with Journal(folder / f"{name}.asked.jsonl") as journal:
        begun = seeds(n, first)
        models = {"writer": Model("served", engine, calls, 1)}
        made = Maker(pipeline(tokens), models, journal).make(begun)
    card = card_of("sums", {}, models, 0, begun, made)
    write_tasks(folder / f"{name}.jsonl", made.tasks)
    (folder / f"{name}.card.json").write_text(json.dumps(card, indent=1))
    return made, engine.requests


def killed(url: str, folder: Path, n: int, tokens: int, kills: int, total: int) -> tuple[int, int]:
    """Make the tasks in processes that are killed; return kills, and requests put again while they were under way."""
    rng, log, kept = random.Random(0), folder / "full.log", folder / "full.asked.jsonl"
    limits = sorted(rng.sample(range(1, total), kills))
    again = done = 0
    while not (folder / "full.jsonl").exists():
        before = {json.loads(line)["key"] for line in kept.read_bytes().split(b"\n")[:-1]} if kept.exists() else set()
        start = len(log.read_text().splitlines()) if log.exists() else 0
        earlier = set(log.read_text().splitlines()) if log.exists() else set()
        words = [sys.executable, __file__, "--child", url, "--folder", str(folder), "--seeds", str(n)]
        child = subprocess.Popen([*words, "--tokens", str(tokens)])
        while child.poll() is None:
            if limits and kept.exists() and kept.read_bytes().count(b"\n") >= limits[0]:
                child.send_signal(signal.SIGKILL)
                limits.pop(0)
                done += 1
                break
            time.sleep(0.05)
        if child.wait() not in (0, -signal.SIGKILL):
            raise SystemExit(f"the pipeline ended with {child.returncode}")
        asked = log.read_text().splitlines()[start:]
        if twice := before & {*asked}:
            raise SystemExit(f"{len(twice)} requests were asked again though they had been answered")
        again += len(earlier & {*asked})
    keys = [json.loads(line)["key"] for line in kept.read_text().splitlines()]
    if len(keys) != len(set(keys)):
        raise SystemExit("a request was answered twice")
    return done, again


def compared(url: str, folder: Path, n: int, tokens: int, rounds: int) -> list[tuple[float, float]]:
    """Return, for each round, the share of the pipeline's time in which no model was at work, and its time over that of
    its requests put at once; seeds are new in each."""
    found = []
    for k in range(rounds):
        first = 100_000 * (k + 1)
        # The requests of a round are known from a run of it; the server keeps nothing between requests.
        began = time.monotonic()
        made, requests = make(url, folder, n, tokens, first, f"round-{k}")
        through = time.monotonic() - began
        engine = resolve(url).open()
        began = time.monotonic()
        engine.generate(requests)
        alone = time.monotonic() - began
        idle = 1 - made.busy / made.seconds
        print(
            f"round {k}: {len(requests)} requests, pipeline {through:.1f} s (no model at work for {100 * idle:.2f} %), "
            f"engine alone {alone:.1f} s, ratio {through / alone:.3f}",
            flush=True,
        )
        found.append((idle, through / alone))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--model", default=str(GGUF))
    parser.add_argument("--tokens", type=int, default=10, help="of a reply, at most")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--share", type=int, default=100, help="seeds of a round of the comparison")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        made, _ = make(asked.child, asked.folder, asked.seeds, asked.tokens)
        print(f"{made.asked} requests put and {made.remembered} remembered in {made.seconds:.1f} s", flush=True)
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        words = [sys.executable, "-m", "assay", "serve", asked.model, "--port", "0", "--name", "writer"]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        stack.callback(server.terminate)
        assert server.stdout is not None
        said = next(line for line in server.stdout if "http" in line)
        address = re.search(r"http://[\w.:]+", said)
        assert address is not None, said
        url = f"openai:writer@{address[0]}/v1"
        began = time.monotonic()
        kills, again = killed(url, folder, asked.seeds, asked.tokens, asked.kills, asked.seeds * 3 // 2)
        print((folder / "full.card.json").read_text())
        print(
            f"{asked.seeds} seeds in {time.monotonic() - began:.0f} s with {kills} kills; nothing that was answered "
            f"was asked again; {again} requests were, which were under way",
            flush=True,
        )
        found = compared(url, folder, asked.share, asked.tokens, asked.rounds)
    idle, ratio = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"no model at work for {100 * idle:.2f} % (at most {100 * ALLOWED:.0f} %); over the engine alone {ratio:.3f}")
    raise SystemExit(idle > ALLOWED)


if __name__ == "__main__":
    main()
