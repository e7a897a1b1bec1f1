"""A3: the card's example to the printed digits, limits, progress, and what a budget shows of a folder."""

from __future__ import annotations

import itertools
import json
import math
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run, tables
from sandbox.support import needs_sandbox

from assay.batch import Batch
from assay.credit.turns.a3 import A3
from assay.environments.shell.environment import Shell
from assay.environments.shell.folder import edits
from assay.environments.shell.reveal import (
    Node,
    breadth_first,
    chosen,
    nodes,
    revealed,
    value_of,
    worth,
)
from assay.environments.tools import call
from assay.errors import UsageError
from assay.objectives.gspo import GSPOToken
from assay.ops.turns import turns_of
from assay.papers.agents.s146_a3 import a3
from assay.rewards.process.progress import Progress
from assay.types import Ask, Episode, Group, Task, ToolCall, Turn, Verdict

GREP, SED, CAT, LS = "grep -n foo a.py", "sed -i s/foo/bar/ a.py", "cat a.py", "ls"
WORKED = [(GREP, SED), (GREP, CAT), (LS, SED), (LS, CAT)]
REWARDS = (3.0, 0.0, 3.0, 1.0)


def trajectory(commands: tuple[str, ...], rewards: tuple[float, ...] = (), ended: bool = True) -> Episode:
    """A turn of two tokens for each command, one of the environment's after it."""
    turns = tuple(
        Turn(
            k,
            3 * k,
            3 * k + 2,
            (ToolCall("run", {"command": text}, 0, 0),),
            reward=rewards[k] if rewards else None,
            terminated=ended and k == len(commands) - 1,
        )
        for k, text in enumerate(commands)
    )
    tokens = np.zeros(3 * len(commands), int)
    mask = np.arange(len(tokens)) % 3 < 2
    return Episode(tokens[:1], tokens, mask, tokens.astype(np.float32), "", "eos", turns=turns)


def batch(*groups: list[tuple[tuple[str, ...], float]]) -> Batch:
    made = Batch.from_groups(
        [
            Group(
                Ask(Task(str(k), ""), len(rows)), tuple(trajectory(c) for c, _ in rows), (Verdict.wrong(),) * len(rows)
            )
            for k, rows in enumerate(groups)
        ],
        torch.float64,
    )
    made.rewards = torch.tensor([r for rows in groups for _, r in rows], dtype=torch.float64)
    return made


def worked() -> Batch:
    return batch(list(zip(WORKED, REWARDS, strict=True)))


def near(found: torch.Tensor, *wanted: float) -> None:
    assert found.tolist() == pytest.approx(wanted, abs=6e-5)


def test_the_worked_example() -> None:
    turns = turns_of(worked())
    first, second = turns.index == 0, turns.index == 1
    episode, residual, tree = A3(where="first").terms(turns)
    for at in (first, second):
        near(episode[at], 0.8738, -0.5879, 0.8738, 0.0)
        near(residual[at], 0.9522, -0.5879, 0.9083, 0.0)
    near(tree[first], 0.9465 * 0.9892, 0.9465 * -1.4654, 0.9009 * 1.1364, 0.9009 * -0.6818)
    near(tree[second], 0.9009 * 1.3636, 0.9009 * -1.3636, 0.0, 0.0)
    raw, labels = A3()._residuals(turns, turns.totals(turns.rewards))
    near(raw[first], 2.625, -3.0, 1.875, -1.5)
    assert [labels[m] for m in first.nonzero()[:, 0].tolist()] == [
        (0, 0, 0, 0),
        (0, 0, 0, 0),
        (1, 1, 1, 0),
        (1, 1, 1, 1),
    ]
    # Of every turn: at the second one sed and cat are told apart, by the last command and by more of them.
    every = A3().terms(turns)[1]
    assert every[first].tolist() == residual[first].tolist() and every[second].tolist() != every[first].tolist()


def test_of_every_turn_by_hand() -> None:
    """Scope 1 alone: sed and sed, cat and cat; R - M is 0, -1, 0, 1; the lower median 0, the deviation least = 1/2."""
    turns = turns_of(worked())
    second = turns.index == 1
    raw, _ = A3(scopes=(1,))._residuals(turns, turns.totals(turns.rewards))
    near(raw[second], 0.0, -1.0, 0.0, 1.0)
    residual = A3(scopes=(1,)).terms(turns)[1]
    # abs(x - 0) is 0, 0, 1, 1: its lower median is 0.
    near(residual[second], 0.0, -math.tanh(2.0), 0.0, math.tanh(2.0))
    near(A3(scopes=(1,), least=1.0).terms(turns)[1][second], 0.0, -math.tanh(1.0), 0.0, math.tanh(1.0))


def test_terms_are_merged_on_tokens() -> None:
    made = worked()
    made.weights = torch.tensor([1.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    credit = A3(residual=0.5, tree=2.0, bound=0.9)
    turns = turns_of(made)
    terms = credit.terms(turns)
    total = sum(w * t / t.abs().mean() for w, t in zip((1.0, 0.5, 2.0), terms, strict=True))
    wanted = 0.9 * torch.tanh(total / 0.9)
    found = credit(made)
    for m in range(8):
        i, k = int(turns.sample[m]), int(turns.index[m])
        assert found[i, 3 * k : 3 * k + 3].tolist() == pytest.approx([float(wanted[m])] * 2 + [0.0])
    assert float(found.abs().max()) < 0.9
    made.valid[3] = False
    part = credit(made)
    assert bool((part[3] == 0).all())
    rest = credit(batch(list(zip(WORKED[:3], REWARDS[:3], strict=True))))
    assert torch.allclose(part[:3], rest)


def test_limits() -> None:
    same = [((GREP, SED), r) for r in REWARDS]
    turns = turns_of(batch(same))
    assert A3().terms(turns)[2].abs().max() == 0  # nothing was chosen
    made = batch(list(zip(WORKED, (2.0,) * 4, strict=True)))
    assert bool((A3()(made) == 0).all())
    # Without the others it rises with the episode's reward, and is the same on all of its turns.
    plain = A3(residual=0, tree=0)(worked())
    assert plain[0, 0] == plain[2, 0] > plain[3, 0] > plain[1, 0] and bool((plain[:, 0] == plain[:, 3]).all())
    assert bool((A3()(batch([(WORKED[0], 1.0)])) == 0).all())  # nobody to compare with
    empty = Batch.from_groups([])
    assert A3()(empty).shape == (0, 0)


def test_groups_are_apart_and_lengths_differ() -> None:
    one = list(zip(WORKED, REWARDS, strict=True))
    other = [((LS,), 1.0), ((CAT, LS, GREP), 0.0), ((LS, GREP), 5.0)]
    alone, both = turns_of(batch(one)), turns_of(batch(one, other))
    here = both.group == 0
    for mine, theirs in zip(A3().terms(alone), A3().terms(both), strict=True):
        assert torch.allclose(mine, theirs[here])
    terms = A3().terms(both)
    last = (both.group == 1) & (both.index == 2)
    assert int(last.sum()) == 1 and float(terms[1][last]) == 0 == float(terms[2][last])
    # At the second turn two are left, in two states: nothing to choose.
    assert bool((terms[2][(both.group == 1) & (both.index == 1)] == 0).all())


def test_states_are_alike_up_to_a_bound() -> None:
    """A way that differs early is further off than one that differs late; near says how far is still the same."""
    credit = A3(scopes=(1, 2), decay=0.5)
    assert credit._apart([], []) == 0
    assert credit._apart([(0, 0), (0, 0)], [(1, 0), (0, 0)]) == pytest.approx(0.5 / 1.5)
    assert credit._apart([(0, 0), (0, 0)], [(0, 0), (0, 1)]) == pytest.approx(0.25 / 1.5)
    assert A3(decay=1.0)._apart([(0,), (0,)], [(1,), (0,)]) == 0.5
    rows = list(zip([(GREP, SED), (GREP, CAT), (LS, SED), (LS, CAT)], REWARDS, strict=True))
    turns = turns_of(batch(rows))
    second = turns.index == 1
    near(A3(scopes=(1,)).terms(turns)[2][second], *(0.9009 * x for x in (1.3636, -1.3636, 0.9091, -0.9091)))
    # With near above 1/2 the first commands need not agree, nor the second ones.
    wide = A3(scopes=(1,), near=0.99, discount=0.0)
    assert torch.equal(wide.terms(turns)[2], A3(scopes=(1,), discount=0.0).terms(turns)[2])
    assert float(A3(scopes=(1,), discount=0.0).terms(turns)[2][0]) != float(A3(scopes=(1,)).terms(turns)[2][0])


def test_leak_free() -> None:
    """What comes later changes nothing of what is said of a turn's state and choice."""
    later = [(GREP, SED), (GREP, CAT), (LS, SED), (LS, "python3 -c 'print(1)' a b c d")]
    a, b = (turns_of(batch(list(zip(rows, REWARDS, strict=True)))) for rows in (WORKED, later))
    for free, same in ((True, True), (False, False)):
        one, other = (A3(leak_free=free, size=4 / 3)._residuals(t, t.totals(t.rewards)) for t in (a, b))
        first = (a.index == 0).nonzero()[:, 0].tolist()
        labels = [[found[1][m] for m in first] for found in (one, other)]
        assert (torch.allclose(one[0][first], other[0][first]) and labels[0] == labels[1]) is same or not free
    assert A3(leak_free=True).looked_at == (1, 2, 3) and A3().looked_at == (1, 2, 3, -1)


def test_what_a_turn_is_taken_for() -> None:
    credit = A3()
    made = (ToolCall("run", {"command": "ls"}, 0, 0), ToolCall("submit", {"flag": "x", "n": 1}, 0, 0))
    assert credit.text(Turn(0, 0, 1, made)) == "ls\nsubmit x 1"
    assert credit.text(Turn(0, 0, 1, (ToolCall("run", {"command": "ls"}, 0, 0, "not_json"),))) == ""
    assert (
        credit.text(Turn(0, 0, 1, tag="left")) == "left"
        and A3(argument="flag").text(Turn(0, 0, 1, made)) == "run ls\nx"
    )
    assert credit.text(Turn(0, 0, 1, (ToolCall("run", None, 0, 0),), tag="t")) == "t"


def test_options() -> None:
    method = a3(0.3, 0.2, "first", True, 2.0, 0.5, 0.4)
    assert method.credit == A3(0.3, 0.2, where="first", leak_free=True)
    assert isinstance(method.reward, Progress) and method.reward.answer == 2.0
    assert method.objective == GSPOToken(clip_low=0.4, clip_high=0.4, kl_weight=0.5)
    default = a3()
    assert default.credit == A3() and default.objective == GSPOToken(clip_low=0.1, clip_high=0.1, kl_weight=0.01)
    assert default.reward.answer == 3.0  # type: ignore[union-attr]
    assert (A3().residual, A3().tree, A3().ridge, A3().discount, A3().bound, A3().decay) == (
        0.65,
        1.0,
        0.1,
        0.9,
        1.1,
        0.84,
    )
    for wrong in (
        {"residual": -1}, {"tree": -1}, {"size": 0}, {"ridge": 0}, {"bound": 0}, {"least": 0}, {"discount": 1.1},
        {"discount": -0.1}, {"decay": 0}, {"decay": 1.1}, {"near": 1}, {"near": -0.1}, {"scopes": ()}, {"scopes": (0,)},
        {"scopes": (-1,), "leak_free": True},
    ):  # fmt: skip
        with pytest.raises(UsageError, match="a3"):
            A3(**wrong)
    with pytest.raises(UsageError, match="progress"):
        Progress(-1)


def test_progress_and_its_end() -> None:
    rows = [
        (trajectory((LS, SED), (0.1, 0.05)), Verdict.right()),
        (trajectory((LS, SED), (0.1, -0.05), ended=False), Verdict(1.0, True)),
        (trajectory((LS, SED), (0.0, 0.0)), Verdict(0.5, False)),
    ]
    made = Batch.from_groups([Group(Ask(Task("t", ""), 1), (e,), (v,)) for e, v in rows])
    found = Progress()(made)
    assert found.values.tolist() == pytest.approx([3.0, -0.05, 1.5])
    assert found.tokens is not None
    assert found.tokens[0].tolist() == pytest.approx([0, 0.1, 0, 0, 0.05, 0])
    assert found.tokens.sum(-1).add(found.values).tolist() == pytest.approx([3.15, 0.0, 1.5])
    assert found.terms["progress"].tolist() == pytest.approx([0.15, 0.05, 0.0])
    assert found.terms["answer"].tolist() == pytest.approx([3.0, -0.05, 1.5])
    assert Progress(1.0)(made).values.tolist() == pytest.approx([1.0, -0.05, 0.5])


def test_edits_are_lines() -> None:
    before = {"a": b"x\ny\ny\n", "b": b"gone\n"}
    after = {"a": b"x\ny\nz\n", "c": b"new\nnew\n"}
    assert edits(before, after) == {
        ("a", "-", b"y"): 1, ("a", "+", b"z"): 1, ("b", "-", b"gone"): 1, ("c", "+", b"new"): 2,
    }  # fmt: skip
    assert not edits(before, before)


@needs_sandbox
def test_a_turn_earns_what_it_brings_nearer() -> None:
    world = Shell(steps=1, progress=0.2)
    index = next(i for i in range(99) if "delete every .tmp" not in world.tasks()[i].question)
    world.reset(world.tasks()[index], 0)
    wanted = world.wanted.total()
    [work, submit] = world.gold()
    assert world.step(call("run", command="echo noise > noise")).reward == 0.0
    assert world.step(work).reward == pytest.approx(0.2) and world.step(call("run", command="true")).reward == 0.0
    kept = world.snapshot()
    back = world.step(call("run", command="rm -rf ./*")).reward
    assert back is not None and wanted > 0 and back <= 0
    world.restore(kept)
    assert world.step(submit).reward == 0.0 and Shell(steps=1).turn_reward.__name__ == "turn_reward"
    plain = Shell(steps=1)
    plain.reset(plain.tasks()[index], 0)
    assert plain.step(submit).reward is None


def test_worth_of_a_path() -> None:
    assert value_of(True, 1, 0.5) == pytest.approx(5.1)
    assert worth("data.csv", False, "look at data.csv") == pytest.approx(4 + 0.7 + 0.8)
    assert worth("data.csv", False, "look") == pytest.approx(0.7 + 0.4)
    assert worth("a/b.py", False, "fix the code and count rows") == pytest.approx(0.49 + 0.8 / 3)
    assert worth("a/b.py", False, "count rows in B") == pytest.approx(4 + 0.49)
    assert worth("a/b.csv", False, "count rows") == pytest.approx(0.49 + 0.8)
    assert worth("docs", True, "x") == pytest.approx(0.7 + 0.24) and worth("a/b/c", True, "c") == pytest.approx(4.583)
    assert worth("x.bin", False, "count") == pytest.approx(0.7) and worth("noext", False, "noextra") == pytest.approx(
        0.7
    )


def test_the_best_subtree() -> None:
    """Against every subtree there is, on small trees."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        paths = ["a", "a/b", "a/b/c", "a/d", "e", "e/f", "g"]
        tree = [Node(p, p, int(rng.integers(1, 5)), float(rng.random())) for p in paths]
        budget = int(rng.integers(0, 12))
        best = 0.0
        for kept in itertools.product([False, True], repeat=len(tree)):
            taken = {n.path: n for n, k in zip(tree, kept, strict=True) if k}
            rooted = all(p.rpartition("/")[0] in taken or "/" not in p for p in taken)
            if rooted and sum(n.cost for n in taken.values()) <= budget:
                best = max(best, sum(n.value for n in taken.values()))
        found = chosen(tree, budget)
        names = {n.path for n in found}
        assert all(n.path.rpartition("/")[0] in names or "/" not in n.path for n in found)
        assert sum(n.cost for n in found) <= budget and sum(n.value for n in found) == pytest.approx(best)
        assert sum(n.value for n in breadth_first(tree, budget)) <= best + 1e-9


def test_what_is_shown() -> None:
    files = {"a/b/c/d/deep.txt": b"1", "notes.txt": b"first line\nsecond", "a/run.py": b"x" * 200}
    tree = nodes(files, "read notes.txt")
    assert [n.path for n in tree] == ["a", "a/b", "a/b/c", "a/b/c/d", "a/run.py", "notes.txt"]
    assert tree[-1].line == "notes.txt (17 bytes): first line" and tree[-1].cost == 3 and tree[0].line == "a/"
    assert tree[4].line == "  run.py (200 bytes): " + "x" * 80 and tree[0].cost == 1
    assert revealed(files, "read notes.txt", 3) == "notes.txt (17 bytes): first line\n(5 more)"
    assert revealed(files, "read notes.txt", 150).count("\n") == 5 and "more" not in revealed(files, "x", 150)
    assert revealed({}, "x", 5) == "" and revealed({"e": b""}, "x", 5) == "e (0 bytes)"


def test_a_file_that_is_asked_for_is_shown_where_a_plain_listing_ends_before_it() -> None:
    """Of made-up folders with much beside, and within the same budget."""
    seen = {"reveal": 0, "breadth": 0}
    for k in range(20):
        rng = np.random.default_rng(k)
        files = {f"d{i}/f{j}.txt": b"some words here\n" for i in range(8) for j in range(8)}
        wanted = f"d{rng.integers(8)}/f{rng.integers(8)}.txt"
        files[f"{wanted[:2]}/target.csv"] = b"a,b\n"
        tree = nodes(files, "count the rows of target.csv")
        seen["reveal"] += any("target" in n.path for n in chosen(tree, 20))
        seen["breadth"] += any("target" in n.path for n in breadth_first(tree, 20))
    assert seen["reveal"] == 20 and seen["breadth"] < 10


@needs_sandbox
def test_the_beginning_shows_it() -> None:
    world = Shell(reveal=4)
    opened = world.reset(world.tasks()[0], 0).messages[0]["content"]
    assert " more)" in opened and opened.count("\n") < 20


@pytest.mark.slow
def test_it_acts_in_training(tmp_path: Path) -> None:
    environment: Any = {"name": "corridor", "rooms": 4, "moves": 3, "paid": 0.1}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 400, "alphabet": string.printable}},
        tasks={"source": {"name": "environment", "environment": environment}, "eval_share": 0.3, "eval_size": 1},
        warmup={"steps": 60, "lr": 1e-2, "batch": 2},
        method={
            "name": "S146",
            "reward": "progress",
            "rollout": {"name": "multi_turn", "environment": environment, "turns": 3},
        },
        rollout={"prompts": 2, "group": 8, "max_tokens": 6},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert any(m["grad_norm"] > 0 for m in rows) and {"reward/progress", "reward/answer"} <= set(rows[0])
    kept = [json.loads(row["turns"]) for step in tables(folder, "rollouts").values() for row in step]
    assert any(len({t["advantage"] for t in turns}) > 1 for turns in kept)
