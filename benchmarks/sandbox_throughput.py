"""Programs per second in the sandbox, against a fresh unprotected interpreter for each program.

Both sides run the same small programs with the same input, as many at a time, and must give the same output. Rounds
alternate between the sides; the figures are medians over rounds. Prints the ratio, the latency of a trivial program
when nothing else runs, and what a thousand programs leave behind.

    python benchmarks/sandbox_throughput.py [--rounds 7] [--programs 200] [--parallel CORES]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from assay.sandbox import Program, Sandbox

SOURCES = (
    "print(sum(map(int, input().split())))",
    "n = int(input().split()[0])\nprint([i * i for i in range(n)])",
    "from collections import Counter\nprint(sorted(Counter(input()).items()))",
    "import heapq\nh = [int(x) for x in input().split()]\nheapq.heapify(h)\nprint(heapq.heappop(h))",
    "import math\nprint(math.gcd(*map(int, input().split())))",
    "s = input()\nprint(s[::-1] == s)",
)
STDIN = b"12 18 30 6\n"


def fresh(index: int) -> bytes:
    line = [sys.executable, "-I", "-c", SOURCES[index % len(SOURCES)]]
    return subprocess.run(line, input=STDIN, capture_output=True, check=True).stdout


def rate(function: Callable[[int], bytes], programs: int, parallel: int) -> tuple[float, list[bytes]]:
    start = time.perf_counter()
    with ThreadPoolExecutor(parallel) as threads:
        outputs = list(threads.map(function, range(programs)))
    return programs / (time.perf_counter() - start), outputs


def traces() -> tuple[int, int, int]:
    """Return how many processes are running, descriptors are open here, and files are in the temporary folder."""
    running = sum(name.isdecimal() for name in os.listdir("/proc"))
    return running, len(os.listdir("/proc/self/fd")), len(os.listdir("/tmp"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--programs", type=int, default=200, help="programs in a round of the sandbox")
    parser.add_argument("--parallel", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()

    with Sandbox(options.parallel) as box:

        def sandboxed(index: int) -> bytes:
            return box.run(Program(SOURCES[index % len(SOURCES)]), STDIN).stdout

        few = max(len(SOURCES), options.programs // 8)
        _, ours = rate(sandboxed, few, options.parallel)
        _, theirs = rate(fresh, few, options.parallel)
        assert ours == theirs, "the two sides disagree"
        pairs = []
        for _ in range(options.rounds):
            slow, _ = rate(fresh, few, options.parallel)
            fast, _ = rate(sandboxed, options.programs, options.parallel)
            pairs.append((slow, fast))
        slow, fast = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(fast / slow for slow, fast in pairs)
        print(f"fresh python -I   {slow:8.0f} programs/s")
        print(f"sandbox           {fast:8.0f} programs/s")
        print(f"ratio             {ratio:8.1f} x  (median of {options.rounds} rounds, {options.parallel} at a time)")

        times = []
        for _ in range(300):
            start = time.perf_counter()
            assert box.run(Program("print(1)")).stdout == b"1\n"
            times.append(time.perf_counter() - start)
        p50, p95 = (1e3 * statistics.quantiles(times, n=20)[index] for index in (9, 18))
        print(f"latency           {p50:8.2f} ms median, {p95:.2f} ms 95th percentile")

        before = traces()
        rate(sandboxed, 1000, options.parallel)
        after = traces()
        words = ("processes", "descriptors", "temporary files")
        left = ", ".join(f"{b - a:+d} {word}" for a, b, word in zip(before, after, words, strict=True))
        print(f"after 1000 programs: {left}")


if __name__ == "__main__":
    main()
