"""AMPO: who gives way to others' responses, which of these come in, and how they are learned from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run
from scripted import Told, judge, operated

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.data.s103_ampo import ampo
from assay.policies.tabular import TabularPolicy, Tree
from assay.rollout.surgery.comprehended import Comprehended, comprehension
from assay.types import Ask, Group, Origin, Task, Verdict
from assay.verify.answer.spans import Span

pytestmark = pytest.mark.usefixtures("one_thread")


class Reads(Told):
    """Where an answer is given, its tokens have chances by how often the letter a stands before it."""

    def generate(self, requests: Any) -> Any:
        out = []
        for request in requests:
            if request.within is None:
                out += super().generate([request])
                continue
            self.asked.append(request)
            seen = self.decode(request.prefix).count("a")
            [episode] = [e for [e] in Told(lambda p, i: "1", lambda p: "1").generate([request])]
            out.append([replace(episode, logprobs=np.full(1, np.log(seen / 10 + 0.05), dtype=np.float32))])
        return out


def answer(task: Task, text: str) -> Span | None:
    """What stands after =."""
    at = text.rfind("=")
    return None if at < 0 else Span(at, at + 1, len(text), len(text))


TRACES = ("aa=1", "aaaaaa=1", "=1", "aaaa=1")


def taught(traces: Any = TRACES, says: Any = lambda p, i: "0", n: int = 8, **options: Any) -> tuple[Group, Reads, Any]:
    engine = Reads(says)
    task = Task("t", "Q", "1", meta={"traces": list(traces)})
    group, made = operated(ampo(**options).rollout, engine, task, n, answer=answer)
    return group, engine, made


def theirs(group: Group) -> list[str]:
    return [e.text for e in group.episodes if e.origins is not None]


def test_only_where_all_fail() -> None:
    group, engine, _ = taught(says=lambda p, i: "01"[i == 3])
    assert len(engine.asked) == 1 and theirs(group) == []
    group, _, made = taught()
    assert sorted(theirs(group)) == ["aaaa=1", "aaaaaa=1"] and made.metrics()["surgery/traces"] == 2
    assert made.metrics()["surgery/mended"] == 1 and made.metrics()["surgery/sampled"] == 0


def test_comprehension() -> None:
    """Chances (.9, .5, .2) of the answer's tokens: 0.533333, geometric 0.448140; with form 0.1, scores 0.58, 0.503."""
    logs = np.log([0.9, 0.5, 0.2])
    assert comprehension(logs, "arithmetic") == pytest.approx(0.533333, abs=1e-6)
    assert comprehension(logs, "geometric") == pytest.approx(0.448140, abs=1e-6)
    assert comprehension(None, "arithmetic") == comprehension(logs[:0], "geometric") == 0
    assert 0.9 * comprehension(logs, "arithmetic") + 0.1 == pytest.approx(0.58)
    group, engine, _ = taught(most=4)
    scores = {e.text: e.meta["comprehension"] for e in group.episodes if e.origins is not None}
    assert scores == pytest.approx({"aa=1": 0.325, "aaaaaa=1": 0.685, "=1": 0.145, "aaaa=1": 0.505}, abs=1e-6)
    assert [engine.decode(r.prefix) for r in engine.asked[1:]] == ["aa=", "aaaaaa=", "=", "aaaa="]
    assert {(r.prompt, r.n, r.sampling.max_tokens) for r in engine.asked[1:]} == {("Q", 1, 1)}
    group, engine, _ = taught(("aaaaaaa", "a=1"), most=1)
    assert theirs(group) == ["aaaaaaa"] and engine.decode(engine.asked[1].prefix) == "aaaaaaa", "0.9 x 0.75 > 0.235"
    assert theirs(taught(("aa", "=1"), most=1, form=0.9)[0]) == ["=1"], "one without an answer has not the form"


def test_the_chances_are_the_policys() -> None:
    """On a tree: after the reasoning 1 the answer 0 has the chance that the policy gives it."""
    policy = TabularPolicy.random(Tree.of([[0.0, 0.0], [1.0, 0.0]]), 3)
    task = Task("t", "Q", "0", "tabular", meta={"traces": ["1/0"]})
    place = lambda task, text: Span(1, 1, 3, 3)  # noqa: E731
    wrong = lambda groups: [g if g.verdicts else g.judged([Verdict.wrong()] * len(g.episodes)) for g in groups]  # noqa: E731
    group, _ = operated(
        ampo(form=0.0).rollout, TabularEngine(policy), task, 1, answer=place, judge=wrong, sampling=Sampling(2)
    )
    found = next((e for e in group.episodes if e.origins is not None), None)
    assert found is not None
    want = float(policy.log_policy()[policy.tree.node((1,)), 0].detach().exp())  # type: ignore[index]
    assert found.meta["comprehension"] == pytest.approx(want, abs=1e-6)


def test_who_gives_way() -> None:
    """Two of the wrong ones, drawn at random; of equal scores the shorter; one trace, or one wrong response: k = 1."""
    places = set()
    for seed in range(20):
        engine = Reads(lambda p, i: f"{i}?" if i == 0 else f"{i}x")
        task = Task("t", "Q", "1", meta={"traces": list(TRACES)})
        made = Comprehended(Sampling(40), judge, answer=answer)
        [group] = made.collect([Ask(task, 4)], engine, np.random.default_rng(seed))
        places |= {i for i, e in enumerate(group.episodes) if e.origins is not None}
        assert len(theirs(group)) == 2 and [v.passed for v in group.verdicts].count(True) == 2
        assert group.episodes[0].text == "0?", "what could not be judged stays"
    assert places == {1, 2, 3}
    assert theirs(taught(("aaaa=1",))[0]) == ["aaaa=1"] and len(theirs(taught(n=1)[0])) == 1
    assert theirs(taught(("aaa=1", "aaa1=1", "aaa=1"), most=1)[0]) == ["aaa=1"]
    assert theirs(taught(("a" * 50 + "=1", "a=1"))[0]) == ["a=1"], "too long for a response"
    assert theirs(taught(())[0]) == []


def test_other_choices() -> None:
    assert theirs(taught(most=1, choose="shortest")[0]) == ["=1"]
    _, engine, _ = taught(choose="shortest")
    assert len(engine.asked) == 1, "nothing is read"
    drawn = set()
    for seed in range(20):
        made = Comprehended(Sampling(40), judge, answer=answer, most=1, choose="random")
        task = Task("t", "Q", "1", meta={"traces": list(TRACES)})
        drawn |= set(theirs(made.collect([Ask(task, 2)], Reads(lambda p, i: "0"), np.random.default_rng(seed))[0]))
    assert drawn == set(TRACES)


def test_what_comes_in() -> None:
    group, _, _ = taught()
    [first, _] = [e for e in group.episodes if e.origins is not None]
    assert first.origins is not None and (first.origins == Origin.TEACHER).all() and first.logprobs is None
    assert "".join(map(chr, first.prompt)) == "Q" and first.mask.all() and first.stop == "eos"


def test_teachers_write_the_pool() -> None:
    """Of two teachers one is right; each is asked once, with the task's prompt, and remembered."""
    good, bad = Told(lambda p, i: "a=1"), Told(lambda p, i: "a=0")
    engine = Reads(lambda p, i: "0")
    made = Comprehended(Sampling(40), judge, answer=answer, teachers=[good, bad])
    for _ in range(2):
        [group] = made.collect([Ask(Task("t", "Q", "1"), 4)], engine, np.random.default_rng(0))
        assert theirs(group) == ["a=1"]
    assert good.prompts == bad.prompts == ["Q"]
    assert made.metrics()["surgery/sampled"] == 0
    with pytest.raises(UsageError, match="the judge must be an engine"):
        Comprehended(Sampling(4), judge, teachers=[object()])


def test_a_teacher_that_failed_is_asked_again() -> None:
    """What the others wrote comes in meanwhile; a rollout that remembers nothing draws as one that does."""

    class Fails(Told):
        def generate(self, requests: Any) -> Any:
            found = super().generate(requests)
            return [[replace(e, stop="error") for e in row] for row in found] if len(self.asked) < 2 else found

    good, shaky = Told(lambda p, i: "a=1"), Fails(lambda p, i: "aaa=1")
    made = Comprehended(Sampling(40), judge, answer=answer, teachers=[good, shaky])
    came = []
    for _ in range(2):
        [group] = made.collect([Ask(Task("t", "Q", "1"), 4)], Reads(lambda p, i: "0"), np.random.default_rng(0))
        came.append(theirs(group))
    assert came[0] == ["a=1"] and sorted(came[1]) == ["a=1", "aaa=1"]
    assert len(good.asked) == 1 and len(shaky.asked) == 2
    assert len({r.seed for r in (*good.asked, *shaky.asked)}) == 2, "each teacher has a seed of its own for the task"
    again = Comprehended(Sampling(40), judge, answer=answer, teachers=[Told(lambda p, i: "a=1")])
    states = []
    for _ in range(2):  # the second time it is remembered
        rng = np.random.default_rng(0)
        again.collect([Ask(Task("t", "Q", "1"), 4)], Reads(lambda p, i: "0"), rng)
        states.append(rng.integers(2**62))
    assert states[0] == states[1]


def test_processes_share_their_teachers() -> None:
    """Each asks its part, and is told the whole."""
    teacher, shares = Told(lambda p, i: "a=1"), []

    class One(Reads):
        def divided(self, items: Any, work: Any, cost: Any = None) -> Any:
            shares.append(len(items))
            return work(items, self)

    made = Comprehended(Sampling(40), judge, answer=answer, teachers=[teacher])
    [group] = made.collect([Ask(Task("t", "Q", "1"), 4)], One(lambda p, i: "0"), np.random.default_rng(0))
    assert theirs(group) == ["a=1"] and shares == [1]


def test_advantages() -> None:
    """Two right of eight: 0.75 for these and -0.25, without the deviation."""
    group, _, _ = taught()
    batch = Batch.from_groups([group], torch.float64)
    found = ampo().value(batch).advantages[:, 0]
    assert sorted(found.tolist()) == pytest.approx([-0.25] * 6 + [0.75] * 2)
    assert all((a > 0) == (e.origins is not None) for a, e in zip(found.tolist(), batch.episodes, strict=True))


def test_the_loss() -> None:
    """A trace of four tokens at p = 0.3 and three wrong ones of a token at a ratio of 0.9 over a longest of 5."""
    group, _, _ = taught(("aa=1",), n=4)
    batch = Batch.from_groups([group], torch.float64)
    method = ampo(max_length=5, entropy_weight=0.0)
    method.value(batch)
    other = torch.tensor([[e.origins is not None] for e in batch.episodes])
    now = torch.where(batch.mask, torch.where(other, np.log(0.3), np.log(0.9)), 0.0)
    loss = method.objective(now, batch)
    assert loss.value.item() == pytest.approx((-4 * 0.75 * 0.75 + 3 * 0.25 * 0.9) / (4 * 5))
    assert method.objective.dual_clip == 10 and method.objective.gamma == 0.1


def test_what_it_starts_with() -> None:
    method = make_method("S103")
    assert (method.rollout["most"], method.rollout["form"], method.rollout["choose"]) == (2, 0.1, "comprehension")
    assert (method.objective.max_length, method.objective.entropy_weight) == (8192, 1e-3)
    for bad in ({"most": 0}, {"form": 1.5}, {"remembered": 0}):
        with pytest.raises(UsageError, match="comprehended"):
            Comprehended(Sampling(4), judge, **bad)
    with pytest.raises(UsageError, match=r"task t has none in meta\['traces'\]"):
        Comprehended(Sampling(4), judge).check_tasks([Task("t", "Q")])


def test_a_run_is_taught(tmp_path: Path) -> None:
    rows = [{"prompt": f"{k}+1=", "answer": str(k + 1), "traces": [f"{k}+1={k + 1}"[-3:]]} for k in range(40)]
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    folder = run(
        tmp_path / "run",
        method={"name": "S103", "options": {"max_length": 4}, "reward": "verdict"},
        tasks={"source": {"name": "file", "path": str(file), "meta": ["traces"]}},
        warmup={"steps": 0},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert all(row["surgery/traces"] > 0 and row["others/tokens"] > 0 for row in rows) and len(rows) == 2


@pytest.mark.slow
def test_comprehended_traces_teach_more() -> None:
    ours, theirs = (learned("S103", arm, steps=30, lr=100.0) for arm in ("comprehended", "random"))
    assert ours["area"] > theirs["area"] and ours["rollouts"] == theirs["rollouts"] == 240 and ours["start"] < 0.01
