"""Sharded over ranks, a run is the run of one process, and what stops it loses nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import running
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from ranked import ranked, train
from running import recipe
from safetensors.torch import load_file

import assay
from assay.errors import RunError, UsageError
from assay.records.checkpoints import checkpoints, kept_best, last_checkpoint
from assay.registry import build
from assay.scale.launch import launch
from assay.scale.ranks import Place, Ranks, join, place_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="ranks are started by forking")

SMALL = {
    "model": {"nano": {"hidden": 16, "layers": 2, "heads": 2, "context": 24}},
    "warmup": {"steps": 1, "batch": 3},
    "train": {"steps": 3, "lr": 1e-3, "mini_batches": 2, "epochs": 1, "token_budget": 40},
    "evaluate": {"every": 0, "samples": 1},
}


def written(folder: Path, **sections: Any) -> str:
    """Write a recipe for a run in ``folder``, without keys that are ``None``; return the file."""
    file = folder.with_suffix(".toml")
    data = recipe(folder, **SMALL)
    for name, section in sections.items():
        data[name] = {k: v for k, v in {**data.get(name, {}), **section}.items() if v is not None}
    file.write_text(tomli_w.dumps(data))
    return str(file)


def alone(folder: Path, *overrides: str, **sections: Any) -> Path:
    """Run in this process."""
    import torch

    torch.set_num_threads(1)
    assay.train(written(folder, **sections), overrides=overrides, quiet=True)
    return folder


def together(folder: Path, *overrides: str, **sections: Any) -> Path:
    """Run in two ranks."""
    log = folder.with_name(f"{folder.name}.log")
    codes = ranked(2, train, log, written(folder, **sections), "scale.trainers=2", *overrides)
    assert codes == [0, 0], "\n".join(log.with_name(f"{log.name}.{i}").read_text() for i in range(2))
    return folder


def assert_alike(run: Path, other: Path, tolerance: float = 1e-4) -> None:
    """Two runs wrote down the same, and ended with the same weights, up to rounding."""
    a, b = running.metrics(run), running.metrics(other)
    assert [(r["stage"], r["step"]) for r in a] == [(r["stage"], r["step"]) for r in b]
    for row, same in zip(a, b, strict=True):
        assert row.keys() == same.keys()
        for key in row.keys() - {"stage"}:
            assert row[key] == pytest.approx(same[key], abs=tolerance), (row["stage"], row["step"], key)
    for folder in ("rollouts", "evals"):
        mine, theirs = running.tables(run, folder), running.tables(other, folder)
        assert mine.keys() == theirs.keys()
        for name, rows in mine.items():
            assert [r["response"] for r in rows] == [r["response"] for r in theirs[name]]
    mine, theirs = policy(run), policy(other)
    assert mine.keys() == theirs.keys()
    for name, weight in mine.items():
        assert (weight - theirs[name]).abs().max() < tolerance, name


def policy(run: Path) -> dict[str, Any]:
    """Weights of the last checkpoint, as transformers reads them."""
    [file] = (last_checkpoint(run)[2] / "policy").glob("*.safetensors")
    return load_file(file)


# The same run


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten steps in one process."""
    return alone(tmp_path_factory.mktemp("ten") / "run", train={"steps": 10})


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same ten steps on two ranks, with a checkpoint after five and ten."""
    return together(tmp_path_factory.mktemp("both") / "run", train={"steps": 10}, run={"checkpoint_every": 5})


@pytest.mark.slow
def test_ten_steps_on_two_ranks_are_those_of_one_process(ten: Path, both: Path) -> None:
    folder = both
    assert_alike(folder, ten)
    assert {"loss", "grad_norm"} <= running.metrics(folder)[-1].keys()
    assert len({r["loss"] for r in running.metrics(folder)}) == 11, "every step has a loss of its own"
    # One rank alone writes and speaks.
    assert folder.with_name("run.log.1").read_text() == ""
    assert (last_checkpoint(folder)[2] / "shards").is_dir()


@pytest.mark.slow
def test_the_best_weights_of_a_stage_and_of_a_run_on_two_ranks(tmp_path: Path) -> None:
    """The second stage goes on from those of the first, and the run keeps those of the second."""
    second = '{name = "second", steps = 4, method = {objective = {name = "clip", kl_weight = 0.1}}}'
    stages = f'stages=[{{name = "first", steps = 4, best = "score/mean"}}, {second}]'
    sections = {"train": {"steps": None}, "evaluate": {"every": 2}, "run": {"best": "score/mean"}}
    one, two = alone(tmp_path / "one", stages, **sections), together(tmp_path / "two", stages, **sections)
    assert_alike(two, one)
    mine, theirs = kept_best(one), kept_best(two)
    assert [path.name for path in mine] == [path.name for path in theirs] != []
    for path, same in [(one / "reference-2", two / "reference-2"), (mine[-1] / "policy", theirs[-1] / "policy")]:
        weights = [load_file(next(p.glob("*.safetensors"))) for p in (path, same)]
        assert all((weights[0][name] - weights[1][name]).abs().max() < 1e-4 for name in weights[0])


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_bit_flipped_in_what_ranks_wrote_is_told_and_the_one_before_goes_on(
    both: Path, ten: Path, tmp_path: Path, ranks: int, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(both, folder)
    assert [p.name for p in checkpoints(folder)] == ["rl-000005", "rl-000010"]
    [shard, *_] = sorted((checkpoints(folder)[-1] / "shards").glob("*.distcp"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    if ranks == 1:
        assay.train(resume=folder, overrides=["scale.trainers=1"])
        said = capfd.readouterr().err
    else:
        log = tmp_path / "log"
        assert ranked(2, train, log, "--resume", str(folder), "scale.trainers=2") == [0, 0]
        said = log.with_name("log.0").read_text()
    assert f"checkpoint rl-000010 holds a damaged shards/{shard.name}" in said
    assert f"resumed {folder} at rl step 5" in said
    assert_alike(folder, ten)


@pytest.mark.parametrize(
    "sections",
    [
        {"method": {"objective": {"name": "clip", "kl_weight": 0.1, "entropy_weight": 0.01}}},
        pytest.param(
            {"model": {"lora": {"rank": 2}}, "method": {"objective": {"name": "clip", "kl_weight": 0.1}}},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"rollout": {"prompts": 1, "group": 3}, "train": {"mini_batches": 1}, "warmup": {"batch": 1}},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"rollout": {"prompts": 2, "group": 2}, "method": {"reward": {"name": "verdict"}}}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"model": {"gradient_checkpointing": True}, "method": {"credit": "gae"}, "overlap": {"verify_chunks": 2}},
            marks=pytest.mark.slow,
        ),
        pytest.param({"method": {"reward": {"name": f"{Path(__file__)}:Graded"}}}, marks=pytest.mark.slow),
    ],
    ids=[
        "reference and entropy",
        "adapters",
        "fewer groups than ranks",
        "every advantage zero",
        "all else",
        "a judge",
    ],
)
def test_it_is_the_same_run_whatever_is_divided(sections: dict[str, Any], tmp_path: Path) -> None:
    small = {k: {**SMALL.get(k, {}), **v} for k, v in sections.items()}
    if "method" in small:
        small["method"] = {**recipe("unused")["method"], **small["method"]}
    assert_alike(together(tmp_path / "two", **small), alone(tmp_path / "one", **small))


class Graded:
    """A reward that another model says, by how long its answers to the responses are; it keeps what it was asked."""

    def __init__(self) -> None:
        nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 32}
        self.judge = build("engine", {"name": "hf", "model": {"source": "nano", "nano": nano}})

    def __call__(self, batch: Any) -> Any:
        import torch

        from assay.batch import Reward
        from assay.engines.asking import ask
        from assay.engines.base import Sampling

        replies = ask(self.judge, [f"{e.text}=" for e in batch.episodes], Sampling(8))
        return Reward(torch.tensor([len(r.tokens) / 8 for r in replies]).to(batch.rewards))


def masked_on_one_rank(folder: Path) -> None:
    """In a rank: an update in which only one micro-batch is left, so that one rank has none."""
    import torch

    from assay.policies.loading import ModelConfig
    from assay.policies.nano import NanoConfig
    from assay.scale.ranks import join
    from assay.scale.sharding import ShardedLM

    ranks = join(2)
    config = ModelConfig(nano=NanoConfig(hidden=16, layers=2, heads=2, context=32))
    found = update_of_one_row(ShardedLM.load_sharded(config, 0, ranks), ranks)
    if ranks.first:
        torch.save(found, folder / "found")
    ranks.close()


def update_of_one_row(policy: Any, ranks: Ranks) -> tuple[Any, ...]:
    """Learn from four responses of which three are out of the update; return metrics, tokens, the new weights' sum."""
    import numpy as np
    import torch

    from assay.batch import Batch
    from assay.learning.optimizer import make_optimizer
    from assay.learning.update import update
    from assay.objectives.clip import ClippedSurrogate
    from assay.types import Ask, Episode, Group, Task

    rng = np.random.default_rng(0)
    episodes = tuple(
        Episode(
            policy.encode("1+1="), rng.integers(4, 40, 5), np.ones(5, bool), np.full(5, -4.0, np.float32), "", "eos"
        )
        for _ in range(4)
    )
    batch = Batch.from_groups([Group(Ask(Task("t", "?"), 4), episodes)])
    batch.advantages = torch.tensor([[1.0], [0.0], [0.0], [-1.0]]) * batch.mask
    batch.valid[3] = False
    batch.weights[1] = 0
    batch.totals = batch.count()
    optimizer = make_optimizer(policy.module.parameters(), 1e-2, (0.9, 0.99), 0.0)
    found = update(policy, ClippedSurrogate(), batch, optimizer, skip_idle=True, ranks=ranks)
    with torch.no_grad():
        after = policy.forward(batch).logprobs
    return (*found, after)


def test_a_rank_with_nothing_to_learn_from_takes_part(tmp_path: Path) -> None:
    import torch

    from assay.policies.causal_lm import CausalLM
    from assay.policies.loading import ModelConfig
    from assay.policies.nano import NanoConfig

    assert ranked(2, masked_on_one_rank, tmp_path) == [0, 0]
    metrics, tokens, after = torch.load(tmp_path / "found", weights_only=True)
    config = ModelConfig(nano=NanoConfig(hidden=16, layers=2, heads=2, context=32))
    expected = update_of_one_row(CausalLM.load(config, 0), Ranks())
    assert metrics == pytest.approx(expected[0], abs=1e-5)
    assert tokens == expected[1] == 5
    assert torch.allclose(after, expected[2], atol=1e-5)


KINDS = ("qwen3", "gemma3, window 5", "mixtral", "gpt2")


def one_step(policy: Any, size: int) -> tuple[float, Any]:
    """Take a step on a loss that ranks have a part of; return the gradient's norm, and log-probabilities after it."""
    import numpy as np
    import tiny
    import torch

    from assay.learning.update import whole

    rng = np.random.default_rng(0)
    prompts = [tiny.ids(rng, n) for n in (4, 6)]
    batch = tiny.batch_of([tiny.episode(p, tiny.ids(rng, n)) for p in prompts for n in (3, 5)])
    parameters = list(policy.module.parameters())
    output = policy.forward(batch, {"entropy"})
    ((output.logprobs.sum() + output.live["entropy"].sum()) / size).backward()
    norm = float(whole(torch.nn.utils.clip_grad_norm_(parameters, 1.0)))
    torch.optim.AdamW(parameters, lr=1e-2).step()
    with torch.no_grad():
        return norm, policy.forward(batch).logprobs


def stepping(folder: Path) -> None:
    """In a rank: a step of models of several kinds."""
    import tiny
    import torch

    from assay.policies.causal_lm import CausalLM
    from assay.scale.sharding import ShardedLM

    ranks = join(2)
    for kind in KINDS:

        def make(kind: str = kind) -> CausalLM:
            return CausalLM(tiny.tiny(kind), tiny.TOKENIZER)

        found = one_step(ShardedLM(make, ranks, torch.device("cpu")), 2)
        if ranks.first:
            torch.save(found, folder / kind)
    ranks.close()


@pytest.mark.slow
def test_models_of_all_kinds_can_be_sharded(tmp_path: Path) -> None:
    import tiny
    import torch

    from assay.policies.causal_lm import CausalLM

    assert ranked(2, stepping, tmp_path) == [0, 0]
    for kind in KINDS:
        norm, after = torch.load(tmp_path / kind, weights_only=True)
        expected = one_step(CausalLM(tiny.tiny(kind), tiny.TOKENIZER), 1)
        assert norm == pytest.approx(expected[0], rel=1e-5)
        assert (after - expected[1]).abs().max() < 1e-4


def sending(folder: Path) -> None:
    """In a rank: what engines are sent of bfloat16 models of several kinds, which are kept in float32."""
    import tiny
    import torch

    from assay.policies.causal_lm import CausalLM
    from assay.scale.sharding import ShardedLM

    ranks = join(2)
    for kind in KINDS:

        def make(kind: str = kind) -> CausalLM:
            return CausalLM(tiny.tiny(kind).to(torch.bfloat16), tiny.TOKENIZER)

        policy = ShardedLM(make, ranks, torch.device("cpu"))
        assert {p.dtype for p in policy.module.parameters()} == {torch.float32}
        sent = {name: weight.clone() for name, weight in policy.merged_state()}
        if ranks.first:
            torch.save(sent, folder / kind)
    ranks.close()


def test_engines_are_sent_what_they_compute_with(tmp_path: Path) -> None:
    """Names, precisions and bits are those that a single process of the same model would send."""
    import tiny
    import torch

    from assay.policies.causal_lm import CausalLM

    assert ranked(2, sending, tmp_path) == [0, 0]
    for kind in KINDS:
        sent = torch.load(tmp_path / kind, weights_only=True)
        wanted = dict(CausalLM(tiny.tiny(kind).to(torch.bfloat16), tiny.TOKENIZER).merged_state())
        assert sent.keys() == wanted.keys()
        for name, weight in wanted.items():
            assert sent[name].dtype == weight.dtype and torch.equal(sent[name], weight), name


# Resumed on another number of ranks


@pytest.mark.slow
def test_a_run_goes_on_on_another_number_of_ranks(ten: Path, tmp_path: Path) -> None:
    shrunk = together(tmp_path / "shrunk", train={"steps": 5})
    assay.train(resume=shrunk, overrides=["scale.trainers=1", "train.steps=10"], quiet=True)
    assert_alike(shrunk, ten)
    grown = alone(tmp_path / "grown", train={"steps": 5})
    log = tmp_path / "log"
    assert ranked(2, train, log, "--resume", str(grown), "scale.trainers=2", "train.steps=10") == [0, 0]
    assert_alike(grown, ten)
    # Only one process's checkpoint, then only the ranks', holds the optimiser in one piece.
    assert not (last_checkpoint(shrunk)[2] / "shards").exists()
    assert (last_checkpoint(grown)[2] / "shards").is_dir()


@pytest.mark.slow
def test_weights_of_low_precision_go_on_from_their_float32_copies(tmp_path: Path) -> None:
    import torch

    sections: dict[str, Any] = {"model": {**SMALL["model"], "dtype": "bfloat16"}}
    folder = alone(tmp_path / "run", **sections)
    log = tmp_path / "log"
    before = torch.load(last_checkpoint(folder)[2] / "trainer.pt", weights_only=True)["optimizer"]["state"]
    assert ranked(2, train, log, "--resume", str(folder), "scale.trainers=2", "train.steps=4") == [0, 0]
    assay.train(resume=folder, overrides=["scale.trainers=1", "train.steps=5"], quiet=True)
    after = torch.load(last_checkpoint(folder)[2] / "trainer.pt", weights_only=True)["optimizer"]["state"]
    assert before.keys() == after.keys()
    for index, state in after.items():
        was, now = before[index]["master"], state["master"]
        assert state["step"] == 10
        assert state["exp_avg"].dtype == now.dtype == torch.float32
        # Four steps of Adam, none of which moves a weight by much more than the learning rate.
        assert 0 < (now - was).abs().max() < 4 * 2e-3
        assert (now.bfloat16().float() != now).any(), "what bfloat16 cannot hold was lost"
    whole = alone(tmp_path / "whole", **{**sections, "train": {"steps": 5}})
    for row, same in zip(running.metrics(folder), running.metrics(whole), strict=True):
        assert row["loss"] == pytest.approx(same["loss"], abs=0.05)


# Stopped


def struck(log: Path, file: str) -> None:
    """In a rank: ``assay train``; rank 1 alone gets Ctrl-C, in the second step."""
    from assay.training.loop import Trainer

    original = Trainer.log

    def logged(self: Trainer, *arguments: Any) -> None:
        original(self, *arguments)
        if self.ranks.rank == 1 and (self.stage, self.step) == ("rl", 2):
            os.kill(os.getpid(), signal.SIGINT)

    Trainer.log = logged  # type: ignore[method-assign]
    train(log, file, "scale.trainers=2")


@pytest.mark.slow
def test_all_ranks_stop_at_the_same_step(tmp_path: Path) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"
    assert ranked(2, struck, log, written(folder)) == [130, 130]
    said = "".join(tmp_path.joinpath(f"log.{i}").read_text() for i in range(2))
    assert said.count("stopped by SIGINT; continue with: assay train --resume") == 1
    assert checkpoints(folder)[-1].name == "rl-000002"
    assay.train(resume=folder, overrides=["scale.trainers=1"], quiet=True)
    assert_alike(folder, alone(tmp_path / "one"))


def children(pid: int) -> dict[int, int]:
    """The ranks a launcher started: their process by number."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            given = dict(x.split("=", 1) for x in (folder / "environ").read_text().split("\0") if "=" in x)
        except OSError:
            continue
        if parent == pid and "RANK" in given:
            found[int(given["RANK"])] = int(folder.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the ranks in /proc")
@pytest.mark.slow
def test_a_killed_rank_takes_the_run_down_with_one_line_and_it_goes_on(ten: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    file = written(folder, train={"steps": 10}, run={"checkpoint_every": 1})
    command = [sys.executable, "-m", "assay", "train", file, "scale.trainers=2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as launcher:
        while len(checkpoints(folder)) < 2 and launcher.poll() is None:
            time.sleep(0.02)
        ranks = children(launcher.pid)
        os.kill(ranks[1], signal.SIGKILL)
        struck = time.monotonic()
        said = launcher.communicate(timeout=300)[1]
    assert time.monotonic() - struck < 10
    assert launcher.returncode == 1
    lines = [line for line in said.splitlines() if line.startswith("assay:")]
    assert lines == [
        f"assay: rank 1 of 2 was killed by SIGKILL; continue with: assay train --resume {folder}",
    ]
    assert "Traceback" not in said
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks.values())
    done = running.metrics(folder)[-1]["step"]
    assert done < 10
    assay.train(resume=folder, overrides=["scale.trainers=1"], quiet=True)
    assert_alike(folder, ten)


# The launcher

RANK = "import os, sys, time; rank = int(os.environ['RANK']); "


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("", 0, ""),
        ("rank and sys.exit(3); time.sleep(60)", 1, "rank 1 of 2 ended with exit code 3"),
        (
            "rank and os._exit(1); time.sleep(60)",
            1,
            "rank 1 of 2 was ended on the spot, as Ray does once this machine's",
        ),
        ("rank or os.kill(os.getpid(), 11); time.sleep(60)", 1, "rank 0 of 2 was killed by SIGSEGV"),
        ("sys.exit(75) if rank == 0 else (time.sleep(0.3), os.kill(os.getpid(), 9))", 1, "rank 1 of 2 was killed by"),
        (
            "open(os.environ['ASSAY_REPORTS'] + f'/rank-{rank}', 'w').write('no such model'); sys.exit(2)",
            2,
            "assay: no such model\n",
        ),
        (
            "rank or open(os.environ['ASSAY_REPORTS'] + '/rank-0', 'w').write('the raylet has gone'); sys.exit(75)",
            75,
            "assay: the raylet has gone\n",
        ),
    ],
    ids=["well", "failed", "ended by Ray", "killed", "lost another", "said why", "said what was lost"],
)
def test_the_launcher_says_what_ended(script: str, code: int, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    start = time.monotonic()
    assert launch([sys.executable, "-S", "-c", RANK + script], 2, "runs/run") == code
    assert time.monotonic() - start < 30
    err = capfd.readouterr().err
    assert err.count("\n") == (1 if said else 0)
    assert said in err


def test_the_launcher_passes_a_signal_on_once(tmp_path: Path) -> None:
    script = RANK + (
        "import signal; found = []; signal.signal(2, lambda *_: found.append(1))"
        f"\nopen({str(tmp_path)!r} + f'/{{rank}}', 'w')"
        "\nwhile not found: time.sleep(0.01)"
        "\ntime.sleep(0.3); sys.exit(130 if len(found) == 1 else 9)"
    )
    starter = (
        "import sys; from assay.scale.launch import launch; "
        f"sys.exit(launch([sys.executable, '-S', '-c', {script!r}], 2, 'run'))"
    )
    with subprocess.Popen([sys.executable, "-c", starter]) as launcher:
        while len(list(tmp_path.iterdir())) < 2 and launcher.poll() is None:
            time.sleep(0.01)
        launcher.send_signal(signal.SIGINT)
        assert launcher.wait(30) == 130


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_ranks_stop_when_the_launcher_is_killed(tmp_path: Path) -> None:
    place = f"{str(tmp_path)!r} + f'/{{rank}}'"
    script = RANK + f"import signal; signal.signal(15, lambda *_: (os.remove({place}), sys.exit())); open({place}, 'w')"
    script += "\nwhile True: time.sleep(0.01)"
    starter = f"from assay.scale.launch import launch; launch([{sys.executable!r}, '-S', '-c', {script!r}], 2, 'run')"
    with subprocess.Popen([sys.executable, "-c", starter]) as launcher:
        while len(list(tmp_path.iterdir())) < 2 and launcher.poll() is None:
            time.sleep(0.01)
        launcher.kill()
    deadline = time.monotonic() + 20
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(tmp_path.iterdir()) == []


# Ranks


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 7))
def test_a_share_is_a_partition_in_nearly_equal_numbers(costs: list[int], size: int) -> None:
    shares = Ranks(0, size).share(costs)
    assert sorted(i for share in shares for i in share) == list(range(len(costs)))
    lengths = [len(share) for share in shares]
    assert max(lengths) - min(lengths) <= 1
    # There and back again: two ranks differ by what one item differs from the next, at most the costliest.
    sums = [sum(costs[i] for i in share) for share in shares]
    assert max(sums) - min(sums) <= max(costs, default=0)


def speaking() -> None:
    """In a rank: what ranks say to each other."""
    ranks = join(3)
    assert ranks.gather(ranks.rank * 2) == [0, 2, 4]
    assert ranks.broadcast(f"from {ranks.rank}") == "from 0"
    assert ranks.sum([1.0, ranks.rank]) == [3.0, 3.0]
    assert ranks.largest(ranks.rank) == 2
    asked: list[int] = []
    assert ranks.once(lambda: asked.append(1) or ranks.rank) == 0
    assert asked == [1] * ranks.first
    seen: list[int] = []

    def double(items: Any) -> list[int]:
        seen.extend(items)
        return [2 * x for x in items]

    assert ranks.divided(list(range(7)), double) == [0, 2, 4, 6, 8, 10, 12]
    assert sorted(x for share in ranks.gather(seen) for x in share) == list(range(7))
    assert ranks.apart().divided([5], double) == [10]

    def fails(items: Any) -> list[int]:
        raise UsageError(f"cannot do {items[0]}")

    for work in (lambda: ranks.divided([4], fails), lambda: ranks.once(lambda: fails([4]))):
        with pytest.raises(UsageError, match="cannot do 4"):
            work()
    ranks.close()


def test_ranks_hear_each_other_and_share_errors() -> None:
    assert ranked(3, speaking) == [0, 0, 0]


def lonely(folder: Path) -> None:
    """In a rank: one goes, the other waits for it."""
    ranks = join(2)
    ranks.barrier()
    if ranks.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(RunError, match="lost another process of this run"):
        ranks.gather(0)
    (folder / "seen").touch()
    os._exit(0)


def test_a_lost_rank_is_noticed(tmp_path: Path) -> None:
    assert ranked(2, lonely, tmp_path) == [0, -signal.SIGKILL]
    assert (tmp_path / "seen").exists()


def test_a_place_is_read_from_whoever_started_the_process() -> None:
    assert place_of({}) is None
    torchrun = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
    assert place_of(torchrun) == Place(5, 8, 1, "env://")
    slurm = {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1", "MASTER_ADDR": "node1"}
    assert place_of(slurm) == Place(3, 4, 1, "tcp://node1:29500")
    # A batch script is no task of its allocation.
    assert place_of({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "MASTER_ADDR": "node1"}) is None
    with pytest.raises(UsageError, match="have to be numbers"):
        place_of({"RANK": "x", "WORLD_SIZE": "2"})


def test_ranks_that_nobody_started_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"scale.trainers = 2 takes as many processes: start them with the command"):
        assay.train(written(tmp_path / "run"), overrides=["scale.trainers=2"], quiet=True)
    assert not (tmp_path / "run").exists()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(UsageError, match=r"4 processes were started and scale.trainers = 2; start as many, or set"):
        assay.train(written(tmp_path / "run"), overrides=["scale.trainers=2"], quiet=True)
    with pytest.raises(UsageError, match=r"4 processes were started and scale.trainers = 1; start as many, or set"):
        assay.train(written(tmp_path / "run"), quiet=True)


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"train": {"optimizer": "adamw8bit"}}, "adamw8bit"),
        ({"model": {"device": "cuda:0"}}, "model.device"),
        ({"overlap": {"staleness": 1}}, "overlap.staleness"),
        (
            {"method": {"credit": {"name": "gae", "critic": {"name": "critic", "trunk": "own"}}}},
            "Critic trains a second model",
        ),
        ({"method": {"credit": "prime"}}, "ImplicitReward trains a second model"),
        ({"method": {"name": "S031", "options": {"teacher": "trust_region"}}}, "a teacher in a trust region adds"),
    ],
)
def test_what_cannot_be_sharded_is_refused(sections: dict[str, Any], reason: str) -> None:
    from assay.config import load_config
    from assay.method import make_method
    from assay.scale.setup import check_sharding

    config = load_config(sections)
    parts = config.method.model_dump(exclude={"name"})
    with pytest.raises(UsageError, match=reason):
        check_sharding(config, make_method(config.method.name, **parts), Ranks(0, 2))
