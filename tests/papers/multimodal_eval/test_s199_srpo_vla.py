"""S199: rewards and advantages by hand, clusters, what is compared with what, a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay.batch import Batch
from assay.catalogue import make
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.shaping.self_reference import SelfReference, centres, dbscan
from assay.select.dynamic import AccuracyRange
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.types import Path as Steps

pytestmark = pytest.mark.usefixtures("one_thread")

NONE = np.zeros(0, dtype=np.int64)


def went(*places: list[float]) -> Episode:
    """An episode that was at these places after its steps."""
    after = np.array(places, dtype=np.float32)
    path = Steps(np.zeros_like(after), np.zeros((len(after), 1), np.float32), after)
    return Episode(NONE, np.zeros(len(after), np.int64), np.ones(len(after), bool), None, "", "eos", path=path)


def batch_of(rows: list[tuple[str, Episode, bool | None]]) -> Batch:
    verdicts = {True: Verdict.right(), False: Verdict.wrong(), None: Verdict.abstain("away")}
    groups = [Group(Ask(Task(id, ""), 1), (episode,), (verdicts[passed],)) for id, episode, passed in rows]
    return Batch.from_groups(groups, torch.float64)


def at(x: float, y: float = 1.0) -> Episode:
    return went([x, y])


ONE = SelfReference(places=1)


def test_the_worked_rewards() -> None:
    d = np.array([1.0, 2.0, 3.0])
    assert ONE.worth(d).tolist() == pytest.approx([0.595984, 0.3, 0.004016], abs=1e-6)
    assert SelfReference("standardised").worth(d).tolist() == pytest.approx([0.772897, 0.5, 0.227103], abs=1e-6)
    assert SelfReference(most=1.0).worth(np.array([2.0, 2.0])).tolist() == [0.5, 0.5]
    assert ONE.worth(np.array([7.0])).tolist() == pytest.approx([0.3])
    assert SelfReference("standardised").worth(np.array([2.0, 2.0])).tolist() == [0.5, 0.5]
    rows = [("w/0", at(0), True), ("w/0", at(1), False), ("w/0", at(2), False), ("w/0", at(3), False)]
    found = ONE(batch_of(rows))
    assert found.values.tolist() == pytest.approx([1, 0.595984, 0.3, 0.004016], abs=1e-6)
    assert found.valid is not None and bool(found.valid.all())


def test_the_worked_advantages() -> None:
    verdicts = tuple(Verdict.right() if i == 0 else Verdict.wrong() for i in range(4))
    batch = Batch.from_groups([Group(Ask(Task("w/0", ""), 4), tuple(at(i) for i in range(4)), verdicts)], torch.float64)
    batch.rewards = ONE(batch).values
    batch.totals = batch.count()
    found = GRPO()(batch)[:, 0]
    assert found.tolist() == pytest.approx([1.234337, 0.284448, -0.411446, -1.107339], abs=1e-4)


def test_failures_are_below_successes_and_scale_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((6, 2))
    found = []
    for scale, shift in ((1.0, 0.0), (3.0, 5.0)):
        rows = [("w/0", went((scale * p + shift).tolist()), i == 0) for i, p in enumerate(points)]
        found.append(ONE(batch_of(rows)).values)  # type: ignore[arg-type]
    assert torch.allclose(*found, atol=1e-5) and float(found[0][1:].max()) < 1


def test_a_task_is_compared_over_the_batch() -> None:
    rows = [("w/0/1", at(0), True), ("w/0/2", at(1), False), ("w/0/3", at(2), False), ("w/1/1", at(1), False)]
    assert ONE(batch_of(rows)).values.tolist() == pytest.approx([1, 0.595984, 0.004016, 0], abs=1e-6)
    plain = [("alone", at(0), True), ("other", at(1), False)]
    assert ONE(batch_of(plain)).values.tolist() == [1, 0], "an id without parts is a task of its own"


def test_where_there_is_nothing_to_compare() -> None:
    assert ONE(batch_of([("w/0", at(1), False), ("w/0", at(2), False)])).values.tolist() == [0, 0]
    assert ONE(batch_of([("w/0", at(1), True), ("w/0", at(2), True)])).values.tolist() == [1, 1]
    rows: list[Any] = [("w/0", at(1), True), ("w/0", at(0, 0), False), ("w/0", at(2), False), ("w/0", at(3), None)]
    found = ONE(batch_of(rows))
    assert found.values.tolist() == pytest.approx([1, 0, 0.3, 0]), "zero embeddings are left out, and abstentions"
    assert found.valid is not None and found.valid.tolist() == [True, True, True, False]


def test_centres() -> None:
    line = np.array([[0.0], [0.4], [0.8], [3.0], [3.3], [9.0]])
    assert dbscan(line, 0.5, 2).tolist() == [0, 0, 0, 1, 1, -1]
    assert dbscan(line, 0.5, 3).tolist() == [0, 0, 0, -1, -1, -1], "who is near a core belongs to it, cores or not"
    assert dbscan(line, 0.1, 1).tolist() == [0, 1, 2, 3, 4, 5] and dbscan(line, 0.1, 2).max() == -1
    two = np.array([[0.0, 1.0], [0.2, 1.0], [10.0, 1.0], [10.2, 1.0]])
    assert centres(two).tolist() == [pytest.approx([0.1, 1.0]), pytest.approx([10.1, 1.0])]
    assert centres(np.array([[2.0, 3.0]])).tolist() == [[2.0, 3.0]]
    assert centres(np.array([[0.0], [1.0], [5.0]])).tolist() == [pytest.approx([0.5])]
    assert centres(np.array([[0.0], [2.0]])).tolist() == [[1.0]], "noise alone: their mean"
    sklearn = pytest.importorskip("sklearn.cluster")
    rng = np.random.default_rng(1)
    for least in (2, 4):
        points = rng.standard_normal((60, 2))
        theirs = sklearn.DBSCAN(eps=0.3, min_samples=least).fit(points).labels_
        assert np.array_equal(dbscan(points, 0.3, least), theirs)


def length(episode: Episode) -> list[float]:
    return [float(len(episode.tokens))]


def test_embeddings() -> None:
    episode = went(*[[float(i), 0.0] for i in range(9)])
    assert SelfReference(places=3)._path(episode).tolist() == [0, 0, 4, 0, 8, 0]
    rows = [("w/0", went([1.0], [1.0], [1.0]), True), ("w/0", went([1.0]), False), ("w/0", went([1.0], [1.0]), False)]
    found = SelfReference(embedding=f"{Path(__file__)}:length")(batch_of(rows)).values  # type: ignore[arg-type]
    assert found.tolist() == pytest.approx([1, 0.004016, 0.595984], abs=1e-6)
    said = Episode(NONE, np.zeros(1, np.int64), np.ones(1, bool), None, "x", "eos")
    with pytest.raises(UsageError, match="name an encoder"):
        ONE(batch_of([("w/0", said, True)]))
    for wrong in ({"most": 0.0}, {"most": 1.5}, {"places": 0}):
        with pytest.raises(UsageError, match="self_reference"):
            SelfReference(**wrong)  # type: ignore[arg-type]


def test_the_row_is_its_parts() -> None:
    method = make("S199")
    assert method.reward == SelfReference("ranged", 0.6, "path", 8) == SelfReference() and method.credit == GRPO()
    assert method.select == AccuracyRange(0.1, 0.9)
    assert method.objective == ClippedSurrogate(clip_low=0.2, clip_high=0.28)
    assert make("S199", form="standardised", most=0.5, places=3).reward == SelfReference("standardised", 0.5, "path", 3)


def test_it_trains(tmp_path: Path) -> None:
    world = {"name": "point_mass", "radius": 0.5, "horizon": 10, "start": [0.1, 0.1, 0.3], "speed": 0.2}
    folder = run(
        tmp_path / "run",
        model={
            "source": "control",
            "control": {"decisions": "bins", "hidden": [8], "levels": 1, "bins": 3, "alpha": 1.0, "environment": world},
            "nano": {},
        },
        tasks={"source": {"name": "environment", "environment": world}, "eval_size": 2},
        warmup={"steps": 0},
        method={"name": "S199", "rollout": "vector", "reward": "self_reference"},
        rollout={"prompts": 2, "group": 8},
        train={"steps": 1, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    [row] = [r for r in metrics(folder) if r["stage"] == "rl"]
    assert row["pass_rate"] < row["reward/mean"] < 1 and row["grad_norm"] > 0
