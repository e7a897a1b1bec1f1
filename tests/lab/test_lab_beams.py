"""The setting of beams: procedures against the solver, chances against enumeration, and what training does to both."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from assay.engines.base import Request, Sampling
from assay.lab.settings.beams import PROCEDURES, Reckoning, Setting, Writing, read, reckoned, written
from assay.tasks.procedural.beams import Beams
from assay.verify.kind import KindVerifier
from assay.verify.number.reactions import reactions

ENDS = 4
"""The first of the procedures are right where the supports are at the ends."""


@pytest.mark.parametrize("axis", ["trained", "loads", "supports"])
def test_a_procedure_that_holds_is_right_for_every_beam(axis: str) -> None:
    judge = KindVerifier()
    for task in (Beams(3, (axis,), longest=1)[i] for i in range(30)):
        a, b, loads = read(task)
        assert reckoned(task, [0] * len(loads)) == reactions((a, b), [(x, w) for w, x in loads])
        right = [judge(task, written(task, True, [f] * len(loads))).passed for f in range(len(PROCEDURES))]
        assert right[0] is True
        assert axis == "supports" or right[:ENDS] == [True] * ENDS
    # On the last beam of this axis the others are told apart from what is right.
    assert right[ENDS:] == [False] * 3 or axis == "supports"


def test_moved_supports_tell_procedures_apart() -> None:
    judge, tasks = KindVerifier(), [Beams(3, ("supports",), longest=1)[i] for i in range(30)]
    shares = [np.mean([judge(t, written(t, True, [f])).passed for t in tasks]) for f in range(ENDS)]
    assert shares[0] == 1 and max(shares[1:]) < 0.3


def test_only_answers_in_the_form_have_its_part() -> None:
    task = Beams(0, longest=1)[0]
    parts = [KindVerifier()(task, written(task, formed, [0])).parts for formed in (True, False)]
    assert parts == [{"accuracy": 1.0, "format": 1.0}, {"accuracy": 1.0, "format": 0.0}]


def test_chances_are_those_of_all_responses() -> None:
    tasks = [Beams(1, ("loads",), longest=1)[i] for i in range(3)]
    noise = [torch.randn(len(read(t)[2]), len(PROCEDURES), dtype=torch.float64) for t in tasks]
    weights = torch.linspace(-1, 1, len(PROCEDURES), dtype=torch.float64)
    policy, judge = Reckoning(tasks, weights, 0.5, noise), KindVerifier()
    p, found = policy.leaf_logprobs().exp().detach().numpy(), np.zeros(3)
    formed = 0.0
    for path, chance in zip(policy.tree.paths, p, strict=True):
        task = tasks[path[0]]
        found[path[0]] += 3 * chance * bool(judge(task, written(task, bool(path[1]), path[2:])).passed)
        formed += chance * path[1]
    assert policy.right(tasks, noise) == pytest.approx(found.mean()) and 0 < found.mean() < 1
    assert formed == pytest.approx(1 / (1 + np.exp(-0.5)))
    several = next(i for i, n in enumerate(noise) if len(n) > 1)
    for load, path in product((0, 1), ([several, 0], [several, 1])):
        node = policy.tree.node([*path, *[2] * load])
        torch.testing.assert_close(policy.logits[node].detach(), weights + noise[several][load])


def test_responses_are_written_for_the_beam_that_is_asked() -> None:
    tasks = [Beams(2, longest=1)[i] for i in range(4)]
    noise = [torch.zeros(1, len(PROCEDURES), dtype=torch.float64)] * 4
    policy = Reckoning(tasks, 60.0 * torch.eye(len(PROCEDURES), dtype=torch.float64)[0], 60.0, noise)
    for task in tasks:
        [[episode]] = Writing(policy).generate([Request(task.prompt, 1, Sampling(8), 0)])
        assert episode.text == written(task, True, [0]) and KindVerifier()(task, episode.text).passed


def test_training_on_one_axis_is_measured_on_all(tmp_path: Path) -> None:
    setting = Setting(beams=8, steps=30, lr=1.0)
    found = setting.run({"method": {"name": "S025"}, "axis": "loads"}, 1, tmp_path)
    assert found["gain"] == found["loads"] - found["loads/start"] and found["rollouts"] == 30 * 64
    assert found["trained"] > found["trained/start"] + 0.1 and found["form"] > 0.5
    assert found["supports/peak"] >= found["supports"]
    moved = setting.run({"method": {"name": "S025"}, "axis": "supports"}, 1, tmp_path)
    assert moved["supports"] == found["supports"] and moved["gain"] == found["supports"] - found["supports/start"]
