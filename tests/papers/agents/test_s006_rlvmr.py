"""RLVMR: the four rules by hand, both worked examples, the cold start's teacher, and training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay.batch import Batch
from assay.catalogue.claim import claim_of
from assay.credit.grpo import GRPO
from assay.credit.turns.tagged import Tagged
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.environments.corridor import Corridor
from assay.environments.household.environment import Household
from assay.errors import UsageError
from assay.lab.settings.environment import Setting
from assay.method import make_method
from assay.papers.agents.s006_rlvmr import rlvmr
from assay.policies.causal_lm import CausalLM
from assay.policies.nano import NanoConfig, nano_model, nano_tokenizer
from assay.rewards.process.meta_reasoning import MetaReasoning, earned, repeated
from assay.rollout.turns.multi_turn import MultiTurn
from assay.rollout.turns.tagged_turns import META, TaggedTurns, formed, tag_of
from assay.types import Ask, Episode, Group, Task, ToolCall, Turn, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


def turn(tag: str | None, action: str, valid: bool = True, index: int = 0) -> Turn:
    """A turn of two tokens, and one of the environment's after it."""
    text = f"<{tag}>so</{tag}><action>{action}</action>" if tag else f"<action>{action}</action>"
    return Turn(index, 3 * index, 3 * index + 2, valid=valid, tag=tag, text=text)


def batch_of(rows: Sequence[Sequence[tuple[Any, ...]]], passed: Sequence[bool | None]) -> Batch:
    """A group of trajectories of turns (tag, action, valid)."""
    episodes, verdicts = [], []
    for row, right in zip(rows, passed, strict=True):
        turns = tuple(turn(*what, index=k) for k, what in enumerate(row))
        mask = np.tile([True, True, False], len(turns))
        tokens = np.zeros(len(mask), dtype=np.int64)
        episodes.append(Episode(tokens[:0], tokens, mask, None, "", "eos", turns=turns))
        verdicts.append(Verdict(float(bool(right)), right))
    return Batch.from_groups([Group(Ask(Task("t", ""), len(rows)), tuple(episodes), tuple(verdicts))], torch.float64)


def valued(batch: Batch, reward: MetaReasoning, credit: Any) -> list[list[float]]:
    """The advantage of each turn; all of its tokens have it, and the environment's have none."""
    found = reward(batch)
    batch.rewards, batch.token_rewards, batch.valid = found.values, found.tokens, found.valid
    batch.advantages = credit(batch)
    assert not bool(batch.advantages[~batch.mask].any())
    rows = [a[: len(e.tokens)] for a, e in zip(batch.advantages, batch.episodes, strict=True)]
    assert all(torch.equal(row[0::3], row[1::3]) for row in rows)
    return [row[0::3].tolist() for row in rows]


EXAMPLE = [
    [("planning", "a"), ("explore", "b"), ("explore", "b")],
    [("planning", "a"), ("explore", "b"), ("reflection", "c")],
]


def advantages(credit: Any, r: Sequence[Sequence[float]]) -> list[list[float]]:
    """The advantages where the turns' rewards are given."""
    batch = batch_of(EXAMPLE, [True, False])
    batch.rewards = torch.tensor([1.0, 0.0], dtype=torch.float64)
    batch.token_rewards = torch.zeros(batch.mask.shape, dtype=torch.float64)
    for i, row in enumerate(r):
        batch.token_rewards[i, 1::3] = torch.tensor(row, dtype=torch.float64)
    return [row[0::3].tolist() for row in credit(batch)]


R = [(0.1, 0.1, 0.0), (0.0, 0.1, 0.1)]


def test_the_worked_example() -> None:
    one, two = advantages(Tagged(), R)
    assert one == pytest.approx([0.7071, 0.6422, -0.2238], abs=1e-4)
    assert two == pytest.approx([-0.7071, -0.0649, -0.3036], abs=1e-4)
    alone = advantages(Tagged(singleton="zero"), R)
    assert alone[1] == pytest.approx([-0.7071, -0.0649, -0.3536], abs=1e-4) and alone[0] == pytest.approx(one)


def test_the_worked_example_of_the_code() -> None:
    code = Tagged(1.0, "sum", "turn", scaled=False)
    one, two = advantages(code, R)
    assert one == pytest.approx([0.55, 0.5333, 0.4333], abs=1e-4)
    assert two == pytest.approx([-0.55, -0.4667, -0.4], abs=1e-4)
    # The longer a trajectory, the more it counts there: three turns of 1 and one of 0.
    batch = batch_of([[("explore", "a"), ("explore", "b"), ("explore", "c")], [("explore", "a")]], [True, False])
    batch.rewards = torch.tensor([1.0, 0.0], dtype=torch.float64)
    by_turn, by_trajectory = Tagged(1.0, statistics="turn", scaled=False), Tagged(1.0, scaled=False)
    assert by_turn(batch)[:, 0].tolist() == pytest.approx([0.25, -0.75])
    assert by_trajectory(batch)[:, 0].tolist() == pytest.approx([0.5, -0.5])


def test_with_alpha_one_it_is_grpo() -> None:
    batch = batch_of(EXAMPLE, [True, False])
    found = MetaReasoning()(batch)
    batch.rewards, batch.token_rewards = found.values, found.tokens
    plain = GRPO()(batch_of(EXAMPLE, [True, False]))
    assert not bool(plain.any()), "before rewards are told nobody is better"
    batch.token_rewards = None
    assert torch.allclose(Tagged(1.0, penalty=0.0)(batch), GRPO()(batch))
    batch.token_rewards = found.tokens
    whole = Tagged(1.0, penalty=0.0)(batch)
    batch.token_rewards = None
    assert torch.allclose(whole, GRPO()(batch))


def test_rewards_alike_within_a_tag_leave_the_trajectorys_share() -> None:
    alike = advantages(Tagged(0.25), [(0.3, 0.2, 0.2), (0.3, 0.2, 0.0)])
    assert alike[0] == pytest.approx([0.25 * 0.7071] * 3, abs=1e-4)
    assert alike[1][:2] == pytest.approx([-0.25 * 0.7071] * 2, abs=1e-4)


def test_what_has_no_form_is_penalised() -> None:
    """The authors' code takes 0.1 from a turn without the form; an action that is not to be had is no matter there."""
    batch = batch_of([[("explore", "a"), (None, "b")], [("explore", "a"), ("explore", "c")]], [True, True])
    found = valued(batch, MetaReasoning(), Tagged(0.5, penalty=0.1))
    assert found[0] == pytest.approx([0, -0.05]) and found[1] == pytest.approx([0, 0])
    batch = batch_of([[("explore", "a"), ("explore", "b", False)], [("explore", "a"), ("explore", "c")]], [True, True])
    assert valued(batch, MetaReasoning(), Tagged(0.5, penalty=0.1)) == [[0, 0], [0, 0]]
    # It is compared with those of its tag: of three that explore it alone repeats an action.
    batch = batch_of([[("explore", "a"), ("explore", "a", False)], [("explore", "b"), ("monitor", "c")]], [True, True])
    found = valued(batch, MetaReasoning(), Tagged(0.0, scaled=False, singleton="zero"))
    assert found[0] == pytest.approx([1 / 3, -2 / 3]) and found[1] == pytest.approx([1 / 3, 0])


def test_epsilon_keeps_what_hardly_differs_from_being_blown_up() -> None:
    """Rewards that differ by 2e-6 have a deviation of sqrt(2) 1e-6, to which another 1e-6 is added."""
    batch = batch_of([[("explore", "a")], [("explore", "a")]], [True, False])
    batch.rewards = torch.tensor([2e-6, 0.0], dtype=torch.float64)
    assert Tagged(1.0)(batch)[:, 0].tolist() == pytest.approx([0.414214, -0.414214], abs=1e-6)
    batch.token_rewards = torch.zeros(batch.mask.shape, dtype=torch.float64)
    batch.token_rewards[0, 0] = 2e-6
    assert Tagged(0.0)(batch)[:, 0].tolist() == pytest.approx([0.414214, -0.414214], abs=1e-6)


def test_what_stands_on_tokens_that_are_not_learned_is_no_turns_reward() -> None:
    batch = batch_of([[("explore", "a")], [("explore", "b")]], [True, False])
    batch.rewards = torch.zeros(2, dtype=torch.float64)
    batch.token_rewards = torch.tensor([[0.5, 9.0, 0.0], [0.25, 0.0, 0.0]], dtype=torch.float64)
    batch.mask[0, 1] = False
    assert Tagged(0.0, scaled=False)(batch)[:, 0].tolist() == pytest.approx([0.125, -0.125])


def test_abstentions_are_left_out() -> None:
    batch = batch_of([[("explore", "a")], [("explore", "b")], [("explore", "c")]], [True, None, False])
    found = valued(batch, MetaReasoning(), Tagged())
    assert found[1] == [0] and found[0] == pytest.approx([0.3536], abs=1e-4)
    none = batch_of([], [])
    assert Tagged()(none).shape == none.mask.shape


# The rules


def test_planning_pays_on_success() -> None:
    turns = [turn("planning", "a"), turn("planning", "a"), turn("planning", "b", False), turn(None, "c")]
    assert earned(turns, True) == [True, True, True, False] and earned(turns, False) == [False] * 4


def test_exploring_pays_for_what_is_new() -> None:
    turns = [
        turn("monitor", "a"),
        turn("explore", "A "),  # read alike
        turn(None, "b"),
        turn("explore", "b"),  # the earlier one did not keep the form
        turn("explore", "b"),
        turn("explore", "c", False),  # new, if not to be had
        turn("explore", "c"),
    ]
    assert earned(turns, False) == [False, False, False, True, False, True, False]


def test_reflecting_pays_after_a_failure() -> None:
    turns = [
        turn("reflection", "a"),  # the first counts as after a failure
        turn("reflection", "b"),
        turn("monitor", "c", False),
        turn("reflection", "c", False),  # the same again
        turn("reflection", "d", False),
        turn(None, "e"),
        turn("reflection", "e"),  # the same again
        turn(None, "e"),
        turn("reflection", "f"),
    ]
    assert earned(turns, False) == [True, False, False, False, True, False, False, False, True]


def test_rewards_stand_on_the_turns_last_own_token() -> None:
    rows = [[("planning", "a"), ("explore", "b"), ("explore", "b"), (None, "c")], [(None, "x", False)]]
    batch = batch_of(rows, [True, False])
    found = MetaReasoning("verdict", 3.0, 2.0, 1.0)(batch)
    assert found.values.tolist() == [1, 0] and bool(found.valid.all())  # type: ignore[union-attr]
    assert found.tokens[0].tolist() == [0, 3, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0] and not bool(found.tokens[1].any())  # type: ignore[index]
    terms = {k: v.tolist() for k, v in found.terms.items()}
    assert terms == {
        "outcome": [1, 0],
        "planning": [3, 0],
        "explore": [1, 0],
        "reflection": [0, 0],
        "repeated": [0.25, 0],
    }
    lost = MetaReasoning()(batch_of([[("planning", "a"), ("explore", "b")]], [False]))
    assert lost.tokens.tolist() == [[0, 0, 0, 0, 1, 0]]  # type: ignore[union-attr]
    text = "<planning>so</planning><action>a</action>"
    long = Episode(*(np.zeros(n, dtype=np.int64) for n in (0, 4)), np.ones(4, bool), None, "", "eos")
    long = replace(long, turns=(Turn(0, 0, 4, tag="planning", text=text),))
    one = Batch.from_groups([Group(Ask(Task("t", ""), 1), (long,), (Verdict.right(),))])
    assert MetaReasoning()(one).tokens.tolist() == [[0, 0, 0, 1]]  # type: ignore[union-attr]
    assert repeated([turn("monitor", "a"), turn("monitor", "a", False)]) == 0
    assert repeated([]) == 0 == repeated([Turn(0, 0, 1)]) and repeated([turn("monitor", "a")] * 4) == 0.75


def test_a_turn_has_one_tagged_thought_and_one_action() -> None:
    """What the authors' projection of actions calls a valid format."""
    rollout = TaggedTurns("corridor", Sampling(5))
    act = "<action>left</action>"
    said = {
        f"<planning>x</planning>{act}": "planning",
        f"so <Monitor>\nx</MONITOR> {act} then": "monitor",
        "<reflection>x</reflection>\n<action>\n</action>": "reflection",
        f"<explore>x<b></explore>{act}": "explore",
        f"<explore> <b></explore>{act}": None,  # nothing thought
        f"<explore></explore>{act}": None,
        f"<explore>x{act}": None,
        f"{act}<explore>x</explore>": None,  # a thought after it
        f"<explore>x</explore><monitor>x</monitor>{act}": None,
        f"<explore>x</explore><explore>x</explore>{act}": None,
        f"<explore>x</explore>{act}{act}": None,
        "<explore>x</explore>": None,
        act: None,
    }
    for text, tag in said.items():
        assert rollout._kind(Turn(0, 0, 1, text=text, tag="left")) == tag, text
    assert formed(f"<why?>x</why?>{act}", ["why?"]) == "why?" and formed(f"<wh>x</wh>{act}", ["why?"]) is None
    called = (ToolCall("act", {"action": "left"}, 0, 1),)
    assert rollout._kind(Turn(0, 0, 1, calls=called, text="<explore>x</explore>")) == "explore"
    assert rollout._kind(Turn(0, 0, 1, calls=called, text="so")) is None


# The cold start


def engine(context: int = 4000) -> HFEngine:
    config = NanoConfig(hidden=16, layers=1, heads=2, context=context)
    tokenizer = nano_tokenizer(config)
    return HFEngine(CausalLM(nano_model(config, len(tokenizer), 0), tokenizer))


def test_the_scripted_teacher() -> None:
    words = frozenset({"go"})
    assert tag_of([], "go to hall", words) == "planning"
    assert tag_of([turn("planning", "x", False)], "go to hall", words) == "reflection"
    assert tag_of([turn("planning", "x")], "go to hall", words) == "explore"
    assert tag_of([turn("planning", "x")], "gone", words) == tag_of([turn("planning", "x")], "take", words) == "monitor"


@pytest.mark.parametrize("slips", [0.0, 0.5])
def test_a_cold_start_shows_tagged_plans(slips: float) -> None:
    """Each turn has its tag and an action of the plan; what fails is shown, and is not learned."""
    by, seen = engine(), set()
    world = {"name": "household", "rooms": 1, "things": 3, "listed": False}
    rollout = TaggedTurns(world, Sampling(5), slips=slips, explores=["open"])
    tasks = Household(rooms=1, things=3, listed=False).tasks()
    for i in range(9):
        made = rollout.demonstrate(tasks[i], by)
        assert made.stop == "eos" and made.turns[-1].terminated and made.turns[0].tag == "planning"
        for before, turn in zip((None, *made.turns), made.turns, strict=False):
            assert turn.text.startswith(f"<{turn.tag}>") and turn.text.endswith("</action>")
            assert by.decode(made.tokens[turn.start : turn.end]) == turn.text
            assert (turn.tag == "reflection") is (before is not None and not before.valid)
            assert bool(made.mask[turn.start : turn.end].all()) is turn.valid is bool(made.mask[turn.start])
            seen.add((turn.tag, turn.valid))
        good = [t.text.partition("<action>")[2] for t in made.turns if t.valid]
        assert [g.removesuffix("</action>") for g in good] == plan_of(tasks[i])
    assert {tag for tag, _ in seen} == set(META) - (set() if slips else {"reflection"})
    assert {valid for _, valid in seen} == ({True, False} if slips else {True})


def plan_of(task: Task) -> list[str]:
    world = Household(rooms=1, things=3, listed=False)
    world.reset(task, 0)
    return [action.text for action in world.gold()]


def test_failures_that_leave_no_turns_are_not_shown() -> None:
    """A plan of two actions in two moves has no room for a failure."""
    rollout = TaggedTurns({"name": "corridor", "rooms": 3, "moves": 2}, Sampling(5), slips=1.0)
    made = rollout.demonstrate(Corridor(rooms=3, moves=2).tasks()[0], engine())
    assert [t.valid for t in made.turns] == [True, True] and made.turns[-1].terminated
    assert [t.tag for t in made.turns] == ["planning", "monitor"]


def test_options() -> None:
    method = rlvmr("household", turns=7, kl_weight=0.5)
    assert method.rollout == {"name": "tagged_turns", "environment": "household", "tags": META, "turns": 7}
    assert method.credit == Tagged(0.5, "mix", "trajectory", 0.1, True, "keep_raw")
    assert method.reward.worth == {"planning": 1, "explore": 1, "reflection": 1} and method.objective.kl_weight == 0.5
    summed = rlvmr(alpha=1.0, form="sum", planning=2.0, explore=3.0, reflection=4.0, statistics="turn", scaled=False)
    assert summed.rollout == "single_turn" and summed.credit.statistics == "turn" and not summed.credit.scaled
    assert summed.reward.worth == {"planning": 2, "explore": 3, "reflection": 4} and rlvmr().objective.kl_weight == 0.01
    assert make_method("S006", options={"alpha": 0.25}).credit.alpha == 0.25
    assert rlvmr(environment="x").rollout["turns"] == 30 and rlvmr(penalty=0.3, singleton="zero").credit.penalty == 0.3
    assert Tagged(2.0, "sum").alpha == 2 and Tagged().group_relative
    assert Tagged() == Tagged(0.5, "mix", "trajectory", 0.1, True, "keep_raw", ddof=1, epsilon=1e-6)
    assert MetaReasoning().worth == {"planning": 1, "explore": 1, "reflection": 1}
    assert MetaReasoning(planning=0.0, explore=0.5).worth == {"planning": 0, "explore": 0.5, "reflection": 1}
    made, plain = TaggedTurns("corridor", Sampling(5)), MultiTurn("corridor", Sampling(5))
    assert (made.turns, made.tokens, made.attempts) == (plain.turns, plain.tokens, plain.attempts) == (8, None, 2)
    assert (made.worlds.workers, made.worlds.seconds) == (plain.worlds.workers, plain.worlds.seconds) == (0, 60.0)
    assert made.slips == 0 and made.explores == {"go", "open", "look", "search"}
    for bad in ({"alpha": 1.5}, {"alpha": -0.1}, {"penalty": -1.0}):
        with pytest.raises(UsageError, match="credit 'tagged'"):
            Tagged(**bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="meta_reasoning"):
        MetaReasoning(explore=-1.0)
    for wrong in ({"tags": []}, {"tags": "plan"}, {"slips": 1.5}, {"slips": -0.5}):
        with pytest.raises(UsageError, match="tagged_turns"):
            TaggedTurns("corridor", Sampling(5), **wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_it_trains(tmp_path: Path) -> None:
    """After a cold start on tagged plans, turns of one's own have tags, and rewards and gradients come of them."""
    environment = {"name": "corridor", "rooms": 3, "moves": 4}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 700}},
        tasks={"source": {"name": "environment", "environment": environment}, "eval_share": 0.5, "eval_size": 1},
        warmup={"steps": 90, "batch": 4, "lr": 1e-2},
        method={
            "name": "S006",
            "reward": "meta_reasoning",
            "rollout": {"name": "tagged_turns", "environment": environment, "turns": 4, "slips": 0.3},
        },
        rollout={"prompts": 2, "group": 6, "max_tokens": 60, "temperature": 0.4},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert all(m["kl/behaviour"] < 1e-6 and np.isfinite(m["loss"]) for m in rows)
    assert any(m["environment/invalid"] < 1 for m in rows) and any(m["grad_norm"] > 0 for m in rows)
    assert {"reward/planning", "reward/explore", "reward/reflection", "reward/repeated"} <= set(rows[0])


@pytest.mark.slow
def test_the_setting_tells_how_often_actions_are_repeated() -> None:
    """Of four turns with two different words half are fresh."""
    claim = claim_of("S006")
    setting = Setting(**{**claim.options, "steps": 1, "lr": 1e-9})
    engine, _ = setting.player(0)
    fresh, paths = setting.fresh(engine), engine.policy.tree.paths
    leaf = next(i for i, p in enumerate(paths) if [*p[2::2]] == [0, 1, 0, 1])
    assert fresh[leaf] == 0.5 and fresh[next(i for i, p in enumerate(paths) if len(p) == 3)] == 1
    found = setting.run(claim.arms["rlvmr"], 0, Path())
    assert 0.5 < found["fresh"] < 1 and found["rollouts"] == 16
