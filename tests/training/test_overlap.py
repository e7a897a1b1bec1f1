"""Batches that are asked ahead: what runs beside what, how it is stored, what is refused and what is corrected."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.config import OverlapConfig
from assay.engines.base import Request, Sampling
from assay.engines.ended import listener, listening
from assay.errors import UsageError
from assay.learning.ahead import Ahead
from assay.learning.beside import in_parts, judged_beside
from assay.learning.worker import Cancelled, Worker
from assay.method import Method, make_method
from assay.objectives.policy_loss import PolicyLoss
from assay.registry import build
from assay.scale.divided import DividedEngine
from assay.scale.ranks import Ranks
from assay.training import loop
from assay.training.ahead.in_flight import pack, unpack
from assay.training.ahead.off_policy import behaviour_kl, check_overlap, off_policy
from assay.training.ahead.overlap import Flight, Pipeline
from assay.types import Ask, Episode, Group, Span, Task, Verdict

SOON = 60.0
"""Seconds after which something that should happen at once is taken not to."""


def happens(event: threading.Event) -> None:
    assert event.wait(SOON), "did not run beside what waits for it"


def episode(text: str) -> Episode:
    tokens = np.array([ord(c) for c in text], dtype=np.int64)
    return Episode(tokens[:1], tokens, tokens > 0, np.zeros(len(tokens), dtype=np.float32), text, "eos")


def asks(step: int, n: int = 2) -> list[Ask]:
    return [Ask(Task(f"{step}.{i}", "Q"), 1) for i in range(n)]


def answered(asked: Sequence[Ask]) -> list[Group]:
    return [Group(a, tuple(episode(a.task.id) for _ in range(a.n))) for a in asked]


def right(groups: Sequence[Group]) -> list[Group]:
    return [g if g.verdicts else g.judged([Verdict.right()] * len(g.episodes)) for g in groups]


def launched(pipeline: Pipeline, *steps: int) -> None:
    for step in steps:
        pipeline.flights.append(Flight(step, asks(step)))
        pipeline.launch(pipeline.flights[-1], np.random.default_rng(step), step)


def ids(groups: Sequence[Group]) -> list[str]:
    return [g.task.id for g in groups]


# The schedule: each thread waits for what must be going on beside it, and no clock is looked at.


def test_a_batch_is_judged_while_the_next_is_generated_and_an_older_one_is_learned_from() -> None:
    generating, judging, learning = ({s: threading.Event() for s in range(4)} for _ in range(3))

    def collect(asked: Sequence[Ask], rng: np.random.Generator) -> list[Group]:
        step = int(asked[0].task.id[0])
        generating[step].set()
        if step >= 2:  # the first batch has nothing before it, and the third is the first beside an update
            happens(judging[step - 1])
            happens(learning[step - 2])
        return answered(asked)

    def judge(groups: Sequence[Group]) -> list[Group]:
        step = int(groups[0].task.id[0])
        judging[step].set()
        if 1 <= step < 3:
            happens(generating[step + 1])
        return right(groups)

    pipeline = Pipeline(collect, judge, whole=True)
    launched(pipeline, 0, 1, 2)
    for step in range(4):
        if step == 1:
            launched(pipeline, 3)
        taken = pipeline.take()
        assert ids(taken.groups) == [f"{step}.0", f"{step}.1"]
        assert [g.verdicts[0].passed for g in taken.groups] == [True, True]
        learning[step].set()
        if step == 0:
            happens(generating[2])
    pipeline.close()


def test_parts_are_judged_while_the_next_part_is_generated() -> None:
    begun = [threading.Event() for _ in range(3)]
    judged = [threading.Event() for _ in range(3)]
    seen: list[str] = []

    def collect(asked: Sequence[Ask]) -> list[Group]:
        part = len(seen)
        seen.append(asked[0].task.id)
        begun[part].set()
        if part:
            happens(judged[part - 1])
        return answered(asked)

    def judge(groups: Sequence[Group]) -> list[Group]:
        part = ["0.0", "0.2", "0.4"].index(groups[0].task.id)
        judged[part].set()
        if part < 2:
            happens(begun[part + 1])
        return right(groups)

    clock = loop.Clock()
    found = judged_beside(asks(0, 5), 3, collect, judge, clock)
    assert ids(found) == [f"0.{i}" for i in range(5)]
    assert all(g.verdicts for g in found)
    assert clock.seconds.keys() == {"generate", "verify", "waiting"}


def test_generations_do_not_overlap_each_other() -> None:
    at_once, most = 0, 0

    def collect(asked: Sequence[Ask], rng: np.random.Generator) -> list[Group]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        found = answered(asked)
        at_once -= 1
        return found

    pipeline = Pipeline(collect, right, parts=2)
    launched(pipeline, *range(6))
    pipeline.idle()
    assert all(flight.generated.done() for flight in pipeline.flights)  # type: ignore[union-attr]
    assert [ids(pipeline.take().groups) for _ in range(6)] == [[f"{s}.0", f"{s}.1"] for s in range(6)]
    assert most == 1
    pipeline.close()


@given(n=st.integers(0, 30), parts=st.integers(1, 40))
def test_parts_are_the_asks_in_order_and_nearly_equal(n: int, parts: int) -> None:
    asked = asks(0, n)
    found = in_parts(asked, parts)
    assert [a for part in found for a in part] == asked
    assert 1 <= len(found) <= parts
    sizes = [len(part) for part in found]
    assert max(sizes) - min(sizes) <= 1


def test_hidden_verification_is_what_nobody_waited_for() -> None:
    pipeline = Pipeline(lambda asked, rng: answered(asked), right)
    launched(pipeline, 0)
    pipeline.idle()
    seconds = pipeline.take().seconds
    assert seconds.keys() == {"generate", "verify", "verify_hidden", "waiting"}
    assert 0 <= seconds["verify_hidden"] <= seconds["verify"]
    pipeline.close()


# Responses judged as they end


class Telling:
    """An engine that makes a response of each request's prompt and number, tells of each, and then waits for it."""

    def __init__(self, told: Callable[[str], None] = lambda text: None):
        self.told = told

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        hear = listener()
        for request in requests:
            for i in range(request.n):
                if hear is not None:
                    hear(request, f"{request.prompt}{i}")
                    self.told(f"{request.prompt}{i}")
        return [[episode(f"{r.prompt}{i}") for i in range(r.n)] for r in requests]


def asked_of(engine: Any, asked: Sequence[Ask]) -> list[Group]:
    made = engine.generate([Request(a.task.question, a.n, Sampling(), seed=i) for i, a in enumerate(asked)])
    return [Group(a, tuple(e)) for a, e in zip(asked, made, strict=True)]


@pytest.mark.parametrize("whole", [False, True])
def test_a_response_is_judged_while_others_of_its_call_are_generated(whole: bool) -> None:
    """The engine goes on only when the response that it told of has been judged."""
    judged = {f"{q}{i}": threading.Event() for q in "ab" for i in range(2)}
    times: list[str] = []

    def judge(groups: Sequence[Group]) -> list[Group]:
        for group in groups:
            for e in group.episodes:
                times.append(e.text)
                judged[e.text].set()
        return right(groups)

    engine = Telling(lambda text: happens(judged[text]))
    asked = [Ask(Task(q, q), 2) for q in "ab"]
    pipeline = Pipeline(lambda asked, rng: asked_of(engine, asked), judge, whole=whole)
    pipeline.flights.append(Flight(0, asked))
    pipeline.launch(pipeline.flights[0], np.random.default_rng(0), 0)
    taken = pipeline.take()
    pipeline.close()
    assert [len(g.verdicts) for g in taken.groups] == [2, 2]
    assert sorted(times) == ["a0", "a1", "b0", "b1"], "each once"
    assert [g.ask for g in taken.groups] == asked
    assert taken.seconds.keys() == {"generate", "verify", "verify_hidden", "waiting"}

    times.clear()
    for event in judged.values():
        event.clear()
    clock = loop.Clock()
    found = judged_beside(asked, 1, lambda part: asked_of(engine, part), judge, clock)
    assert [len(g.verdicts) for g in found] == [2, 2]
    assert sorted(times) == ["a0", "a1", "b0", "b1"]


def graded(groups: Sequence[Group]) -> list[Group]:
    """Right is what begins with the reference; a group that has verdicts keeps them."""
    return [
        g
        if g.verdicts
        else g.judged([Verdict(float(e.text.startswith(g.task.reference)), None, {}, e.stop) for e in g.episodes])
        for g in groups
    ]


@given(data=st.data(), whole=st.booleans())
def test_verdicts_are_those_of_judging_everything_at_the_end(data: st.DataObject, whole: bool) -> None:
    """Whatever was told of, and whatever became of it: tasks with one prompt, other texts, failures, own verdicts."""
    letters = st.sampled_from("xy")
    tasks = [Task("t", p, r) for p, r in data.draw(st.lists(st.tuples(letters, letters), min_size=1, max_size=4))]
    asked = [Ask(task, data.draw(st.integers(1, 3)), data.draw(st.none() | st.just("hint"))) for task in tasks]
    worker = Worker("verify")
    ahead = Ahead(asked, graded, worker, whole)
    for prompt, n, text, prefix in data.draw(
        st.lists(st.tuples(letters | st.just("hint\nx"), st.integers(1, 3), letters, st.sampled_from([(), (1,)])))
    ):
        ahead.hear(Request(prompt, n, Sampling(), 0, prefix), text)
    groups = [
        Group(a, tuple(replace(episode(data.draw(letters)), stop=data.draw(st.sampled_from(["eos", "error"])))
                       for _ in range(a.n)))
        for a in asked
    ]  # fmt: skip
    if data.draw(st.booleans()):
        groups[0] = groups[0].judged([Verdict.abstain("own")] * len(groups[0].episodes))
    found = worker.submit(lambda: ahead.finish(groups)).result(SOON)
    worker.close()
    for mine, theirs, group in zip(found, graded(groups), groups, strict=True):
        assert (mine.ask, mine.episodes) == (group.ask, group.episodes)
        assert [(v.score, v.passed) for v in mine.verdicts] == [(v.score, v.passed) for v in theirs.verdicts]
        for e, verdict in zip(mine.episodes, mine.verdicts, strict=True):
            assert (e.stop == "error") == (verdict.feedback == "error") or verdict.feedback == "own"


def test_an_error_over_a_response_that_has_ended_comes_out_of_take() -> None:
    def judge(groups: Sequence[Group]) -> list[Group]:
        raise ZeroDivisionError("of a response")

    pipeline = Pipeline(lambda asked, rng: asked_of(Telling(), asked), judge)
    pipeline.flights.append(Flight(0, [Ask(Task("a", "a"), 1)]))
    pipeline.launch(pipeline.flights[0], np.random.default_rng(0), 0)
    with pytest.raises(ZeroDivisionError, match="of a response"):
        pipeline.take()
    pipeline.close()


def test_of_several_trainers_nobody_hears() -> None:
    """Each rank would hear of its own responses alone, while a verdict takes all ranks."""
    heard: list[str] = []
    with listening(lambda request, text: heard.append(text)):
        asked_of(Telling(), asks(0))
        assert len(heard) == 2
        asked_of(DividedEngine(Telling(), Ranks()), asks(0))  # type: ignore[arg-type]
        assert len(heard) == 2
        assert listener() is not None
    assert listener() is None


# Errors and the end


@pytest.mark.parametrize("where", ["collect", "judge"])
def test_an_error_comes_out_of_take_as_it_is(where: str) -> None:
    error = ZeroDivisionError("in a thread")

    def fails(*_: Any) -> Any:
        raise error

    def collect(asked: Sequence[Ask], rng: np.random.Generator) -> list[Group]:
        return fails() if where == "collect" and asked[0].task.id[0] == "1" else answered(asked)

    def judge(groups: Sequence[Group]) -> list[Group]:
        return fails() if where == "judge" and groups[0].task.id[0] == "1" else right(groups)

    pipeline = Pipeline(collect, judge)
    launched(pipeline, 0, 1, 2)
    assert ids(pipeline.take().groups) == ["0.0", "0.1"]
    state = pipeline.state_dict()
    with pytest.raises(ZeroDivisionError) as caught:
        pipeline.take()
    assert caught.value is error
    assert ids(pipeline.take().groups) == ["2.0", "2.1"]
    pipeline.close()
    # What was stored of the failed batch is the asks, or the groups without verdicts; of the other one everything.
    again = Pipeline(collect, right)
    again.load_state_dict(state)
    assert [flight.generated is None for flight in again.flights] == [where == "collect", False]
    if where == "collect":
        assert again.flights[0].asks == asks(1)
        again.launch(again.flights[0], np.random.default_rng(0), 1)
        with pytest.raises(ZeroDivisionError):
            again.take()
    else:
        assert ids(again.take().groups) == ["1.0", "1.1"]
    assert ids(again.take().groups) == ["2.0", "2.1"]
    again.close()


def test_nothing_is_begun_after_the_end() -> None:
    begun: list[str] = []
    first, go_on = threading.Event(), threading.Event()

    def collect(asked: Sequence[Ask], rng: np.random.Generator) -> list[Group]:
        begun.append(asked[0].task.id)
        first.set()
        happens(go_on)
        return answered(asked)

    pipeline = Pipeline(collect, right, parts=2)
    launched(pipeline, 0, 1)
    happens(first)
    pipeline._generator.closed = True
    go_on.set()
    pipeline.close()
    assert begun == ["0.0"]
    assert isinstance(pipeline.flights[1].generated.exception(SOON), Cancelled)  # type: ignore[union-attr]


# What is in flight, stored


ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
PLAIN = st.recursive(
    ATOMS | st.fractions() | st.frozensets(ATOMS, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.tuples(st.integers()), inner, max_size=3)
    ),
    max_leaves=12,
)
ARRAYS = st.sampled_from(["bool", "uint8", "int64", "float32", "float64"]).flatmap(
    lambda dtype: st.lists(st.integers(0, 1), max_size=5).map(lambda x: np.array(x, dtype=dtype))
)


def stored(value: Any, folder: Path) -> Any:
    torch.save(pack(value), folder / "packed.pt")
    return unpack(torch.load(folder / "packed.pt", weights_only=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packed")


@given(value=PLAIN)
def test_plain_data_comes_back(folder: Path, value: Any) -> None:
    found = stored(value, folder)
    assert found == value
    assert repr(found) == repr(value) or isinstance(value, set | frozenset | dict | list | tuple)


@given(arrays=st.lists(ARRAYS, min_size=4, max_size=4), meta=PLAIN, n=st.integers(0, 3))
def test_groups_come_back(folder: Path, arrays: list[np.ndarray], meta: Any, n: int) -> None:
    prompt, tokens, mask, logprobs = arrays
    spans = (Span("turn", 0, 1, {"k": meta}),)
    one = Episode(prompt, tokens, mask, logprobs, "text", "eos", None, prompt, None, spans, "g", {"m": meta})
    verdict = Verdict(0.5, None, {"a": None, "b": 1.0}, "why")
    group = Group(Ask(Task("t", ({"role": "user", "content": "Q"},), meta, meta={"x": 1}), n, "hint"), (one,) * n)
    group = group.judged([verdict] * n)
    found = stored([group], folder)[0]
    assert found.ask == group.ask
    assert found.verdicts == group.verdicts
    for mine, theirs in zip(found.episodes, group.episodes, strict=True):
        for name in ("prompt", "tokens", "mask", "logprobs", "sampled_prompt"):
            a, b = getattr(mine, name), getattr(theirs, name)
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert np.array_equal(a, b)
        assert (mine.spans, mine.meta, mine.text, mine.stop) == (theirs.spans, theirs.meta, "text", "eos")


def test_an_array_of_many_responses_is_stored_once() -> None:
    prompt = np.arange(100)
    packed = pack([replace(episode("ab"), prompt=prompt) for _ in range(50)])
    assert len(packed["arrays"]["int64"]) == 100 + 50 * 2


def test_numbers_of_numpy_keep_their_type(folder: Path) -> None:
    found = stored([np.float32(0.1), np.int64(3), np.bool_(True), Fraction(1, 3)], folder)
    assert [type(x) for x in found] == [np.float32, np.int64, np.bool_, Fraction]
    assert found == [np.float32(0.1), 3, True, Fraction(1, 3)]


def test_what_is_no_plain_data_is_refused() -> None:
    with pytest.raises(UsageError, match=r"list\[0\].task.reference\['f'\] is a function, no plain data; use numbers"):
        pack([Ask(Task("t", "Q", {"f": judged_beside}), 1)])


# What cannot be asked ahead, and what makes up for it


def rollout_of(method: Method) -> Any:
    given_: dict[str, Any] = {"sampling": Sampling(), "judge": right, "more": list, "curriculum": None}
    return build("rollout", method.rollout, **given_)


@pytest.mark.parametrize(
    ("parts", "settings", "message"),
    [
        (
            {"rollout": "dynamic"},
            {"staleness": 1},
            "rollout Dynamic asks for other prompts by its verdicts; give it ro",
        ),
        ({"rollout": {"name": "dynamic", "rounds": 1}}, {"staleness": 1}, None),
        ({"rollout": {"name": "probed", "inner": "dynamic"}}, {"staleness": 1}, "rollout Dynamic asks for other"),
        ({"rollout": {"name": "probed"}}, {"staleness": 2}, None),
        ({"select": {"name": "reward_std", "rounds": 3}}, {"staleness": 1}, "select RewardSpread replaces prompts by"),
        ({"select": {"name": "reward_std"}}, {"staleness": 1}, None),
        ({"rollout": "dynamic", "select": {"name": "reward_std", "rounds": 3}}, {"staleness": 0}, None),
        (
            {"rollout": "dynamic"},
            {"verify_chunks": 2},
            "rollout Dynamic looks at a step's prompts together; use verify",
        ),
        ({"select": {"name": "reward_std", "rounds": 3}}, {"verify_chunks": 2}, None),
    ],
)
def test_methods_that_cannot_be_asked_ahead_are_refused(
    parts: dict[str, Any], settings: dict[str, int], message: str | None
) -> None:
    method = make_method("grpo", **parts)
    if message is None:
        check_overlap(OverlapConfig(**settings), method, rollout_of(method))
    else:
        with pytest.raises(UsageError, match=message):
            check_overlap(OverlapConfig(**settings), method, rollout_of(method))


def test_a_rollout_that_goes_by_a_learner_is_refused() -> None:
    method = make_method("S206")
    assert method.learners
    with pytest.raises(UsageError, match="rollout Recorded goes by what the step learns; use staleness 0"):
        check_overlap(OverlapConfig(staleness=1), method, rollout_of(method))


def test_a_rollout_that_judges_is_refused_where_several_processes_train() -> None:
    method = make_method("grpo", rollout="probed")
    check_overlap(OverlapConfig(staleness=1), method, rollout_of(method))
    with pytest.raises(UsageError, match=r"rollout Probed judges by itself; use staleness 0 or scale.trainers 1"):
        check_overlap(OverlapConfig(staleness=1), method, rollout_of(method), trainers=2)


@pytest.mark.parametrize(
    ("objective", "correction", "said"),
    [
        ("clip", "none", False),
        ("gspo", "none", False),
        ("cispo", "none", False),
        ("reinforce", "token_truncate", True),
        ({"name": "reinforce", "correction": "sequence_mask"}, "sequence_mask", False),
        ({"name": "clip", "correction": "recompute"}, "token_truncate", True),
        ({"name": "clip", "correction": "token_mask"}, "token_mask", False),
        ({"name": "masked", "objective": "clip"}, "none", False),
        ({"name": "masked", "objective": "reinforce"}, "token_truncate", True),
        ("dpo", None, True),
    ],
)
def test_objectives_make_up_for_older_weights(objective: Any, correction: str | None, said: bool) -> None:
    method = make_method("grpo", objective=objective)
    found, line = off_policy(method, 1)
    assert (line is not None) == said
    inner = getattr(found.objective, "objective", found.objective)
    if correction is None:
        assert found is method
        assert "learns from it as it is" in str(line)
    else:
        assert isinstance(inner, PolicyLoss)
        assert inner.correction == correction
    assert off_policy(method, 0) == (method, None)


def test_without_correction_the_gradient_off_policy_is_wrong(make_batch: Any) -> None:
    """Of one decision between two actions, drawn by an older policy, as often as it makes them.

    The gradient of the expected reward in the logit of the first is p (1 - p) (r0 - r1).
    """
    mu, logit = np.array([0.7, 0.3]), torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    n = 1000
    actions = np.repeat([0, 1], (mu * n).astype(int))
    batch = make_batch([1] * n, rewards=[float(a == 0) for a in actions])
    batch.logprobs = torch.from_numpy(np.log(mu)[actions])[:, None]
    batch.advantages = torch.from_numpy((actions == 0).astype(float))[:, None]
    batch.totals = batch.count()
    p = torch.sigmoid(logit)
    exact = float((p * (1 - p)).detach())

    def gradient(method: Method) -> float:
        logprobs = torch.stack([p, 1 - p]).log()[torch.from_numpy(actions)][:, None]
        batch.signals = {"policy_logprobs": logprobs.detach()}
        loss = method.objective(logprobs, batch).value
        (found,) = torch.autograd.grad(loss, logit, retain_graph=True)
        return -float(found)

    plain = make_method("grpo", objective="reinforce")
    corrected, _ = off_policy(plain, 1)
    assert abs(gradient(plain) - exact) > 0.03
    assert gradient(corrected) == pytest.approx(exact, abs=1e-9)
    ratio, _ = off_policy(make_method("grpo", objective={"name": "clip", "clip_low": 0.9, "clip_high": 9.0}), 1)
    assert gradient(ratio) == pytest.approx(exact, abs=1e-9)


def test_behaviour_kl_is_the_divergence_it_estimates(make_batch: Any) -> None:
    """The mean of k3 over draws in exact proportion is KL(mu || pi)."""
    mu, pi = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    actions = np.repeat(np.arange(3), (mu * 10).astype(int))
    batch = make_batch([1] * 11)
    batch.logprobs = torch.from_numpy(np.append(np.log(mu)[actions], np.nan))[:, None]
    logprobs = torch.from_numpy(np.append(np.log(pi)[actions], -3.0))[:, None]
    assert behaviour_kl(logprobs, batch) == pytest.approx(float((mu * np.log(mu / pi)).sum()))
    batch.logprobs[:] = np.nan
    assert behaviour_kl(logprobs, batch) is None
