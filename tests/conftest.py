"""Checks shape annotations while testing, makes property tests repeatable, and builds small batches by hand."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import jaxtyping
import numpy as np
import pytest
import typechecker
from essentials_ran import EssentialsRan
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes as cores: threads of each would only take turns
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# The seams and the tabular policy only: engines and attention run too hot for checks on every call.
jaxtyping.install_import_hook(
    [
        "assay.batch",
        "assay.ops",
        "assay.returns",
        "assay.credit",
        "assay.objectives",
        "assay.papers",
        "assay.policies.base",
        "assay.policies.tabular",
        "assay.rewards",
        "assay.select",
        "assay.signals",
    ],
    "typechecker.check",
)
typechecker.install()

# The same examples each time: those beyond the first of many rarely find what they did not find when they were new.
# Before a release, ASSAY_EXAMPLES=500 or so tries new ones.
EXAMPLES = int(os.environ.get("ASSAY_EXAMPLES", "20"))
settings.register_profile("here", derandomize=EXAMPLES <= 20, deadline=None, database=None, max_examples=EXAMPLES)
settings.load_profile("here")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """See that no test leaves the tests after it without the sandbox, as a command with --unsafe-no-sandbox would."""
    from assay.sandbox.unprotected import VARIABLE

    left = os.environ.pop(VARIABLE, None)
    assert left is None, "the test left programs unprotected: undo it with monkeypatch"


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk() -> Iterator[None]:
    """Processes die in these tests, machines do not: what was written is there without waiting for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Run tensor operations in one thread: on the tiny tensors of a tree, threads only wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def make_batch() -> Callable[..., Any]:
    """Return a function that builds a float64 batch from lengths, and what else is known of its samples."""
    import torch

    from assay.batch import Batch
    from assay.types import Ask, Episode, Group, Task, Verdict

    def make(
        lengths: Sequence[int],
        rewards: Sequence[float] | None = None,
        groups: Sequence[int] | None = None,
        passed: Sequence[bool | None] | None = None,
        texts: Sequence[str] | None = None,
        tasks: Sequence[Task] | None = None,
        **tensors: Any,
    ) -> Batch:
        n = len(lengths)
        made = []
        for i, length in enumerate(lengths):
            episode = Episode(
                prompt=np.zeros(0, dtype=np.int64),
                tokens=np.zeros(length, dtype=np.int64),
                mask=np.ones(length, dtype=bool),
                logprobs=np.zeros(length, dtype=np.float32),
                text=texts[i] if texts else f"response {i}",
                stop="eos",
                advantage_group=str(groups[i] if groups else 0),
            )
            verdict = Verdict(rewards[i] if rewards else 0.0, passed[i] if passed else True)
            task = tasks[i] if tasks else Task(f"task-{i}", f"question {i}")
            made.append(Group(Ask(task, 1), (episode,), (verdict,)))
        batch = Batch.from_groups(made, dtype=torch.float64)
        assert len(batch) == n
        if rewards is not None:
            batch.rewards = torch.tensor(rewards, dtype=torch.float64)
        for name, value in tensors.items():
            setattr(batch, name, torch.as_tensor(value))
        return batch

    return make


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector what is there to stay: libraries, this package and 20,000 tests."""
    gc.disable()
    gc.set_threshold(10_000)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.unfreeze)  # some libraries take what is left of them at the end for a leak


def pytest_runtest_setup() -> None:
    typechecker.begin()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(EssentialsRan())
