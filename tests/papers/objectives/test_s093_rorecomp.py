"""RoRecomp: who is learned from first, what is kept, and that what comes back is what was set aside."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from choices import RIGHT, WRONG, Choices, response
from hypothesis import given
from hypothesis import strategies as st
from running import metrics, run, weights

import assay
from assay.batch import Batch
from assay.errors import RunError, UsageError
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.papers.objectives.s093_rorecomp import SET_ASIDE, THEIR_ADVANTAGES, Compensation, Priority, rorecomp
from assay.registry import build
from assay.select.records import records, restored
from assay.types import Ask, Episode, Group, Span, Task, Turn, Verdict

CARD = [5, 2, 9, 4, 7, 3], [True, True, True, True, False, False]


def batch_of(*groups: tuple[list[int], list[bool | None]], turns: list[int] | None = None) -> Batch:
    rng = np.random.default_rng(len(groups))
    made = []
    for g, (lengths, passed) in enumerate(groups):
        episodes = tuple(
            Episode(
                prompt=np.array([g]),
                tokens=rng.integers(1, 9, n),
                mask=np.ones(n, dtype=bool),
                logprobs=rng.normal(-1, 0.2, n).astype(np.float32),
                text=f"{g}/{n}",
                stop="eos",
                turns=tuple(Turn(t, 0, 1) for t in range(turns[i])) if turns else (),
            )
            for i, n in enumerate(lengths)
        )
        verdicts = tuple(Verdict(float(p is True), p) for p in passed)
        made.append(Group(Ask(Task(f"t{g}", f"q{g}"), len(lengths)), episodes, verdicts))
    return Batch.from_groups(made, torch.float64)


def valued(batch: Batch, **options: float) -> Batch:
    return make_method(rorecomp(**options)).value(batch)


def test_the_worked_example():
    batch = valued(batch_of(CARD))
    lengths = batch.lengths
    assert sorted(lengths[batch.weights == 1].tolist()) == [2, 4, 7]
    assert sorted(lengths[batch.signals[SET_ASIDE] == 1].tolist()) == [3, 5, 9]


def test_advantages_are_those_of_the_whole_group():
    batch = valued(batch_of(CARD))
    whole = make_method("grpo").value(batch_of(CARD))
    assert torch.equal(batch.advantages + batch.signals[THEIR_ADVANTAGES], whole.advantages)
    assert not bool(batch.advantages[batch.weights == 0].any())
    assert batch.totals.tokens == 2 + 4 + 7 and batch.totals.sequences == 3


shapes = st.lists(st.tuples(st.integers(1, 9), st.sampled_from([True, False, None])), min_size=1, max_size=9)


def test_ties_go_to_the_earlier_sample():
    batch = valued(batch_of(([3, 3, 3, 3, 5, 5], [True] * 4 + [False] * 2)))
    assert batch.weights.tolist() == [1, 1, 0, 0, 1, 0]


def test_shares_are_not_rounded_up_by_an_error_of_the_last_digit():
    batch = valued(batch_of(([1] * 30, [True] * 30)), alpha=0.1)  # 0.1 * 30 is a little above 3
    assert int(batch.weights.sum()) == 3


def test_a_response_may_be_measured_by_its_turns():
    """The second has the fewest turns, the first the fewest calls, the third the fewest tokens."""
    shape = [3, 5, 2], [True] * 3
    for by, want in (("tokens", [0, 0, 1]), ("turn", [0, 1, 0]), ("call", [1, 0, 0])):
        batch = batch_of(shape, turns=[3, 1, 2])
        for episode, calls in zip(batch.episodes, (1, 2, 2), strict=True):
            spans = [*["call"] * calls, *["think"] * (3 - calls)]
            object.__setattr__(episode, "spans", tuple(Span(kind, 0, 1) for kind in spans))
        Priority(0.3, by=by)(batch)
        assert batch.weights.tolist() == want


def test_with_everything_first_it_is_grpo():
    method, batch = make_method(rorecomp(alpha=1)), batch_of(CARD)
    method.value(batch)
    assert batch.weights.tolist() == [1] * 6
    assert method.select.replay(batch, np.random.default_rng(0)) == []
    assert method.select.state_dict()["kept"] == []


def test_the_oldest_samples_come_back_as_they_were():
    """Their loss is what it would have been, from the stored advantages and log-probabilities."""
    select, rng = Compensation(size=4), np.random.default_rng(0)
    first, second = valued(batch_of(CARD)), valued(batch_of(([8, 2], [True, True]), ([6, 1], [False, True])))
    for batch in (first, second):
        batch.signals["reference_logprobs"] = batch.logprobs - 0.5
        batch.signals["difficulty"] = torch.arange(float(len(batch)))
    assert select.replay(first, rng) == []
    [old] = select.replay(second, rng)
    assert [e.text for e in old.episodes] == ["0/5", "0/9", "0/3", "0/8"]
    assert old.weights.tolist() == [1] * 4 and SET_ASIDE not in old.signals
    assert old.signals["difficulty"].tolist() == [0, 2, 5, 0]
    assert old.group.tolist() == [0, 0, 0, 1], "groups of different steps are mixed up"
    assert [v.passed for v in old.verdicts] == [True, True, False, True]
    objective = ClippedSurrogate(kl_weight=0.1, aggregation="sequence_sum")
    rows = torch.tensor([0, 2, 5])
    first.weights[rows], first.totals = 1, None
    first.advantages = first.advantages + first.signals[THEIR_ADVANTAGES]
    want = first.rows(rows)
    got = old.rows(torch.tensor([0, 1, 2]))
    for batch in (want, got):
        batch.totals = batch.count()
    values = [objective(batch.logprobs + 0.1, batch).value.item() for batch in (want, got)]
    assert values[0] == values[1] != 0


def test_nothing_returns_twice_and_the_rest_waits():
    select, rng, seen = Compensation(size=3, max_age=None), np.random.default_rng(0), list[str]()
    for step in range(8):
        batch = batch_of(CARD)
        for i, e in enumerate(batch.episodes):
            object.__setattr__(e, "text", f"{step}/{i}")
        seen += [e.text for old in select.replay(valued(batch), rng) for e in old.episodes]
    assert len(seen) == len(set(seen)) == 24


def test_old_samples_are_lost():
    select, rng = Compensation(size=100, max_age=1), np.random.default_rng(0)
    for _ in range(5):
        select.replay(valued(batch_of(CARD)), rng)
    assert [born for born, _ in select.state_dict()["kept"]] == [3] * 3 + [4] * 3


def test_records_survive_a_checkpoint(tmp_path: Path):
    batch = valued(batch_of(CARD, ([3, 1], [True, False])))
    batch.signals["hidden"] = torch.randn(8, batch.tokens.shape[1], 4)
    kept = records(batch, [5, 0])
    torch.save(kept, tmp_path / "kept.pt")
    old = restored(torch.load(tmp_path / "kept.pt", weights_only=True))
    assert torch.equal(old.tokens, batch.tokens[[5, 0], :5]) and torch.equal(old.mask, batch.mask[[5, 0], :5])
    assert torch.equal(old.signals["hidden"][0, :3], batch.signals["hidden"][5, :3])
    assert not bool(old.signals["hidden"][0, 3:].any())
    assert old.episodes[1].tokens.tolist() == batch.episodes[0].tokens.tolist()
    batch.signals["hidden"].zero_()
    assert bool(restored(kept).signals["hidden"].any()), "a record shares memory with its batch"
    assert len(restored(kept[:1])) == 1


def test_one_half_without_the_other_is_refused():
    with pytest.raises(RunError, match="set method"):
        Compensation().replay(make_method("grpo").value(batch_of(CARD)), np.random.default_rng(0))


def test_what_the_inner_credit_says_of_itself_holds():
    assert Priority(credit="grpo").group_relative and not hasattr(Priority(credit="grpo"), "level")
    inner = build("credit", "gae")
    assert Priority(credit=inner).needs == inner.needs != frozenset()
    with pytest.raises(UsageError, match="gspo_token"):
        make_method("grpo", credit=Priority(credit="gae"), objective="gspo")


@pytest.mark.parametrize(
    ("decay", "chances"), [(4, [0.8, 0.6, 0.4, 0.2, 0, 0]), (None, [0.8, 0.64, 0.48, 0.32, 0.16, 0]), (0, [0.8] * 6)]
)
def test_the_chance_falls_linearly_to_nothing(decay, chances):
    """Over four steps, over the five of the run, and not at all."""
    select, seen = Compensation(chance=0.8, decay=decay, size=99), []
    select.planned(5)
    for _ in range(6):
        seen.append(select.probability)
        select.replay(valued(batch_of(CARD)), np.random.default_rng(0))
    assert seen == pytest.approx(chances)
    assert Compensation(chance=0.8).probability == 0.8, "of a run whose length nobody told"


def test_defaults_and_limits():
    """Half of each kind first, the rest back for certain, within four steps, as many at a time as a step has."""
    method = rorecomp()
    for credit in (method.credit, Priority()):
        assert (credit.alpha, credit.by) == (0.5, "tokens")
    for select in (method.select, Compensation()):
        assert (select.chance, select.decay, select.size, select.max_age) == (1.0, None, None, 4)
    assert Compensation(0.0, 1, 1, 1).probability == 0 and Priority(1.0).alpha == 1
    for bad in ({"decay": -1}, {"max_age": 0}, {"chance": -0.1}):
        with pytest.raises(UsageError, match="S093"):
            Compensation(**bad)
    with pytest.raises(UsageError, match="S093"):
        Priority(1.1)
    select, rng = Compensation(), np.random.default_rng(0)
    sizes = [[len(b) for b in select.replay(valued(batch_of(CARD)), rng)] for _ in range(4)]
    assert sizes == [[], [6], [], [6]], "three are set aside in each step of six"


def test_samples_are_lost_when_they_are_older_than_four_steps():
    select, rng = Compensation(size=99), np.random.default_rng(0)
    for _ in range(7):
        select.replay(valued(batch_of(CARD)), rng)
    assert [born for born, _ in select.state_dict()["kept"]] == [s for s in range(2, 7) for _ in range(3)]


def test_what_it_has_seen_is_no_option():
    used, fresh = Compensation(), Compensation()
    used.replay(valued(batch_of(CARD)), np.random.default_rng(0))
    assert used == fresh and repr(used) == repr(fresh) and used.state_dict() != fresh.state_dict()
    assert used.state_dict()["step"] == 1 and used.state_dict()["groups"] == 1
    for name in ("_kept", "_step", "_groups"):
        with pytest.raises(TypeError):
            Compensation(**{name: 0})
    other = Compensation()
    other.load_state_dict(used.state_dict())
    second = valued(batch_of(CARD))
    found = [s.replay(second, np.random.default_rng(0))[0] for s in (used, other)]
    assert [e.text for e in found[0].episodes] == [e.text for e in found[1].episodes]


def test_groups_of_many_steps_stay_apart():
    """The same prompt in three steps is three groups, as is the second prompt of a step beside its first."""
    select, rng = Compensation(size=11, max_age=None), np.random.default_rng(0)
    two = (([5, 2, 9, 4], [True] * 4), ([7, 3], [False] * 2))
    found = [b for _ in range(4) for b in select.replay(valued(batch_of(*two)), rng)]
    assert [b.group.tolist() for b in found] == [[0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6]]
    assert torch.equal(found[0].group, found[0].prompt_group)


def test_a_record_holds_what_is_said_of_a_sample():
    zeros, prompt = np.zeros(2, dtype=np.int64), np.array([4, 5])
    origins = np.array([0, 1], dtype=np.uint8)
    known = np.array([-1.0, -2.0], dtype=np.float32)
    made = [
        Episode(prompt, zeros, np.array([True, False]), known, "a b", "length", sampled_prompt=prompt[:1]),
        Episode(prompt, zeros + 1, np.array([True, True]), None, "c", "eos", origins=origins),
    ]
    verdicts = (Verdict(0.3, None), Verdict(1.0, True))
    batch = Batch.from_groups([Group(Ask(Task("t", "why?", kind="k"), 2), tuple(made), verdicts)], torch.float64)
    batch.reward_terms = {"term": torch.tensor([0.5, 0.25])}
    old = restored(records(batch, [1, 0]))
    for mine, its in zip(reversed(made), old.episodes, strict=True):
        assert (its.text, its.stop) == (mine.text, mine.stop)
        for name in ("prompt", "tokens", "mask", "logprobs", "sampled_prompt", "origins"):
            want, found = getattr(mine, name), getattr(its, name)
            assert (want is None) == (found is None) and (want is None or (np.asarray(want) == found).all()), name
    assert [(v.score, v.passed) for v in old.verdicts] == [(1.0, True), (0.3, None)]
    assert {(t.id, t.question, t.kind) for t in old.tasks} == {("t", "why?", "k")}
    assert old.reward_terms["term"].tolist() == [0.25, 0.5] and old.token_rewards is None


def recomposed(alpha: float, compensation: float) -> tuple[float, float]:
    """Mean length and accuracy of a policy of lengths 1 to 8, after 30 steps."""
    right, rng = np.array([0.1, 0.4, 0.7, 0.8, 0.8, 0.8, 0.8, 0.8]), np.random.default_rng(0)
    policy = Choices(torch.zeros(3, 8, dtype=torch.float64), [response(n + 1) for n in range(8)])
    method = rorecomp(alpha=alpha, compensation=compensation)
    for _ in range(30):
        batch = make_method(method).value(policy.batch(16, lambda _, k: RIGHT if rng.random() < right[k] else WRONG))
        policy.step(method, batch, 1.5)
        for again in method.select.replay(batch, rng):
            again.totals = again.count()
            policy.step(method, again, 1.5)
    p = policy.chances.numpy()
    return float((p @ np.arange(1, 9)).mean()), float((p @ right).mean())


def test_options():
    for make, options in ((Priority, {"alpha": 0}), (Compensation, {"chance": 2}), (Compensation, {"size": 0})):
        with pytest.raises(UsageError, match="S093"):
            make(**options)


@given(st.lists(shapes, min_size=1, max_size=3), st.floats(0.05, 1))
def test_priority_and_rest_are_a_partition_with_short_right_and_long_wrong_first(groups, alpha):
    batch = batch_of(*[([n for n, _ in g], [p for _, p in g]) for g in groups])
    judged = torch.tensor([v.passed is not None for v in batch.verdicts])
    valued(batch, alpha=alpha)
    first, rest = (batch.weights == 1) & judged, batch.signals[SET_ASIDE] == 1
    assert torch.equal(first | rest, judged) and not bool((first & rest).any())
    for g in range(len(groups)):
        for passed, sign in ((True, 1), (False, -1)):
            mine = torch.tensor([v.passed is passed for v in batch.verdicts]) & (batch.group == g)
            assert int((first & mine).sum()) == math.ceil(alpha * int(mine.sum()) - 1e-9)
            ours, theirs = (sign * batch.lengths[x & mine] for x in (first, rest))
            if len(ours) and len(theirs):
                assert int(ours.max()) <= int(theirs.min())


@pytest.mark.parametrize(("chance", "decay", "taken"), [(1.0, None, 40), (0.0, None, 0), (1.0, 20, 10)])
def test_the_chance_of_compensation(chance, decay, taken):
    select, rng = Compensation(chance, decay, size=3), np.random.default_rng(0)
    count = sum(len(select.replay(valued(batch_of(CARD)), rng)) for _ in range(40))
    assert count == taken if decay is None else abs(count - taken) <= 5
    assert select.probability == (chance if decay is None else 0)
    assert len(select.state_dict()["kept"]) == 0, "what is not replayed is lost"


@pytest.mark.slow
def test_in_training_priority_shortens_and_compensation_keeps_what_is_right():
    plain, alone, both = recomposed(1.0, 0.0), recomposed(0.5, 0.0), recomposed(0.5, 1.0)
    assert alone[0] + 0.3 < both[0] < plain[0] - 0.3
    assert alone[1] < both[1] - 0.02


@pytest.mark.slow
def test_a_resumed_run_replays_what_the_uninterrupted_one_replays(tmp_path: Path):
    method = {"name": "S093", "select": {"size": 4}}
    sections = {"method": method, "warmup": {"steps": 0}, "evaluate": {"every": 0}}
    whole = run(tmp_path / "whole", **sections, train={"steps": 4})
    short = run(tmp_path / "short", **sections, train={"steps": 2})
    assay.train(resume=short, overrides=["train.steps=4"], quiet=True)
    a, b = weights(whole), weights(short)
    assert all(torch.equal(a[k], b[k]) for k in a)
    rows = [[r for r in metrics(f) if r["stage"] == "rl"] for f in (whole, short)]
    assert rows[0] == rows[1] and any("replay/loss" in r for r in rows[0])
