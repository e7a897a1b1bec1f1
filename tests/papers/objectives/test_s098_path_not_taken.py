"""Where weights change: diagnostics on matrices with known answers, and updates confined to a region bit for bit."""

from __future__ import annotations

import gc
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from running import run, weights
from safetensors.torch import load_file, save_file
from tiny import TOKENIZER, batch_of, episode, tiny

import assay
from assay import catalogue
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.diagnose.checkpoints import _weights
from assay.diagnose.weight_change import (
    agreement,
    by_kind,
    overlap,
    rotation,
    spectral_shift,
    unchanged,
    weight_change,
    weights_of,
)
from assay.engines.target import resolve
from assay.errors import UsageError
from assay.lab.settings.bandits import network
from assay.learning.update import update
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.masked import Masked
from assay.papers.objectives.s098_path_not_taken import policy_shift
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import LoraConfig
from assay.policies.regions import decomposed, largest, leading, region
from assay.policies.rotated import rotate_values
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.checkpoints import last_checkpoint
from assay.signals.base import Models
from assay.types import Ask, Group, Task, Verdict


def gaussian(rows: int = 32, columns: int = 32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64)


def orthogonal(size: int, seed: int) -> torch.Tensor:
    return torch.linalg.qr(gaussian(size, size, seed))[0]


def test_what_counts_as_unchanged():
    before = torch.tensor([1.0, 1, 0.01, 2])
    after = torch.tensor([1.0005, 1.01, 0.0100001, 2])
    found = unchanged(before, after)
    assert found.tolist() == [True, False, True, True]
    assert float(found.double().mean()) == 0.75


def test_nothing_changed():
    w = gaussian()
    [change] = weight_change({"q_proj.weight": w}, {"q_proj.weight": w.clone()})
    assert change.spectral_shift == 0 and change.sparsity == 1 and change.relative == 0
    assert max(r.largest for r in change.rotations) < 1e-6
    assert change.principal == change.low == change.random == 0


@pytest.mark.parametrize("c", [1.5, 0.25])
def test_scaling_moves_the_spectrum_and_turns_nothing(c):
    w = gaussian()
    assert spectral_shift(w, c * w) == pytest.approx(abs(c - 1))
    assert rotation(w, c * w, 8).largest < 1e-6


def test_rotating_turns_the_directions_and_leaves_the_spectrum():
    w = gaussian(12, 20)
    turned = orthogonal(12, 1) @ w
    assert spectral_shift(w, turned) == pytest.approx(0, abs=1e-12)
    assert rotation(w, turned, 3).mean > 10
    right = w @ orthogonal(20, 2)
    assert rotation(w, right, 3).mean > 10, "only one side is looked at"


@pytest.mark.parametrize("degrees", [0.001, 3.0, 80.0])
def test_a_known_angle(degrees):
    """diag(3, 2, 1) with its first left direction turned towards the third one by a known angle."""
    angle = math.radians(degrees)
    turn = torch.eye(3, dtype=torch.float64)
    turn[0, 0] = turn[2, 2] = math.cos(angle)
    turn[2, 0], turn[0, 2] = math.sin(angle), -math.sin(angle)
    w = torch.diag(torch.tensor([3.0, 2, 1], dtype=torch.float64))
    found = rotation(w, turn @ w, 1)
    assert found.largest == found.mean == pytest.approx(degrees, rel=1e-9)
    assert rotation(w, turn @ w, 2).mean == pytest.approx(degrees / 2, rel=1e-9)


def test_principal_changes_move_the_spectrum_more_than_off_principal_ones_of_the_same_size():
    """Along the leading directions the shift is exactly the size of the change; off them it is mostly rotation."""
    w, k, size = gaussian(), 8, 0.5
    u, _, v = torch.linalg.svd(w)
    noise = gaussian(seed=1)
    along = u[:, :k] @ v[:k]
    off = (noise - u[:, :k] @ u[:, :k].mT @ noise) @ (torch.eye(32, dtype=torch.float64) - v[:k].mT @ v[:k])
    shifts = [spectral_shift(w, w + size * d / d.norm()) for d in (along, off)]
    assert shifts[0] == pytest.approx(size / float(w.norm()))
    assert shifts[0] > 3 * shifts[1]


def test_regions():
    w = gaussian(16, 24)
    u, s, v = torch.linalg.svd(w, full_matrices=False)
    low_rank = ((u[:, :4] * s[:4]) @ v[:4]).abs()
    principal = region(w, "principal", 0.25, rank=0.25)
    assert int(principal.sum()) == 96 and float(low_rank[principal].min()) >= float(low_rank[~principal].max())
    assert torch.equal(region(w, "off_principal", 0.25, rank=0.25), ~principal)
    low, high = region(w, "low", 0.25), region(w, "high", 0.25)
    assert int(low.sum()) == int(high.sum()) == 96 and float(w[low].abs().max()) <= float(w[high].abs().min())
    random = region(gaussian(100, 100), "random", 0.3, generator=torch.Generator().manual_seed(0))
    assert abs(float(random.double().mean()) - 0.3) < 0.03
    assert largest(torch.ones(2, 4), 0.5).sum() == 4
    for bad in ({"share": 0}, {"share": 1}, {"rank": 0}):
        with pytest.raises(UsageError, match="region needs"):
            region(w, "low", **bad)


def test_the_safe_region_by_hand():
    """Of rank one [[6, 5], [-5.1, 5.9]] is [[5.8, -0.2], [-5.3, 0.2]]: of what leads -5.1 is small, 6 is not."""
    w = torch.tensor([[6, 5], [-5.1, 5.9]], dtype=torch.float64)
    assert region(w, "principal").tolist() == [[True, False], [True, False]]
    assert region(w, "low").tolist() == [[False, True], [True, False]]
    assert region(w, "safe").tolist() == [[False, True], [True, True]]


def test_overlap_against_chance():
    """Changes placed outside the principal region alone: its overlap is 0, and that of the rest above chance."""
    w = gaussian(20, 20)
    off = region(w, "off_principal", 0.5)
    [change] = weight_change({"up_proj.weight": w}, {"up_proj.weight": torch.where(off, w + 1, w)})
    assert change.principal == 0 and change.random == 0.5 and change.low > 0.5
    assert overlap(off, ~unchanged(w, torch.where(off, w + 1, w))) == 1


def test_runs_that_change_the_same_entries_agree_beyond_chance():
    torch.manual_seed(0)
    one, two = torch.rand(2, 200, 200) < 0.3
    found, chance = agreement([one, two])
    assert found == pytest.approx(0.09 / 0.51, abs=0.01) and chance == pytest.approx(0.09 / 0.51, abs=0.01)
    assert agreement([one, one])[0] == 1 and agreement([one, ~one, one])[0] == pytest.approx(1 / 3)


def test_two_checkpoints_on_disk(tmp_path: Path):
    tensors = {f"model.layers.{i}.self_attn.{k}_proj.weight": gaussian(8, 8, i) for i in (0, 1) for k in "qv"}
    tensors |= {"model.embed_tokens.weight": gaussian(9, 8), "lm_head.weight": gaussian(9, 8)}
    tensors |= {"model.norm.weight": torch.ones(8)}
    for name, scale in (("base", 1.0), ("run/policy", 1.1)):
        (tmp_path / name).mkdir(parents=True)
        save_file({n: (scale * w).contiguous() for n, w in tensors.items()}, tmp_path / name / "model.safetensors")
    table = by_kind(weight_change(tmp_path / "base", tmp_path / "run", ranks=(0.125, 0.5)))
    assert table.keys() == {"q_proj", "v_proj", "all"}
    assert table["q_proj"]["spectral_shift"] == pytest.approx(0.1) and table["all"]["sparsity"] == 0
    assert {"rotation@1", "rotation@4"} <= table["all"].keys()
    with pytest.raises(UsageError, match="no weights"):
        weight_change(tmp_path, tmp_path / "run")
    (tmp_path / "base" / "adapter_config.json").touch()
    with pytest.raises(UsageError, match="adapters"):
        weight_change(tmp_path / "base", tmp_path / "run")
    with pytest.raises(UsageError, match="one model"):
        weight_change({"a": gaussian(2, 3)}, {"a": gaussian(3, 2)})


def tree_batch(policy: TabularPolicy) -> Batch:
    leaves = torch.arange(len(policy.tree))
    episodes = tuple(policy.leaf_episodes(leaves))
    rewards = policy.tree.rewards[leaves].tolist()
    group = Group(Ask(Task("t", ""), len(episodes)), episodes, tuple(Verdict(r, r == 1) for r in rewards))
    batch = Batch.from_groups([group], torch.float64)
    batch.rewards = torch.tensor(rewards, dtype=torch.float64)
    batch.advantages = GRPO()(batch)
    batch.totals = batch.count()
    return batch


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD])
def test_outside_the_region_weights_stay_bit_for_bit_with_weight_decay_on(optimizer):
    policy = TabularPolicy.random(Tree.uniform(3, 3, [float(i % 4 == 0) for i in range(27)]), 0)
    start = policy.logits.detach().clone()
    objective, models = Masked("clip", "low", 0.5), Models(policy)
    objective.start(models)
    mask = region(start, "low", 0.5)
    batch, steps = tree_batch(policy), optimizer(policy.module.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(5):
        update(policy, objective, batch, steps)
        gradient = policy.logits.grad
        assert gradient is not None and not bool(gradient[~mask].any()) and bool(gradient[mask].any())
        objective.prepare(batch)
        assert torch.equal(policy.logits[~mask], start[~mask]), "what is read next has changed"
    assert objective.learn(batch, models)["masked/free"] == pytest.approx(float(mask.double().mean()))
    assert bool((policy.logits[mask] != start[mask]).all())


def test_inside_the_region_the_update_is_that_of_the_masked_gradient():
    policies = [TabularPolicy.random(Tree.uniform(3, 2, [1.0] + [0.0] * 8), 0) for _ in range(2)]
    objective = Masked("clip", "off_principal", 0.5)
    objective.start(Models(policies[0]))
    batch = tree_batch(policies[0])
    for policy, loss in zip(policies, (objective, objective.objective), strict=True):
        update(policy, loss, batch, torch.optim.SGD(policy.module.parameters(), lr=0.1), max_grad_norm=math.inf)
    objective.prepare(batch)
    mask = region(TabularPolicy.random(policies[0].tree, 0).logits.detach(), "off_principal", 0.5)
    assert torch.equal(policies[0].logits[mask], policies[1].logits[mask])
    assert not torch.equal(policies[0].logits, policies[1].logits)


@pytest.mark.slow
def test_gradients_are_whole_again_when_the_objective_is_gone():
    policy = TabularPolicy(Tree.bandit(6))
    objective = Masked(region="low")
    objective.start(Models(policy))
    for free in (False, True):
        policy.logits.grad = None
        (policy.logits * torch.ones(6)).sum().backward()
        assert bool((policy.logits.grad == 1).all()) is free
        objective = None
        gc.collect()


def test_a_random_region_is_the_runs_own():
    found = []
    for seed in (0, 0, 1):
        objective = Masked(region="random")
        objective.start(Models(TabularPolicy(Tree.uniform(4, 3)), rng=np.random.default_rng(seed)))
        found.append(objective.state_dict()["logits"])
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_it_says_of_itself_what_the_inner_objective_says():
    assert Masked("gspo").reads == "response" and Masked("sft").reads == "nothing"
    assert Masked({"name": "clip", "kl_weight": 0.1}).needs == {"reference_logprobs"}
    assert not hasattr(Masked("sft"), "live") and Masked("clip").zero_advantage_is_idle
    with pytest.raises(UsageError, match="gspo_token"):
        make_method("grpo", objective={"name": "masked", "objective": "gspo"}, credit="gae")
    with pytest.raises(UsageError, match="masked"):
        Masked(share=1.5)


def on(module: torch.nn.Module, seed: int = 0) -> Models:
    """What a learner is given, of a policy that is this module."""
    models = Models(TabularPolicy(Tree.bandit(2)), rng=np.random.default_rng(seed))
    models.policy.module = module
    return models


@pytest.mark.parametrize("others", ["frozen", "trained"])
def test_what_is_no_matrix_is_frozen_or_trained(others: str):
    module, objective = torch.nn.Linear(4, 4, dtype=torch.float64), Masked(region="high", others=others)
    objective.start(on(module))
    module(torch.ones(1, 4, dtype=torch.float64)).sum().backward()
    mask, trained = region(module.weight.detach(), "high", 0.5), float(others == "trained")
    assert torch.equal(module.weight.grad, mask.double()) and module.bias.grad.tolist() == [trained] * 4
    start = {n: p.detach().clone() for n, p in module.named_parameters()}
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    nobody = Batch.from_groups([])
    assert objective.learn(nobody, on(module))["masked/free"] == pytest.approx(0.5 if trained else 8 / 20)
    for name, want in (("weight", mask.double()), ("bias", torch.full((4,), trained).double())):
        assert torch.allclose(module.get_parameter(name) - start[name], want)


def test_what_is_not_trained_at_all_is_left_alone():
    module, objective = torch.nn.Linear(4, 4).requires_grad_(False), Masked()
    objective.start(on(module))
    assert objective.state_dict() == {} and objective.learn(Batch.from_groups([]), on(module)) == {"masked/free": 0}


def test_what_is_not_trained_does_not_keep_what_is_from_being_confined():
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4, bias=False))
    module[0].requires_grad_(False)
    objective = Masked(region="high")
    objective.start(on(module))
    module(torch.ones(1, 4)).sum().backward()
    assert int((module[1].weight.grad != 0).sum()) == 8


def test_of_a_single_weight_all_may_change():
    module, objective = torch.nn.Linear(1, 1, bias=False), Masked(region="off_principal", share=0.1)
    objective.start(on(module))
    assert objective.learn(Batch.from_groups([]), on(module)) == {"masked/free": 1}


@pytest.mark.parametrize("name", ["_masks", "_parameters", "_frozen"])
def test_what_it_keeps_of_the_weights_is_neither_given_nor_shown(name: str):
    assert name not in repr(Masked())
    with pytest.raises(TypeError):
        Masked(**{name: {}})


def test_a_region_goes_with_the_checkpoint():
    """A random region of 3 x 5 entries, which do not fill their bytes, taken over by an objective of another run."""
    made, gradients = [], []
    for seed in (0, 1):
        module = torch.nn.Linear(5, 3, bias=False)
        made.append(Masked(region="random"))
        made[-1].start(on(module, seed))
        module(torch.ones(1, 5)).sum().backward()
        gradients.append(module.weight.grad)
    assert not torch.equal(*gradients)
    made[1].load_state_dict(made[0].state_dict())
    assert torch.equal(made[1].masked("weight", torch.ones(3, 5)), gradients[0])
    assert made[0].state_dict()["weight"].numel() == 2


def test_defaults():
    """Half of the entries, off the leading twentieth of the directions, under the clipped surrogate."""
    for objective in (catalogue.make("S098").objective, Masked()):
        assert (objective.region, objective.share, objective.rank, objective.others) == (
            "off_principal",
            0.5,
            0.05,
            "frozen",
        )
        assert isinstance(objective.objective, ClippedSurrogate)
    assert Masked(rank=1.0).rank == 1
    for bad in ({"share": 0.0}, {"share": 1.0}, {"rank": 0.0}, {"rank": 1.1}):
        with pytest.raises(UsageError, match="masked"):
            Masked(**bad)


def test_the_shift_is_that_at_the_temperature_of_sampling():
    """One response of two tokens: the mean of exp(d) - d - 1 at each, d of the policies at half the temperature."""
    tree = Tree.uniform(3, 2)
    before, after = TabularPolicy.random(tree, 0, 0.5), TabularPolicy.random(tree, 1, 0.5)
    group = Group(Ask(Task("t", ""), 1), tuple(after.leaf_episodes(torch.tensor([5]))))
    batch, want = Batch.from_groups([group], torch.float64), []
    for node, token in ((0, 1), (tree.node([1]), 2)):
        d = float((before.log_policy(0.5) - after.log_policy(0.5))[node, token].detach())
        want.append(math.exp(d) - d - 1)
    assert policy_shift(after, before, batch, temperature=0.5) == pytest.approx(sum(want) / 2)
    assert policy_shift(after, before, batch) != pytest.approx(sum(want) / 2)


@pytest.mark.slow
def test_the_shift_between_two_policies_against_its_exact_value():
    tree = Tree.uniform(3, 2)
    before, after = TabularPolicy.random(tree, 0, 0.5), TabularPolicy.random(tree, 1, 0.5)
    leaves = torch.multinomial(
        after.leaf_logprobs().detach().exp(), 40_000, True, generator=torch.Generator().manual_seed(0)
    )
    group = Group(Ask(Task("t", ""), len(leaves)), tuple(after.leaf_episodes(leaves)))
    batch = Batch.from_groups([group], torch.float64)
    exact = after.exact_kl(before).item() / 2  # two tokens each
    assert policy_shift(after, before, batch, token_budget=10**6) == pytest.approx(exact, rel=0.05)
    assert policy_shift(after, after, batch, token_budget=10**6) == 0
    assert np.isfinite(exact) and exact > 0


@pytest.mark.parametrize("shared", [1, 2])
def test_a_rotated_model_is_the_same_function_in_another_basis(shared: int):
    """Also where heads share their values; leading entries of what was rotated agree with those before as by chance."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4 // shared, "head_dim": 16}
    config = LlamaConfig(vocab_size=32, intermediate_size=48, num_hidden_layers=2, attention_bias=True, **sizes)
    torch.manual_seed(0)
    module = LlamaForCausalLM(config).double().eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    tokens = torch.randint(32, (3, 9))
    plain = module(input_ids=tokens).logits.detach()
    names = rotate_values(module, seed=1)
    assert torch.allclose(module(input_ids=tokens).logits, plain, atol=1e-9)
    after = dict(module.named_parameters())
    assert {n.split(".self_attn.")[1] for n in names} == {"v_proj.weight", "o_proj.weight"} and len(names) == 4
    assert all(torch.equal(after[n], w) for n, w in before.items() if "v_proj" not in n and "o_proj" not in n)
    for name in names:
        assert not torch.allclose(after[name], before[name])
        assert spectral_shift(before[name], after[name]) < 1e-9
        found, chance = agreement([largest(w[name], 0.5) for w in (before, after)])
        assert abs(found - chance) < 0.06
    with pytest.raises(UsageError, match="no attention layers"):
        rotate_values(torch.nn.Linear(2, 2))


def pissa(rank: int = 2) -> CausalLM:
    pytest.importorskip("peft")
    return CausalLM(tiny("llama"), TOKENIZER, lora=LoraConfig(rank=rank, alpha=3.0, start="pissa"))


def some_episodes() -> Batch:
    return batch_of([episode(np.array(p), np.array(t)) for p, t in (([1, 4, 6], [5, 7, 2]), ([3, 3], [9]))])


def test_pissa_adapters_begin_as_the_leading_directions_and_leave_the_rest_to_the_model():
    plain, policy = tiny("llama"), pissa()
    layer = policy.model.model.layers[0].self_attn.q_proj
    svd = decomposed(plain.model.layers[0].self_attn.q_proj.weight)
    a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    assert torch.allclose(1.5 * (b @ a).double(), leading(svd, 2), atol=1e-5), "alpha / rank is the scale"
    rest = torch.linalg.svdvals(layer.base_layer.weight.double())
    assert torch.allclose(rest[:-2], svd[1][2:], atol=1e-5) and float(rest[-2:].max()) < 1e-5
    assert all(p.requires_grad == ("lora_" in n) for n, p in policy.module.named_parameters())
    expected = CausalLM(plain, TOKENIZER).forward(some_episodes()).logprobs
    assert torch.allclose(policy.forward(some_episodes()).logprobs, expected, atol=1e-5), "the model is what it was"


@pytest.mark.slow
def test_a_run_keeps_to_its_region_and_resumes_within_it(tmp_path: Path):
    method = {"name": "S098"}
    sections = {"method": method, "evaluate": {"every": 0}, "warmup": {"steps": 0}}
    train = {"steps": 2, "weight_decay": 0.1}
    start = load_file(
        last_checkpoint(run(tmp_path / "start", **sections, train={"steps": 0}))[2] / "policy" / "model.safetensors"
    )
    whole = run(tmp_path / "whole", **sections, train=train)
    short = run(tmp_path / "short", **sections, train={**train, "steps": 1})
    assay.train(resume=short, overrides=["train.steps=2"], quiet=True)
    a, b = weights(whole), weights(short)
    assert all(torch.equal(a[k], b[k]) for k in a)
    moved = {k: a[k] != start[k] for k in start}
    assert not any(bool(moved[k].any()) for k in moved if "proj" not in k)
    for name in (k for k in start if "proj" in k):
        free = region(start[name], "off_principal", 0.5, 0.05)
        assert not bool(moved[name][~free].any()), name
    assert any(bool(m.any()) for m in moved.values())
    [*_, row] = weight_change(start, whole / "checkpoints" / "rl-000002", tolerance=0)
    assert row.principal == 0 and row.random > 0


@pytest.mark.slow
def test_the_settings_network_knows_half_the_questions_and_its_arms_begin_alike(tmp_path: Path):
    setting = network.Setting(steps=2)
    policy, known = setting.policy(3)
    chances = policy.chances()
    assert chances[known].min() > 0.5 > 0.1 > chances[~known].max()
    batch = policy.log_policy()[policy.starts_at].exp().sum(-1)
    assert torch.allclose(batch, torch.ones_like(batch))
    runs = [setting.run({"name": n}, 3, tmp_path) for n in ("grpo", "S098")]
    assert runs[0]["start"] == runs[1]["start"] == pytest.approx(float(chances.mean()))
    assert runs[1]["sparsity"] >= 0.5 > runs[0]["sparsity"] and runs[0]["kl"] > 0


@pytest.mark.slow
def test_adapters_in_the_setting_are_the_matrices_at_first_and_change_them_within_their_rank(tmp_path: Path):
    setting = network.Setting(steps=2)
    plain = setting.policy(3)[0]
    for start, rank in (("lora", 2), ("pissa", 4)):
        adapted = setting.policy(3)[0]
        adapted.adapt(start, 2, torch.Generator().manual_seed(0))
        assert {n.rpartition("_")[2] for n, _ in adapted.module.named_parameters()} == {"a", "b"}
        for name, w in adapted.matrices().items():
            assert torch.allclose(w, plain.matrices()[name], atol=1e-12)
            rest = w - adapted.fixed[name]
            assert torch.allclose(rest, leading(decomposed(w), 2) if start == "pissa" else 0 * w, atol=1e-12)
        with torch.no_grad():
            for parameter in adapted.module.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, dtype=parameter.dtype))
        for name, w in adapted.matrices().items():
            assert torch.linalg.matrix_rank(w - plain.matrices()[name], rtol=1e-9) == rank
        arm = {"name": "grpo", "setting": {"adapters": start, "rank": 2}}
        assert setting.run(arm, 3, tmp_path)["start"] == pytest.approx(float(plain.chances().mean()))
    with pytest.raises(UsageError, match="adapters, and then their rank"):
        setting.run({"name": "grpo", "setting": {"rank": 2}}, 3, tmp_path)


def test_what_pissa_adapters_learned_is_saved_for_peft_and_measured_against_the_model_before(tmp_path: Path):
    peft = pytest.importorskip("peft")
    policy = pissa()
    policy.save(tmp_path)
    reference = policy.frozen(tmp_path)
    with torch.no_grad():
        before = reference.forward(some_episodes()).logprobs
        for name, parameter in policy.module.named_parameters():
            if "lora_" in name:
                parameter.mul_(1.2)
        after = policy.forward(some_episodes()).logprobs
        assert torch.equal(reference.forward(some_episodes()).logprobs, before), "the reference moved"
    assert not torch.allclose(before, after, atol=1e-2)
    policy.save(tmp_path)
    theirs = peft.PeftModel.from_pretrained(tiny("llama"), tmp_path).merge_and_unload()
    assert torch.allclose(CausalLM(theirs, TOKENIZER).forward(some_episodes()).logprobs, after, atol=1e-5)
    # 1.2 x 1.2 = 1.44: of two directions of sizes s and t, the spectrum moves by 0.44 times both, and none turns.
    for change in weight_change(dict(tiny("llama").named_parameters()), dict(policy.merged_state()), ranks=(0.05,)):
        sigma = decomposed(tiny("llama").get_parameter(change.name))[1]
        assert change.spectral_shift == pytest.approx(0.44 * float(sigma[:2].norm() / sigma.norm()), rel=1e-4)
        assert change.rotations[0].largest < 0.01
    table, spectrum, note = _weights(CausalLM(tiny("llama"), TOKENIZER), policy)
    assert table is not None and spectrum is not None and note == ""
    assert table["all"]["spectral_shift"] > 0 and spectrum.change[-1] == pytest.approx(1)


@pytest.mark.parametrize("start", ["lora", pytest.param("pissa", marks=pytest.mark.slow)])
def test_a_run_with_adapters_resumes_and_its_checkpoint_is_compared_whole(tmp_path: Path, start: str):
    """A change is of rank r from adapters that were nothing, of rank 2 r from those that were a part of the matrix."""
    pytest.importorskip("peft")
    sections = {"model": {"lora": {"rank": 2, "start": start}}, "evaluate": {"every": 0}, "warmup": {"steps": 0}}
    train = {"steps": 2, "lr": 0.01}
    whole = run(tmp_path / "whole", **sections, train=train)
    short = run(tmp_path / "short", **sections, train={**train, "steps": 1})
    assay.train(resume=short, overrides=["train.steps=2"], quiet=True)
    a, b = weights(whole), weights(short)
    assert all(torch.equal(a[k], b[k]) for k in a)
    config = resolve(str(whole)).config
    before = CausalLM.load(config.model.model_copy(update={"lora": None}), config.seed)
    after = weights_of(whole / "checkpoints" / "rl-000002")
    changes = weight_change(dict(before.merged_state()), after)
    assert {c.kind for c in changes} >= {"q_proj", "down_proj"} and max(c.relative for c in changes) > 1e-3
    for name in (c.name for c in changes):
        sizes = torch.linalg.svdvals((after[name].double() - before.model.get_parameter(name).double()).detach())
        assert int((sizes > 1e-5 * max(float(sizes[0]), 1e-2)).sum()) <= (2 if start == "lora" else 4)


def test_a_region_of_adapters_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"adapters leave alone; take model\.lora out"):
        Masked().start(Models(pissa()))
    with pytest.raises(UsageError, match="adapters leave alone"):
        run(tmp_path / "run", method={"name": "S098"}, model={"lora": {"rank": 2}})
    assert not (tmp_path / "run").exists(), "refused after the run began"
