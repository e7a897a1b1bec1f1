"""EARL: thresholds by hand-computed numbers, what the gate stops and what it does not, rewards of real circuits."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.errors import UsageError
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.papers.objectives.s105_earl import EntropyGate, StagedReward, row_quantile
from assay.types import Ask, Episode, Group, Task, Verdict

ENTROPY = [0.1, 2, 0.3, 1.5, 0.05, 0.2, 0.9, 0, 0.4, 0.6]


def threshold(values, q):
    x = torch.tensor([values], dtype=torch.float64)
    return row_quantile(x, torch.ones_like(x, dtype=torch.bool), q).item()


def test_the_worked_example(make_batch):
    assert threshold(ENTROPY, 0.8) == pytest.approx(1.02)
    batch = make_batch([10])
    batch.signals["entropy"] = torch.tensor([ENTROPY], dtype=torch.float64)
    assert EntropyGate().gate(batch)[0].nonzero()[:, 0].tolist() == [1, 3]


@given(st.lists(st.floats(0, 10), min_size=1, max_size=20), st.floats(0, 0.99))
def test_the_quantile_is_numpys(values, q):
    assert threshold(values, q) == pytest.approx(float(np.quantile(values, q)), abs=1e-7)


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
