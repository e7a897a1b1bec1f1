"""Scaf-GRPO: which hint is chosen, whose place the response takes, and under which prompt it is learned."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.data.s027_scaf_grpo import scaf_grpo
from assay.rollout.surgery.weakest_hint import WeakestHint
from assay.types import Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
TIERS = {name: [f"{name[0]}{k}" for k in range(1, 5)] for name in ("knowledge", "planning", "solution")}
TASK = Task("t", "Q", "1", meta={"tiers": TIERS})
LEVELS = WeakestHint(Sampling(4), judge).hints(TASK)


def scaffolded(right: tuple[int, ...], n: int = 8, task: Task = TASK, plain: Any = None, **options: Any) -> Any:
    """The group, where a response with the hint of one of these levels, counted from 1, is right."""
    step = options.pop("step", 50)

    def says(prompt: str, i: int) -> str:
        _, _, hint = prompt.partition("|")
        if not hint:
            return plain[i] if plain else "0"
        return "1" if LEVELS.index(hint) + 1 in right else "0"

    engine = Told(says)
    group, made = operated(scaf_grpo(template="{question}|{hint}", **options).rollout, engine, task, n, step, 100)
    return group, engine, made


def prompt(episode: Any) -> str:
    return "".join(map(chr, episode.prompt))


def test_twelve_levels_in_three_tiers() -> None:
    assert len(LEVELS) == 12 and LEVELS[0] == "knowledge hints:\nk1" and LEVELS[4] == "planning hints:\np1"
    assert LEVELS[6] == "planning hints:\np1\np2\np3" and LEVELS[11] == "solution hints:\ns1\ns2\ns3\ns4"
    assert WeakestHint(Sampling(4), judge, only=("solution",)).hints(TASK) == LEVELS[8:]
    assert WeakestHint(Sampling(4), judge, strongest=True).hints(TASK) == LEVELS[11:]


def test_a_solution_is_shown_by_quarters() -> None:
    task = Task("t", "Q", "1", solution="abcdefgh")
    made = WeakestHint(Sampling(4), judge, source="solution")
    assert made.hints(task) == ["ab", "abcd", "abcdef"] and not made.opens
    engine = Told(lambda prompt, i: "0")
    operated(scaf_grpo(after=0, source="solution", template="{question}|{hint}").rollout, engine, task)
    assert engine.prompts == ["Q", "Q|ab", "Q|abcd", "Q|abcdef"]


def test_a_hint_that_opens_the_response_is_judged_with_it() -> None:
    def whole(groups: Sequence[Group]) -> list[Group]:
        right, wrong = Verdict.right(), Verdict.wrong()
        told = [[right if e.text == "121" else wrong for e in group.episodes] for group in groups]
        return [g if g.verdicts else g.judged(v) for g, v in zip(groups, told, strict=True)]

    task = Task("t", "Q", "1", hints=("9", "12"))
    engine = Told(lambda prompt, i: "1")
    group, _ = operated(scaf_grpo(after=0, opens=True).rollout, engine, task, 2, judge=whole)
    assert engine.prompts == ["Q", "Q9", "Q12"]
    assert [prompt(e) for e in group.episodes] == ["Q12", "Q"] and [v.passed for v in group.verdicts] == [True, False]
    with pytest.raises(UsageError, match="not whole without what opens it"):
        WeakestHint(Sampling(4), judge, opens=True, mode="two")


def test_every_level_is_tried_once() -> None:
    _, engine, made = scaffolded(())
    assert engine.prompts == ["Q", *(f"Q|{hint}" for hint in LEVELS)] and [r.n for r in engine.asked] == [8] + [1] * 12
    assert made.metrics()["surgery/sampled"] == 12 and made.metrics()["surgery/mended"] == 0
    assert scaffolded((), strongest=True)[1].prompts == ["Q", f"Q|{LEVELS[11]}"]


def test_the_worked_example() -> None:
    """Levels 6 and 9 succeed: 6 is chosen, rewards are (1, 0, ...), A = (2.474867, -0.353552, ...)."""
    group, _, made = scaffolded((9, 6))
    assert [v.passed for v in group.verdicts] == [True] + [False] * 7 and len(group.episodes) == 8
    assert made.metrics()["surgery/level"] == 6 and made.metrics()["surgery/mended"] == 1
    hinted = [e for e in group.episodes if prompt(e) != "Q"]
    assert len(hinted) == 1 and hinted[0] is group.episodes[0] and prompt(hinted[0]) == f"Q|{LEVELS[5]}"
    batch = Batch.from_groups([group], torch.float64)
    found = scaf_grpo().value(batch).advantages[:, 0].tolist()
    assert found == pytest.approx([2.474867] + [-0.353552] * 7, abs=1e-6)


def test_where_none_succeeds_nothing_is_learned() -> None:
    group, _, _ = scaffolded(())
    assert all(e.sampled_prompt is None for e in group.episodes)
    assert not scaf_grpo().value(Batch.from_groups([group], torch.float64)).advantages.any()


def test_the_first_that_failed_gives_way() -> None:
    """The first response of this group could not be judged."""
    group, _, _ = scaffolded((1,), n=3, plain=["?", "0", "0"])
    assert [v.passed for v in group.verdicts] == [None, True, False]


def test_modes() -> None:
    full, _, _ = scaffolded((6,))
    strip, _, _ = scaffolded((6,), mode="strip")
    two, _, _ = scaffolded((6,), mode="two")
    assert prompt(full.episodes[0]) == f"Q|{LEVELS[5]}" and prompt(strip.episodes[0]) == "Q"
    assert [prompt(e) for e in two.episodes[:3]] == ["Q", f"Q|{LEVELS[5]}", "Q"]
    assert [v.passed for v in two.verdicts] == [True] * 2 + [False] * 6
    for group in (full, strip, two):
        assert "".join(map(chr, group.episodes[0].sampled_prompt)) == f"Q|{LEVELS[5]}"
    assert scaf_grpo().objective.correction == "none" and scaf_grpo(mode="strip").objective.correction == "recompute"
    assert scaf_grpo(mode="two").needs == {"policy_logprobs"}
    one, _, _ = scaffolded((6,), n=1, mode="two")
    assert len(one.episodes) == 1 and prompt(one.episodes[0]) == "Q"


def test_the_grace_period() -> None:
    assert len(scaffolded((6,), step=49)[1].asked) == 1 and len(scaffolded((6,), step=50)[1].asked) == 13
    assert len(scaffolded((6,), step=2, after=2)[1].asked) == 13


def test_who_is_left_alone() -> None:
    group, engine, _ = scaffolded((1,), n=3, plain=["0", "1", "0"])
    assert len(engine.asked) == 1 and [e.text for e in group.episodes] == ["0", "1", "0"]
    assert len(scaffolded((1,), task=Task("t", "Q", "1"))[1].asked) == 1, "a task without hints"
    with pytest.raises(UsageError, match="task t has none; give its tasks hints"):
        WeakestHint(Sampling(4), judge).check_tasks([Task("t", "Q")])
    WeakestHint(Sampling(4), judge).check_tasks([Task("t", "Q"), TASK])
    with pytest.raises(UsageError, match="hint"):
        WeakestHint(Sampling(4), judge, template="{question}")


def test_what_it_starts_with() -> None:
    method = make_method("S027")
    assert method.rollout["after"] == 50 and method.rollout["mode"] == "full" and not method.rollout["strongest"]


def test_a_run_is_scaffolded(tmp_path: Path) -> None:
    """From the second step on, by a task file with hints."""
    rows = [{"prompt": f"{k}+1=", "answer": str(k + 1), "hints": [f"{k}", f"{k + 1}"]} for k in range(40)]
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    options = {"after": 1, "template": "{hint}={question}"}
    folder = run(
        tmp_path / "run",
        method={"name": "S027", "options": options, "reward": "verdict"},
        tasks={"source": {"name": "file", "path": str(file), "hints": "hints"}},
        warmup={"steps": 0},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    first, second = (row for row in metrics(folder) if row["stage"] == "rl")
    assert first["surgery/cases"] == first["surgery/sampled"] == 0
    assert second["surgery/sampled"] == 2 * second["surgery/cases"] > 0


@pytest.mark.slow
def test_solved_without_hints() -> None:
    ours, theirs = (learned("S027", arm, rollouts=400, lr=25.0) for arm in ("scaf", "grpo"))
    assert ours["start"] < 2e-6 and ours["solved"] > 0.9 and theirs["solved"] == theirs["start"]
    assert ours["first_level"] > ours["last_level"], "weaker hints will do as it learns"
    assert np.isfinite(ours["area"])
