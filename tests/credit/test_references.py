"""The lab's setting of thoughts and reference answers: what it says is measured, and a posterior that is one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.lab.settings.open_ended.references import LETTERS, Setting, Spelling, World, right
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")


def leaves(world: World) -> dict[tuple[int, ...], float]:
    p = world.policy.leaf_logprobs().exp().detach().numpy()
    return dict(zip(world.policy.tree.paths, p.tolist(), strict=True))


def given(world: World, task: int) -> dict[tuple[int, ...], float]:
    """Probability of each response to a task."""
    found = {path[1:]: p for path, p in leaves(world).items() if path[0] == task}
    total = sum(found.values())
    return {path: p / total for path, p in found.items()}


def answer_of(world: World, task: int) -> tuple[int, ...]:
    return tuple(LETTERS.index(c) for c in world.references[task])


def test_measures_against_enumeration() -> None:
    world = World.of(Setting(tasks=2, branching=2, depth=2, length=2, spread=1.0), 3)
    got = world.measure()
    chance, quality = [], []
    for i in range(2):
        rows = given(world, i)
        chance.append(sum(p for path, p in rows.items() if path[path.index(0) + 1 :] == answer_of(world, i)))
        by_thought = {tuple(t.own[1]): t.quality for t in world.thoughts if t.task == i}
        quality.append(sum(p * by_thought[path[: path.index(0) + 1]] for path, p in rows.items()))
    assert got["right"] == pytest.approx(np.mean(chance)) and got["quality"] == pytest.approx(np.mean(quality))
    given_thought = []
    for i in range(2):
        total = 0.0
        rows = given(world, i)
        for thought in {path[: path.index(0) + 1] for path in rows}:
            p = np.array([q for path, q in rows.items() if path[: len(thought)] == thought])
            total -= float((p * np.log(p / p.sum())).sum())
        given_thought.append(total)
    assert got["diversity"] == pytest.approx(np.mean(given_thought))


def test_a_thoughts_quality_is_the_likelihood_of_its_tokens() -> None:
    world = World.of(Setting(tasks=1, branching=3, depth=1, length=4, odd=1, keys=2, bulk=0.8), 0)
    logp = world.policy.log_policy().detach().exp()
    for thought in world.thoughts:
        probs = [float(logp[n, t]) for n, t in zip(*thought.answer, strict=True)]
        assert thought.token == pytest.approx(0.3 + 0.6 * thought.quality)
        assert 1e-4 <= probs[0] <= 0.3 + 1e-9
        assert sorted(probs[1:]) == pytest.approx(sorted([0.8, thought.token, thought.token]))
    assert sorted(t.quality for t in world.thoughts) == [0, 0, 0.5, 1]


def test_the_view_with_the_answer_is_the_posterior() -> None:
    world = World.of(Setting(tasks=2, branching=3, depth=2, length=2, alike=True, insight=1.0, shown=True), 1)
    for i in range(2):
        joint = {
            path[:-2]: p for path, p in given(world, i).items() if path[-2:] == answer_of(world, i) and 0 in path[:-2]
        }
        total = sum(joint.values())
        shown: dict[tuple[int, ...], float] = {}
        for path, p in given(world, 2 + i).items():
            thought = path[: path.index(0) + 1]
            shown[thought] = shown.get(thought, 0.0) + p
        assert shown == pytest.approx({k: v / total for k, v in joint.items()})
    engine = Spelling(world.policy, 2)
    assert engine.encode("1").tolist() == [1] and engine.encode("1/ab").tolist() == [3]


def test_responses_read_as_text() -> None:
    world = World.of(Setting(tasks=2, branching=2, depth=2, length=3), 0)
    policy = world.policy
    assert policy.decode([1, 2, 0, 1, 0]) == "ab=a." and policy.encode_response("ab=a.").tolist() == [1, 2, 0, 1, 0]
    [episodes] = Spelling(policy, 2).generate([Request("1", 20, Sampling(8), 0)])
    for episode in episodes:
        assert episode.text == policy.decode(episode.tokens) and episode.prompt.tolist() == [1]
        assert bool(right(Task("1", "1", world.references[1]), episode.text).passed) == (
            tuple(episode.tokens[-3:].tolist()) == answer_of(world, 1) and episode.tokens[-4] == 0
        )
    assert isinstance(policy.twin(), type(policy)) and torch.equal(policy.twin().logits, policy.logits)


def test_options() -> None:
    for bad in ({"letters": 1}, {"keys": 4, "odd": 1}, {"branching": 27}):
        with pytest.raises(UsageError, match="references"):
            Setting(**bad)
