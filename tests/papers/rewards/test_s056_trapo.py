"""TraPO: similarities of histories by hand, who is kept when, and that labels of unlabelled tasks are never read."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.lab.settings.open_ended import views
from assay.method import make_method
from assay.rewards.outcome.by_label import ByLabel
from assay.select.trajectory import Trajectory, similarity
from assay.types import Ask, Episode, Group, Task, Verdict

DATABASE = [(0.1, 0.3, 0.5, 0.7), (0.2, 0.2, 0.6, 0.8)]
QUERIES = {"a": (0.2, 0.4, 0.5, 0.9), "b": (0.9, 0.7, 0.5, 0.4), "c": (0.5, 0.5, 0.5, 0.5)}


def asked(**tasks) -> Batch:
    """A batch with a group per task; a name with ``u`` first is unlabelled; responses are right if they say 4."""
    groups = []
    for name, texts in tasks.items():
        zeros = np.zeros(1, dtype=np.int64)
        episodes = tuple(Episode(zeros, zeros, zeros == 0, zeros.astype(np.float32), t, "eos") for t in texts)
        verdicts = [Verdict(float(t == "4"), None if t == "failed" else t == "4") for t in texts]
        task = Task(name, "?", "4", meta={"labelled": not name.startswith("u")})
        groups.append(Group(Ask(task, len(texts)), episodes).judged(verdicts))
    return Batch.from_groups(groups, torch.float64)


def valued(method, batch: Batch) -> Batch:
    return method.value(batch)


def with_histories(**options) -> Trajectory:
    part = Trajectory(**options)
    part.histories = {f"d{i}": list(h) for i, h in enumerate(DATABASE)} | {k: list(h) for k, h in QUERIES.items()}
    part.database = dict.fromkeys(["d0", "d1"])
    return part


def test_the_worked_similarities():
    found = [similarity(h, DATABASE) for h in QUERIES.values()]
    assert found == pytest.approx([0.935293, -0.958404, 0.0], abs=1e-6)
    assert similarity(QUERIES["a"], DATABASE, "max") > found[0]
    assert with_histories().kept(list(QUERIES)) == ["a"]
    assert with_histories(threshold=2.0, top=0.34).kept(list(QUERIES)) == ["a"]
    assert with_histories(threshold=2.0, top=0.0).kept(list(QUERIES)) == []
    assert with_histories(threshold=2.0, top=0.67).kept(list(QUERIES)) == ["a", "c"]


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.floats(0.1, 9), st.floats(-3, 3))
def test_scale_and_offset_of_a_history_do_not_matter(history, scale, offset):
    if np.std(history) > 1e-2:
        moved = [scale * x + offset for x in history]
        assert similarity(moved, DATABASE) == pytest.approx(similarity(history, DATABASE), abs=1e-5)


def test_similarity_against_correlation():
    rng = np.random.default_rng(3)
    one, other = rng.random(7).tolist(), rng.random(7).tolist()
    assert similarity(one, [other]) == pytest.approx(np.corrcoef(one, other)[0, 1], abs=1e-6)


def test_one_entry_says_nothing():
    assert (
        similarity([0.3], [[0.9], [0.1]]) == 0.0 and similarity([0.1, 0.9], []) == 0.0 and similarity([], [[]]) == 0.0
    )
    part = Trajectory(warm_up=0)
    weights = valued(make_method("grpo", reward="S056", select=part), asked(l=["4", "5"], u=["4", "4"], ub=["7", "7"]))
    # Only the share of the best, at least one, keeps one of them: the first of equals.
    assert weights.weights.tolist() == [1, 1, 1, 1, 0, 0]


def test_histories_are_cut_to_the_shortest():
    part = with_histories(top=0.0)
    part.histories["d1"] = [0.2, 0.2]
    part.histories["a"] += [0.0]
    # Two entries: only d0 and the query vary, cosine 1, and d1's is 0.
    assert similarity((0.2, 0.4), [(0.1, 0.3), (0.2, 0.2)]) == pytest.approx(0.5)
    assert part.kept(["a"]) == ["a"]


def test_a_task_is_not_compared_with_itself():
    part = with_histories(top=0.0)
    part.database["b"] = None
    assert part.kept(["b"]) == []


def test_what_was_kept_is_compared_with():
    """A kept task joins the labelled ones that later tasks are compared with, unless told otherwise."""
    for update, want in ((True, ["d0", "d1", "ua"]), (False, ["d0", "d1"])):
        part = with_histories(update=update, top=0.0, warm_up=0)
        part.histories["ua"] = [0.2, 0.4, 0.5]
        batch = asked(ua=["5", "5", "5", "5"])
        batch.rewards[:] = torch.tensor([1, 0, 0, 0])
        assert part(batch).tolist() == [0] * 4 and list(part.database) == ["d0", "d1"]
        assert part.histories["ua"] == [0.2, 0.4, 0.5, 0.25]
        part.histories["ua"] = [0.2, 0.4, 0.5]
        batch.rewards[:] = 1
        assert part(batch).tolist() == [1] * 4 and list(part.database) == want


def test_the_papers_numbers():
    method = make_method("S056")
    part = method.select
    assert (part.warm_up, part.threshold, part.top, part.over, part.update) == (8, 0.4, 0.1, "mean", True)
    assert method.objective.kl_weight == 0
    alone = Trajectory()
    assert (alone.warm_up, alone.threshold, alone.top, alone.over, alone.update) == (8, 0.4, 0.1, "mean", True)
    for part in (Trajectory(), Trajectory(warm_up=0, top=0.0), Trajectory(top=1.0)):
        assert part.state_dict() == {"histories": {}, "database": []}


def test_the_top_share_is_rounded_down_and_at_least_one():
    keys = [f"u{k}" for k in range(6)]
    part = Trajectory(threshold=2.0, top=0.34)
    part.histories = {"d": [0.0, 1.0, 2.0]} | {k: [0.0, 1.0, 2.0 - i] for i, k in enumerate(keys)}
    part.database = {"d": None}
    # Correlations with (0, 1, 2): 1, 1 / 2 of (0, 1, 1) is 0.866, then 0, -0.33 ...; 0.34 of six are two.
    assert part.kept(keys) == ["u0", "u1"] and part.kept(keys[:2]) == ["u0"] and part.kept([]) == []
    part.threshold = similarity([0.0, 1.0, 1.0], [[0.0, 1.0, 2.0]])
    assert part.threshold == pytest.approx(math.sqrt(3) / 2)
    part.top = 0.0
    assert part.kept(keys) == ["u0", "u1"]


def test_warm_up_records_and_does_not_learn():
    method = make_method("S056", select={"name": "trajectory", "warm_up": 2, "top": 1.0})
    rates = (["4", "5"], ["5", "5"]), (["4", "4"], ["7", "5", "5"]), (["4", "4"], ["7", "5"])
    seen = [valued(method, asked(l=l, u=u)).weights.tolist() for l, u in rates]  # noqa: E741
    assert seen == [[1, 1, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1]]
    # Agreement with the majority: 1, 2/3, and none for a tie.
    assert method.select.histories["u"] == pytest.approx([1, 2 / 3, 0])
    assert method.select.histories["l"] == pytest.approx([0.5, 1, 1])
    assert list(method.select.database) == ["l", "u"]


def test_rewards_by_label():
    batch = asked(l=["5", "5", "4"], u=["5", "5", "4"], ut=["5", "4"])
    reward = ByLabel()(batch)
    assert reward.values.tolist() == [0, 0, 1, 1, 1, 0, 0, 0]
    assert reward.valid.tolist() == [True] * 6 + [False] * 2
    without = Task("t", "?")
    batch.tasks[:3] = [without] * 3
    assert ByLabel()(batch).values.tolist() == [1, 1, 0, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("place", ["labelled", "unlabelled"])
def test_rewards_on_tokens_are_refused(place):
    def on_tokens(batch: Batch) -> Reward:
        return Reward(torch.zeros_like(batch.rewards), tokens=torch.zeros_like(batch.advantages))

    with pytest.raises(UsageError, match="takes rewards for responses, not for tokens"):
        ByLabel(**{place: on_tokens})(asked(l=["4"], u=["5"]))


def test_failures_of_the_verifier_leave_no_trace():
    method = make_method("S056", select={"name": "trajectory", "warm_up": 0})
    batch = valued(method, asked(l=["failed", "failed"], u=["failed", "4", "4", "5"]))
    assert "l" not in method.select.histories and method.select.histories["u"] == pytest.approx([2 / 3])
    assert batch.active.tolist() == [False, False, False, True, True, True]


def test_histories_are_in_the_checkpoint():
    method, other = make_method("S056"), make_method("S056")
    valued(method, asked(l=["4", "5"], u=["5", "5"]))
    other.load_state_dict(method.state_dict())
    assert other.select.histories == method.select.histories == {"l": [0.5], "u": [1.0]}
    assert other.select.database == {"l": None}


def test_options():
    for bad in ({"warm_up": -1}, {"top": 1.5}):
        with pytest.raises(UsageError, match="trajectory"):
            Trajectory(**bad)


def test_it_acts_in_training(tmp_path):
    """With one task in four labelled, the others' answers are right more often than at the start."""
    setting = views.Setting(views=1, labelled=0.25, known=0.5, group=8, steps=30, lr=1.0)
    found = setting.run({"name": "S056"}, 0, tmp_path)
    assert found["right"] > found["start/right"] + 0.05
