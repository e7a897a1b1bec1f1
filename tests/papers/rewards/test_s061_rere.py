"""S061: rewards by hand, the group that reaches them, what stands in for beams, and the lists that are measured."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from claimed import learned
from hypothesis import given
from hypothesis import strategies as st
from running import metrics, run

from assay.batch import Batch
from assay.catalogue import make
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.lab.settings.open_ended.shop import Setting
from assay.method import make_method
from assay.papers.rewards.s061_rere import rank_penalties, recommended
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rollout.catalogue import RANK, Catalogue, hits, kept
from assay.types import Ask, Episode, Group, Origin, Task, Verdict
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")

ITEMS = ["0/1", "0/2", "1/0", "2/2", "2/0"]
LONG = Sampling(8)


def ranked(right: list[bool | None], places: list[int] | None = None, logprobs: list[float] | None = None) -> Batch:
    """A group of one-token responses at given places of a search, or with given log-probabilities."""
    episodes, verdicts = [], []
    for i, passed in enumerate(right):
        logp = np.array([logprobs[i] if logprobs else 0.0], dtype=np.float32)
        meta = {} if logprobs else {RANK: places[i] if places else i}
        none = np.zeros(0, dtype=np.int64)
        episodes.append(Episode(none, np.array([i]), np.ones(1, dtype=bool), logp, str(i), "eos", meta=meta))
        verdicts.append(Verdict(float(bool(passed)), passed))
    return Batch.from_groups([Group(Ask(Task("t", ""), len(right)), tuple(episodes), tuple(verdicts))], torch.float64)


def shop(seed: int = 0) -> TabularPolicy:
    tree = Tree.uniform(3, 2)
    return TabularPolicy(tree, torch.randn(4, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


def exact(task: Task, response: str) -> Verdict:
    return Verdict(float(response == task.reference), response == task.reference)


def collected(policy: TabularPolicy, task: Task, n: int, seed: int = 0, **options: Any) -> tuple[Group, Catalogue]:
    rollout = build("rollout", {"name": "catalogue", **options}, sampling=LONG, judge=partial(judge_groups, exact))
    [group] = rollout.collect([Ask(task, n)], TabularEngine(policy), np.random.default_rng(seed))
    return group, rollout


def order_of(policy: TabularPolicy, items: list[str] = ITEMS) -> list[str]:
    logp = {"/".join(map(str, p)): x for p, x in zip(policy.tree.paths, policy.leaf_logprobs().tolist(), strict=True)}
    return sorted(items, key=lambda item: -logp[item])


# The reward


def test_the_worked_example() -> None:
    batch = make("S061").value(ranked([False, False, True, False]))
    assert batch.rewards.tolist() == pytest.approx([-0.390380, -0.246302, 1.0, -0.168128], abs=1e-6)
    assert batch.advantages[:, 0].tolist() == pytest.approx([-0.685271, -0.460459, 1.484209, -0.338479], abs=1e-6)
    assert batch.reward_terms["rule"].tolist() == [0, 0, 1, 0]


def test_every_item_counts_the_same_however_long_it_is(make_batch) -> None:
    """The gradient of the loss by token is -A_i / (G T_i): of advantages 1 and -1, with one token and with four."""
    batch = make_batch([1, 4], [1.0, 0.0])
    batch.advantages = torch.where(batch.mask, torch.tensor([[1.0], [-1.0]], dtype=batch.logprobs.dtype), 0)
    batch.signals = {"reference_logprobs": batch.logprobs.clone()}
    logprobs = batch.logprobs.clone().requires_grad_()
    make("S061").objective(logprobs, batch).value.backward()
    assert logprobs.grad is not None
    assert logprobs.grad[batch.mask].tolist() == pytest.approx([-1 / 2, *[1 / 8] * 4])


def test_a_group_without_a_right_item_teaches_nothing() -> None:
    batch = make("S061").value(ranked([False] * 4))
    assert not batch.rewards.any() and not batch.advantages.any()


@given(st.permutations(range(6)), st.integers(0, 5))
def test_wrong_items_together_cost_what_the_right_one_leaves(places: list[int], right: int) -> None:
    found = rank_penalties(torch.tensor(places), torch.arange(6) == right)
    discounts = [1 / np.log2(k + 2) for k in range(6)]
    assert float(found[right]) == 0
    assert float(found.sum()) == pytest.approx(-(1 - discounts[places[right]] / sum(discounts)))
    wrong = [i for i in range(6) if i != right]
    assert sorted(wrong, key=lambda i: places[i]) == sorted(wrong, key=lambda i: float(found[i]))


def test_the_rank_reaches_the_reward_in_whatever_order() -> None:
    part = make("S061").reward
    straight = part(ranked([False, False, True, False])).values
    order = [2, 0, 3, 1]
    moved = part(ranked([[False, False, True, False][i] for i in order], places=order)).values
    assert moved.tolist() == pytest.approx(straight[order].tolist())


def test_groups_are_ranked_by_themselves() -> None:
    """Two questions in one batch, one without a right item: nothing of one reaches the other."""
    one, other = ranked([False, True]), ranked([False, False])
    groups = [Group(Ask(Task(k, ""), 2), tuple(b.episodes), tuple(b.verdicts)) for k, b in (("a", one), ("b", other))]
    found = make("S061").reward(Batch.from_groups(groups, torch.float64))
    assert found.values.tolist() == pytest.approx([-1 / (1 + 1 / np.log2(3)), 1, 0, 0])


def test_samples_rank_by_their_log_probability() -> None:
    part = make("S061").reward
    found = part(ranked([False, True, False], logprobs=[-3.0, -2.0, -1.0])).terms["ranking"]
    a = [1 / np.log2(k + 2) for k in range(3)]
    assert found.tolist() == pytest.approx([-a[2] / sum(a), 0, -a[0] / sum(a)])
    unknown = part(ranked([False, True, False], logprobs=[float("nan"), -2.0, -1.0])).terms["ranking"]
    assert unknown.tolist() == pytest.approx([-a[2] / sum(a), 0, -a[0] / sum(a)])


def test_abstentions_have_no_rank() -> None:
    found = make("S061").reward(ranked([None, False, True]))
    a = [1 / np.log2(k + 2) for k in range(2)]
    assert found.valid is not None and found.valid.tolist() == [False, True, True]
    assert found.values.tolist() == pytest.approx([0, -a[0] / sum(a), 1])


def test_terms_have_weights() -> None:
    only = make_method("grpo", reward={"name": "S061", "rule": 0.0}).reward(ranked([True, False])).values
    assert only.tolist() == pytest.approx([0, -0.386853], abs=1e-6)
    twice = make("S061", rule=2.0, ranking=0.5).reward(ranked([True, False])).values
    assert twice.tolist() == pytest.approx([2, -0.386853 / 2], abs=1e-6)
    method = make("S061")
    assert method.objective.kl_weight == 1e-3 and method.credit.epsilon == 1e-4
    assert (method.rollout["decode"], method.rollout["add_target"]) == ("beam", False)
    with pytest.raises(UsageError, match="both 0"):
        make("S061", rule=0.0, ranking=0.0)


# The rollout


def test_a_group_is_the_catalogue_in_order_as_far_as_it_goes() -> None:
    policy = shop()
    group, rollout = collected(policy, Task("t", "", reference=order_of(policy)[1]), 5, items=ITEMS)
    assert [e.text for e in group.episodes] == order_of(policy)
    assert [e.meta[RANK] for e in group.episodes] == list(range(5))
    assert [v.passed for v in group.verdicts] == [False, True, False, False, False]
    assert rollout.metrics() == pytest.approx({"catalogue/found": 1.0, "catalogue/ndcg": 1 / np.log2(3)})


def test_a_catalogue_can_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "titles.txt").write_text("\n".join([*ITEMS, "", ITEMS[0]]), encoding="utf-8")
    policy = shop()
    group, _ = collected(policy, Task("t", ""), 5, items=tmp_path / "titles.txt")
    assert [e.text for e in group.episodes] == order_of(policy)
    for bad, said in ((tmp_path / "no.txt", "no file"), ([" "], "no items")):
        with pytest.raises(UsageError, match=said):
            collected(policy, Task("t", ""), 5, items=bad)


def test_what_a_catalogue_cannot_do_is_said() -> None:
    policy = shop()
    with pytest.raises(UsageError, match="5 items cannot fill a group of 6"):
        collected(policy, Task("t", ""), 6, items=ITEMS)
    short = build("rollout", {"name": "catalogue", "items": ITEMS}, sampling=Sampling(1), judge=lambda groups: groups)
    with pytest.raises(UsageError, match="max_tokens"):
        short.collect([Ask(Task("t", ""), 2)], TabularEngine(policy), np.random.default_rng(0))
    asks = [Ask(Task("a", ""), 2), Ask(Task("b", ""), 6)]
    with pytest.raises(UsageError, match="5 items cannot fill a group of 6"):
        Catalogue(LONG, partial(judge_groups, exact), ITEMS).collect(
            asks, TabularEngine(policy), np.random.default_rng(0)
        )
    with pytest.raises(UsageError, match="needs items"):
        collected(policy, Task("t", ""), 2, decode="distinct")


def test_samples_stay_in_the_catalogue() -> None:
    group, rollout = collected(shop(), Task("t", ""), 40, items=ITEMS, decode="sample")
    assert {e.text for e in group.episodes} <= set(ITEMS) and len(group.episodes) == 40
    assert not any(RANK in e.meta for e in group.episodes) and set(rollout.metrics()) == {"catalogue/found"}


def test_without_a_catalogue_the_search_is_free() -> None:
    policy = shop()
    group, _ = collected(policy, Task("t", ""), 9)
    assert len({e.text for e in group.episodes}) == 9


def test_distinct_keeps_right_ones_then_each_item_once() -> None:
    none = np.zeros(0, dtype=np.int64)
    said = ["b", "c", "c", "R", "d", "R", "b", "b", "c"]
    episodes = tuple(Episode(none, none, none == 0, none.astype(np.float32), t, "eos") for t in said)
    verdicts = tuple(exact(Task("t", "", reference="R"), t) for t in said)
    for n, expected in ((6, "RRbcdb"), (1, "R"), (9, "RRbcdbcbc")):
        assert "".join(e.text for e in kept(Group(Ask(Task("t", ""), n), episodes, verdicts)).episodes) == expected
    group, _ = collected(shop(), Task("t", "", reference="2/0"), 6, items=ITEMS, decode="distinct")
    assert len(group.episodes) == len(group.verdicts) == 6


def test_the_target_can_take_the_last_place() -> None:
    policy = shop()
    best = order_of(policy)
    group, _ = collected(policy, Task("t", "", reference=best[4]), 3, items=ITEMS, add_target=True)
    assert [e.text for e in group.episodes] == [*best[:2], best[4]]
    target = group.episodes[2]
    assert target.logprobs is None and target.origins is not None and set(target.origins) == {Origin.TEACHER}
    assert target.meta[RANK] == 2 and [v.passed for v in group.verdicts] == [False, False, True]
    unasked, _ = collected(policy, Task("t", "", reference=best[4]), 3, items=ITEMS)
    assert [e.text for e in unasked.episodes] == best[:3], "unless told to, it is found or it is not"
    present, _ = collected(policy, Task("t", "", reference=best[0]), 3, items=ITEMS, add_target=True)
    assert [e.text for e in present.episodes] == best[:3]
    foreign, _ = collected(policy, Task("t", "", reference="1/1"), 3, items=ITEMS, add_target=True)
    assert [e.text for e in foreign.episodes] == best[:3], "it is no item"


def test_without_a_catalogue_or_a_reference_the_target_is_what_is_known() -> None:
    policy = shop()
    free, _ = collected(policy, Task("t", "", reference="1/1"), 2, add_target=True)
    best = order_of(policy, ["/".join(map(str, path)) for path in policy.tree.paths])
    assert [e.text for e in free.episodes] == ([best[0], "1/1"] if "1/1" not in best[:2] else best[:2])
    nothing, _ = collected(policy, Task("t", ""), 3, items=ITEMS, add_target=True)
    assert [e.text for e in nothing.episodes] == order_of(policy)[:3]
    last, _ = collected(policy, Task("t", "", reference=order_of(policy)[2]), 3, items=ITEMS, add_target=True)
    assert last.episodes[2].logprobs is not None, "found already"


def test_half_as_many_again_are_sampled_for_distinct_items() -> None:
    policy, asked = shop(), []

    class Counted(TabularEngine):
        def generate(self, requests: Any) -> Any:
            asked.extend(r.n for r in requests)
            return super().generate(requests)

    judge = partial(judge_groups, exact)
    rollout = build("rollout", {"name": "catalogue", "items": ITEMS, "decode": "distinct"}, sampling=LONG, judge=judge)
    rollout.collect([Ask(Task("t", ""), 5)], Counted(policy), np.random.default_rng(0))
    assert asked == [7]


def test_the_catalogue_is_read_once_for_an_engine() -> None:
    one, other = TabularEngine(shop()), TabularEngine(shop(1))
    part = Catalogue(LONG, partial(judge_groups, exact), ITEMS)
    first = part.within(one)
    assert first is not None and part.within(one) is first and part.within(other) is not first
    assert Catalogue(Sampling(first.depth), part.judge, ITEMS).within(one).depth == first.depth
    with pytest.raises(UsageError, match="max_tokens"):
        Catalogue(Sampling(first.depth - 1), part.judge, ITEMS).within(one)
    for name in ("_texts", "_known", "_seen"):
        with pytest.raises(TypeError):
            Catalogue(LONG, part.judge, ITEMS, **{name: None})
    assert Catalogue(LONG, part.judge).within(one) is None and part.collect([], one, np.random.default_rng(0)) == []


# What is measured


def test_lists_are_measured_by_their_first_right_item() -> None:
    policy = shop()
    best = order_of(policy)
    tasks = [Task(str(k), "", reference=best[k]) for k in (0, 2, 4)]
    found = recommended(tasks, TabularEngine(policy), exact, ITEMS, width=5, ks=(1, 3, 5))
    assert found == pytest.approx(
        {
            "HR@1": 1 / 3,
            "NDCG@1": 1 / 3,
            "HR@3": 2 / 3,
            "NDCG@3": (1 + 1 / 2) / 3,
            "HR@5": 1.0,
            "NDCG@5": (1 + 1 / 2 + 1 / np.log2(6)) / 3,
        }
    )
    # Unless told otherwise 20 are searched for, of lists of 3, 5, 10 and 20.
    wide = TabularPolicy(Tree.bandit(20), torch.arange(20.0, dtype=torch.float64)[None])
    last = recommended([Task("t", "", reference="10")], TabularEngine(wide), exact, [str(k) for k in range(20)])
    assert last == pytest.approx(
        {
            f"{m}@{k}": x
            for k, hit in ((3, 0), (5, 0), (10, 1), (20, 1))
            for m, x in (("HR", hit), ("NDCG", hit / np.log2(11)))
        }
    )
    assert hits([]) == {} and recommended([], TabularEngine(policy), exact, ITEMS, 5, (1,)) == {}
    with pytest.raises(UsageError, match="at least as wide"):
        recommended(tasks, TabularEngine(policy), exact, ITEMS, width=2, ks=(1, 3))


def test_the_shop_starts_as_it_says() -> None:
    """Without noise the list at the start is the best; with it, it is not, and items and the rest share the policy."""
    sharp = Setting(users=3, steps=1, noise=0.0, foreign=-50.0)
    arm: dict[str, Any] = {"name": "S061"}
    found = sharp.run(arm, 0, Path())
    assert found["start"] == pytest.approx(found["best"]) and found["valid"] == pytest.approx(1)
    assert found["rollouts"] == 4 * 8
    dull = Setting(users=3, steps=1).run(arm, 0, Path())
    assert dull["start"] < dull["best"] and 0.2 < dull["valid"] < 0.99


@pytest.mark.slow
def test_learning_raises_what_users_take() -> None:
    found = Setting(users=2, steps=30, lr=3.0).run({"name": "S061"}, 0, Path())
    assert found["ndcg"] > found["start"]


def test_a_language_model_learns_within_a_catalogue(tmp_path: Path) -> None:
    """From a recipe: every stored response is an item, of each group all are different, and lists are measured."""
    items = [str(n) for n in range(19)]
    folder = run(
        tmp_path / "run",
        method={"name": "S061", "rollout": {"name": "S061", "items": items}, "reward": "S061"},
        rollout={"group": 6},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        warmup={"steps": 0},
        evaluate={"every": 0},
    )
    for step in (1, 2):
        rows = pd.read_parquet(folder / "rollouts" / f"step-{step:06d}.parquet")
        said = rows["response"].tolist()
        assert set(said) <= set(items) and len(said) == 24
        assert all(len(set(said[i : i + 6])) == 6 for i in range(0, len(said), 6))
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert all(0 <= row["catalogue/ndcg"] <= row["catalogue/found"] <= 1 for row in steps)


@pytest.mark.slow
def test_beams_and_ranks_teach_more_than_samples() -> None:
    """Users' lists after 20 steps, by NDCG."""
    beams, samples = (learned("S061", arm, steps=20) for arm in ("beams", "samples"))
    assert beams["ndcg"] > max(beams["start"], samples["ndcg"]) and beams["hit"] > samples["hit"]
