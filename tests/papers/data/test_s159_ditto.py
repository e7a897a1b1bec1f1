"""DITTO: who tries again under which hint, and the three samples that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run
from scripted import Told, operated

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.papers.data.s159_ditto import ditto
from assay.policies.tabular import TabularPolicy, Tree
from assay.rollout.surgery.retried import WRITE, Retried, states
from assay.signals.base import Models
from assay.types import Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
TASK = Task("t", "Q", "42", hints=("think",))


def scored(groups: Sequence[Group]) -> list[Group]:
    """A response is its score in tenths; of 0 to 9 it is said what is missing; x abstains."""

    def verdict(text: str) -> Verdict:
        if text == "x":
            return Verdict.abstain("no")
        return Verdict(int(text) / 10, text == "10", {}, f"{10 - int(text)} short")

    return [g if g.verdicts else g.judged([verdict(e.text) for e in g.episodes]) for g in groups]


def tried(first: Sequence[str], second: dict[str, str] | None = None, **options: Any) -> tuple[Group, Told, Any]:
    """A group of first tries; second ones by the hint."""

    def says(prompt: str, i: int) -> str:
        _, _, hint = prompt.partition("|")
        return first[i] if not hint else (second or {}).get(hint, "5")

    engine = Told(says)
    rollout = ditto(template="{question}|{hint}", **options).rollout
    group, made = operated(rollout, engine, TASK, len(first), judge=scored)
    return group, engine, made


def prompts(group: Group) -> list[str]:
    return ["".join(map(chr, e.prompt)) for e in group.episodes]


def test_who_tries_again() -> None:
    """Those below the level; what was good, or could not be judged, is left as it is."""
    _, engine, made = tried(["2", "10", "x", "4"])
    assert engine.prompts == ["Q", "Q|8 short", "Q|6 short"] and [r.n for r in engine.asked] == [4, 1, 1]
    assert made.metrics()["surgery/hints"] == 2 and made.metrics()["surgery/mended"] == 2
    assert tried(["2", "10", "x", "4"], below=0.4)[1].prompts == ["Q", "Q|8 short"]
    assert tried(["2", "4"], {"6 short": "4"})[2].metrics()["surgery/mended"] == 1, "better, not only another"
    assert tried(["2"], hints="task")[1].prompts == ["Q", "Q|think"]


def test_hints_do_not_state_the_reference() -> None:
    assert states("it is 42.", "42") and states("42", "42") and states("(42)", " 42 ") and states("say a b!", "a b")
    assert not states("it is 142", "42") and not states("421", "42") and not states("4.42", "42")
    assert not states("42.5", "42") and not states("forty", "42") and not states("anything", "")
    assert states("Say PARIS.", "Paris")
    writer = Told(lambda prompt, i: "the answer is 42" if "Wrote: 2" in prompt else " mind the carry ")
    write = "{question} wants {reference}. Wrote: {response}, {feedback}"
    group, engine, made = tried(["2", "4", "10"], hints=writer, write=write)
    assert writer.prompts == ["Q wants 42. Wrote: 2, 8 short", "Q wants 42. Wrote: 4, 6 short"]
    assert engine.prompts == ["Q", "Q|mind the carry"] and made.metrics()["surgery/leaked"] == 1
    assert len(group.episodes) == 5 and group.episodes[4].meta["hint"] == "mind the carry"
    assert writer.asked[0].sampling == Sampling(512, 0.0)


def test_the_reference_is_shown_where_the_template_says_so() -> None:
    """Not to first tries, nor in the plain copies."""
    rollout = ditto(template="{question}|{hint}", hints="task").rollout | {"template": "{question}|{hint}|{reference}"}
    engine = Told(lambda prompt, i: "2")
    group, _ = operated(rollout, engine, TASK, 1, judge=scored)
    assert engine.prompts == ["Q", "Q|think|42"] and prompts(group) == ["Q", "Q", "Q|think|42"]
    with pytest.raises(UsageError, match=r"may contain \{question\} and \{reference\}"):
        Retried(Sampling(4), scored, template="{question}{hint}{solution}")
    assert "one sentence" in WRITE and "{reference}" in WRITE and "{response}" in WRITE and "{feedback}" in WRITE


def test_three_samples() -> None:
    group, _, _ = tried(["2", "10"])
    assert prompts(group) == ["Q", "Q", "Q", "Q|8 short"] and [e.text for e in group.episodes] == ["2", "10", "5", "5"]
    first, _, copy, hinted = group.episodes
    assert first.sampled_prompt is None and first.advantage_group is None and copy.advantage_group is None
    assert hinted.advantage_group is not None and hinted.meta["role"] == "hinted" and hinted.meta["first"] == 0
    for e in (copy, hinted):
        assert "".join(map(chr, e.sampled_prompt)) == "Q|8 short"  # type: ignore[arg-type]
    assert np.array_equal(copy.prompt, first.prompt) and len(group.verdicts) == 4
    assert prompts(tried(["2"], train="plain")[0]) == ["Q", "Q"]
    assert prompts(tried(["2"], train="hinted")[0]) == ["Q", "Q|8 short"]


def test_the_worked_example() -> None:
    """y0 (.2, .4, .2, .4), second tries of two (.6, .8): the two groups' advantages."""
    group, _, _ = tried(["2", "4", "2", "4"], {"8 short": "6", "6 short": "8"}, below=1.0)
    keep = [0, 1, 2, 3, 4, 5, 8, 9]  # of the four that tried again, the first two
    chosen = Group(group.ask, tuple(group.episodes[i] for i in keep), tuple(group.verdicts[i] for i in keep))
    batch = Batch.from_groups([chosen], torch.float64)
    found = ditto().value(batch).advantages[:, 0].tolist()
    plain = [-0.997961, -0.142566, -0.997961, -0.142566, 0.712829, 1.568225]
    assert found == pytest.approx([*plain, -0.707102, 0.707102], abs=1e-5)


def test_a_second_try_alone_says_nothing_of_its_group() -> None:
    group, _, _ = tried(["2", "10"])
    batch = Batch.from_groups([group], torch.float64)
    assert ditto().value(batch).advantages[3].abs().sum() == 0


def test_without_hints_it_is_grpo() -> None:
    group, engine, _ = tried(["10", "10"])
    assert len(engine.asked) == 1 and len(group.episodes) == 2
    made = Retried(Sampling(4), scored, hints="task", template="{question}|{hint}")
    with pytest.raises(UsageError, match="task t has none"):
        made.check_tasks([Task("t", "Q")])
    made.check_tasks([TASK])


def test_ratios_begin_at_one() -> None:
    """On a tree: a copy that was sampled after 1 is trained from the root; its ratio is to the policy there."""
    policy = TabularPolicy.random(Tree.of([[0.0, [1.0, 0.0]], [[1.0, 0.0], 0.0]]), 0)
    start = np.array([1])
    [sampled] = policy.episodes(torch.tensor([[0]]), torch.tensor([1]), prompts=[start])
    copy = replace(sampled, prompt=np.array([0]), sampled_prompt=start)
    right = Verdict.right()
    batch = Batch.from_groups([Group(tried(["2"])[0].ask, (copy, sampled), (right, right))], torch.float64)
    method = ditto()
    compute_signals(batch, method.needs, Models(policy))
    batch.advantages = torch.ones_like(batch.logprobs)
    loss = method.objective(policy.forward(batch).logprobs, batch)
    assert loss.value.item() == pytest.approx(-1, abs=1e-12) and loss.metrics["clip_fraction"] == 0
    assert abs(float(batch.logprobs[0, 0] - batch.signals["policy_logprobs"][0, 0])) > 0.1


def test_what_it_starts_with() -> None:
    objective = make_method("S159").objective
    assert (objective.clip_low, objective.clip_high, objective.dual_clip) == (0.2, 0.28, 10.0)
    assert make_method("S159").needs == {"policy_logprobs"} and make_method("S159").rollout["train"] == "both"
    for bad in ({"below": 0.0}, {"below": 1.5}, {"max_tokens": 0}, {"template": "{question}"}, {"when": "share"}):
        with pytest.raises(UsageError, match="retried"):
            Retried(Sampling(4), scored, **bad)
    with pytest.raises(UsageError, match="must be an engine"):
        Retried(Sampling(4), scored, hints=3)


def test_a_run_tries_again(tmp_path: Path) -> None:
    """Of every wrong response one more; evaluations, before and after, ask nobody for hints."""
    judge = {"name": "keywords", "replies": [], "otherwise": "+"}
    folder = run(
        tmp_path / "run",
        method={"name": "S159", "options": {"hints": judge, "template": "{hint}{question}"}, "reward": "verdict"},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 1},
    )
    rows = metrics(folder)
    steps = [row for row in rows if row["stage"] == "rl"]
    assert all(row["surgery/hints"] == row["surgery/sampled"] > 0 for row in steps) and len(steps) == 2
    assert not any("surgery/hints" in row for row in rows if row["stage"] != "rl")


@pytest.mark.slow
def test_plain_copies_count() -> None:
    ours, theirs = (learned("S159", arm, rollouts=400, lr=25.0) for arm in ("ditto", "hinted"))
    assert ours["start"] < 2e-6 and ours["area"] > theirs["area"] + 0.05
