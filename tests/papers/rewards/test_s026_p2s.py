"""P2S: the weights, the gains against sequences by themselves, the chains, and which reward a group gets."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from spelled import alone, nano, responses

from assay import catalogue
from assay.batch import Batch
from assay.catalogue.claim import claim_of
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.errors import UsageError
from assay.lab.settings.open_ended.references import Setting, World
from assay.papers.rewards.s026_p2s import PathFaithfulness, combined
from assay.rollout.answer_guided import AnswerGuided
from assay.signals.base import Models
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.likelihoods.path_gains import CHAINS, PathGains, borders
from assay.signals.reasoning import ANSWER
from assay.types import Ask, Episode, Group, Task
from assay.verify.answer.spans import Span

TAGGED = ReferenceLikelihood(open="<answer>")
pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_worked_example() -> None:
    """Weights of four steps, and gains (1, 2, 3) with a last step of -0.5."""
    one = torch.eye(4, dtype=torch.float64)
    assert combined(one, 1.0).tolist() == pytest.approx([0.091213, 0.188770, 0.311230, 0.408787], abs=1e-6)
    row = torch.tensor([[1, 2, 3, -0.5]], dtype=torch.float64)
    assert combined(row, 1.0).item() == pytest.approx(1.198049, abs=1e-6)
    assert combined(row, 0.0).item() == pytest.approx(5.5 / 4)
    short = torch.tensor([[1, 2, torch.nan, torch.nan], [torch.nan] * 4], dtype=torch.float64)
    w = 1 / (1 + np.exp(0.5))
    assert combined(short, 1.0).tolist() == pytest.approx([w + 2 * (1 - w), 0])
    assert combined(torch.zeros(3, 0), 1.0).tolist() == [0, 0, 0]


def test_what_it_is_unless_told_otherwise() -> None:
    method = catalogue.make("S026")
    reward, rollout = method.reward, method.rollout
    assert (reward.slope, reward.cold, reward.gains.most) == (1.0, 0, 4)
    assert reward == PathFaithfulness(gains=PathGains(ReferenceLikelihood("reasoning", None, "</answer>")))
    assert (rollout["share"], rollout["open"]) == (0.25, None) and "{answer}" in rollout["template"]
    assert reward.gains.name == "path_gains" and reward.gains.whole
    names = {n.name for n in reward.needs}
    assert "path_gains" in names and len(names) == 2
    assert len(catalogue.make("S026", open="<answer>").reward.needs) == 1
    other = catalogue.make("S026", share=0.5, most=2, slope=0.0, cold=3, open="=", close="!")
    assert (other.reward.slope, other.reward.cold, other.reward.gains.most) == (0.0, 3, 2)
    assert (other.reward.gains.likelihood.open, other.reward.gains.likelihood.close) == ("=", "!")
    assert other.rollout["share"] == 0.5 and PathGains(most=1).most == 1 and PathFaithfulness(cold=0)


def test_the_cold_start_counts_its_steps() -> None:
    policy = nano()
    batch = responses(policy, ["1<answer>2</answer>", "5"], passed=[False] * 2)
    batch.signals["path_gains"] = torch.tensor([[0.5], [2.0]], dtype=torch.float64)
    reward = catalogue.make("S026", open="<answer>", cold=2).reward
    assert [reward(batch).values.tolist() for _ in range(3)] == [[0, -1], [0, -1], [0.5, -1]]
    assert reward.state_dict() == {"done": 3}
    found = reward(batch)
    assert found.terms["solved"].tolist() == [0, 0] and found.terms["format"].tolist() == [1, 0]
    assert found.terms["faithful"].tolist() == [0.5, 2] and found.terms["verdict"].tolist() == [0, 0]
    halves = responses(policy, ["1<answer>2", "<answer>2</answer> 3<answer>"], passed=[False] * 2)
    halves.signals["path_gains"] = batch.signals["path_gains"]
    assert reward(halves).values.tolist() == [-1, -1], "what counts is the last answer that is opened"


def test_borders() -> None:
    assert [borders(n, 4) for n in (0, 1, 3, 4, 9)] == [[], [1], [1, 2, 3], [1, 2, 3, 4], [2, 4, 6, 9]]


def mean_after(policy, prefix: list[int], suffix: np.ndarray) -> float:
    before = np.concatenate([policy.encode("40+2="), np.asarray(prefix, dtype=np.int64)])
    episode = Episode(before, suffix, np.ones(len(suffix), bool), None, "", "stop")
    one = Batch.from_groups([Group(Ask(Task("t", ""), 1), (episode,))], torch.float64)
    return float(policy.forward(one).logprobs[0].detach().mean())


def test_gains_in_a_language_model() -> None:
    """The largest gain over suffixes of the better chain, against prefixes of padding tokens."""
    policy = nano()
    chains = tuple(policy.encode_response(t, end=False) for t in ("4+4=8 0", "40+2="))
    final = [sum(alone(policy, t + "<answer>", "42")) for t in ("4+4=8 0", "40+2=")]
    chain = chains[int(np.argmax(final))]
    batch = responses(policy, ["12+34<answer>7</answer>", "9<answer>", "8"], meta={CHAINS: chains})
    got = PathGains(TAGGED, most=3)(batch, Models(policy))
    z = policy.encode_response("12+34", end=False).tolist()
    starts = [0, *borders(len(chain), 3)[:-1]]
    for i, p in enumerate(borders(5, 3)[:-1]):
        blank = [policy.tokenizer.pad_token_id] * p
        gains = [mean_after(policy, z[:p], chain[s:]) - mean_after(policy, blank, chain[s:]) for s in starts]
        assert got[0, i].item() == pytest.approx(max(gains), abs=1e-5)
    assert got[0, 2].item() == pytest.approx(np.mean(alone(policy, "12+34<answer>", "42")), abs=1e-5)
    assert got[1, 0].item() == pytest.approx(np.mean(alone(policy, "9<answer>", "42")), abs=1e-5)
    assert bool(got[1, 1:].isnan().all()) and bool(got[2].isnan().all())


def test_a_masked_prefix_gains_nothing() -> None:
    policy = nano()
    pad = policy.tokenizer.pad_token_id
    batch = responses(policy, ["1111<answer>"], meta={CHAINS: (policy.encode_response("40+2", end=False),)})
    blank = Episode(
        batch.episodes[0].prompt,
        np.concatenate([np.full(4, pad), batch.episodes[0].tokens[4:]]),
        batch.episodes[0].mask,
        None,
        "",
        "eos",
        meta=batch.episodes[0].meta,
    )
    masked = Batch.from_groups([Group(Ask(batch.tasks[0], 1), (blank,))], torch.float64)
    signal = PathGains(TAGGED, most=4)
    # The padding token reads as nothing, so the places of the probes are given.
    at, what = [[1, 2, 3]], [[np.array([5, 6])] * 3]
    models = Models(policy)
    torch.testing.assert_close(models.continuations(masked, at, what), signal.masked(batch, at, what, models))


def test_the_good_chains_own_beginning_gains_the_most() -> None:
    """In a tree where going on is only possible from the right places: impossible ones are left out."""
    world = World.of(Setting(tasks=1, branching=2, depth=3, length=1), 0)
    policy = world.policy
    chain = policy.encode_response("aba")
    episodes = []
    for text in ("aba=", "bab=", "b=", "="):
        tokens = policy.encode_response(text)
        episodes.append(
            Episode(np.zeros(1, np.int64), tokens, tokens >= 0, None, text, "stop", meta={CHAINS: (chain,)})
        )
    task = Task("0", "0", world.references[0])
    batch = Batch.from_groups([Group(Ask(task, 4), tuple(episodes))], torch.float64)
    likelihood = catalogue.make("S026", open="=", close="").reward.gains.likelihood
    got = PathGains(likelihood, most=3)(batch, Models(policy))
    logp = policy.log_policy().detach()

    def chance(path: str, text: str) -> float:
        node, total = policy.tree.node([0, *policy.encode_response(path).tolist()]), []
        for token in policy.encode_response(text).tolist():
            total.append(float(logp[node, token]))
            node = int(policy.tree.children[node, token])
        return float(np.mean(total))

    # After "a" there is room for "ba" and "a"; after "ab" for "a" alone.
    first = max(chance("a", s) - chance("", s) for s in ("ba", "a"))
    assert got[0, :2].tolist() == pytest.approx([first, chance("ab", "a") - chance("", "a")])
    answer = world.references[0]
    assert got[0, 2].item() == pytest.approx(chance("aba=", answer))
    assert got[2, 0].item() == pytest.approx(chance("b=", answer)) and bool(got[3].isnan().all())


def reward_of(batch: Batch, gains, reward: PathFaithfulness | None = None) -> list[float]:
    batch.signals["path_gains"] = torch.tensor(gains, dtype=torch.float64)
    return (reward or catalogue.make("S026", open="<answer>").reward)(batch).values.tolist()


def test_which_reward_a_group_gets() -> None:
    policy = nano()
    texts = ["1<answer>2</answer>", "3<answer>4</answer>", "5"]
    gains = [[0.5], [-1.0], [2.0]]
    hopeless = responses(policy, texts, passed=[False] * 3)
    assert reward_of(hopeless, gains) == [0.5, -1, -1]
    solved = responses(policy, texts, passed=[True, False, False])
    assert reward_of(solved, gains) == [1, 0, -1]
    unsure = responses(policy, texts, passed=[None, False, False])
    assert reward_of(unsure, gains) == [0, -1, -1]
    unsure.signals["path_gains"] = torch.tensor(gains).double()
    assert catalogue.make("S026", open="<answer>").reward(unsure).valid.tolist() == [False, True, True]
    cold = catalogue.make("S026", open="<answer>", cold=1).reward
    assert reward_of(hopeless, gains, cold) == [0, 0, -1]
    again = catalogue.make("S026", open="<answer>", cold=1).reward
    again.load_state_dict(cold.state_dict())
    assert reward_of(hopeless, gains, again) == reward_of(hopeless, gains, cold) == [0.5, -1, -1]


def test_chains_are_written_with_the_answer_in_sight() -> None:
    policy = nano()
    seen = []

    class Engine(HFEngine):
        def generate(self, requests):
            seen.append([(r.prompt, r.n) for r in requests])
            out = super().generate(requests)
            if requests and "42" in str(requests[0].prompt):
                for row in out:
                    for k, text in enumerate(["1+1<answer>42", "2", "<answer>3"][: len(row)]):
                        tokens = policy.encode_response(text)
                        row[k] = Episode(row[k].prompt, tokens, tokens >= 0, None, text, "eos")
            return out

    rollout = AnswerGuided(Sampling(4), open="<answer>", share=0.4, template="{question}{answer}")
    asks = [Ask(Task("a", "40+2=", "42"), 8), Ask(Task("b", "1+1=", {"no": "text"}), 8)]
    groups = rollout.collect(asks, Engine(policy), np.random.default_rng(0))
    assert seen == [[("40+2=42", 3)], [("40+2=", 5), ("1+1=", 8)]]
    assert [len(g.episodes) for g in groups] == [5, 8] and [g.ask for g in groups] == asks
    for episode in groups[0].episodes:
        [chain] = episode.meta[CHAINS]
        assert policy.decode(chain) == "1+1" and episode.prompt.tolist() == policy.encode("40+2=").tolist()
    assert all(not e.meta[CHAINS] for e in groups[1].episodes)
    assert rollout.metrics() == {"chains/kept": pytest.approx(1 / 3)}
    # A prompt that leaves no room, and a group that is too small.
    long = AnswerGuided(Sampling(100), open="<answer>", template="{question}" + "1" * 100 + "{answer}")
    assert [len(g.episodes) for g in long.collect(asks[:1], Engine(policy), np.random.default_rng(0))] == [8]
    with pytest.raises(UsageError, match="leave no response"):
        rollout.collect([Ask(asks[0].task, 1)], Engine(policy), np.random.default_rng(0))
    with pytest.raises(UsageError, match="share"):
        AnswerGuided(Sampling(4), share=1.0)
    with pytest.raises(UsageError, match="answer"):
        AnswerGuided(Sampling(4), template="{question}")


class Written:
    """An engine that writes given texts in turn, a token for each character, with room for ``context`` of them."""

    def __init__(self, *texts: str, context: int | None = None) -> None:
        self.texts, self.policy = iter(texts), SimpleNamespace(context=context)

    def encode(self, prompt) -> list[int]:
        return [ord(c) for c in prompt]

    def decode(self, tokens) -> str:
        return "".join(map(chr, tokens))

    def generate(self, requests):
        def one(request) -> Episode:
            text = next(self.texts)
            tokens = np.array([ord(c) for c in text], dtype=np.int64)
            return Episode(np.array(self.encode(request.prompt)), tokens, tokens >= 0, None, text, "eos")

        return [[one(r) for _ in range(r.n)] for r in requests]


def chains_of(rollout: AnswerGuided, asks: list[Ask], engine: Written) -> list[tuple[int, list[str]]]:
    """Return of each prompt the number of responses to learn from, and the chains."""
    groups = rollout.collect(asks, engine, np.random.default_rng(0))
    return [(len(g.episodes), [engine.decode(c) for c in g.episodes[0].meta[CHAINS]]) for g in groups]


def test_a_chain_ends_where_the_verifier_reads_an_answer() -> None:
    """Without a mark; a chain that is an answer from its first character on has nothing before it, and is dropped."""
    where = {"so 42": Span(3, 3, 5, 5), "42": Span(0, 0, 2, 2)}
    rollout = AnswerGuided(Sampling(9), share=0.5, answer=lambda task, text: where.get(text))
    asks = [Ask(Task("a", "40+2=", "42"), 6), Ask(Task("b", "41+1=", "42"), 2)]
    engine = Written("so 42", "42", "none", "so 42", *"123", *"4")
    assert chains_of(rollout, asks, engine) == [(3, ["so "]), (1, ["so "])]
    assert rollout.metrics() == {"chains/kept": pytest.approx((1 / 3 + 1) / 2)}
    assert chains_of(AnswerGuided(Sampling(9), 0.5, open="="), asks[:1], Written("=1", "a=1", "b", *"123")) == [
        (3, ["a"])
    ]


def test_chains_need_room_for_half_of_a_response() -> None:
    """A question of 5 tokens, of 8 with the answer: a context of 11 leaves the question 6, and with the answer 3."""

    def chains(context: int | None, longest: int = 99) -> int:
        rollout = AnswerGuided(Sampling(longest), open="=", template="{question}{answer}")
        [(left, _)] = chains_of(rollout, [Ask(Task("a", "?????", "123"), 4)], Written(*"aaaa", context=context))
        return 4 - left

    assert [chains(None), chains(17), chains(11), chains(9)] == [1, 1, 1, 0]
    assert chains(9, longest=1) == 1 and chains(9, longest=2) == 0


def test_at_least_one_response_is_left_to_learn_from() -> None:
    one, two = (Ask(Task("a", "1+1=", "2"), n) for n in (1, 2))
    rollout = AnswerGuided(Sampling(4), open="=")
    assert rollout.share == 0.25 and chains_of(rollout, [two], Written("a=", "b")) == [(1, ["a"])]
    with pytest.raises(UsageError, match=r"raise rollout\.group"):
        rollout.collect([one, two], Written(), np.random.default_rng(0))
    with pytest.raises(UsageError, match="share 0 "):
        AnswerGuided(Sampling(4), share=0)


def test_the_form_is_an_answer_where_no_mark_is_told() -> None:
    policy = nano()
    batch = responses(policy, ["12", "3"], passed=[False] * 2)
    batch.signals["path_gains"] = torch.tensor([[0.5], [2.0]], dtype=torch.float64)
    batch.signals["sections"] = torch.zeros(batch.tokens.shape, dtype=torch.int64)
    batch.signals["sections"][0, 1] = ANSWER
    assert catalogue.make("S026").reward(batch).values.tolist() == [0.5, -1]


def test_what_does_not_fit_into_the_context_is_left_out() -> None:
    """Chain and reasoning are of two steps of sixteen tokens: the whole chain after the first step are 48."""
    policy = nano()
    text = "40+2=42 " * 4
    chain = policy.encode_response(text, end=False)
    batch = responses(policy, ["9", text + "<answer>"], meta={CHAINS: (chain, chain)})
    prompt = len(batch.episodes[1].prompt)
    read = []

    class Read(Models):
        def continuations(self, batch, at, what, *model):
            read.append([[len(w) for w in row] for row in what])
            return super().continuations(batch, at, what, *model)

    def gains(room: int) -> list[float]:
        narrow = copy(policy)
        narrow.context = prompt + room
        found = PathGains(TAGGED, most=2)(batch, Read(narrow))
        assert bool(found[0].isnan().all())
        return found[1].tolist()

    whole, half = gains(48), gains(47)
    assert read[3] == [[], [32, 16]] and read[-1] == [[], [16]]
    assert half[1] == whole[1] and half[0] <= whole[0]
    assert list(PathGains(TAGGED)(responses(policy, ["9"]), Models(policy)).shape) == [1, 0]


def test_without_chains_or_likelihood() -> None:
    policy = nano()
    batch = responses(policy, ["12<answer>", "9"])
    got = PathGains(TAGGED, most=2)(batch, Models(policy))
    assert got[0, 0] == 0 and got[0, 1] < 0 and bool(got[1].isnan().all())
    nothing = PathGains(TAGGED)(responses(policy, ["12<answer>"], reference=""), Models(policy))
    assert bool(nothing.isnan().all())
    with pytest.raises(UsageError, match="most"):
        PathGains(TAGGED, most=0)
    with pytest.raises(UsageError, match="cold"):
        PathFaithfulness(cold=-1)


def test_it_acts_in_training(tmp_path) -> None:
    """The quality of thoughts rises in ten steps by more than the outcome alone makes it rise."""
    claim = claim_of("S026")
    setting = Setting(**{**claim.options, "steps": 10, "lr": 3.0})
    found, alone_ = (setting.run(claim.arms[name], 0, tmp_path) for name in ("p2s", "grpo"))
    assert found["quality"] > found["quality/start"] + 0.05 > alone_["quality"]
