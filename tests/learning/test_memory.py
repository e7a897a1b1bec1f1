"""Freed memory stays with the process: once the heap has settled, a large block faults no page."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import torch
from assay.learning.memory import keep_freed_memory
kept = keep_freed_memory() if sys.argv[1] == "keep" else False
def faults(rounds):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        blocks = [torch.ones(12 << 20) for _ in range(2)]  # 48 MiB each
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(30)  # an aligned request needs more than the block it leaves behind: the heap grows for some rounds
print(kept, faults(5))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library's own settings are glibc's")
def test_blocks_are_used_again_without_page_faults() -> None:
    ask = [sys.executable, "-c", PROGRAM]
    kept, faults = subprocess.run([*ask, "keep"], capture_output=True, text=True, check=True).stdout.split()
    if kept != "True":
        pytest.skip("this C library has no mallopt")
    without = int(subprocess.run([*ask, "leave"], capture_output=True, text=True, check=True).stdout.split()[1])
    assert int(faults) < 500 < without
