"""FLR: the likelihood of follow-ups in a chat and without one, its contrast by hand, and the pair it prefers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from running import run
from spelled import NANO, alone, responses

from assay.batch import Batch
from assay.catalogue import make
from assay.catalogue.claim import claim_of
from assay.errors import UsageError
from assay.lab.settings import load
from assay.learning.signals import compute_signals, wants_reference
from assay.method import make_method
from assay.objectives.picked_pairs import picked
from assay.objectives.preference import KTO
from assay.papers.rewards.s117_flr import in_lab
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rewards.judges.follow_up import ASPECTS, FollowUpReward
from assay.signals.base import Models
from assay.signals.follow_ups import TOGETHER, FollowUps
from assay.tasks.files.feedback import OPENING, Feedback
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

TEMPLATE = "{% for m in messages %}[{{ m['role'][0] }}]{{ m['content'] | trim }}|{% endfor %}" + (
    "{% if add_generation_prompt %}[a]{% endif %}"
)
ALPHABET = "0123456789+=[]|sua ?!okbadthnxq\n\u2981-flwp"


def lm(seed: int, context: int = 128, chat: bool = True) -> CausalLM:
    torch.manual_seed(seed)
    made = CausalLM.load(ModelConfig(source="nano", nano=NANO | {"context": context, "alphabet": ALPHABET}), seed)
    for parameter in made.module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    if chat:
        made.tokenizer.chat_template, made.chat = TEMPLATE, True
    return made


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    return lm(0)


def score(policy: CausalLM, head: str, told: str) -> float:
    """Mean log-probability of ``told`` after the text ``head``, as one sequence by itself."""
    ids = policy.encode_response(head, end=False)
    tokens = policy.encode_response(told, end=False)
    episode = Episode(ids, tokens, np.ones(len(tokens), dtype=bool), None, "", "stop")
    one = Batch.from_groups([Group(Ask(Task("t", "q"), 1), (episode,))], torch.float64)
    with torch.no_grad():
        return float(policy.forward(one).logprobs[0].mean())


def scored(signal: FollowUps, batch, policy, reference=None, **more) -> torch.Tensor:
    return signal(batch, Models(policy, reference, encode=policy.encode, **more))


def test_follow_ups_are_the_users_next_turn(policy) -> None:
    texts = ("thx", "bad!", "ok thx!", "?")
    batch = responses(policy, ["42", " 9 ", ""])
    found = scored(FollowUps(texts, "policy"), batch, policy)
    for row, said in zip(found, ["42", "9", ""], strict=True):
        want = [score(policy, f"[u]40+2=|[a]{said}|[u]", text) for text in texts]
        assert row.tolist() == pytest.approx(want, abs=1e-5)
    # Temperature is that of the text, not of sampling; small passes give the same.
    again = scored(FollowUps(texts, "policy"), batch, policy, temperature=0.5, token_budget=1)
    assert torch.allclose(again, found, atol=1e-5)


def test_many_follow_ups_are_told_in_several_pieces(policy) -> None:
    texts = tuple(f"{'b' * (k % 4)}{k}" for k in range(2 * TOGETHER + 3))
    batch = responses(policy, ["42", "9"])
    found = scored(FollowUps(texts, "policy"), batch, policy)
    assert found.shape == (2, len(texts))
    for k in (0, 1, TOGETHER - 1, TOGETHER, len(texts) - 1):
        want = [score(policy, f"[u]40+2=|[a]{said}|[u]", texts[k]) for said in ("42", "9")]
        assert found[:, k].tolist() == pytest.approx(want, abs=1e-5)


def test_whose_likelihood_it_is(policy, tmp_path) -> None:
    other = lm(1)
    batch = responses(policy, ["42"])
    want = score(other, "[u]40+2=|[a]42|[u]", "thx")
    signal = FollowUps(("thx",))
    assert scored(signal, batch, policy, other).item() == pytest.approx(want, abs=1e-5)
    assert wants_reference({signal}) and not wants_reference({FollowUps(("thx",), other)})
    assert scored(FollowUps(("thx",), other), batch, policy).item() == pytest.approx(want, abs=1e-5)
    other.save(tmp_path / "scorer")
    saved = FollowUps(("thx",), str(tmp_path / "scorer"))
    assert scored(saved, batch, policy).item() == pytest.approx(want, abs=1e-5)
    assert not any(p.requires_grad for p in saved.scorer.module.parameters())


def test_roles_are_swapped_for_a_scorer_that_plays_the_user(policy) -> None:
    chat = ({"role": "system", "content": "s"}, {"role": "user", "content": "40"})
    batch = responses(policy, ["42"])
    batch.tasks = [replace(t, prompt=chat) for t in batch.tasks]
    plain = scored(FollowUps(("thx",), "policy"), batch, policy)
    swapped = scored(FollowUps(("thx",), "policy", opening="ask!"), batch, policy)
    assert plain.item() == pytest.approx(score(policy, "[s]s|[u]40|[a]42|[u]", "thx"), abs=1e-5)
    assert swapped.item() == pytest.approx(score(policy, "[s]s|[u]ask!|[a]40|[u]42|[a]", "thx"), abs=1e-5)


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_feedback_is_trained_as_it_is_scored(policy, tmp_path: Path) -> None:
    """Token for token: the prompt of a task is what stands before a follow-up to the same response."""
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": "40"}]
    rows = [{"prompt": chat, "response": "42", "feedback": "thx"}, {"prompt": "40", "response": "42", "feedback": "no"}]
    told = [*chat, {"role": "assistant", "content": "42"}, {"role": "user", "content": "thx"}]
    file = written(tmp_path / "said.jsonl", *rows, {"messages": told})
    source = build("tasks", {"name": "feedback", "path": str(file), "opening": "ask!"})
    assert source.size == 3 and source[0].prompt == source[2].prompt and source[0].kind == "none"
    assert [t.meta["responses"] for t in source.tasks] == [[{"text": x, "reward": 1.0}] for x in ("thx", "no", "thx")]
    batch = responses(policy, ["42", "42"])
    batch.tasks = [replace(t, prompt=tuple(chat) if k == 0 else "40") for k, t in enumerate(batch.tasks)]
    signal = FollowUps(("thx",), "policy", opening="ask!")
    for task, asked, episode in zip(source.tasks, batch.tasks, batch.episodes, strict=False):
        assert policy.encode(task.prompt).tolist() == signal.head(asked.prompt, episode, policy, 999).tolist()
    plain = lm(0, chat=False)
    lines = build("tasks", {"name": "feedback", "path": str(file), "chat": False})
    other = responses(plain, ["42"])
    head = FollowUps(("thx",), "policy").head("40", other.episodes[0], plain, 999)
    assert lines[1].prompt == "4042\n" and plain.encode(lines[1].prompt).tolist() == head.tolist()
    assert build("tasks", {"name": "feedback", "path": str(file)})[1].prompt[0]["content"] == OPENING
    assert make("S117", opening=True).reward.signal.opening == OPENING
    assert make("S117", opening="hm").reward.signal.opening == "hm" and make("S117").reward.signal.opening is None


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"prompt": "1", "response": "2"}, "lacks 'messages'"),
        ({"prompt": "1", "feedback": "x"}, "lacks 'response'"),
        ({"prompt": "1", "response": "2", "feedback": " "}, "feedback is not blank"),
        ({"prompt": "1", "response": 2, "feedback": "x"}, "are texts"),
        ({"prompt": [], "response": "2", "feedback": "x"}, "no list of messages"),
        ({"messages": [{"role": "user", "content": "1"}]}, "feedback follows a turn of the assistant"),
        ({"messages": [{"role": r, "content": "1"} for r in ("user", "user", "user")]}, "feedback follows a turn"),
        ({"messages": [{"role": r, "content": "1"} for r in ("user", "assistant", "assistant")]}, "are texts"),
        (7, "is no record"),
    ],
)
def test_feedback_that_is_none(row: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"{why}.*a row has prompt, response and feedback"):
        Feedback(written(tmp_path / "said.jsonl", row))


def test_a_scorer_is_tuned_on_feedback(tmp_path: Path) -> None:
    """Users say y to what is right and n to what is not; a model that learned it from some of this is the scorer."""
    rows = [
        {"prompt": f"{a}+1=", "response": str(a + 1 + wrong), "feedback": "n" if wrong else "y"}
        for a in (1, 2, 3, 4)
        for wrong in (0, 1)
    ]
    file = written(tmp_path / "said.jsonl", *rows)
    folder = run(
        tmp_path / "scorer",
        model={"nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 24}},
        tasks={"source": {"name": "feedback", "path": str(file), "chat": False}, "eval_share": 0.3, "eval_size": 1},
        method={"reward": None, "objective": "sft", "rollout": "recorded"},
        warmup={"steps": 0},
        rollout={"prompts": 4, "group": 2, "max_tokens": 4},
        train={"steps": 40, "lr": 2e-2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 0},
    )
    lists = {"all": {"positive": ["y"], "negative": ["n"]}}
    reward = make("S117", aspects=lists, scorer=str(folder)).reward
    scorer = reward.signal.scorer
    assert not any(p.requires_grad for p in scorer.module.parameters())
    batch = responses(scorer, [row["response"] for row in rows])
    batch.tasks = [replace(t, prompt=row["prompt"]) for t, row in zip(batch.tasks, rows, strict=True)]
    batch.signals["follow_ups"] = scored(reward.signal, batch, scorer)
    found = reward(batch).values.tolist()
    # One of the eight, at least, was held out.
    assert sum((x > 1) if row["feedback"] == "y" else (x < -1) for x, row in zip(found, rows, strict=True)) >= 6


def test_long_conversations_lose_whole_turns(policy) -> None:
    said = [("system", "s"), ("user", "1" * 9), ("assistant", "2" * 9), ("user", "3" * 9)]
    chat = tuple({"role": role, "content": text} for role, text in said)
    batch = responses(policy, ["42"])
    batch.tasks = [replace(t, prompt=chat) for t in batch.tasks]
    full = f"[s]s|[u]{'1' * 9}|[a]{'2' * 9}|[u]{'3' * 9}|[a]42|[u]"
    short = f"[s]s|[u]{'3' * 9}|[a]42|[u]"
    for room, head in ((len(full), full), (len(full) - 1, short), (len(short), short)):
        signal = FollowUps(("thx", "?"), "policy", max_tokens=room + 3)
        assert scored(signal, batch, policy)[0, 0].item() == pytest.approx(score(policy, head, "thx"), abs=1e-5)
    assert scored(FollowUps(("thx",), "policy", max_tokens=len(short) + 2), batch, policy).isnan().all()
    # The model's context bounds it too, and what does not fit leaves the others alone.
    small = lm(0, context=40)
    mixed = responses(small, ["42", "4" * 30])
    found = scored(FollowUps(("thx",), "policy", max_tokens=None), mixed, small)
    assert found.isnan().tolist() == [[False], [True]]


def test_without_a_chat_template_it_stands_on_a_new_line() -> None:
    plain = lm(0, chat=False)
    batch = responses(plain, ["42", ""])
    found = scored(FollowUps(("thx", "?"), "policy"), batch, plain)
    for row, said in zip(found, ["42", ""], strict=True):
        assert row.tolist() == pytest.approx([np.mean(alone(plain, said + "\n", t)) for t in ("thx", "?")], abs=1e-5)


def test_bad_options(policy) -> None:
    for bad in ({"texts": ()}, {"texts": ("a", " ")}, {"texts": ("a",), "scorer": 3}):
        with pytest.raises(UsageError, match="follow_ups"):
            FollowUps(**bad)
    with pytest.raises(UsageError, match="no folder"):
        FollowUps(("a",), "./nowhere")
    for bad in ({}, {"a": {}}, {"a": {"good": ["x"]}}, {"positive": {"positive": ["x"]}}):
        with pytest.raises(UsageError, match="follow_up"):
            FollowUpReward(bad)
    strict = lm(0)
    strict.tokenizer.chat_template = "{{ raise_exception('no') }}"
    with pytest.raises(UsageError, match="refuses"):
        scored(FollowUps(("thx",), "policy"), responses(policy, ["4"]), strict)


# --- the reward -------------------------------------------------------------------------------------------------------


def rewarded(reward: FollowUpReward, make_batch, rows, **more):
    batch = make_batch([1] * len(rows), **more)
    batch.signals["follow_ups"] = torch.tensor(rows, dtype=torch.float64)
    return reward(batch)


ONE = {"all": {"positive": ["p", "q"], "negative": ["n", "m"]}}


def test_the_worked_example(make_batch) -> None:
    """Positive ones at -2.1 and -1.8, negative ones at -3.0 and -2.6."""
    reward = FollowUpReward(ONE)
    assert reward.signal.texts == ("p", "q", "n", "m")
    found = rewarded(reward, make_batch, [[-2.1, -1.8, -3.0, -2.6]])
    assert found.values.item() == pytest.approx(0.85)
    assert found.terms["positive"].item() == pytest.approx(-1.95)
    assert found.terms["negative"].item() == pytest.approx(-2.8)
    alone = FollowUpReward({"all": {"positive": ["p", "q"]}})
    assert rewarded(alone, make_batch, [[-2.1, -1.8]]).values.item() == pytest.approx(-1.95)


ROWS = st.lists(st.lists(st.floats(-9, 0), min_size=4, max_size=4), min_size=1, max_size=4)


@given(ROWS, st.floats(-5, 5))
def test_invariants(make_batch, rows, shift) -> None:
    plain = rewarded(FollowUpReward(ONE), make_batch, rows).values
    turned = FollowUpReward({"all": {"positive": ["n", "m"], "negative": ["p", "q"]}})
    swapped = [[r[2], r[3], r[0], r[1]] for r in rows]
    assert torch.allclose(rewarded(turned, make_batch, swapped).values, -plain)
    assert torch.allclose(rewarded(FollowUpReward(ONE), make_batch, np.add(rows, shift).tolist()).values, plain)


def test_aspects_weigh_the_same_whatever_they_list(make_batch) -> None:
    reward = FollowUpReward({"a": {"positive": ["p"], "negative": ["n"]}, "b": {"positive": ["q", "p"]}})
    found = rewarded(reward, make_batch, [[-1.0, -3.0, -2.0]])
    assert reward.signal.texts == ("p", "n", "q")
    assert found.terms["a"].item() == 2 and found.terms["b"].item() == -1.5
    assert found.values.item() == pytest.approx(0.25)


def test_the_lists_that_come_with_it() -> None:
    assert len(ASPECTS) == 6
    for lists in ASPECTS.values():
        assert [len(lists[k]) for k in ("positive", "negative")] == [10, 10]
    texts = [t for lists in ASPECTS.values() for many in lists.values() for t in many]
    assert len(set(texts)) == 120
    own = make("S117").reward
    assert {*own.aspects} == {*ASPECTS} and {*own.signal.texts} == {*texts}
    assert own.signal.max_tokens == 2048 and own.signal.scorer == "reference"
    # In the lab, too, there are ten of either kind, and none is of both.
    for arm, negative in (("positive", 0), ("contrast", 10)):
        lists = claim_of("S117").arms[arm]["reward"]["aspects"]["all"]
        assert [len({*lists[kind]}) for kind in ("positive", "negative")] == [10, negative]
        assert not {*lists["positive"]} & {*lists["negative"]}


def test_who_has_no_reward(make_batch) -> None:
    rows = [[-1.0] * 4, [float("nan")] * 4, [-1.0] * 4]
    found = rewarded(FollowUpReward(ONE), make_batch, rows, passed=[False, True, None])
    assert found.valid.tolist() == [True, False, False] and found.values.tolist() == [0, 0, 0]
    assert found.terms["positive"].tolist() == [-1, 0, 0] == found.terms["negative"].tolist()
    one = [-1.0, float("nan"), -1.0, -1.0]
    assert rewarded(FollowUpReward(ONE), make_batch, [one]).valid.tolist() == [False], "one did not fit"


# --- the method -------------------------------------------------------------------------------------------------------


def test_the_best_is_preferred_to_the_worst() -> None:
    """Four responses, after each of which the tree goes on with thanks, complaint or something else."""
    tree = Tree.of([[0.0, 0.0, 0.0]] * 4)
    policy = TabularPolicy.random(tree, 3)
    method = make("S117", aspects={"all": {"positive": ["0"], "negative": ["1"]}})
    tokens, lengths = torch.arange(4)[:, None], torch.ones(4, dtype=torch.int64)
    group = Group(Ask(Task("t", ""), 4), tuple(policy.episodes(tokens, lengths)), (Verdict.wrong(),) * 4)
    batch = Batch.from_groups([group], torch.float64)
    compute_signals(batch, method.needs, Models(policy, policy.twin()))
    method.value(batch)
    logp = policy.log_policy()[1:5].detach()
    assert batch.rewards.tolist() == pytest.approx((logp[:, 0] - logp[:, 1]).tolist())
    better, worse = picked(batch)
    assert (better.tolist(), worse.tolist()) == ([int(batch.rewards.argmax())], [int(batch.rewards.argmin())])
    loss = method.objective(policy.forward(batch).logprobs, batch)
    loss.value.backward()
    gradient = policy.logits.grad
    # At the reference the slope of DPO is beta / 2 for the pair, and the user's turn is not learned.
    p = policy.log_policy()[0].detach().exp()
    want = -0.05 * (torch.eye(4)[better[0]] - torch.eye(4)[worse[0]])
    assert torch.allclose(gradient[0], want.double(), atol=1e-9) and p.sum() == pytest.approx(1)
    assert not gradient[1:].any()


def test_options_reach_their_parts() -> None:
    method = make("flr", loss="kto", beta=0.3, margin=0.2)
    assert method.objective.loss == KTO(beta=0.3) and method.select.margin == 0.2
    assert make("S117").select.count == 1
    assert isinstance(make_method("grpo", reward="S117").reward, FollowUpReward)


def test_the_setting(tmp_path) -> None:
    found = load("reactions", {"steps": 10, "noise": 0.0, "talk": 0.0}).run(
        {
            "name": "S117",
            "reward": {"name": "follow_up", "aspects": {"all": {"positive": ["0"], "negative": ["10"]}}},
        },
        0,
        tmp_path,
    )
    assert found["rollouts"] == 10 * 4 * 8 and 0.3 < found["start"] < 0.7
    assert found["final"] > found["start"] + 0.05
    with pytest.raises(UsageError, match="reactions"):
        load("reactions", {"arms": 1})


def test_the_arms_of_the_claim() -> None:
    """Ten reactions are positive, the ten after them negative, or left out."""
    positive = [str(k) for k in range(10)]
    for negative in (0, 10):
        [lists] = in_lab(negative)["reward"]["aspects"].values()
        assert lists == {"positive": positive, "negative": [str(k) for k in range(10, 10 + negative)]}
