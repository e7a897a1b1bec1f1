"""Tokens per second of the vLLM engine against transformers' own ``generate``.

Both sample 64 responses of exactly 128 tokens to the same prompts, of different lengths, from SmolLM2-135M-Instruct on
the CPU with two threads: same weights, precision, temperature, no truncation; neither stops at an end token. The engine
also returns log-probabilities and entropies; ``generate`` gets all prompts in one left-padded batch and keeps its
defaults, its cache of keys and values among them. Each side lives in a process of its own; the two take turns, so that
a noisy machine disturbs both alike. Printed per precision: median tokens per second of each, and the median of the
pairwise ratios; the goal is 2.5.

    make vllm                                                    # once: the environment, and the model
    .venv-vllm/bin/python benchmarks/vllm_vs_transformers.py [--dtypes float32 bfloat16] [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GGUF = Path(__file__).parents[1] / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
REQUESTS, TOKENS, THREADS, GOAL = 64, 128, 2, 2.5
TOPICS = ("the sea", "a train that is late", "prime numbers", "how bread is made", "a letter to a friend far away")


def prompts(turn: int) -> list[str]:
    """Texts of one line to about ten, others in each turn, so that no side can have kept what it computed of them."""
    return [
        f"{turn}-{i}: write a text about {TOPICS[i % len(TOPICS)]}. " + "Keep it simple and clear. " * (i % 8)
        for i in range(REQUESTS)
    ]


def wait_for_go() -> None:
    if sys.stdin.readline().strip() != "go":
        os._exit(0)


def report(seconds: float, tokens: int) -> None:
    print(json.dumps({"seconds": seconds, "tokens": tokens}), flush=True)


def run_vllm(folder: str, dtype: str) -> None:
    """Answer all requests with the engine for each line ``go``."""
    from assay.engines.base import Request, Sampling
    from assay.engines.vllm.engine import vllm_engine

    model = {"source": folder, "dtype": dtype, "device": "cpu"}
    engine = vllm_engine(model=model, max_rows=REQUESTS, max_model_len=1024)
    engine.stop_ids = []
    turn = 0
    while True:
        wait_for_go()
        asked = [Request(p, 1, Sampling(max_tokens=TOKENS), 1000 * turn + i) for i, p in enumerate(prompts(turn))]
        start = time.perf_counter()
        made = engine.generate(asked)
        report(time.perf_counter() - start, sum(len(e.tokens) for group in made for e in group))
        turn += 1


def run_transformers(folder: str, dtype: str) -> None:
    """Answer all requests with ``generate`` for each line ``go``."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(THREADS)
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    settings = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
    settings |= {"min_new_tokens": TOKENS, "max_new_tokens": TOKENS}
    turn = 0
    while True:
        wait_for_go()
        start = time.perf_counter()
        chats = [[{"role": "user", "content": p}] for p in prompts(turn)]
        texts = tokenizer.apply_chat_template(chats, add_generation_prompt=True, tokenize=False)
        batch = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.inference_mode():
            out = model.generate(**batch, **settings)
        report(time.perf_counter() - start, (out.shape[1] - batch["input_ids"].shape[1]) * REQUESTS)
        turn += 1


class Side:
    """One side's process, which takes a turn when told to."""

    def __init__(self, side: str, folder: str, dtype: str):
        self.side, self.log = side, tempfile.TemporaryFile("w+")  # noqa: SIM115  # as long as the process
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--side", side, "--folder", folder, "--dtypes", dtype],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={"OMP_NUM_THREADS": str(THREADS), **os.environ, "HF_HUB_OFFLINE": "1"},
        )

    def turn(self) -> float:
        """Return tokens per second."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith('{"seconds"'):
                found = json.loads(line)
                if found["tokens"] != REQUESTS * TOKENS:
                    raise SystemExit(f"{self.side} made {found['tokens']} tokens, not {REQUESTS * TOKENS}")
                return found["tokens"] / found["seconds"]
        self.log.seek(0)
        raise SystemExit(f"{self.side} ended early: {self.log.read()[-2000:]}")

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def compare(folder: str, dtype: str, rounds: int) -> float:
    with Side("vllm", folder, dtype) as ours, Side("transformers", folder, dtype) as theirs:
        pairs = [(ours.turn(), theirs.turn()) for _ in range(rounds + 1)][1:]  # the first warms both up
    a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(x / y for x, y in pairs)
    spread = f"{min(x / y for x, y in pairs):.2f} to {max(x / y for x, y in pairs):.2f}"
    print(
        f"{dtype}: vLLM engine {a:.0f} tokens/s, transformers generate {b:.0f} tokens/s, ratio {ratio:.2f} "
        f"({spread} in {rounds} rounds; goal {GOAL})",
        flush=True,
    )
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"], choices=["float32", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", choices=["vllm", "transformers"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        {"vllm": run_vllm, "transformers": run_transformers}[arguments.side](arguments.folder, arguments.dtypes[0])
        return
    if not GGUF.is_file():
        sys.exit(f"no {GGUF}: make vllm")
    with tempfile.TemporaryDirectory() as folder:
        from assay.policies.causal_lm import CausalLM
        from assay.policies.loading import ModelConfig

        CausalLM.load(ModelConfig(source=str(GGUF), device="cpu")).save(Path(folder))
        ratios = [compare(folder, dtype, arguments.rounds) for dtype in arguments.dtypes]
    sys.exit(0 if max(ratios) >= GOAL else 1)


if __name__ == "__main__":
    main()
