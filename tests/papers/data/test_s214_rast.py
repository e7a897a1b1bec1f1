"""RAST: the worked example, decoding of three language models of different sizes, and where it acts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run
from tiny import TOKENIZER, VOCABULARY, batch_of, episode, ids, plain_logits, tiny

from assay.batch import Batch
from assay.cli import main
from assay.diagnose.shift_alignment import shift_alignment
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.shifted import ShiftedEngine, check_tokens, shifted_engine
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.lab.settings import load
from assay.papers.data.s214_rast import Shift, Shifted, ShiftedSample, rast
from assay.policies.causal_lm import CausalLM, WithoutAdapter
from assay.policies.combined.logit_sum import LogitSum, fitted, logit_sum
from assay.policies.loading import LoraConfig
from assay.policies.tabular import TabularPolicy, Tree
from assay.rollout.single_turn import SingleTurn
from assay.signals.base import Models
from assay.types import Ask, Group, Task

pytestmark = pytest.mark.usefixtures("one_thread")


def bandit(*logits: float) -> TabularPolicy:
    return TabularPolicy(Tree.bandit(len(logits)), torch.tensor([logits], dtype=torch.float64))


@pytest.mark.parametrize(
    ("weight", "want"),
    [
        (1.0, [0.244728, 0.665241, 0.090031]),
        (0.5, [0.449816, 0.449816, 0.100368]),
        (0.0, [0.665241, 0.244728, 0.090031]),
    ],
)
def test_the_worked_example(weight: float, want: list[float]) -> None:
    large, base, tuned = bandit(2, 1, 0), bandit(1, 1, 0), bandit(0, 2, 0)
    engine = shifted_engine(TabularEngine(large), tuned, base, weight)
    assert isinstance(engine, TabularEngine)
    assert engine.policy.log_policy().exp()[0].tolist() == pytest.approx(want, abs=1e-6)
    [[*episodes]] = engine.generate([Request("", 600, Sampling(1), 0)])
    shares = np.bincount([e.tokens[0] for e in episodes], minlength=3) / 600
    assert shares.tolist() == pytest.approx(want, abs=0.06)
    assert all(e.logprobs[0] == pytest.approx(np.log(want[e.tokens[0]]), abs=1e-5) for e in episodes)


def test_usual_options() -> None:
    large, base, tuned = bandit(2, 1, 0), bandit(1, 1, 0), bandit(0, 2, 0)
    assert rast(tuned, base).rollout["weight"] == 1 == Shift(tuned, base).weight
    for made in (ShiftedSample(tuned, base), Shifted(Sampling(1), tuned, base)):
        assert made.weight == 1 and "Shift(" not in repr(made)
    # Asked once, whatever the budget: the worked example's chances with lambda 1.
    answers = ShiftedSample(tuned, base, sampling=Sampling(1))(
        [Task("t", "")] * 400, TabularEngine(large), 9, np.random.default_rng(0)
    )
    assert all(len(a.episodes) == 1 for a in answers) and ShiftedSample.once
    assert np.mean([a.text == "1" for a in answers]) == pytest.approx(0.665241, abs=0.07)
    for extra in ((ShiftedSample, tuned, base, 1.0, Sampling(1)), (Shifted, Sampling(1), tuned, base, 1.0)):
        with pytest.raises(TypeError):
            extra[0](*extra[1:], None)  # the shift is made of the models


def lm(kind: str, **changes: Any) -> CausalLM:
    return CausalLM(tiny(kind, **changes), TOKENIZER)


@pytest.fixture(scope="module")
def three() -> tuple[Any, Any, Any]:
    """A large model, and two small ones of other shapes and another family: plain models, as transformers runs them."""
    large = tiny("llama", hidden_size=64, num_hidden_layers=3, num_key_value_heads=2)
    base = tiny("qwen2")
    tuned = tiny("qwen2")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in tuned.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return large, tuned, base


def copies(three: tuple[Any, Any, Any]) -> list[CausalLM]:
    return [CausalLM(deepcopy(model), TOKENIZER) for model in three]


def test_decoding_is_that_of_the_sum_of_the_models_own_logits(three: tuple[Any, Any, Any]) -> None:
    """Prompts of different lengths, rows that end at different times: every log-probability, and every greedy token."""
    large, tuned, base = copies(three)
    engine = shifted_engine(HFEngine(large), tuned, base, 0.7)
    assert isinstance(engine, ShiftedEngine)
    prompts = ["1+2=", "(12-3)+45=", "7"]
    requests = [Request(p, 3, Sampling(n, 1.0), i) for i, (p, n) in enumerate(zip(prompts, (9, 4, 12), strict=True))]
    greedy = [Request(p, 1, Sampling(6, 0.0), 0) for p in prompts]
    for asked, is_greedy in ((requests, False), (greedy, True)):
        for request, episodes in zip(asked, engine.generate(asked), strict=True):
            for e in episodes:
                z = [plain_logits(model, engine.encode(request.prompt), e.tokens) for model in three]
                logp = (z[0] + 0.7 * (z[1] - z[2])).float().log_softmax(-1)
                own = logp.gather(-1, torch.from_numpy(e.tokens)[:, None])[:, 0]
                np.testing.assert_allclose(e.logprobs, own.detach().numpy(), atol=2e-4)
                assert not is_greedy or logp.argmax(-1).tolist() == e.tokens.tolist()
                differs = (logp - z[0].float().log_softmax(-1)).abs().max()
                assert differs > 0.1, "the shift matters"
    assert large.module.training and tuned.module.training


def test_processes_share_the_requests() -> None:
    """Each samples its part from its own shifted engine."""
    large, base, tuned = bandit(2, 1, 0), bandit(1, 1, 0), bandit(0, 2, 0)
    request, seen = Request("", 5, Sampling(1), 3), []

    class Divided:
        policy = None
        encode = staticmethod(TabularEngine(large).encode)

        def divided(self, items: Any, work: Any, cost: Any) -> Any:
            seen.extend(cost(x) for x in items)
            return work(items, TabularEngine(large))

    made: Any = shifted_engine(Divided(), tuned, base, 1.0)  # type: ignore[arg-type]
    [alone] = shifted_engine(TabularEngine(large), tuned, base, 1.0).generate([request])
    [found] = made.generate([request])
    assert [e.tokens.tolist() for e in found] == [e.tokens.tolist() for e in alone] and seen == [5]
    assert made.encode("").tolist() == TabularEngine(large).encode("").tolist()


def test_passes_agree_with_decoding(three: tuple[Any, Any, Any]) -> None:
    """The policy that the engine samples from reads its responses as they were sampled."""
    large, tuned, base = copies(three)
    engine: Any = shifted_engine(HFEngine(large), tuned, base, 1.0)
    found = engine.generate([Request("1+2=", 2, Sampling(7), 0), Request("33-4=", 2, Sampling(5), 1)])
    batch = Batch.from_groups([Group(Ask(Task(str(i), ""), 2), tuple(es)) for i, es in enumerate(found)])
    read = Models(engine.policy).quantities(batch, {"logprobs"})["logprobs"]
    torch.testing.assert_close(read[batch.mask], batch.logprobs[batch.mask], atol=2e-4, rtol=0)
    assert engine.policy.context == min(p.context for p in (large, tuned, base))
    with pytest.raises(UsageError, match="no layers"):
        engine.policy.forward(batch, {"hidden@0.5"})


def test_equal_small_models_change_nothing(three: tuple[Any, Any, Any]) -> None:
    large, _, base = copies(three)
    request = [Request("12+3=", 4, Sampling(8), 5)]
    plain = HFEngine(large).generate(request)[0]
    for weight in (0.0, 1.0, 3.0):
        shifted = shifted_engine(HFEngine(large), base, base, weight).generate(request)[0]
        assert [e.tokens.tolist() for e in shifted] == [e.tokens.tolist() for e in plain]


def test_a_smaller_vocabulary_is_padded() -> None:
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert fitted(rows, 3).tolist() == [[1, 2], [3, 4], [0, 0]] and fitted(rows, 1).tolist() == [[1, 2]]
    assert fitted(torch.tensor([5.0]), 2).tolist() == [5, 0]
    large, small = lm("llama", vocab_size=VOCABULARY + 5), lm("llama")
    made = logit_sum([(large, 1.0), (small, 2.0), (lm("gpt2"), -2.0)])
    assert isinstance(made, LogitSum) and made.head.weight.shape == (VOCABULARY + 5, 96)
    assert not made.head.weight[VOCABULARY:, 32:].any() and bool(made.head.weight[VOCABULARY:, :32].any())


def test_what_cannot_be_added_is_refused() -> None:
    one, two = bandit(1, 0), bandit(1, 0, 0)
    for terms in ([], [(one, 1.0), (two, 1.0)], [(lm("llama"), 1.0), (one, 1.0)], [(lm("gemma3, window 5"), 1.0)]):
        with pytest.raises(UsageError, match="logits"):
            logit_sum(terms)
    with pytest.raises(UsageError, match="this process only"):
        shifted_engine(object(), one, one, 1.0)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="rast: tuned"):
        Shift("policy", one)
    with pytest.raises(UsageError, match="TabularPolicy"):
        check_tokens(lm("llama"), one)
    other = lm("llama")
    other.tokenizer = type("T", (), {"get_vocab": lambda self: {"0": 1}})()
    with pytest.raises(UsageError, match="do not share"):
        check_tokens(lm("llama"), other)


def test_a_scale_on_logits_is_part_of_the_sum() -> None:
    granite, llama = lm("granite"), lm("llama")
    made = logit_sum([(granite, 1.0), (llama, 0.5)])
    prompt, tokens = ids(np.random.default_rng(0), 4), ids(np.random.default_rng(1), 3)
    found = made.forward(batch_of([episode(prompt, tokens)])).logprobs[0]
    z = [plain_logits(tiny(kind), prompt, tokens) for kind in ("granite", "llama")]
    want = (z[0] + 0.5 * z[1]).log_softmax(-1).gather(-1, torch.from_numpy(tokens)[:, None])[:, 0]
    torch.testing.assert_close(found.detach(), want.detach(), atol=1e-4, rtol=0)


@pytest.mark.slow
def test_in_the_lab_the_shift_is_what_helps() -> None:
    shifted, large = (learned("S214", arm, steps=30, samples=40) for arm in ("shifted", "large"))
    assert shifted["right"] > large["right"] + 0.1 and large["right"] == pytest.approx(large["large"], abs=0.1)
    alone = load("shifts", {"steps": 30, "samples": 40}).run({"name": "S214", "alone": True}, 0, Path())
    assert alone["right"] == pytest.approx(alone["trained"], abs=0.1)
    with pytest.raises(UsageError, match="an arm is"):
        load("shifts", {}).run({"name": "grpo"}, 0, Path())


def test_it_evaluates_and_trains(tmp_path: Path) -> None:
    """A nano model's run whose responses are shifted by two other nano models' difference; and an evaluation."""
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 24}
    small: dict[str, dict[str, Any]] = {
        "train": {"steps": 2, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        "tasks": {"eval_size": 2},
        "evaluate": {"samples": 1},
    }
    base = run(tmp_path / "small", **small)
    policies = [folder / "policy" for folder in sorted((base / "checkpoints").iterdir())]
    options = {"tuned": str(policies[-1]), "base": str(policies[0]), "weight": 2.0}
    large = run(
        tmp_path / "large", **small, model={"nano": {**nano, "hidden": 32}}, method={"name": "S214", "options": options}
    )
    rows = [row for row in metrics(large) if "grad_norm" in row]
    assert len(rows) >= 2 and any(row.get("kl/behaviour", 0) > 1e-4 for row in rows), "it is sampled off the policy"
    strategy = f"rast(tuned={options['tuned']},base={options['base']},weight=2.0)"
    out = str(tmp_path / "eval")
    with pytest.raises(SystemExit) as ended:
        main(["eval", str(large), "--strategy", f"sample,{strategy}", "--budgets", "1", "--out", out])
    assert ended.value.code in (0, None)
    found = json.loads((tmp_path / "eval" / "strategies.json").read_text())
    assert {row["strategy"] for row in found["points"]} >= {"sample"} and len(found["points"]) == 2


def test_a_model_without_its_adapters_is_a_term_of_its_own() -> None:
    """Half of the model with adapters, half of it without: what a trust region reads of a run with LoRA."""
    policy = CausalLM(tiny("llama"), TOKENIZER, lora=LoraConfig(rank=2))
    bare = WithoutAdapter(policy)
    with torch.no_grad():
        for name, parameter in policy.module.named_parameters():
            if "lora_B" in name:
                parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    batch = batch_of([episode(ids(np.random.default_rng(0), 4), ids(np.random.default_rng(1), 3))])
    batch.signals["candidates"] = torch.arange(VOCABULARY).expand(1, 3, VOCABULARY)
    of = [p.forward(batch, ["candidate_logprobs"]).live["candidate_logprobs"] for p in (bare, policy)]
    found = logit_sum([(bare, 0.5), (policy, 0.5)]).forward(batch, ["candidate_logprobs"]).live["candidate_logprobs"]
    torch.testing.assert_close(found, (0.5 * of[0] + 0.5 * of[1]).log_softmax(-1), atol=1e-4, rtol=1e-4)
    assert (of[0] - of[1]).abs().max() > 0.1


def answered(engine: Any, prompts: Sequence[str], n: int = 8) -> list[Group]:
    asks = [Ask(Task(str(i), prompt), n) for i, prompt in enumerate(prompts)]
    return list(SingleTurn(Sampling(6)).collect(asks, engine, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("small_base", "small_trained", "cosine", "left"),
    [
        # The same change (-1, 1, 0) on another footing; one of (0, 1, 1); its contrary; half of it; another constant.
        ((1, 1, 0), (0, 2, 0), 1.0, 0.0),
        ((0, 0, 0), (0, 1, 1), 0.866025, None),
        ((0, 2, 0), (1, 1, 0), -1.0, None),
        ((1, 1, 0), (0.5, 1.5, 0), 1.0, None),
        ((1, 1, 0), (5, 7, 5), 1.0, 0.0),
    ],
)
def test_how_alike_shifts_are(
    small_base: tuple[float, ...], small_trained: tuple[float, ...], cosine: float, left: float | None
) -> None:
    """The large model goes from (2, 1, 0) to (1, 2, 0): KL .665241 - .244728 = .420513."""
    large, trained = bandit(2, 1, 0), bandit(1, 2, 0)
    groups = answered(TabularEngine(trained), ("", ""))
    found = shift_alignment(groups, trained, large, bandit(*small_trained), bandit(*small_base))
    assert found.cosine == pytest.approx(cosine, abs=1e-6) and found.positions == 16
    assert found.divergence == pytest.approx(0.420513, abs=1e-6)
    # Before training token 0 is liked best; with a shift that leads to the trained model's logits, token 1.
    drawn = [int(t) for g in groups for e in g.episodes for t in e.tokens]
    assert found.covered == pytest.approx(drawn.count(0) / 16) and 0 < found.covered < 0.5
    if left is not None:
        assert found.left == pytest.approx(left, abs=1e-9)
        assert found.covered_shifted == pytest.approx(drawn.count(1) / 16)
    if cosine < 0:
        assert found.covered_shifted == found.covered
    still = shift_alignment(groups, trained, large, bandit(1, 1, 0), bandit(1, 1, 0))
    assert np.isnan(still.cosine) and still.left == pytest.approx(still.divergence)
    twice = shift_alignment(groups, trained, large, bandit(*small_trained), bandit(*small_base), weight=2.0)
    assert twice.cosine == pytest.approx(cosine, abs=1e-6) and twice.left != pytest.approx(found.left, abs=1e-3)
    with pytest.raises(UsageError, match="must be above 0"):
        shift_alignment(groups, trained, large, large, large, weight=0.0)
    with pytest.raises(UsageError, match="there are none"):
        shift_alignment([], trained, large, large, large)


def test_shifts_of_language_models(three: tuple[Any, Any, Any]) -> None:
    """By the models' own logits, token by token, where k is the whole vocabulary, in passes of any size."""
    large, tuned, base = three
    moved = tiny("llama", hidden_size=64, num_hidden_layers=3, num_key_value_heads=2)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2)), alpha=0.05)
    four = [CausalLM(deepcopy(model), TOKENIZER) for model in (moved, large, tuned, base)]
    groups = answered(HFEngine(four[0]), ("1+2=", "(12-3)+45="), 3)
    found = shift_alignment(groups, *four, k=10**4)
    cosines, gone, left, best = [], [], [], []
    for e in (e for g in groups for e in g.episodes):
        z = [plain_logits(model, e.prompt, e.tokens).double() for model in (moved, large, tuned, base)]
        p, q, r = (x.log_softmax(-1) for x in (z[0], z[1], z[1] + z[2] - z[3]))
        first, second = ((a - a.mean(-1, keepdim=True)) for a in (z[0] - z[1], z[2] - z[3]))
        cosines += torch.cosine_similarity(first, second, dim=-1).tolist()
        gone += (p.exp() * (p - q)).sum(-1).tolist()
        left += (p.exp() * (p - r)).sum(-1).tolist()
        drawn = torch.from_numpy(e.tokens)
        best += [(int(a), int(b)) for a, b in zip(q.argmax(-1) == drawn, r.argmax(-1) == drawn, strict=True)]
    assert found.positions == len(cosines)
    assert (found.cosine, found.divergence, found.left) == pytest.approx(
        (np.mean(cosines), np.mean(gone), np.mean(left)), abs=2e-4
    )
    assert [found.covered, found.covered_shifted] == pytest.approx(np.mean(best, axis=0))
    few = shift_alignment(groups, *four, k=8)
    assert few == shift_alignment(groups, *four, k=8, token_budget=24) or few.cosine == pytest.approx(
        shift_alignment(groups, *four, k=8, token_budget=24).cosine, abs=1e-5
    )
    assert few.divergence <= found.divergence + 1e-6, "tokens lumped together are told apart no better"
