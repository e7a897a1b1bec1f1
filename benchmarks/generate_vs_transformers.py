"""Generation by assay's engine against transformers' ``generate``, the same weights, prompts and work.

Case ``smollm2``: SmolLM2-135M, 64 different prompts, 128 new tokens each. Case ``nano``: a nano model of the
quickstart's shape, 32 prompts with 8 responses each, of very different lengths: untrained weights end a response after
90 tokens on average, one in ten within a dozen, one in five only at the limit of 256. Temperature 1, no truncation,
float32, the same number of threads on the CPU. assay records log-probabilities and entropies; ``generate`` is asked for
tokens alone, batched, left-padded, with its key-value cache, by the attention that is fastest there. Both sides are in
one process and take turns. Printed per case: median seconds and tokens of each, and the median of the pairwise ratios
of seconds per token (per call where lengths are fixed, which is the same).

    python benchmarks/generate_vs_transformers.py [--cases smollm2 nano] [--repeats 5] [--threads 2]

Case ``smollm2`` needs models/SmolLM2-135M-Instruct.Q4_1.gguf and the extra ``gguf``. Exits 1 if a ratio is too low.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GGUF = Path(__file__).parents[1] / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"

CPU = ("sdpa", "eager")
"""Attention functions of transformers that a CPU has; the faster in a short trial is taken."""


@dataclass(frozen=True)
class Case:
    """Prompts, responses per prompt, most new tokens, whether all have so many, and the ratio to reach."""

    source: str
    prompts: int
    group: int
    tokens: int
    fixed: bool
    goal: float
    repeats: int


CASES = {
    "smollm2": Case(str(GGUF), 64, 1, 128, True, 1.5, 3),
    "nano": Case("nano", 32, 8, 256, False, 2.0, 7),
}


def load(case: Case) -> tuple[Any, Any]:
    """Return assay's policy and transformers' own model, of equal weights."""
    from assay.policies.causal_lm import CausalLM
    from assay.policies.loading import ModelConfig, load_model

    model, tokenizer = load_model(ModelConfig(source=case.source), seed=0)
    tokenizer.padding_side = "left"
    return CausalLM(deepcopy(model), tokenizer), model.eval()


def prompts_of(case: Case) -> list[str]:
    from assay.tasks.arithmetic import Arithmetic

    source = Arithmetic(digits=2, min_digits=1, style="compact" if case.source == "nano" else "words")
    texts = dict.fromkeys(str(source[i].prompt) for i in range(case.prompts * 4))
    return list(texts)[: case.prompts]


def ours(policy: Any, case: Case) -> Callable[[int], tuple[float, int]]:
    """Return a call that generates with a seed and tells its seconds and tokens."""
    from assay.engines.base import Request, Sampling
    from assay.engines.hf import HFEngine

    engine, sampling = HFEngine(policy), Sampling(max_tokens=case.tokens)
    prompts = prompts_of(case)

    def call(seed: int) -> tuple[float, int]:
        start = time.perf_counter()
        made = engine.generate([Request(p, case.group, sampling, seed * 10**6 + i) for i, p in enumerate(prompts)])
        return time.perf_counter() - start, sum(len(e.tokens) for group in made for e in group)

    return call


def theirs(model: Any, policy: Any, case: Case) -> Callable[[int], tuple[float, int]]:
    """As :func:`ours`, by ``generate``."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    ends = None if case.fixed else list(policy.stop_ids)
    model.generation_config = transformers.GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=case.tokens,
        num_return_sequences=case.group,
        eos_token_id=ends,
        pad_token_id=policy.tokenizer.pad_token_id or 0,
    )
    prompts = prompts_of(case)

    def call(seed: int, tokens: int | None = None) -> tuple[float, int]:
        torch.manual_seed(seed)
        start = time.perf_counter()
        ids = [policy.encode(p).tolist() for p in prompts]
        inputs = policy.tokenizer.pad({"input_ids": ids}, return_tensors="pt")
        out = model.generate(**inputs, **({} if tokens is None else {"max_new_tokens": tokens}))
        made = out[:, inputs["input_ids"].shape[1] :]
        policy.tokenizer.batch_decode(made, skip_special_tokens=True)
        seconds = time.perf_counter() - start
        if ends is None:
            return seconds, made.numel()
        # A response's tokens are those up to its first end token, that one too.
        end = torch.isin(made, torch.tensor(ends))
        return seconds, int((end.cumsum(-1) - end.long() == 0).sum())

    trials: dict[str, float] = {}
    for attention in CPU:
        model.set_attn_implementation(attention)
        call(0, 4)
        trials[attention] = call(0, min(32, case.tokens))[0]
    model.set_attn_implementation(min(trials, key=lambda name: trials[name]))
    return call


def compare(case: Case, repeats: int) -> dict[str, float]:
    policy, model = load(case)
    if case.fixed:
        policy.stop_ids = []
    sides = {"assay": ours(policy, case), "transformers": theirs(model, policy, case)}
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in sides}
    for repeat in range(repeats + 1):
        for name, call in sides.items():
            found[name].append(call(repeat + 1))
    rows = {name: calls[1:] for name, calls in found.items()}  # the first call of each warms up
    rates = {name: [seconds / tokens for seconds, tokens in calls] for name, calls in rows.items()}
    pairs = zip(rates["assay"], rates["transformers"], strict=True)
    return {
        "ratio": statistics.median(b / a for a, b in pairs),
        **{name: statistics.median(seconds for seconds, _ in calls) for name, calls in rows.items()},
        **{f"{name}_tokens": statistics.median(tokens for _, tokens in calls) for name, calls in rows.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--repeats", type=int, help="counted calls of each side; 3 of smollm2 and 7 of nano")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    missed = []
    for name in arguments.cases:
        case = CASES[name]
        if case.source != "nano" and not Path(case.source).is_file():
            print(f"{name}: skipped: no {case.source}; `make real` fetches it")
            continue
        found = compare(case, arguments.repeats or case.repeats)
        print(
            f"{name}: {case.prompts} x {case.group}, at most {case.tokens} tokens: "
            f"assay {found['assay']:.2f} s ({found['assay_tokens']:.0f} tokens), "
            f"transformers {found['transformers']:.2f} s ({found['transformers_tokens']:.0f} tokens), "
            f"ratio {found['ratio']:.2f} (goal {case.goal})",
            flush=True,
        )
        if found["ratio"] < case.goal:
            missed.append(name)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
