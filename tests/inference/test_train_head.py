"""``assay train-head``: heads from a run's own responses, measured on tasks kept back, read by strategies."""

from __future__ import annotations

import errno
import json
import math
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import torch
from safetensors.torch import save_file

from assay import api, cli
from assay.config import load_config
from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine
from assay.engines.target import resolve
from assay.errors import RunError, UsageError
from assay.inference.heads.fit import Kind, known, measure
from assay.inference.heads.joint import EDGES, Bins, ByJointHead, JointHead
from assay.inference.heads.train import length_edges, train_head, training_tasks
from assay.inference.heads.value_head import ByValueHead, ValueHead
from assay.inference.named import make_strategies
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.step_models.states import width
from assay.tasks.configured import task_split
from assay.tasks.listed import Listed
from assay.tasks.split import HeldOut, TrainStream, content
from assay.types import Ask, Group, Task, Verdict

RECIPE: dict[str, Any] = {
    "model": {
        "source": "nano",
        "nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 32, "alphabet": "0123456789+=\n"},
    },
    "tasks": {"eval_size": 8, "source": {"name": "arithmetic", "operation": "addition", "digits": 1}},
    "warmup": {"steps": 60, "batch": 32, "lr": 5e-3},
    "rollout": {"prompts": 4, "group": 2, "max_tokens": 4},
    "train": {"steps": 0},
    "evaluate": {"samples": 1},
    "run": {"report": False},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was warmed up, so that it is right about some sums."""
    folder = tmp_path_factory.mktemp("heads") / "run"
    api.train({**RECIPE, "run": {"report": False, "dir": str(folder)}}, quiet=True)
    return folder


def called(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main(list(arguments))
    out, err = capfd.readouterr()
    return int(end.value.code or 0), out, err


@pytest.mark.slow
def test_heads_from_the_command_serve_strategies(
    trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {p: p.read_bytes() for p in trained.rglob("*.safetensors")}
    joint, value = tmp_path / "heads" / "joint.safetensors", tmp_path / "value.safetensors"
    size = ("--tasks", "32", "--samples", "6")
    code, out, err = called(capfd, "train-head", str(trained), "--kind", "joint", "--out", str(joint), *size)
    assert code == 0, err
    assert f'assay eval {trained} --strategy "sample,S038(head={joint})"' in out
    assert "to 24 tasks" in out and "to 8 tasks kept back" in out
    code, out, err = called(capfd, "train-head", str(trained), "--kind", "value", "--out", str(value), *size, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["tasks"], found["fit"]["tasks"], found["left_out"]) == (24, 8, 0)
    assert found["responses"] == 24 * 6 and found["fit"]["length"] is None
    assert 0 < found["fit"]["right"] < 1 and 0 <= found["fit"]["predicted"] <= 1
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["joint.safetensors", "value.safetensors"]
    # The model is as it was.
    assert before == {p: p.read_bytes() for p in trained.rglob("*.safetensors")}
    names = f"sample,S038(head={joint},every=1),S120(head={value},step=1),best_of_n(scorer=joint,scorer.head={joint})"
    code, out, err = called(capfd, "eval", str(trained), "--strategy", names, "--budgets", "2", "--json")
    assert code == 0, err
    assert [len(p["outcomes"]) for p in json.loads(out)["points"]] == [8] * 4


@pytest.mark.slow
def test_a_joint_head_learns_when_responses_end_and_the_same_command_writes_the_same_head(trained: Path) -> None:
    made = [train_head(resolve(str(trained)), "joint", tasks=24, samples=4) for _ in range(2)]
    length = made[0].fit.length
    assert length is not None and length.head < 0.8 * length.constant  # one digit or two: easily seen coming
    assert all(torch.equal(a, b) for a, b in zip(*(m.head.state_dict().values() for m in made), strict=True))
    assert made[0].fit == made[1].fit


def group(name: str, passed: list[bool | None], policy: TabularPolicy) -> Group:
    episodes = TabularEngine(policy).generate([Request("", len(passed), Sampling(2), 1)])[0]
    verdicts = [Verdict.abstain("down") if p is None else Verdict(float(p), p) for p in passed]
    return Group(Ask(Task(name, ""), len(passed)), tuple(episodes), tuple(verdicts))


def test_the_fit_of_a_head_that_knows_nothing_is_what_a_hand_finds() -> None:
    policy = TabularPolicy.random(Tree.uniform(2, 2), seed=0)
    fitted = [group("a", [True, False], policy), group("b", [False, False, None], policy)]
    kept = [group("c", [True, False], policy), group("d", [False, None], policy), group("e", [None], policy)]
    fit = measure(JointHead(width(policy), Bins(2, (0, 1, 2))), policy, fitted, kept)
    assert (fit.tasks, fit.responses) == (2, 3)
    assert fit.right == pytest.approx(1 / 3) and fit.predicted == pytest.approx(0.5)
    # A quarter is right of what it was trained on: (9/16 + 1/16) / 2 of the first task, 1/16 of the second.
    assert fit.reward.head == pytest.approx(0.25)
    assert fit.reward.constant == pytest.approx((0.3125 + 0.0625) / 2)
    assert fit.reward.difference.value == pytest.approx(0.0625)
    assert fit.auroc == 0.5 and fit.ece == pytest.approx(0.5 - 1 / 3)
    # Of three positions one has no token left, two have; 4 responses were seen, one more for each range.
    assert fit.length is not None and fit.length.head == pytest.approx(math.log(2), abs=1e-6)
    few, many = (4 / 3 + 1) / 6, (8 / 3 + 1) / 6
    assert fit.length.constant == pytest.approx(-(math.log(few) + 2 * math.log(many)) / 3)
    value = measure(ValueHead(width(policy)), policy, fitted, kept)
    assert value.length is None and value.reward == fit.reward and not value.helps
    with pytest.raises(RunError, match="nothing says what the head is worth"):
        measure(ValueHead(width(policy)), policy, fitted, [group("e", [None], policy)])


def test_a_head_that_knows_the_outcome_helps() -> None:
    tree = Tree.uniform(2, 2, rewards=[1, 1, 0, 0])  # the first token decides
    policy = TabularPolicy(tree)
    head = ValueHead(width(policy))
    for path, logit in (((0,), 9.0), ((1,), -9.0)):
        node = tree.node(path)
        assert node is not None
        head.linear.weight.data[0, node] = logit
    leaves = torch.arange(policy.width, width(policy))
    head.linear.weight.data[0, leaves] = torch.tensor([9.0, 9.0, -9.0, -9.0])
    engine = TabularEngine(policy)
    groups = []
    for i, episodes in enumerate(engine.generate([Request("", 8, Sampling(2), seed) for seed in range(40)])):
        verdicts = [Verdict(float(e.tokens[0] == 0), bool(e.tokens[0] == 0)) for e in episodes]
        groups.append(Group(Ask(Task(str(i), ""), 8), tuple(episodes), tuple(verdicts)))
    fit = measure(head, policy, groups[:20], groups[20:])
    assert fit.helps and fit.reward.head < 1e-3 < 0.2 < fit.reward.constant
    assert fit.auroc == 1.0 and fit.ece < 1e-3


@pytest.mark.parametrize(("kind", "lengths"), [("joint", 1), ("value", 2)])
def test_what_was_cut_off_has_no_length_to_learn(kind: Kind, lengths: int) -> None:
    policy = TabularPolicy.random(Tree.uniform(2, 2), seed=0)
    cut = TabularEngine(policy).generate([Request("", 1, Sampling(1), 1)])[0]
    whole = group("a", [True], policy)
    both = Group(Ask(Task("a", ""), 2), (*whole.episodes, *cut), (*whole.verdicts, Verdict(0.0, False)))
    assert cut[0].truncated and len(known(both, kind)) == lengths


def test_tasks_are_different_ones_of_training() -> None:
    config = load_config({**RECIPE, "run": {"dir": "x"}})
    stream, held = task_split(config)
    chosen = training_tasks(stream, 40)
    contents = {content(t) for t in chosen}
    assert len(contents) == 40 and contents.isdisjoint(content(t) for t in held)
    rule = HeldOut(config.tasks.eval_share, config.seed)
    assert not any(rule(t) for t in chosen)
    few = Listed([Task(str(i), f"question {i % 7}", reference="1") for i in range(50)])
    assert len(training_tasks(TrainStream(few), 40)) == 7

    class Endless:
        size = None

        def __getitem__(self, index: int) -> Task:
            return Task(str(index), f"question {index % 5}")

    assert len(training_tasks(TrainStream(Endless()), 8)) == 5


@pytest.mark.parametrize("longest", [1, 2, 6, 100, 4096, 32768])
def test_ranges_of_length_double_up_to_the_longest_response(longest: int) -> None:
    edges = length_edges(longest)
    assert edges[0] == 0 and edges[-1] == longest and len(edges) <= 9
    assert all(a < b <= 2 * a for a, b in pairwise(edges[1:]))
    assert Bins(7, edges).of(longest, 0) == len(edges) - 2
    assert length_edges(32768) == EDGES


def test_refusals_are_one_line_and_leave_nothing(
    trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    recipe = tmp_path / "fresh.toml"
    recipe.write_text(tomli_w.dumps({**RECIPE, "warmup": {"steps": 0}}))
    out = ("--out", str(tmp_path / "h.safetensors"))
    for code, words, arguments in (
        (2, "ends in .safetensors", (str(trained), "--out", str(tmp_path / "head.pt"))),
        (2, "its folder cannot be made", (str(trained), "--out", str(tmp_path / "file" / "h.safetensors"))),
        (2, "8 tasks or more", (str(trained), *out, "--tasks", "7")),
        (2, "lr above 0", (str(trained), *out, "--lr", "0")),
        (2, "is an endpoint", ("openai:m@http://localhost:1/v1", *out, "tasks=arithmetic")),
        (1, "all wrong: there is nothing for a head to tell apart", (str(recipe), *out, "--tasks", "8")),
    ):
        found, _, err = called(capfd, "train-head", *arguments)
        said = [line for line in err.splitlines() if line.startswith("assay: ")]
        assert found == code and len(said) == 1 and words in said[0], (arguments, err)
        assert "Traceback" not in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "fresh.toml"]


def test_a_full_disk_is_said_in_a_line_and_leaves_the_old_head(
    trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "my heads" / "value.safetensors"
    arguments = (
        "train-head",
        str(trained),
        "--kind",
        "value",
        "--out",
        str(out),
        "--tasks",
        "16",
        "evaluate.top_p=0.9",
    )
    code, said, err = called(capfd, *arguments)
    assert code == 0, err
    again = shlex.split(said.splitlines()[-1])
    assert again[:4] == ["assay", "eval", str(trained), "evaluate.top_p=0.9"]
    assert make_strategies(again[-1])  # the name has a space in it
    old = out.read_bytes()

    def full(head: ValueHead, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ValueHead, "save", full)
    code, _, err = called(capfd, *arguments)
    assert code == 1 and err.splitlines()[-1] == f"assay: could not write {out}: the disk is full"
    assert out.read_bytes() == old and list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("strategy", ["S038", "adaptive", "S120", "best_of_n(scorer=value)"])
def test_a_strategy_without_its_head_names_the_command(
    strategy: str, trained: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, err = called(capfd, "eval", str(trained), "--strategy", strategy)
    assert code == 2 and err.count("\n") == 1
    assert f"needs head=FILE.safetensors; assay train-head {trained} writes one" in err


def test_a_head_of_another_kind_or_model_is_refused(trained: Path, tmp_path: Path) -> None:
    value, joint, other, damaged = (tmp_path / f"{n}.safetensors" for n in ("value", "joint", "other", "damaged"))
    ValueHead(32).save(value)
    JointHead(32, Bins()).save(joint)
    save_file({"weight": torch.zeros(2)}, other)
    damaged.write_bytes(joint.read_bytes()[:20])
    for load, wrong, words in (
        (JointHead.load, value, "holds a value head, not the joint head"),
        (ValueHead.load, joint, "holds a joint head, not the value head"),
        (ValueHead.load, other, "holds no head"),
        (JointHead.load, damaged, "cannot be read as a joint head"),
        (JointHead.load, tmp_path / "none.safetensors", "no joint head in"),
    ):
        with pytest.raises(UsageError, match=words):
            load(wrong)
    engine = resolve(str(trained)).open()
    task = Task("1", "1+1=")
    [episode] = engine.generate([Request(task.prompt, 1, Sampling(2), 0)])[0]
    JointHead(8, Bins()).save(joint)
    ValueHead(8).save(value)
    for scorer in (ByJointHead(str(joint)), ByValueHead(str(value))):
        with pytest.raises(UsageError, match="states of 8 numbers and the model's have 32"):
            scorer.score([(task, episode)], engine, np.random.default_rng(0))
