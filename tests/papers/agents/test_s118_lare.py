"""S118: losses by hand, a function that is written, checked and corrected, and rewards of turns that are found
again."""

from __future__ import annotations

import copy
import json
import string
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run, tables
from sandbox.support import why_not
from turned import by_turn, turned

from assay.catalogue import make
from assay.credit.turns.turn_group import TurnGroup
from assay.engines.base import Request
from assay.errors import RunError, UsageError
from assay.lab.settings.environment import Setting
from assay.lab.settings.latent_returns import Setting as Returns
from assay.ops.turns import turns_of
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.process.factors import FIXED, MOST, BadFunction, Layout, evaluate, read, write
from assay.rewards.process.latent_reward import LatentReward, by_step, decomposition, randomised
from assay.signals.base import Models
from assay.types import Episode, Verdict

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "available"),
]
WRITTEN = Path(__file__).parents[1] / "factors_of_turns.py"
R_HAT = torch.tensor([[0.5, -0.2, 0.3]])
ALL = torch.ones(1, 3, dtype=torch.bool)
PAID = torch.tensor([0.9])


def models(seed: int) -> Models:
    return Models(TabularPolicy(Tree.bandit(2, [1.0, 0.0])), rng=np.random.default_rng(seed))


def test_losses_by_hand() -> None:
    phi, w = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), torch.tensor([0.5, -0.2])
    assert torch.allclose(phi @ w, R_HAT[0]) and float(R_HAT.sum()) == pytest.approx(0.6)
    assert float(decomposition(R_HAT, ALL, PAID)) == pytest.approx(0.01), "0.09 by the sum"
    chosen = torch.tensor([[True, False, True]])
    assert float(randomised(R_HAT, chosen, ALL, PAID, unbiased=False)) == pytest.approx(0.01)
    assert float(randomised(R_HAT, chosen, ALL, PAID)) == pytest.approx(0.006667, abs=1e-6)
    assert float(randomised(R_HAT, ALL, ALL, PAID)) == pytest.approx(float(decomposition(R_HAT, ALL, PAID)))
    one = torch.tensor([[True, False, False]])
    assert float(randomised(R_HAT, one, ALL, PAID)) == pytest.approx((0.5 - 0.3) ** 2)
    # An episode of one step: what it was paid is that step's.
    assert float(decomposition(R_HAT[:, :1], ALL[:, :1], PAID)) == pytest.approx(0.16)
    assert float(randomised(R_HAT[:, :1], ALL[:, :1], ALL[:, :1], PAID)) == pytest.approx(0.16)


def test_the_correction_takes_the_bias_away() -> None:
    """The mean over every choice of K of five steps is the loss over all of them."""
    r = torch.tensor([[0.3, -1.0, 0.7, 0.2, 0.5]], dtype=torch.float64)
    every, paid = torch.ones(1, 5, dtype=torch.bool), torch.tensor([1.3], dtype=torch.float64)
    for k in (2, 3, 4):
        found = []
        for picked in combinations(range(5), k):
            chosen = torch.zeros(1, 5, dtype=torch.bool)
            chosen[0, list(picked)] = True
            found.append([float(randomised(r, chosen, every, paid, unbiased)) for unbiased in (True, False)])
        exact, biased = np.mean(found, axis=0)
        assert exact == pytest.approx(float(decomposition(r, every, paid))) and biased > exact


def test_steps_after_the_end_are_none() -> None:
    longer, mask = torch.tensor([[0.5, -0.2, 0.3, 9.0]]), torch.tensor([[True, True, True, False]])
    assert float(decomposition(longer, mask, PAID)) == pytest.approx(0.01)
    assert float(randomised(longer, mask, mask, PAID)) == pytest.approx(0.01)


def test_observations_are_what_is_known_of_turns() -> None:
    batch = turned(
        [[0.0, 0.0, 0.0]],
        state=[["a", "b", "b"]],
        next_state=[["b", "b", "a"]],
        tag=[["go", None, "look"]],
        valid=[[True, False, True]],
        info=[[{"gold": 2.0}, {}, {}]],
        terminated=[[False, False, True]],
    )
    table = turns_of(batch)
    layout = Layout.of(table.records)
    assert layout.names == (*FIXED, "tag_go", "tag_look", "noted_gold")
    assert layout.rows(table, batch).tolist() == [
        [0, 2, 1, 0, 1, 0, 0, 0, 1, 0, 2],
        [1, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0],
        [2, 2, 1, 0, 1, 1, 1, 0, 0, 1, 0],
    ]


OBSERVED = np.arange(6.0).reshape(3, 2)
FINE = "def evaluation_func(obs):\n    print('noise')\n    return [obs[:, :1], 2 * obs[:, 1:2]]\n"
FAILING = {
    "shape (3, 2), not (3, 1)": "def evaluation_func(obs): return [obs]",
    "division by zero": "def evaluation_func(obs): 1/0",
    "has to return a list": "def evaluation_func(obs): return obs[:, :1]",
    "not finite": "def evaluation_func(obs): return [obs[:, :1] * float('nan')]",
    "no array": "import os\nos._exit(0)",
    "SyntaxError": "def evaluation_func(obs) return",
    f"at most {MOST}": f"def evaluation_func(obs): return [obs[:, :1]] * {MOST + 1}",
}


def test_a_function_is_run_in_the_sandbox() -> None:
    assert evaluate(FINE, OBSERVED).tolist() == [[0, 2], [2, 6], [4, 10]]


@pytest.mark.parametrize("why", FAILING)
def test_what_is_no_function_of_factors(why: str) -> None:
    with pytest.raises(BadFunction) as error:
        evaluate(FAILING[why], OBSERVED)
    assert why in str(error.value)


class Writer:
    """An engine whose replies are a list, one for each response."""

    def __init__(self, *replies: str):
        self.replies, self.asked = list(replies), list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        return np.zeros(1, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def decode(self, tokens: Any) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        none = np.zeros(0, dtype=np.int64)
        return [
            [Episode(none, none, none.astype(bool), None, self.replies.pop(0), "eos") for _ in range(r.n)]
            for r in requests
        ]


def reply(source: Any) -> str:
    return "I think {so}. " + json.dumps({"Understand": "?", "Analyze": "?", "Functions": source})


def test_candidates_are_merged() -> None:
    engine = Writer(reply("A"), "none", reply(["B", "C"]), reply(FINE))
    assert write(engine, "Go.", Layout(), OBSERVED, n=3) == FINE
    first, merge = engine.asked
    assert first.n == 3 and first.sampling.temperature == 1.0 and merge.n == 1 and merge.sampling.temperature == 0.3
    assert (
        "Go." in str(first.prompt)
        and "own_tokens" in str(first.prompt)
        and f"(batch, {len(FIXED)})" in str(first.prompt)
    )
    assert "Merge" not in str(first.prompt) and str(merge.prompt).count("A\n\nB\n\nC") == 1


def test_what_fails_is_corrected() -> None:
    bad = FAILING["division by zero"]
    engine = Writer(reply("A"), reply(bad), "no JSON", reply(FINE))
    assert write(engine, "", Layout(), OBSERVED, n=1, tries=2) == FINE
    assert bad in str(engine.asked[2].prompt) and "division by zero" in str(engine.asked[2].prompt)
    assert "no JSON with Functions" in str(engine.asked[3].prompt)
    assert len({r.seed for r in engine.asked}) == 4


def test_a_function_that_never_runs_is_not_used() -> None:
    bad = reply(FAILING["division by zero"])
    with pytest.raises(RunError, match=r"in 3 tries; the last: .*division by zero"):
        write(Writer(reply("A"), bad, bad, bad), "", Layout(), OBSERVED, n=1, tries=2)
    assert read("no") == read('{"a": 1} {') == "" and read('{"a": 1} {"Functions": "x"}') == "x"


def started(**options: Any) -> LatentReward:
    part = LatentReward(**{"path": WRITTEN, "lr": 0.01, "batch": 16, **options})
    part.start(models(0))
    return part


BATCH = [[0.0, 0.0], [0.0], [0.0, 0.0, 0.0]]


def test_decoded_rewards_stand_on_turns() -> None:
    part, batch = started(updates=2), turned(BATCH, [1.0, 0.0, 1.0])
    first = part(batch)
    assert first.values.tolist() == [1, 0, 1] and first.tokens is None, "nothing is fitted yet"
    found = part.learn(batch, part.models)
    assert found["latent/factors"] == 3 and found["latent/loss"] > 0
    reward = part(batch)
    table, factors = part.factors(batch)
    assert part.decoder is not None and reward.tokens is not None
    worth = part.decoder(factors)[:, 0].detach()
    want = torch.zeros_like(batch.mask, dtype=torch.float64)
    for m, turn in enumerate(table.records):
        want[int(table.sample[m]), turn.end - 1] = worth[m].double()
    assert torch.allclose(reward.tokens, want) and not reward.tokens.requires_grad and not reward.values.any()
    assert torch.allclose(reward.terms["latent"], want.sum(-1))
    lost = turned(BATCH, [1.0, 0.0, 1.0])
    lost.verdicts[0] = Verdict.abstain("away")  # type: ignore[index]
    assert part(lost).valid.tolist() == [False, True, True]  # type: ignore[union-attr]
    before = len(part.kept)
    part.learn(lost, part.models)
    assert len(part.kept) == before + 2, "what was not judged was paid nothing that is known"


def linear(rows: Sequence[Sequence[float]], paid: float, **options: Any) -> LatentReward:
    """A part that keeps one trajectory, with f(phi) = 0.5 phi_1 - 0.2 phi_2, and stays as it is."""
    part = started(layers=1, lr=0.0, **options)
    part.kept.append((torch.tensor(rows), paid))
    part.make(2)
    assert part.decoder is not None
    part.decoder.load_state_dict({"0.weight": torch.tensor([[0.5, -0.2]]), "0.bias": torch.zeros(1)})
    return part


def test_fits_have_the_losses_by_hand() -> None:
    rows, rng = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], np.random.default_rng(0)
    assert linear(rows, 0.9, loss="sum", batch=3).fit(rng) == pytest.approx(0.01)
    assert linear(rows, 0.9, k=3, batch=3).fit(rng) == pytest.approx(0.01), "all steps are chosen"
    part = linear(rows, 0.9, k=2, batch=1)
    # Two of r = (.5, -.2, .3), of which each mean is to be .3: pairs have means .15, .4 and .05 and variances .245, .02
    # and .125 (divided by one), of which a sixth is taken off.
    pairs = {round(x, 5) for x in (0.0225 - 0.245 / 6, 0.01 - 0.02 / 6, 0.0625 - 0.125 / 6)}
    assert {round(part.fit(rng), 5) for _ in range(30)} == pairs
    # A shorter one beside it has steps of its own alone: r = .5 of 1.5 is 1 off.
    part.kept.append((torch.tensor(rows[:1]), 1.5))
    drawn = {round(part.fit(rng), 5) for _ in range(60)}
    part.size = 2
    both = {round(part.fit(rng), 4) for _ in range(100)}
    assert drawn == pairs | {1.0}
    assert both == {round((a + b) / 2, 4) for a in drawn for b in drawn}


def test_the_loss_of_a_batch_is_the_mean_of_its_fits() -> None:
    part, batch = started(layers=1, lr=0.0, updates=3, loss="sum"), turned([[0.0, 0.0]], [1.0])
    part.make(3)
    for parameter in part.decoder.parameters():  # type: ignore[union-attr]
        torch.nn.init.zeros_(parameter)
    assert part.learn(batch, part.models)["latent/loss"] == pytest.approx(0.25), "((0 - 1) / 2)^2, three times"


def test_what_is_not_judged_is_paid_nothing() -> None:
    alone, together = turned(BATCH, [1.0, 0.0, 1.0]), turned([[0.0] * 5, [0.0] * 3], [1.0, 0.6], info=TOGETHER)
    for batch in (alone, together):
        batch.verdicts[0] = Verdict.abstain("away")  # type: ignore[index]
    part = started()
    assert part(alone).values.tolist() == [0, 0, 1]
    assert part(together).terms["latent"].tolist() == [0, 0.6]


def test_the_decoder_is_as_large_as_told() -> None:
    part = started(layers=3, width=16)
    part.make(2)
    assert [tuple(p.shape) for p in part.decoder.parameters()] == [(16, 2), (16,), (16, 16), (16,), (1, 16), (1,)]  # type: ignore[union-attr]
    other = started()
    other.load_state_dict(started().state_dict())
    assert other.layout is None and other.decoder is None, "before the first batch there is nothing to keep"


@pytest.mark.parametrize("loss", ["sum", pytest.param("random", marks=pytest.mark.slow)])
def test_the_decoder_recovers_step_rewards(loss: str) -> None:
    rng = np.random.default_rng(0)
    part = started(loss=loss, k=3, updates=1, width=16)
    w = torch.tensor([0.5, -0.2])
    for _ in range(200):
        phi = torch.from_numpy(rng.standard_normal((int(rng.integers(2, 7)), 2))).float()
        part.kept.append((phi, float((phi @ w).sum())))
    part.make(2)
    for _ in range(700):
        part.fit(part.models.rng)
    phi = torch.from_numpy(rng.standard_normal((200, 2))).float()
    assert part.decoder is not None
    assert float((part.decoder(phi)[:, 0] - phi @ w).pow(2).mean().sqrt()) < 0.1


def test_fits_come_every_few_batches() -> None:
    part, batch = started(every=2, updates=1), turned(BATCH, [1.0, 0.0, 1.0])
    assert part.learn(batch, part.models) == {} and not part.fitted
    assert part.learn(batch, part.models) and part.fitted and len(part.kept) == 6


def test_the_function_is_written_once_and_kept() -> None:
    engine = Writer(reply("A"), reply(WRITTEN.read_text()))
    part = LatentReward(engine=engine, n=1, updates=1)
    part.start(models(0))
    for _ in range(3):
        part.learn(turned(BATCH, [1.0, 0.0, 1.0]), part.models)
    assert len(engine.asked) == 2 and part.source == WRITTEN.read_text()
    other = LatentReward(engine=Writer(), n=1, updates=1)
    other.start(models(1))
    other.load_state_dict(copy.deepcopy(part.state_dict()))
    batch = turned(BATCH, [1.0, 0.0, 1.0])
    assert torch.equal(part(batch).tokens, other(batch).tokens)  # type: ignore[arg-type]
    assert other.layout == part.layout and len(other.kept) == 9 and other.seen == 3


def test_what_does_not_fit_is_refused() -> None:
    for wrong in ({}, {"engine": Writer(), "path": WRITTEN}, {"path": WRITTEN, "k": 0}, {"path": WRITTEN, "tries": -1}):
        with pytest.raises(UsageError):
            LatentReward(**wrong)  # type: ignore[arg-type]
    assert LatentReward(path=WRITTEN, tries=0).tries == 0


def test_the_row_is_its_parts() -> None:
    method = make("S118", path=str(WRITTEN), k=4, loss="sum", updates=7)
    assert method.learners == [method.reward]
    assert (method.reward.k, method.reward.kind, method.reward.updates) == (4, "sum", 7)
    plain = make("S118", path=str(WRITTEN)).reward
    assert (plain.n, plain.tries, plain.kind, plain.k, plain.unbiased) == (5, 5, "random", 10, True)
    assert (plain.layers, plain.width, plain.lr, plain.size, plain.every) == (3, 64, 3e-4, 64, 1)
    assert (plain.updates, plain.kept.maxlen) == (100, 10_000)
    alone = LatentReward(path=WRITTEN)
    assert (alone.n, alone.k, alone.lr, alone.updates) == (plain.n, plain.k, plain.lr, plain.updates)


TOGETHER = [[{"agent": 0}, {"agent": 1}, {"agent": 0}, {"agent": 1}, {"agent": 0}], [{"agent": 2}, {}, {"agent": 2}]]


def test_rewards_of_agents_add_up() -> None:
    phi = torch.arange(10.0).reshape(5, 2)
    steps = by_step(phi, [4, 7, 4, 7, 4])
    assert steps.shape == (3, 2, 2) and steps[:, 0].tolist() == phi[0::2].tolist()
    assert steps[:2, 1].tolist() == phi[1::2].tolist() and bool(steps[2, 1].isnan().all())
    # By hand: of three steps the sums over two agents are .5 - .2, .3 + .1 and .2; all were paid 0.9.
    r = torch.tensor([[[0.5, -0.2], [0.3, 0.1], [0.2, 0.0]]]).sum(-1)
    assert float(decomposition(r, ALL, PAID)) == pytest.approx(0.0)
    two = torch.tensor([[True, True, False]])
    assert float(randomised(r, two, ALL, PAID)) == pytest.approx((0.35 - 0.3) ** 2 - 0.005 / 3 / 2, abs=1e-7)

    batch = turned([[0.0] * 5, [0.0] * 3], [1.0, 0.6], info=TOGETHER)
    part = started(updates=1, lr=0.1)
    paid = part(batch)
    # Before anything is fitted each agent has as much of what all were paid, on its own last turn.
    assert paid.tokens is not None and not paid.values.any()
    ends = [[turn.end - 1 for turn in e.turns] for e in batch.episodes]
    assert paid.tokens[0][ends[0]].tolist() == [0, 0, 0, 0.5, 0.5] and paid.tokens[1][ends[1]].tolist() == [0, 0.3, 0.3]
    part.learn(batch, part.models)
    assert [tuple(x.shape[:2]) for x, _ in part.kept] == [(3, 2), (2, 2)]
    # Of what a policy earned together it finds what each turn of each agent was worth.
    rng, w = np.random.default_rng(0), torch.tensor([0.5, -0.2])
    part = started(loss="random", k=2, updates=1, width=16)
    for _ in range(200):
        many, turns = int(rng.integers(1, 4)), int(rng.integers(3, 9))
        phi = torch.from_numpy(rng.standard_normal((turns, 2))).float()
        part.kept.append((by_step(phi, [m % many for m in range(turns)]), float((phi @ w).sum())))
    part.make(2)
    for _ in range(700):
        part.fit(part.models.rng)
    phi = torch.from_numpy(rng.standard_normal((200, 2))).float()
    assert part.decoder is not None
    assert float((part.decoder(phi)[:, 0] - phi @ w).pow(2).mean().sqrt()) < 0.1


def test_an_agent_has_the_returns_of_its_own_turns() -> None:
    batch = turned([[1.0, 2.0, 4.0, 8.0, 16.0], [1.0, 1.0, 1.0]], info=TOGETHER)
    table = turns_of(batch)
    assert table.returns(table.rewards, 0.5, apart=True).tolist() == [7, 6, 12, 8, 16, 1.5, 1, 1]
    assert table.returns(table.rewards, 0.5).tolist()[:5] == [5, 8, 12, 16, 16]
    credit = make("S118", path=str(WRITTEN)).credit
    assert credit == TurnGroup(apart=True)
    same = turned([[0.0, 4.0], [0.0, 0.0]], info=[[{"agent": 0}, {"agent": 1}]] * 2)
    assert by_turn(credit(same), same)[0][0] == 0 and by_turn(TurnGroup()(same), same)[0][0] > 0


def test_several_agents_train(tmp_path: Path) -> None:
    world = {"name": "spread", "agents": 2, "side": 2}
    played = {"name": "multi_turn", "environment": world, "turns": 4, "context": "rounds", "keep": 0}
    method = {"name": "S118", "options": {"path": str(WRITTEN), "updates": 2}, "reward": None, "rollout": played}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 400, "alphabet": string.printable}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_share": 0.2, "eval_size": 2},
        warmup={"steps": 0},
        method=method,
        rollout={"prompts": 2, "group": 2, "max_tokens": 3},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = [r for r in metrics(folder) if r["stage"] == "rl"]
    assert len(rows) == 2 and all(r["latent/factors"] >= 7 for r in rows)
    turns = [json.loads(row["turns"]) for step in tables(folder, "rollouts").values() for row in step]
    assert {tuple(turn["info"]["agent"] for turn in one) for one in turns} <= {(0, 1, 0, 1), (0, 1, 0), (0, 1), (0,)}


@pytest.mark.slow
def test_it_learns_in_the_corridor(tmp_path: Path) -> None:
    setting = Setting(environment={"name": "corridor", "rooms": 3}, tasks=(1,), turns=3, steps=40, prompts=2, lr=3.0)
    options = {"path": str(WRITTEN), "updates": 10, "lr": 0.01}
    found = setting.run({"name": "S118", "options": options}, 0, tmp_path)
    assert found["final"] > found["start"] + 0.1


@pytest.mark.slow
def test_factors_find_rewards_that_raw_numbers_do_not(tmp_path: Path) -> None:
    setting = Returns(updates=150)
    assert setting.run({"features": "factors"}, 0, tmp_path)["fit"] > -0.2
    assert setting.run({"features": "seen"}, 0, tmp_path)["fit"] < -0.3


def test_it_trains(tmp_path: Path) -> None:
    options = {"path": str(WRITTEN), "updates": 2}
    folder = run(
        tmp_path / "run",
        method={"name": "S118", "options": options, "reward": None},
        train={"steps": 3},
        evaluate={"every": 0},
    )
    rows = [r for r in metrics(folder) if r["stage"] == "rl"]
    assert len(rows) == 3 and all(r["latent/factors"] == 3 for r in rows)
