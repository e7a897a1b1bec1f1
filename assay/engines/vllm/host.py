"""What vLLM needs of the process it runs in, and what it must leave as it was."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from assay.errors import UsageError

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Set before vLLM is imported, unless the user has set them: run in this process, where its weights can be reached;
with the runner that applies our processors of logits; say only what is wrong; tell nobody of its use."""


def import_vllm() -> Any:
    """Return the package, with :data:`ENVIRONMENT` set.

    Raises:
        UsageError: it is not installed, or the user's environment puts the engine into another process.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] != "0":
        raise UsageError(
            "VLLM_ENABLE_V1_MULTIPROCESSING is set, so that vLLM's weights would be in another process, where they "
            "cannot follow a policy; unset it, or use engine vllm-server"
        )
    with undisturbed():
        try:
            import vllm
        except ImportError as error:
            raise UsageError(not_importable(error)) from error
    return vllm


def not_importable(error: ImportError) -> str:
    """Say in a line why vLLM cannot be used."""
    if isinstance(error, ModuleNotFoundError) and error.name == "vllm":
        return "vllm is not installed: pip install assay[vllm], or on a machine without a GPU: make vllm"
    return f"vllm is installed but cannot be imported: {first_line(error)}"


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let vLLM do what it does to a process of its own, and put this one's state back.

    It seeds the generators of Python, NumPy and torch, and draws from torch's; reduces torch to one thread unless
    OMP_NUM_THREADS says how many, and on a CPU replaces the function that sets them.
    """
    ours, numbers, threads = random.getstate(), np.random.get_state(), torch.get_num_threads()
    set_threads, said = torch.set_num_threads, os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(ours)
            np.random.set_state(numbers)
            torch.set_num_threads = set_threads
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            if said is None:
                os.environ.pop("OMP_NUM_THREADS", None)
            else:
                os.environ["OMP_NUM_THREADS"] = said


def first_line(error: BaseException) -> str:
    """Return what an error says, on one line and not too long."""
    return " ".join(str(error).split())[:300] or type(error).__name__
