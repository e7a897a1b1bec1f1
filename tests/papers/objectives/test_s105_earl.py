"""EARL: thresholds by hand-computed numbers, what the gate stops and what it does not, rewards of real circuits."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import catalogue
from assay.batch import Batch
from assay.errors import UsageError
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.papers.objectives.s105_earl import EntropyGate, StagedReward, row_quantile
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import NOTE, Ask, Episode, Group, Task, Verdict

ENTROPY = [0.1, 2, 0.3, 1.5, 0.05, 0.2, 0.9, 0, 0.4, 0.6]


def threshold(values, q):
    x = torch.tensor([values], dtype=torch.float64)
    return row_quantile(x, torch.ones_like(x, dtype=torch.bool), q).item()


def test_the_worked_example(make_batch):
    assert threshold(ENTROPY, 0.8) == pytest.approx(1.02)
    batch = make_batch([10])
    batch.signals["entropy"] = torch.tensor([ENTROPY], dtype=torch.float64)
    assert EntropyGate().gate(batch)[0].nonzero()[:, 0].tolist() == [1, 3]


@given(st.integers(1, 40), st.sampled_from([0.1, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9]))
def test_a_threshold_that_is_a_token_keeps_it(n, q):
    values = torch.arange(n, dtype=torch.float32)[None] / 7
    kept = (values >= row_quantile(values, torch.ones_like(values, dtype=torch.bool), q)).sum().item()
    # Exact arithmetic: ranks ceil(q (n - 1)) and above are kept.
    tenths = round(10 * q)
    assert kept == n - -(-tenths * (n - 1) // 10)


def ratios(make_batch, lengths, entropy, **reference):
    batch = make_batch(lengths, advantages=torch.ones(len(lengths), max(lengths), dtype=torch.float64))
    generator = torch.Generator().manual_seed(0)
    batch.signals["entropy"] = torch.tensor(entropy, dtype=torch.float64)
    batch.signals["reference_logprobs"] = torch.randn(batch.mask.shape, generator=generator, dtype=torch.float64)
    logprobs = 0.3 * torch.randn(batch.mask.shape, generator=generator, dtype=torch.float64)
    return batch, logprobs.requires_grad_()


def slope(objective, batch, logprobs):
    return torch.autograd.grad(objective(logprobs, batch).value, logprobs)[0]


def test_a_quantile_of_zero_is_the_base_objective_bit_for_bit(make_batch):
    batch, logprobs = ratios(make_batch, [10, 3], [ENTROPY, [0.5, 0.1, 0.7] + [9.0] * 7])
    for kl in (0.0, 0.1):
        ours, base = EntropyGate(quantile=0, kl_weight=kl), ClippedSurrogate(kl_weight=kl)
        assert torch.equal(slope(ours, batch, logprobs), slope(base, batch, logprobs))
        assert ours(logprobs, batch).value.item() == base(logprobs, batch).value.item()


def test_equal_entropies_keep_every_token(make_batch):
    batch, _ = ratios(make_batch, [10], [[0.1 + 0.2] * 10])
    assert EntropyGate(quantile=0.9).gate(batch).all()


def test_the_gate_stops_the_policy_gradient_and_not_the_divergence(make_batch):
    batch, logprobs = ratios(make_batch, [10], [ENTROPY])
    closed = ~EntropyGate().gate(batch)
    assert not slope(EntropyGate(), batch, logprobs)[closed].any()
    base = slope(ClippedSurrogate(), batch, logprobs)
    assert torch.equal(slope(EntropyGate(), batch, logprobs)[~closed], base[~closed]) and base[~closed].any()
    batch.advantages.zero_()
    pure = slope(ClippedSurrogate(kl_weight=0.1), batch, logprobs)
    batch.advantages += 1
    both = slope(EntropyGate(kl_weight=0.1), batch, logprobs)
    assert torch.equal(both[closed], pure[closed]) and pure[closed].all()


def test_every_response_keeps_the_same_share_however_sure_it_is(make_batch):
    batch, _ = ratios(make_batch, [10, 10], [ENTROPY, [x / 100 for x in ENTROPY]])
    assert EntropyGate().gate(batch).sum(-1).tolist() == [2, 2]


def test_padding_and_masked_tokens_are_left_out_of_the_quantile(make_batch):
    batch, _ = ratios(make_batch, [10, 4], [ENTROPY, [0.4, 0.3, 0.2, 0.1] + [0.0] * 6])
    batch.mask[1, 0] = False
    # Of 0.3, 0.2, 0.1: the threshold is 0.26; over the padding it would be 0.
    assert EntropyGate().gate(batch)[1].nonzero()[:, 0].tolist() == [1]


def test_the_denominator_of_gated_tokens_is_the_mini_batchs(make_batch):
    batch, logprobs = ratios(make_batch, [10, 10], [ENTROPY, ENTROPY[::-1]])
    batch.totals = batch.count()
    gated, plain = EntropyGate(denominator="gated"), EntropyGate()
    gated.prepare(batch)
    whole = gated(logprobs, batch).value.item()
    assert whole == pytest.approx(plain(logprobs, batch).value.item() * 20 / 4)
    rows = [torch.tensor([0]), torch.tensor([1])]
    assert sum(gated(logprobs[r], batch.rows(r)).value.item() for r in rows) == pytest.approx(whole)


def rewarded(*verdicts: Verdict, **options):
    zeros = np.zeros(1, dtype=np.int64)
    episode = Episode(zeros, zeros, zeros == 0, np.zeros(1, dtype=np.float32), "", "eos")
    group = Group(Ask(Task("t", ""), len(verdicts)), (episode,) * len(verdicts), verdicts)
    return StagedReward(**options)(Batch.from_groups([group], torch.float64))


def test_rewards_by_stage():
    stages = {"compiles": 1.0, "interface": 1.0}
    tests = {"test 0": 1.0, "test 1": 0.0, "test 2": 1.0, "test 3": None}
    verdicts = [
        Verdict(0.0, False, {"compiles": 0.0, "interface": 0.0}),
        Verdict(0.0, False, {"compiles": 1.0, "interface": 0.0}),
        Verdict(0.5, False, {**stages, **tests}),
        Verdict(1.0, True, {**stages, "test 0": 1.0}),
        Verdict(0.0, None, {**stages, "equivalent": None}),
        Verdict(0.4, False, {}),
        # A functional score without a compiled circuit counts for nothing.
        Verdict(0.0, False, {"compiles": 0.0, "interface": 0.0, "test 0": 1.0}),
    ]
    reward = rewarded(*verdicts)
    assert reward.valid.tolist() == [True] * 4 + [False] + [True] * 2
    got = reward.values.tolist()
    assert [got[i] for i in (0, 1, 2, 3, 5, 6)] == pytest.approx([0, 0.2, 0.3 + 0.7 * 2 / 3, 1.0, 0.4, 0.0])
    assert rewarded(*verdicts, functional="all").values[2].item() == pytest.approx(0.3)


CIRCUITS = {
    "right": ("module mux(input a, input b, input s, output y); assign y = (a & ~s) | (b & s); endmodule", 1.0),
    "some vectors": ("module mux(input a, input b, input s, output y); assign y = a; endmodule", 0.3 + 0.7 * 0.5),
    "other port": ("module mux(input a, input b, input t, output y); assign y = t ? b : a; endmodule", 0.2),
    "no circuit": ("module mux(input a, output y); assign y = ; endmodule", 0.0),
}


@pytest.mark.skipif(not (shutil.which("yosys") and shutil.which("iverilog")), reason="needs yosys and iverilog")
def test_rewards_of_circuits_judged_by_the_verilog_verifier():
    from assay.verify.formal.verilog import Verilog

    vectors = [
        {"inputs": {"a": a, "b": b, "s": s}, "outputs": {"y": b if s else a}}
        for a, b, s in ((0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0))
    ]
    ports = {"a": ["input", 1], "b": ["input", 1], "s": ["input", 1], "y": ["output", 1]}
    task = Task("mux", "", {"module": "mux", "ports": ports, "vectors": vectors}, kind="verilog")
    verdicts = [Verilog()(task, f"```verilog\n{source}\n```") for source, _ in CIRCUITS.values()]
    assert [v.passed for v in verdicts] == [True, False, False, False]
    assert rewarded(*verdicts).values.tolist() == pytest.approx([want for _, want in CIRCUITS.values()])


STAGES = {"compiles": 1.0, "interface": 1.0}


def test_stages_tell_wrong_circuits_apart_where_the_verdict_does_not():
    """Rewards 0, 0.2, 0.3 and 0.65, mean 0.2875: the verdict alone is 0 for each, and no advantage."""
    verdicts = (
        Verdict(0.0, False, {"compiles": 0.0, "interface": 0.0}),
        Verdict(0.0, False, {"compiles": 1.0, "interface": 0.0, "test 0": 0.0}),
        Verdict(0.0, False, {**STAGES, "test 0": 0.0, "test 1": 0.0}),
        Verdict(0.0, False, {**STAGES, "test 0": 1.0, "test 1": 0.0}),
    )
    episodes = tuple(
        Episode(*[np.zeros(1, dtype=np.int64)] * 2, np.ones(1, dtype=bool), None, "", "eos") for _ in "1234"
    )
    group = Group(Ask(Task("t", ""), 4), episodes, verdicts)
    found = make_method("S105").value(Batch.from_groups([group], torch.float64)).advantages[:, 0]
    spread = np.std([0, 0.2, 0.3, 0.65], ddof=1)
    want = [(r - 0.2875) / spread for r in (0, 0.2, 0.3, 0.65)]
    assert found.tolist() == pytest.approx(want, abs=1e-3)
    assert not make_method("S105", reward="verdict").value(Batch.from_groups([group], torch.float64)).advantages.any()


@pytest.mark.parametrize(
    ("verdict", "stages"),
    [
        (Verdict(1.0, True, STAGES), (1, 1, 1)),
        (Verdict(0.0, False, STAGES), (1, 1, 0)),
        (Verdict(0.0, False, {"compiles": 1.0, "interface": None, "test 0": 0.5}), (1, 0, 0)),
        (Verdict(0.3, False, {"other": 1.0}), (0.3, 0.3, 0.3)),
        (Verdict(0.0, False, {**STAGES, f"seed {NOTE}": 1.0, "test 0": 0.0, "test 1": 1.0}), (1, 1, 0.5)),
    ],
)
def test_stages_of_a_verdict(verdict, stages):
    """Without tests the verdict decides; a part that could not be told, or is a note, is none."""
    terms = rewarded(verdict).terms
    assert [terms[k].item() for k in ("syntax", "interface", "function")] == pytest.approx(stages)
    plain = "compiles" not in verdict.parts
    assert StagedReward().plain(Task("t", ""), verdict) == plain and "verilog" in StagedReward().reads_more
    if verdict.passed is False and not plain:
        assert rewarded(verdict, functional="all").terms["function"].item() == 0


def test_what_is_logged_and_what_an_unprepared_batch_is_divided_by(make_batch):
    batch, logprobs = ratios(make_batch, [10, 5], [ENTROPY, ENTROPY])
    assert EntropyGate()(logprobs, batch).metrics["gate/tokens"] == pytest.approx(3 / 15)
    gated = EntropyGate(denominator="gated")
    alone = gated(logprobs, batch).value.item()
    gated.prepare(batch)
    assert alone == pytest.approx(gated(logprobs, batch).value.item())
    batch.weights = torch.tensor([1.0, 0.0]).double()
    assert EntropyGate().gate(batch).sum(-1).tolist() == [2, 0]
    gated.prepare(batch)
    assert batch.signals["gated_tokens"].tolist() == [2, 2]
    batch.mask[:] = False
    gated.prepare(batch)
    assert gated(logprobs, batch).value.item() == 0


def test_empty_rows():
    none = torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool)
    assert row_quantile(*none, 0.5).tolist() == [[np.inf]] * 2
    assert row_quantile(torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool), 0.5).tolist() == [[np.inf]] * 2


def test_defaults():
    """The least of 0.8; stages of 0.2, 0.1 and 0.7; a divergence of 0.001."""
    method = catalogue.make("S105")
    for objective in (method.objective, EntropyGate(kl_weight=1e-3)):
        assert (objective.quantile, objective.kl_weight, objective.denominator) == (0.8, 1e-3, "all")
    for reward in (method.reward, StagedReward()):
        assert (reward.syntax, reward.interface, reward.function, reward.functional) == (0.2, 0.1, 0.7, "share")
    assert StagedReward(0.0, 0.0, 1.0).function == 1
    for bad in ((-0.1, 0.4, 0.7), (0.3, 0.3, 0.3), (0.5, 0.4, 0.2)):
        with pytest.raises(UsageError, match="sum 1"):
            StagedReward(*bad)


def test_options():
    method = make_method("S105")
    assert {"entropy", "reference_logprobs"} <= method.needs
    assert not method.objective.zero_advantage_is_idle
    assert "reference_logprobs" not in make_method("S105", objective={"kl_weight": 0.0}).needs
    for bad in ({"quantile": 1.0}, {"quantile": -0.1}):
        with pytest.raises(UsageError, match="quantile"):
            make_method("S105", objective=bad)
    with pytest.raises(UsageError, match="sum 1"):
        make_method("S105", reward={"syntax": 0.5})


@given(st.lists(st.floats(0, 10), min_size=1, max_size=20), st.floats(0, 0.99))
def test_the_quantile_is_numpys(values, q):
    assert threshold(values, q) == pytest.approx(float(np.quantile(values, q)), abs=1e-7)


def test_in_training_only_uncertain_decisions_are_learned():
    """A first token of chance 0.999, then a fair one of two; of two tokens the less sure one is kept, and is enough."""
    found = {}
    for quantile in (0.0, 0.8):
        policy = TabularPolicy(Tree.of([[1.0, 0.0], [0.0, 0.0]]))
        with torch.no_grad():
            policy.logits[0, 0] = 7.0
        start, method = (
            policy.logits.detach().clone(),
            make_method("S105", objective={"quantile": quantile, "kl_weight": 0}),
        )
        for _ in range(10):
            episodes = tuple(policy.leaf_episodes(torch.tensor([0, 0, 1, 1, 2, 3])))
            verdicts = tuple(Verdict(r, r == 1) for r in (1.0, 1.0, 0.0, 0.0, 0.0, 0.0))
            batch = Batch.from_groups([Group(Ask(Task("t", ""), 6), episodes, verdicts)], torch.float64)
            output = policy.forward(batch, {"entropy"})
            batch.logprobs, batch.signals["entropy"] = output.logprobs.detach(), output.live["entropy"].detach()
            method.value(batch)
            (down,) = torch.autograd.grad(method.objective(output.logprobs, batch).value, policy.logits)
            with torch.no_grad():
                policy.logits -= 3 * down
        found[quantile] = torch.equal(policy.logits[0], start[0]), float(policy.log_policy()[1, 0].detach().exp())
    assert found[0.8][0] and not found[0.0][0]
    assert min(p for _, p in found.values()) > 0.8
