"""Which GPUs engines are given on a Ray cluster: never a trainer's, as many as each spans. GPUs are pretended."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.config import ScaleConfig, load_config
from assay.errors import UsageError
from assay.scale.faults import Faults
from assay.scale.ray.gpus import STARTED, GPUs, Seat, gpus_of

ray = pytest.importorskip("ray", reason="the extra ray is not installed")

from assay.scale.ray import cluster  # noqa: E402
from assay.scale.ray.cluster import Cluster, import_ray  # noqa: E402

Join = Callable[..., list[set[str]]]


def seen_by(actor: Any) -> set[str]:
    """The GPUs that a process on an actor may use."""
    visible = actor.__ray_call__.remote(lambda _: os.environ["CUDA_VISIBLE_DEVICES"])
    return set(ray.get(visible).split(","))


@pytest.fixture(scope="module")
def machine() -> Iterator[None]:
    """A cluster of this machine that takes it to have eight GPUs."""
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.CRITICAL}
    import_ray().init(address="local", num_cpus=8, num_gpus=8, object_store_memory=80 << 20, **quiet)
    yield
    ray.shutdown()


@pytest.fixture
def joined(machine: None, tmp_path: Path) -> Iterator[Join]:
    """Joins with so many engines; returns the GPUs that each of them sees."""
    made: list[Cluster] = []

    def join(engines: int, gpus: GPUs) -> list[set[str]]:
        made.append(Cluster(ScaleConfig(engines=engines), Faults(tmp_path, print), gpus))
        made[-1].join()
        actors = [made[-1].hire(Seat, i) for i in range(engines)]
        seen = [seen_by(actor) for actor in actors]
        for actor in actors:
            made[-1].dismiss(actor)
        return seen

    yield join
    for each in made:
        each.close()


def names(*numbers: int) -> tuple[str, ...]:
    return tuple(map(str, numbers))


@pytest.mark.slow
def test_engines_never_get_the_trainers_gpus(joined: Join) -> None:
    """Four trainers of this machine on GPUs 0 to 3, four engines: each engine has one of the others to itself."""
    assert sorted(map(sorted, joined(4, GPUs(own=names(0, 1, 2, 3))))) == [["4"], ["5"], ["6"], ["7"]]


@pytest.mark.slow
def test_trainers_on_other_gpus_than_the_first(joined: Join) -> None:
    """CUDA_VISIBLE_DEVICES may name any: those are left out, and nothing else is."""
    seen = joined(6, GPUs(own=names(5, 2)))
    assert set().union(*seen) == set(names(0, 1, 3, 4, 6, 7)) and all(len(each) == 1 for each in seen)


@pytest.mark.slow
def test_an_engine_spans_several(joined: Join) -> None:
    """Two engines of three GPUs beside two trainers: all eight are used, and none twice."""
    seen = joined(2, GPUs(own=names(0, 1), engine=3))
    assert [len(each) for each in seen] == [3, 3]
    assert set().union(*seen) == set(names(2, 3, 4, 5, 6, 7))


@pytest.mark.slow
def test_engines_that_share(joined: Join) -> None:
    """Seven engines beside two trainers on eight GPUs: none is used by two engines, as trainers' are used too."""
    seen = joined(7, GPUs(own=names(0, 1)))
    assert len(set().union(*seen)) == 7 and all(len(each) == 1 for each in seen)


@pytest.mark.slow
def test_another_job_has_the_trainers_gpu(joined: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused in a line that names the GPU; nothing stays reserved."""
    other = ray.remote(num_gpus=2)(Seat).remote()
    taken = ray.get(other.gpus.remote())
    wanted = (str(taken[0]), next(str(i) for i in range(8) if i not in taken))
    with monkeypatch.context() as patched:
        patched.setattr(cluster, "PLACE_PATIENCE", 4.0)  # nobody gives it back
        with pytest.raises(UsageError, match=f"GPU {taken[0]}.* of this machine, .*CUDA_VISIBLE_DEVICES"):
            joined(1, GPUs(own=wanted))
    ray.kill(other)
    assert len(joined(1, GPUs(own=names(*range(7))))[0]) == 1


@pytest.mark.slow
def test_gpus_that_ray_does_not_count(joined: Join) -> None:
    """Ray started with other GPUs than the trainers': all that it has are for engines."""
    assert len(set().union(*joined(8, GPUs(own=("GPU-1", "GPU-2"))))) == 8


@pytest.mark.parametrize(
    ("gpus", "total", "here", "engines", "share", "alone"),
    [
        (GPUs(own=names(0)), 8, 8, 7, 1.0, True),
        (GPUs(own=names(0)), 8, 8, 8, 1.0, False),
        (GPUs(own=names(0)), 1, 1, 2, 0.5, False),
        (GPUs(own=names(0)), 2, 2, 5, 0.33, False),
        (GPUs(own=names(0, 1)), 8, 0, 8, 1.0, True),  # the trainers' machine has none that Ray counts
        (GPUs(reserved=8), 16, 8, 8, 1.0, True),
        (GPUs(reserved=8), 16, 8, 16, 0.5, False),
        (GPUs(own=names(0, 1), engine=2), 8, 8, 3, 2.0, True),
    ],
)
def test_shares(gpus: GPUs, total: float, here: float, engines: int, share: float, alone: bool) -> None:
    """Whole GPUs while there are enough; otherwise what the fullest GPU's engines come to, worked out by hand."""
    assert gpus.share(total, here, engines) == (share, alone)


def test_too_few() -> None:
    """Engines of several GPUs never share; trainers that have them all leave none."""
    with pytest.raises(UsageError, match=r"3 engines of tensor_parallel_size = 2 take 6 GPUs; .* 8 GPUs, .* take 4"):
        GPUs(own=names(0, 1, 2, 3), engine=2).share(8, 8, 3)
    with pytest.raises(UsageError, match="8 GPUs, of which trainers take 8, and leave none"):
        GPUs(reserved=8).share(8, 8, 1)


@pytest.mark.parametrize(
    ("changes", "device", "trainers", "environment", "wanted"),
    [
        ({}, "cpu", 4, {}, GPUs()),
        ({}, "cuda", 2, {}, GPUs(own=("0", "1"))),
        ({}, "cuda", 2, {"CUDA_VISIBLE_DEVICES": "6, 3,1"}, GPUs(own=("6", "3"))),
        ({"model.device": "cuda:2"}, "cuda", 1, {}, GPUs(own=("2",))),
        ({"model.device": "cuda:1"}, "cuda", 1, {"CUDA_VISIBLE_DEVICES": "6,3"}, GPUs(own=("3",))),
        ({"scale.nodes": 2}, "cuda", 1, {}, GPUs(own=("0",))),
        ({"scale.nodes": 2}, "cuda", 4, {STARTED: "1"}, GPUs(reserved=4)),
        ({"scale.nodes": 2}, "cuda", 4, {}, GPUs()),
        ({"engine.name": "vllm-server"}, "cpu", 1, {}, GPUs()),
        (
            {"engine.name": "vllm-server", "engine.options.tensor_parallel_size": 4},
            "cuda",
            1,
            {},
            GPUs(own=("0",), engine=4),
        ),
    ],
)
def test_what_a_run_takes(
    changes: dict[str, Any], device: str, trainers: int, environment: dict[str, str], wanted: GPUs
) -> None:
    """A rank's GPU is the one of its number among those that are visible, as torch counts them."""
    config = load_config({}, [f"{k}={v}" for k, v in changes.items()])
    assert gpus_of(config, device, trainers, environment) == wanted
