"""Plans: formulas against hand-worked numbers, what must grow or shrink with what, the search, the calibration."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.config import load_config
from assay.errors import UsageError
from assay.planning.ask import Ask, answer
from assay.planning.calibrate import calibrate, measure
from assay.planning.devices import DEVICES, Device, device_of
from assay.planning.efficiency import Efficiency, assumed, load, save
from assay.planning.generation import decoding, generate
from assay.planning.layout import Layout
from assay.planning.learning import micro_batches, sync, update
from assay.planning.lengths import Lengths
from assay.planning.memory import engine_memory, layer_bytes, peak, trainer_memory
from assay.planning.models import KNOWN, shapes_of
from assay.planning.plan import advice, layouts, make_plan, search
from assay.planning.quantity import quantity, readable
from assay.planning.shapes import Shapes, from_config
from assay.planning.workload import Workload, mean_prompt
from assay.policies.loading import LoraConfig

H100 = DEVICES["h100"]
LLAMA = from_config(KNOWN["meta-llama/Meta-Llama-3-8B"], "Llama-3-8B")
N = 8_030_261_248
WORK = Workload(prompts=64, group=8, prompt_tokens=200, lengths=Lengths(1000, 4000), token_budget=16_384)
MOE = from_config(KNOWN["Qwen/Qwen3-30B-A3B"], "moe")
FULL = Efficiency(1, 1, 1, 1, 1, 0, 0, 0, 0, 0)
"""Every peak reached, nothing beside."""
# A device of round numbers.
ROUND = Device("round", flops=1e12, memory=80e9, bandwidth=1e11, link=1e10, network=1e9, price=3.6)


def by_name(parts: list) -> dict[str, float]:
    return {q.name: q.value for q in parts}


# Quantities and lengths


def test_a_quantity_is_what_its_formula_says() -> None:
    q = quantity("x", "B", "a * max(b, 2) / ceil(c)", a=3, b=5, c=1.5)
    assert q.value == 7.5
    assert q.worked() == "a = 3, b = 5, c = 1.5"
    series = quantity("y", "s", "sum(steps * max(rows, 2))", steps=np.array([1.0, 2.0]), rows=np.array([1.0, 4.0]))
    assert series.value == 1 * 2 + 2 * 4
    with pytest.raises(NameError):
        quantity("z", "s", "a + open", a=1)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3 * 2**30, "B", "3 GiB"),
        (0.0021, "s", "2.1 ms"),
        (75.0, "s", "75 s"),
        (9000.0, "s", "2.5 h"),
        (2e15, "FLOP", "2 PFLOP"),
        (1234.5, "$", "$1,234.50"),
        (0.5, "", "0.5"),
    ],
)
def test_numbers_as_people_read_them(value: float, unit: str, text: str) -> None:
    assert readable(value, unit) == text


@given(st.integers(2, 40_000), st.floats(0.02, 1), st.floats(0.1, 1.5))
def test_lengths_have_the_mean_they_are_given(longest: int, share: float, spread: float) -> None:
    lengths = Lengths(max(1.0, share * longest), longest, spread)
    at, width = lengths.grid()
    survival = lengths.survival()
    assert survival.sum() * width == pytest.approx(lengths.mean, rel=1e-3)
    assert (np.diff(survival) <= 1e-12).all() and survival.min() >= 0 and survival.max() <= 1
    assert lengths.mean**2 * 0.99 <= lengths.square() <= longest * lengths.mean * 1.01
    assert lengths.mean * 0.999 <= lengths.longest_of(1) <= lengths.longest_of(64) <= longest * 1.001
    assert len(at) <= 512


def test_lengths_are_those_of_a_censored_log_normal() -> None:
    rng, lengths = np.random.default_rng(0), Lengths(700, 2000, 0.7)
    noise = rng.normal(size=200_000)
    # The log-mean whose draws have that mean, by halving.
    low, high = 5.0, 8.0
    for _ in range(30):
        mu = (low + high) / 2
        low, high = (mu, high) if np.minimum(np.exp(mu + 0.7 * noise), 2000).mean() < 700 else (low, mu)
    drawn = np.minimum(np.exp(mu + 0.7 * noise), 2000)
    assert lengths.square() == pytest.approx((drawn**2).mean(), rel=0.01)
    assert lengths.longest_of(16) == pytest.approx(drawn.reshape(-1, 16).max(1).mean(), rel=0.01)


# Memory


def test_memory_of_a_trainer_by_hand() -> None:
    """Sharded, weights are float32: 4 + 4 + 8 bytes per parameter, an eighth on each. Alone, 2 + 4 + 12."""
    found = by_name(trainer_memory(LLAMA, WORK, Layout(8, 1), H100))
    assert found["weights"] == found["gradients"] == N * 4 / 8
    assert found["optimiser"] == N * 8 / 8
    low = by_name(trainer_memory(LLAMA, replace(WORK, optimizer="adamw8bit"), Layout(8, 1), H100))
    assert low["optimiser"] == N * 2 / 8
    assert found["runtime"] == 0.08 * 80e9
    assert found["logits in blocks"] == 3 * 256 * 2**20
    # Embeddings and head, 2 x 128,256 x 4096, stay whole beside two layers; they are also the largest gradient.
    outside, layer = 2 * 128_256 * 4096, 4096 * 128 * (2 * 32 + 2 * 8) + 3 * 4096 * 14_336
    assert found["gathered"] == 2 * (outside + 2 * layer) + outside * (2 + 4)
    alone = by_name(trainer_memory(LLAMA, WORK, Layout(1, 1), H100))
    assert (alone["weights"], alone["gradients"], alone["optimiser"]) == (2 * N, 4 * N, 12 * N)
    assert "gathered" not in alone
    checkpointed = replace(WORK, checkpointing=True)
    kept = by_name(trainer_memory(LLAMA, checkpointed, Layout(8, 1), H100))["activations"]
    assert 16_384 * 2 * 32 * 4096 < kept < found["activations"] / 5


def test_adapters_and_a_reference_in_memory() -> None:
    lora = replace(WORK, lora=LoraConfig(rank=16), readers=("reference",))
    found = by_name(trainer_memory(LLAMA, lora, Layout(1, 1), H100))
    # r (in + out): 16 (2 x 8192 + 2 x 5120 + 3 x 18,432) in 32 layers.
    adapters = 16 * 32 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14_336))
    assert found["weights"] == 2 * N
    assert found["gradients"] == 4 * adapters
    assert found["optimiser"] == 12 * adapters
    # The reference is the model without its adapters, but for those that are a part of it.
    assert "reference" not in found
    pissa = replace(lora, lora=LoraConfig(rank=16, start="pissa"))
    assert by_name(trainer_memory(LLAMA, pissa, Layout(1, 1), H100))["reference"] == 2 * N
    assert by_name(trainer_memory(LLAMA, replace(lora, lora=None), Layout(2, 1), H100))["reference"] == 2 * N


def test_weights_in_four_bits_in_memory() -> None:
    work = replace(WORK, lora=LoraConfig(rank=16), quantised=True, engine="hf")
    linear = 32 * (4096 * 128 * (2 * 32 + 2 * 8) + 3 * 4096 * 14_336)
    found = by_name(trainer_memory(LLAMA, work, Layout(1, 1, colocated=True), H100))
    # 4.127 bits each; embedding, output and norms stay, and one matrix at a time is whole.
    assert found["weights"] == pytest.approx((N - linear) * 2 + linear * 0.5158691 + 2 * 4096 * 14_336)
    assert found["weights"] < 6e9 < 16e9 < by_name(trainer_memory(LLAMA, WORK, Layout(1, 1), H100))["weights"]
    larger = from_config(KNOWN["Qwen/Qwen2.5-32B"])
    small = replace(work, quantised=False, checkpointing=True, max_rows=16, token_budget=4096)
    alone = make_plan(larger, small, Layout(1, 1, colocated=True), H100, FULL)
    assert not alone.fits and "model.quantise=nf4" in advice(alone, [Layout(1, 1, colocated=True)])


def test_memory_of_an_engine_by_hand() -> None:
    hf = replace(WORK, engine="hf", max_rows=32)
    found = by_name(engine_memory(LLAMA, hf, Layout(1, 2), H100))
    assert found["weights"] == 2 * N
    # 32 rows as long as the longest, 131,072 bytes a token; a full block and the half as large again that replaces it.
    assert found["keys, values"] == pytest.approx(32 * 4200 * 131_072 * 5 / 3)
    halves = by_name(engine_memory(LLAMA, WORK, Layout(1, 1, tensor_parallel=2), H100))
    assert halves["weights"] == N
    # On the trainer's device hf decodes with its weights, unless it lags behind them; vLLM always has its own.
    alone = Layout(1, 1, colocated=True)
    assert "weights" not in by_name(engine_memory(LLAMA, hf, alone, H100))
    assert by_name(engine_memory(LLAMA, hf, replace(alone, staleness=1), H100))["weights"] == 2 * N
    assert by_name(engine_memory(LLAMA, WORK, alone, H100))["weights"] == 2 * N


def test_who_lags_behind_is_in_memory_beside_the_update() -> None:
    """In turn, a device holds the larger of what training and writing take beside what lasts; side by side, both."""
    work = replace(WORK, prompts=1, lora=LoraConfig(rank=16), checkpointing=True)
    turns = Layout(8, 8, colocated=True)
    train, write = (by_name(f(LLAMA, work, turns, H100)) for f in (trainer_memory, engine_memory))
    lasts = sum(train.pop(n) for n in ("runtime", "weights", "gradients", "optimiser")) + write.pop("weights")
    assert train.keys() == {"gathered", "activations", "logits in blocks"}
    both = [sum(train.values()), sum(write.values()) - write["runtime"]]
    assert peak(LLAMA, work, turns, H100)[0] == pytest.approx(lasts + max(both))
    assert peak(LLAMA, work, replace(turns, staleness=1), H100)[0] == pytest.approx(lasts + sum(both))


def test_a_paged_engine_takes_as_many_rows_as_fit() -> None:
    work = replace(WORK, prompts=4096, max_rows=10**6)
    found = engine_memory(LLAMA, work, Layout(1, 1), H100)
    assert sum(q.value for q in found) <= H100.memory
    assert sum(q.value for q in found) > 0.95 * H100.memory
    few = engine_memory(LLAMA, replace(WORK, prompts=1), Layout(1, 1), H100)
    assert next(q for q in few if q.name == "keys, values").inputs["rows"] == 8


@given(
    st.sampled_from([LLAMA, MOE]),
    st.integers(2, 500),
    st.integers(1, 500),
    st.booleans(),
    st.sampled_from([4, 2]),
    st.sampled_from(["hf", "vllm"]),
)
def test_more_devices_never_take_more_memory_each(
    shapes: Shapes, few: int, more: int, again: bool, size: int, engine: str
) -> None:
    work = replace(WORK, checkpointing=again, size=size, engine=engine)
    less, least = (peak(shapes, work, Layout(n, n), H100) for n in (few, few + more))
    assert least[0] <= less[0] and least[1] <= less[1]


# Time


def test_decoding_makes_every_token_once() -> None:
    for engine, rows in (("hf", 1024), ("hf", 100), ("vllm", 1024), ("vllm", 100)):
        for engines in (1, 3):
            work = replace(WORK, engine=engine, max_rows=rows)
            found = decoding(LLAMA, work, Layout(1, engines), H100)
            assert (found.steps * found.rows).sum() == pytest.approx(512 / engines * 1000, rel=0.01)
            assert found.rows.max() <= min(rows, 512 / engines) + 1e-6


def test_decoding_of_equal_lengths_by_hand() -> None:
    """One response of 100 tokens after 200: each step reads all weights, and the keys and values so far."""
    work = replace(WORK, prompts=1, group=1, lengths=Lengths(100, 100))
    prefill, decode, _ = generate(LLAMA, work, Layout(1, 1), ROUND, FULL)
    body = N - 2 * 128_256 * 4096 - 65 * 4096
    assert prefill.time.value == pytest.approx((2 * body * 200 + 4 * 32 * 4096 * 200**2 / 2) / 1e12)
    # Weights but the input embedding and norms; 131,072 bytes for each of on average 250 tokens; 10 passes over logits.
    each = 2 * (body + 128_256 * 4096) + 131_072 * 250 + 10 * 4 * 128_256
    assert decode.time.value == pytest.approx(100 * each / 1e11, rel=1e-6)
    assert decode.bound == "reading weights"


def test_many_rows_are_bound_by_computing() -> None:
    work = replace(WORK, prompts=4096, prompt_tokens=1, lengths=Lengths(10, 10), engine="hf", max_rows=10**6)
    _, decode, _ = generate(LLAMA, work, Layout(1, 1), ROUND, FULL)
    body_and_head = N - 128_256 * 4096 - 65 * 4096
    scores = 4 * 32 * 4096 * (1 + 5)
    assert decode.time.value == pytest.approx(32_768 * 10 * (2 * body_and_head + scores) / 1e12, rel=1e-6)
    assert decode.bound == "compute"
    slow = generate(LLAMA, replace(work, prompts=1), Layout(1, 1), ROUND, replace(FULL, launch=1.0))[1]
    assert slow.bound == "launches"
    assert slow.time.value == pytest.approx(10 * 32, rel=0.1)


def test_an_update_by_hand() -> None:
    """6 FLOPs per parameter and token, 8 of the head, 12 L d for each pair of tokens; a quarter of it on each of 4."""
    work = replace(WORK, prompts=1, group=1, prompt_tokens=100, lengths=Lengths(100, 100))
    body, head = N - 2 * 128_256 * 4096 - 65 * 4096, 128_256 * 4096
    flops = 6 * body * 200 + 8 * head * 100 + 3 * 4 * 32 * 4096 * 200**2 / 2
    passes, optimiser, _ = update(LLAMA, work, Layout(1, 1), ROUND, FULL)
    assert passes.time.value == pytest.approx(flops / 1e12)
    assert passes.bound == "compute"
    # Read: weight, gradient, 12 bytes of state; written: 12 bytes of state.
    assert optimiser.time.value == pytest.approx(N * (2 + 4 + 24) / 1e11)
    more = update(LLAMA, replace(work, checkpointing=True), Layout(1, 1), ROUND, FULL)[0]
    again = 2 * body * 200 + 4 * 32 * 4096 * 200**2 / 2
    assert more.time.value == pytest.approx((flops + again) / 1e12)
    adapted = update(LLAMA, replace(work, lora=LoraConfig()), Layout(1, 1), ROUND, FULL)[0]
    assert adapted.time.value == pytest.approx((flops - 2 * body * 200 - 2 * head * 100) / 1e12)


def test_what_layers_make_passes_through_memory_by_hand() -> None:
    """Twice what a layer keeps of a token, for each of 64 rows and 10 steps; six times for each packed token."""
    work = replace(WORK, prompts=64, group=1, prompt_tokens=1, lengths=Lengths(10, 10), size=4)
    moving = replace(FULL, touch=2.0, update_touch=6.0)
    each = 32 * layer_bytes(LLAMA, 4) / 1e11
    plain, more = (generate(LLAMA, work, Layout(1, 1), ROUND, e)[1].time.value for e in (FULL, moving))
    assert more - plain == pytest.approx(64 * 10 * 2 * each)
    plain, more = (update(LLAMA, work, Layout(1, 1), ROUND, e)[0].time.value for e in (FULL, moving))
    assert more - plain == pytest.approx(64 * 11 * 6 * each)


def test_what_is_gathered_by_hand() -> None:
    """A slow link: parameters twice in 2 bytes, gradients once in 4; each of 4 trainers lacks three quarters."""
    work = replace(WORK, prompts=1, group=1, prompt_tokens=100, lengths=Lengths(100, 100))
    slow = replace(ROUND, link=1e8)
    passes = update(LLAMA, work, Layout(4, 1), slow, FULL)[0]
    assert passes.bound == "interconnect"
    assert passes.time.value == pytest.approx(3 / 4 * N * (2 * 2 + 4) / 1e8)
    # Across machines the ports of a machine carry it together, where they are slower than its inner links.
    assert Layout(16, 1, per_node=8).trainer_link(ROUND) == 8 * 1e9
    assert Layout(8, 1, per_node=8).trainer_link(ROUND) == 1e10


def test_weights_on_their_way_by_hand() -> None:
    """One trainer gathers and sends them: five copies at 5e9 bytes/s in memory, then once to each other machine."""
    hf = replace(WORK, engine="hf")

    def seconds(layout: Layout, work: Workload = WORK) -> float:
        return sync(LLAMA, work, layout, ROUND, FULL).time.value

    # Eight trainers fill a machine; each lacks seven eighths, at 1e10 bytes/s. Four engines are on the next machine.
    gathered, copied, fetched = 7 / 8 * 2 * N / 1e10, 5 * 2 * N / 5e9, 2 * N / 1e9
    assert seconds(Layout(8, 4)) == pytest.approx(gathered + copied + fetched)
    assert seconds(Layout(8, 24)) == pytest.approx(gathered + copied + 3 * fetched)
    assert seconds(Layout(1, 4)) == pytest.approx(copied)
    # A server reads them from a file in memory, which is two copies more.
    assert seconds(Layout(8, 2, tensor_parallel=4)) == pytest.approx(gathered + 7 / 5 * copied + fetched)
    # On the trainers' own devices nothing leaves them.
    assert seconds(Layout(8, 8, colocated=True)) == pytest.approx(gathered)
    assert seconds(Layout(1, 1, colocated=True)) == pytest.approx(2 * 2 * N / ROUND.bandwidth)
    assert seconds(Layout(1, 1, colocated=True), hf) == 0
    assert sync(LLAMA, WORK, Layout(8, 4), ROUND, FULL).bound == "copies in memory"
    assert sync(LLAMA, WORK, Layout(8, 24), ROUND, FULL).bound == "network"


def test_weights_that_are_broadcast_by_hand() -> None:
    """NCCL hands them on from device to device while they come; gloo doubles who has them in each round."""
    work = replace(WORK, weights="broadcast")

    def time(layout: Layout, device: Device = ROUND) -> tuple[float, str]:
        phase = sync(LLAMA, work, layout, device, FULL)
        return phase.time.value, phase.bound

    size = 2 * N
    gathered, kept = 7 / 8 * size / 1e10, size / 5e9
    # However many machines there are: all of it once over the slowest hop, and one copy that rank 0 keeps.
    assert time(Layout(8, 8)) == (pytest.approx(gathered + kept + size / 1e9), "network")
    assert time(Layout(8, 24)) == (pytest.approx(gathered + kept + size / 1e9), "network")
    assert time(Layout(1, 4)) == (pytest.approx(kept + size / 1e10), "copies in memory")
    # To six servers of four devices gloo takes three rounds, 1 to 2 to 4 to 7, and each reads a file.
    served = time(Layout(8, 6, tensor_parallel=4))
    assert served == (pytest.approx(gathered + 5 * kept + 3 * size / 1e9), "network")
    assert time(Layout(1, 3), replace(ROUND, name="cpu")) == (
        pytest.approx(3 * kept + 2 * size / 1e10),
        "copies in memory",
    )
    # Engines on the trainers' own devices are sent nothing.
    assert time(Layout(8, 8, colocated=True)) == (pytest.approx(gathered), "interconnect")


def test_machines_that_weights_are_sent_to() -> None:
    """Trainers fill the first machines; engines are on those after them, or on the same if all fit into one."""
    assert Layout(4, 4).machines_to_reach == 0
    assert Layout(4, 12).machines_to_reach == 1
    assert Layout(32, 4, tensor_parallel=8).machines_to_reach == 4
    assert Layout(8, 24).machines_to_reach == 3


def test_packed_tokens_are_those_of_the_policys_micro_batches() -> None:
    from assay.batch import Batch
    from assay.policies.causal_lm import CausalLM
    from assay.policies.loading import ModelConfig
    from assay.types import Ask as Question
    from assay.types import Episode, Group, Task, Verdict

    policy = CausalLM.load(ModelConfig.model_validate({"nano": {"hidden": 16, "layers": 1, "heads": 2}}))

    def packed(prompt: int, length: int, group: int, budget: int) -> tuple[int, int]:
        groups = []
        for i in range(12):
            episode = Episode(
                prompt=np.full(prompt, 4 + i),
                tokens=np.full(length, 5),
                mask=np.ones(length, dtype=bool),
                logprobs=np.zeros(length, dtype=np.float32),
                text="",
                stop="eos",
            )
            groups.append(Group(Question(Task(str(i), "q"), group), (episode,) * group, (Verdict(1.0, True),) * group))
        batch = Batch.from_groups(groups)
        parts = policy.micro_batches(batch, budget)
        prompts = sum(len(set(batch.prompt_group[part].tolist())) for part in parts)
        return prompts * prompt + len(batch) * length, len(parts)

    for prompt, length, group, budget in ((10, 20, 4, 8192), (30, 40, 8, 200), (100, 10, 8, 500), (5, 60, 8, 130)):
        tokens, parts = packed(prompt, length, group, budget)
        work = Workload(12, group, prompt, Lengths(length, length), token_budget=budget)
        assert work.packed_tokens == pytest.approx(tokens, rel=0.2)
        assert micro_batches(work, Layout(1, 1)) == pytest.approx(parts, rel=0.35)


@given(
    st.sampled_from([LLAMA, MOE]),
    st.floats(0.05, 0.9),
    st.floats(0.01, 0.1),
    st.integers(1, 64),
    st.integers(1, 16),
    st.sampled_from(["hf", "vllm"]),
    st.integers(0, 2),
    st.booleans(),
)
def test_longer_responses_are_never_cheaper(
    shapes: Shapes, share: float, more: float, trainers: int, engines: int, engine: str, staleness: int, turns: bool
) -> None:
    layout = Layout(trainers, trainers if turns else engines, colocated=turns, staleness=staleness)
    work = replace(WORK, engine=engine)
    e = assumed("h100", engine)
    short, long = (
        make_plan(shapes, replace(work, lengths=Lengths(s * 4000, 4000)), layout, H100, e)
        for s in (share, share + more)
    )
    assert long.step.value >= short.step.value * (1 - 1e-3)
    assert {q.name: q.value for q in long.totals}["cost per step"] >= 0


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 3))
def test_more_engines_and_older_weights_are_never_slower(few: int, more: int, staleness: int) -> None:
    e = assumed("h100", "vllm")
    first = make_plan(LLAMA, WORK, Layout(8, few, staleness=staleness), H100, e)
    second = make_plan(LLAMA, WORK, Layout(8, few + more, staleness=staleness), H100, e)
    older = make_plan(LLAMA, WORK, Layout(8, few, staleness=staleness + 1), H100, e)
    assert second.seconds["generate"] <= first.seconds["generate"] * (1 + 1e-9)
    assert older.step.value <= first.step.value * (1 + 1e-9)
    parts = first.seconds
    if staleness == 0:
        assert first.step.value == pytest.approx(sum(parts.values()))
    # No device can be busy for longer than a step takes.
    assert first.step.value >= max(parts["generate"], parts["update"] + parts["signals"], parts["verify"])


# The search


def test_the_search_takes_the_quickest_that_fits() -> None:
    e = assumed("h100", "vllm")
    work = replace(WORK, checkpointing=True)
    candidates = list(layouts(16, work, LLAMA, staleness=1))
    assert all(c.devices == 16 for c in candidates)
    assert {c.tensor_parallel for c in candidates} == {1, 2, 4, 8}
    found = search(LLAMA, work, H100, e, candidates)
    fitting = [p.step.value for p in found if p.fits]
    assert found[0].fits and found[0].step.value == min(fitting)
    assert not any(p.fits for p in found[len(fitting) :])
    with pytest.raises(UsageError, match="attention heads"):
        search(LLAMA, work, H100, e, list(layouts(6, work, LLAMA, tensor_parallel=3)))
    with pytest.raises(UsageError, match="of one machine"):
        search(LLAMA, work, H100, e, list(layouts(64, work, LLAMA, tensor_parallel=16)))


@pytest.mark.parametrize("staleness", [0, 1])
@pytest.mark.parametrize("engine", ["hf", "vllm"])
def test_only_divisions_that_can_be_started(engine: str, staleness: int) -> None:
    """Engines of several devices are servers beside the trainers; the engine hf lags behind one trainer alone."""
    found = list(layouts(16, replace(WORK, engine=engine), LLAMA, staleness=staleness))
    assert all(c.tensor_parallel == 1 for c in found if c.colocated or engine == "hf")
    assert any(c.colocated for c in found) is not (engine == "hf" and staleness == 1)


def test_many_devices_are_divided_by_machines() -> None:
    found = [c for c in layouts(64, WORK, LLAMA) if not c.colocated]
    assert {c.trainers % 8 for c in found} == {0}
    assert all(c.devices == 1000 for c in layouts(1000, WORK, LLAMA))


def test_advice_makes_it_fit() -> None:
    work = replace(WORK, engine="hf", max_rows=64)
    candidates = [Layout(1, 1, colocated=True)]
    plan = make_plan(LLAMA, work, candidates[0], H100, FULL)
    assert not plan.fits
    # 18 bytes for each of 8 billion parameters are too many for one device, whatever is done to activations.
    said = advice(plan, candidates)
    assert said == ["model.lora.rank=16"] or all("lora" in s or "8bit" in s for s in said)
    eight = from_config(KNOWN["Qwen/Qwen2.5-1.5B"])
    tight = replace(work, token_budget=65_536, lengths=Lengths(500, 1000))
    plan = make_plan(eight, tight, candidates[0], H100, FULL)
    assert not plan.fits
    assert "model.gradient_checkpointing=true" in advice(plan, candidates)
    assert max(peak(eight, replace(tight, checkpointing=True), candidates[0], H100)) <= H100.memory


def test_a_recipe_becomes_a_plan() -> None:
    recipe = {
        "model": {"source": "Qwen/Qwen2.5-7B", "dtype": "bfloat16", "gradient_checkpointing": True},
        "rollout": {"prompts": 32, "group": 4, "max_tokens": 2048},
        "overlap": {"staleness": 1},
    }
    found = answer(load_config(recipe), Ask(gpus=8, prompt_tokens=100))
    assert found.plan.fits and found.plan.layout.devices == 8
    assert found.plan.work.lengths == Lengths(1024, 2048)
    assert found.plan.layout.staleness == 1
    assert any("half of the longest, an assumption" in n for n in found.notes)
    assert any("assumed, not measured" in n for n in found.notes)
    split = answer(load_config(recipe), Ask(trainers=4, engines=2, tensor_parallel=2, prompt_tokens=100)).plan.layout
    assert (split.trainers, split.engines, split.devices) == (4, 2, 8)
    served = {"name": "vllm-server", "options": {"tensor_parallel_size": 4}}
    shared = load_config({**recipe, "engine": served, "scale": {"trainers": 8, "engines": 2}})
    found = answer(shared, Ask(prompt_tokens=100))
    assert (found.plan.layout.tensor_parallel, found.plan.layout.devices, found.plan.work.engine) == (4, 16, "vllm")
    assert any("options.tensor_parallel_size=4" in n for n in found.notes)
    assert not any("generates, where the recipe says" in n for n in found.notes)
    scaled = load_config({**recipe, "scale": {"nodes": 4, "trainers": 8, "engines": 24}})
    plan = answer(scaled, Ask(prompt_tokens=100)).plan
    assert (plan.layout.trainers, plan.layout.engines, plan.layout.per_node) == (8, 24, 8)
    told = load_config({**recipe, "scale": {"trainers": 8, "engines": 24, "weights": "broadcast"}})
    sooner = answer(told, Ask(prompt_tokens=100)).plan
    assert sooner.phases["sync"][0].time.value < plan.phases["sync"][0].time.value


def test_a_method_that_reads_a_reference_pays_for_it() -> None:
    model = {"source": "Qwen/Qwen2.5-7B"}
    plain = answer(load_config({"model": model}), Ask(gpus=8, prompt_tokens=10)).plan
    config = load_config({"model": model, "method": {"objective": {"name": "clip", "kl_weight": 0.1}}})
    found = answer(config, Ask(gpus=8, prompt_tokens=10)).plan
    assert plain.seconds["signals"] == 0
    assert found.work.readers == ("reference",)
    assert found.seconds["signals"] > 0
    assert "reference" in by_name(found.trainer)


def test_prompts_are_measured_with_the_models_tokenizer() -> None:
    # "12+34=" and a begin token: 7 characters' worth.
    source = {"name": "arithmetic", "operation": "addition", "digits": 2, "min_digits": 2}
    assert mean_prompt(load_config({"tasks": {"source": source}})) == 7


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (Ask(gpu="h10O"), "no accelerator 'h10O' is known; did you mean 'h100'?"),
        (Ask(gpus=0), "--gpus 0 must be 1 or more"),
        (Ask(engines=2), "--engines is given without --trainers"),
        (Ask(gpus=8, trainers=4, engines=2), "--trainers and --engines make 6 devices, --gpus says 8"),
        (Ask(response_tokens=9000), "--response-tokens 9000 is above the longest response"),
        (Ask(shape=("layers",)), "is not of the form name=number"),
        (Ask(efficiency=Path("nowhere.json")), "no efficiencies nowhere.json"),
    ],
)
def test_questions_that_make_no_sense(ask: Ask, message: str) -> None:
    with pytest.raises(UsageError) as error:
        answer(load_config({"rollout": {"max_tokens": 64}}), replace(ask, prompt_tokens=10))
    assert message in str(error.value)


# Calibration


def pretend_run(folder: Path, hidden: int, layers: int, truth: Efficiency, device: Device, noise: float) -> Path:
    """A run's folder whose times are those of the model with known efficiencies, and some noise."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from assay.config import dump_config

    rng = np.random.default_rng(hidden + layers)
    config = load_config(
        {
            "model": {"nano": {"hidden": hidden, "layers": layers, "heads": 4}},
            "rollout": {"prompts": 8, "group": 4, "max_tokens": 200},
        }
    )
    (folder / "rollouts").mkdir(parents=True)
    (folder / "config.toml").write_text(dump_config(config))
    lines = []
    for step in range(1, 7):
        lengths = rng.integers(5, 200, 32)
        pq.write_table(pa.table({"length": lengths}), folder / "rollouts" / f"step-{step:06d}.parquet")
        lines.append({"stage": "rl", "step": step, "time/generate": 1.0, "time/update": 1.0})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    told = {m.phase: m.parts.sum(1) for m in measure(folder, device, truth)}
    for i, line in enumerate(lines[1:]):
        for phase, seconds in told.items():
            line[f"time/{phase}"] = float(seconds[i] * np.exp(noise * rng.normal()))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines) + '{"torn')
    return folder


def test_a_calibration_predicts_runs_that_it_has_not_seen(tmp_path: Path) -> None:
    device = Device("cpu", 40e9, 16e9, 20e9, 20e9, 1e9, 0.0)
    truth = Efficiency(0.3, 0.2, 0.2, 0.25, 0.7, 900e-6, 1e-3, 5e-3, 2e-3, 0, 1.0, 3.0, "the truth")
    sizes = [(64, 2), (128, 4), (256, 2), (64, 8), (384, 3)]
    runs = [pretend_run(tmp_path / f"{h}-{n}", h, n, truth, device, 0.05) for h, n in sizes]
    unseen = pretend_run(tmp_path / "unseen", 192, 6, truth, device, 0.0)
    before = [m.parts.sum(1).mean() / m.measured.mean() for m in measure(unseen, device, assumed("cpu", "hf"))]
    found = calibrate(runs, device)
    after = [m.parts.sum(1).mean() / m.measured.mean() for m in measure(unseen, device, found.efficiency)]
    assert all(abs(np.log(r)) < np.log(1.1) for r in after), after
    assert any(abs(np.log(r)) > np.log(1.3) for r in before), before
    assert found.efficiency.update == pytest.approx(truth.update, rel=0.2)


def test_efficiencies_are_kept_in_a_file(tmp_path: Path) -> None:
    found = replace(assumed("h100", "vllm"), update=0.33, source="fitted to runs/x")
    save(tmp_path / "new" / "e.json", "h100", found)
    assert load(tmp_path / "new" / "e.json", "h100") == found
    with pytest.raises(UsageError, match="holds the efficiencies of h100, not of a100"):
        load(tmp_path / "new" / "e.json", "a100")
    for text in ("{", "[]", '{"device": "h100"}', '{"device": "h100", "update": -1}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(UsageError, match="is no record of efficiencies"):
            load(tmp_path / "bad.json", "h100")


def test_what_cannot_be_calibrated_on(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no run folder"):
        calibrate([tmp_path], H100)
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(UsageError, match="no finished RL step"):
        calibrate([tmp_path], H100)
    (tmp_path / "config.toml").write_text("scale.trainers = 2")
    with pytest.raises(UsageError, match="only runs of one process"):
        calibrate([tmp_path], H100)


def test_devices() -> None:
    assert device_of("H100") is H100
    cpu = device_of("cpu")
    assert cpu.flops > 1e8 and cpu.bandwidth > 1e8 and cpu.price == 0
    for device in DEVICES.values():
        # Every accelerator computes more than 50 FLOPs in the time it reads a byte.
        assert device.flops / device.bandwidth > 50
        assert device.network <= device.link < device.bandwidth
    assert shapes_of(load_config(None).model).name == "nano"
