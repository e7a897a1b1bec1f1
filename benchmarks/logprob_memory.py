"""Memory of log-probabilities with gradients: chunked, against logits -> log_softmax -> gather held whole.

    python benchmarks/logprob_memory.py

Each way runs in a process of its own and reports the most memory it took beyond its inputs, and the seconds of one
forward and backward pass. Exits 1 if the chunked way takes more than a quarter of the other's.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

LIMIT = 1 / 4


def resident_gib() -> float:
    """Most memory this process has held so far, in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**30 if sys.platform == "darwin" else peak / 2**20


def measure(way: str, tokens: int, vocabulary: int, hidden: int) -> dict[str, float]:
    """Run one way once; return extra memory in GiB, seconds, and sums that the two ways must agree on."""
    import torch

    from assay.policies.logprobs import Head, token_logprobs

    torch.manual_seed(0)
    states = torch.randn(tokens, hidden, requires_grad=True)
    weight = (torch.randn(vocabulary, hidden) / hidden**0.5).requires_grad_()
    targets = torch.randint(vocabulary, (tokens,))
    before, start = resident_gib(), time.perf_counter()
    if way == "chunked":
        logprobs, _ = token_logprobs(states, Head(weight), targets)
    else:
        logprobs = (states @ weight.T).log_softmax(-1).gather(-1, targets[:, None])[:, 0]
    logprobs.sum().backward()
    assert states.grad is not None
    assert weight.grad is not None
    return {
        "gib": resident_gib() - before,
        "seconds": time.perf_counter() - start,
        "logprobs": float(logprobs.detach().sum()),
        "gradients": float(states.grad.norm() + weight.grad.norm()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=8 * 1024)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--way", choices=["chunked", "whole"], help="measure one way in this process, print JSON")
    arguments = parser.parse_args()
    shape = (arguments.tokens, arguments.vocabulary, arguments.hidden)
    if arguments.way:
        print(json.dumps(measure(arguments.way, *shape)))
        return 0
    found = {}
    for way in ("chunked", "whole"):
        sizes = [f"--tokens={shape[0]}", f"--vocabulary={shape[1]}", f"--hidden={shape[2]}"]
        command = [sys.executable, __file__, "--way", way, *sizes]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{way}: failed with exit status {done.returncode} (out of memory?)\n{done.stderr}", file=sys.stderr)
            return 1
        found[way] = json.loads(done.stdout)
        print(f"{way:8} {found[way]['gib']:6.2f} GiB beyond its inputs, {found[way]['seconds']:6.1f} s")
    for key in ("logprobs", "gradients"):
        ours, theirs = found["chunked"][key], found["whole"][key]
        if abs(ours - theirs) > 1e-4 * abs(theirs):
            print(f"{key} differ: {ours} and {theirs}", file=sys.stderr)
            return 1
    ratio = found["chunked"]["gib"] / found["whole"]["gib"]
    times = found["chunked"]["seconds"] / found["whole"]["seconds"]
    print(f"ratio    {ratio:.3f} (limit {LIMIT:g}), time ratio {times:.2f}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
