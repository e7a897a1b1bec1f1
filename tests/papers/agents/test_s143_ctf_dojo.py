"""CTF-Dojo: what is learned from are trajectories that found the flag by work."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics, run, tables
from sandbox.support import needs_sandbox
from tiny import tiny

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.environments.base import Observation
from assay.environments.guess import Guess
from assay.errors import UsageError
from assay.objectives.sft import SFT
from assay.papers.agents.s143_ctf_dojo import ctf_dojo, forged
from assay.policies.causal_lm import CausalLM
from assay.policies.nano import NanoConfig, nano_tokenizer
from assay.rollout.turns.multi_turn import MultiTurn
from assay.select.solved import Solved
from assay.types import Ask, Episode, Group, Message, Task, ToolCall, Turn, Verdict

TOKENIZER = nano_tokenizer(NanoConfig(alphabet=string.digits + string.ascii_letters + " -?\n"))


def turn(index: int, *calls: tuple[str, dict[str, Any]], valid: bool = True, problem: Any = "") -> Turn:
    made = tuple(ToolCall(name, arguments, 0, 0, problem) for name, arguments in calls)
    return Turn(index, index, index + 1, made, valid=valid)


LOOK, SUBMIT = ("run", {"command": "cat secret"}), ("submit", {"flag": "flag{a}"})
PEEK = ("run", {"command": "cat /srv/Checker.sh"})
RIGHT = Verdict(1.0, True, {"shown": 1.0})


def episode(*turns: Turn) -> Episode:
    n = max(1, len(turns))
    return Episode(
        np.zeros(1, int), np.zeros(n, int), np.ones(n, bool), np.zeros(n, np.float32), "", "eos", turns=turns
    )


def batch(pairs: list[tuple[Episode, Verdict]], id: str = "a") -> Batch:
    return Batch.from_groups([Group(Ask(Task(id, ""), 1), (e,), (v,)) for e, v in pairs])


def test_what_is_kept() -> None:
    worked = episode(turn(0, LOOK), turn(1, SUBMIT))
    cases = [
        (worked, RIGHT, 1),
        (worked, Verdict.right(), 1),  # nobody has looked whether it was shown
        (worked, Verdict.wrong(), 0),
        (worked, Verdict.abstain("gone"), 0),
        (worked, Verdict(1.0, True, {"shown": 0.0}), 0),
        (episode(turn(0, SUBMIT)), RIGHT, 0),  # a guess
        (episode(turn(0, LOOK), turn(1, LOOK)), RIGHT, 0),  # never submitted
        (episode(turn(0, LOOK, SUBMIT)), RIGHT, 0),  # submitted before anything was seen
        (episode(turn(0, LOOK, valid=False), turn(1, SUBMIT)), RIGHT, 0),
        (episode(turn(0, LOOK), turn(1, SUBMIT, problem="not_json")), RIGHT, 0),
        (episode(turn(0, LOOK), turn(1, PEEK), turn(2, SUBMIT)), RIGHT, 0),
        (episode(), RIGHT, 0),
        (episode(turn(0, SUBMIT), turn(1, SUBMIT)), RIGHT, 0),
    ]
    assert Solved()(batch([(e, v) for e, v, _ in cases])).tolist() == [k for _, _, k in cases]
    two = [(worked, RIGHT), (episode(turn(0, LOOK), turn(1, LOOK), turn(2, SUBMIT)), RIGHT)]
    assert Solved(least=2)(batch(two)).tolist() == [0, 1]
    assert Solved(forbidden=["secret"])(batch(two)).tolist() == [0, 0]
    assert Solved(submit="run")(batch([(episode(turn(0, SUBMIT), turn(1, LOOK)), RIGHT)])).tolist() == [1]
    assert Solved(shown="seen")(batch([(worked, Verdict(1.0, True, {"shown": 0.0}))])).tolist() == [1]
    told = ("run", {"command": "cat prüfer"})
    assert Solved(forbidden=["prüfer"])(batch([(episode(turn(0, told), turn(1, SUBMIT)), RIGHT)])).tolist() == [0]
    made = batch(two)
    made.valid[0] = False
    assert Solved()(made).tolist() == [0, 1]


def test_a_cap_holds_for_the_run() -> None:
    worked = (episode(turn(0, LOOK), turn(1, SUBMIT)), RIGHT)
    select = Solved(cap=3)
    assert select(batch([worked, (worked[0], Verdict.wrong()), worked])).tolist() == [1, 0, 1]
    other = Solved(cap=3)
    other.load_state_dict(select.state_dict())
    for one in (select, other):
        assert one(batch([worked, worked])).tolist() == [1, 0] and one(batch([worked])).tolist() == [0]
        assert one(batch([worked], "b")).tolist() == [1]


def test_options() -> None:
    method = ctf_dojo(cap=2, least=3, forbidden=["x"])
    assert isinstance(method.objective, SFT) and isinstance(method.select, Solved)
    assert (method.select.cap, method.select.least, method.select.forbidden[0].pattern) == (2, 3, "x")
    plain = ctf_dojo().select
    assert isinstance(plain, Solved) and (plain.cap, plain.least, Solved(cap=1).cap) == (4, 1, 1)
    assert [(name, step.tries) for name, step in forged().steps] == [("forge", 10)], "ten tries for a file"
    for wrong in ({"least": 0}, {"cap": 0}, {"forbidden": ["("]}):
        with pytest.raises(UsageError, match="solved"):
            Solved(**wrong)


class Hushed(Guess):
    """Shows nothing of its task."""

    def reset(self, task: Task, seed: int) -> Observation:
        return Observation((Message(role="user", content="guess"),), state=super().reset(task, seed).state)


def test_hints_are_not_trained_on() -> None:
    engine = HFEngine(CausalLM(tiny("llama", vocab_size=len(TOKENIZER)), TOKENIZER))
    tasks = Guess(most=9).tasks()
    hinted = [Task(t.id, t.prompt, t.reference, t.kind, hints=("try 5", "or 6")) for t in (tasks[0], tasks[1])]
    options: dict[str, Any] = {"environment": {"name": "guess", "most": 9}, "sampling": Sampling(max_tokens=2)}
    plain = engine.encode("1-9?")

    def played(rollout: MultiTurn, ask: Ask) -> Episode:
        return rollout.play([ask], [0], engine)[0].episodes[0]

    for ask, text in ((Ask(hinted[0], 1), "try 5\nor 6\n1-9?"), (Ask(hinted[0], 1, "no hint"), "no hint\n1-9?")):
        shown = played(MultiTurn(**options, show_hints=True, keep_hint=False), ask)
        assert shown.prompt.tolist() == plain.tolist()
        assert shown.sampled_prompt is not None and shown.sampled_prompt.tolist() == engine.encode(text).tolist()
        kept = played(MultiTurn(**options, show_hints=True), ask)
        assert kept.prompt.tolist() == engine.encode(text).tolist() and kept.sampled_prompt is None
        assert kept.tokens.tolist() == shown.tokens.tolist()
    for rollout in (MultiTurn(**options), MultiTurn(**options, keep_hint=False)):
        assert played(rollout, Ask(hinted[0], 1)).prompt.tolist() == plain.tolist()
    with pytest.raises(UsageError, match="does not show its task"):
        played(MultiTurn(f"{__file__}:Hushed", Sampling(max_tokens=2), keep_hint=False), Ask(tasks[0], 1, "hint"))


WORLD = """
import hashlib

from assay.environments.shell.environment import Shell
from assay.environments.tools import tool
from assay.tasks.listed import Listed
from assay.types import Task

META = {"job": "given", "files": {"f": "ZnthfQ=="}, "hide": "", "flag": "", "solve": "cat f"}


class Short(Shell):
    "Tools in a letter; who reads and submits in one turn has to do so again. The flag is right half of the time."

    def begin(self, task, seed):
        self.turns = 0
        super().begin(task, seed)
        return task.question

    def step(self, action):
        self.turns += 1
        return super().step(action)

    @tool
    def r(self) -> str:
        "Read."
        return self.run("cat f")[:1]

    @tool
    def s(self) -> str:
        "Submit."
        self.flag, self.submitted = "f{a}", self.turns > 1
        return "s"

    def tasks(self):
        flags = ("f{a}", "f{b}")
        return Listed([
            Task(str(i), f"{i}?" + "[r(),s()]\\nf\\ns\\n" * (i % 4 > 1), i, "none", "[r(),s()]", ("look",),
                 {**META, "digest": hashlib.sha256(flags[i % 2].encode()).hexdigest()})
            for i in range(16)
        ])
"""


@needs_sandbox
@pytest.mark.slow
def test_it_acts_in_training(tmp_path: Path) -> None:
    (tmp_path / "world.py").write_text(WORLD)
    environment = f"{tmp_path / 'world.py'}:Short"
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 64, "alphabet": string.printable}},
        warmup={"steps": 60, "lr": 1e-2, "batch": 4},
        tasks={"source": {"name": "environment", "environment": environment}, "eval_share": 0.2, "eval_size": 2},
        method={
            "name": "S143",
            "reward": "verdict",
            "select": {"name": "solved", "submit": "s", "cap": 3},
            "rollout": {
                "name": "multi_turn",
                "environment": environment,
                "turns": 2,
                "calls": "python",
                "show_hints": True,
                "keep_hint": False,
            },
        },
        rollout={"prompts": 4, "group": 4, "max_tokens": 12},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    kept = [row for step in tables(folder, "rollouts").values() for row in step]
    assert any(m["grad_norm"] > 0 for m in rows) and all(m["environment/lost"] == 0 for m in rows)
    assert any(0 < m["unselected"] < 1 for m in rows)
    assert all("look" not in row["prompt"] for row in kept) and {row["passed"] for row in kept} == {True, False}
