"""BRPO: worked advantages, baselines by enumeration, cuts and answers on trees and language models."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import LLAMA_LIKE, TOKENIZER, tiny

from assay import catalogue
from assay.batch import Batch
from assay.credit.brpo import BRPO, segment_advantages
from assay.credit.grpo import GRPO
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.inference.base import Budget
from assay.inference.sampling.anytime import AnytimeAnswer
from assay.lab.settings.thinking.anytime import Setting
from assay.method import make_method
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import path_of
from assay.registry import build
from assay.rollout.anytime import Anytime
from assay.rollout.thinking import Marks
from assay.types import Ask, Episode, Group, Span, Task, Verdict
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")

PRIOR = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)


def advantages(*scores, baseline="both"):
    return segment_advantages(torch.tensor(scores, dtype=torch.float64), PRIOR, baseline).tolist()


def test_the_worked_example() -> None:
    first, second = advantages([0, 0.5, 1, 1], [0, 0, 0, 1])
    assert first == pytest.approx([0.2, 0.35, 0.308333, 0.085714], abs=1e-6)
    assert second == pytest.approx([-0.2, -0.05, 0.125, 0.3])
    own = advantages([0, 0.5, 1, 1], [0, 0, 0, 1], baseline="own")[0]
    assert own == pytest.approx([0.8, 0.8, 0.7 - 0.233333, 0.4 - 0.285714], abs=1e-6)
    group = advantages([0, 0.5, 1, 1], [0, 0, 0, 1], baseline="group")[0]
    assert group == pytest.approx([0.2, 0.2, 0.15, 0.0])
    assert advantages([0, 0.5, 1, 1], baseline="none")[0] == pytest.approx([0.8, 0.8, 0.7, 0.4])


@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=5))
def test_what_a_segment_is_compared_with_does_not_look_ahead(scores) -> None:
    """V1 of segment s is the same whatever the scores from s on; changing those changes Ret alone."""
    table = torch.tensor(scores, dtype=torch.float64)
    returns, own = (segment_advantages(table, PRIOR, b) for b in ("none", "own"))
    for s in range(4):
        other = table.clone()
        other[:, s:] = 1 - other[:, s:]
        found, base = (segment_advantages(other, PRIOR, b) for b in ("none", "own"))
        assert torch.allclose((returns - own)[:, s], (found - base)[:, s], atol=1e-12)


def thinking(scores, segments, prior=(0.1, 0.2, 0.3, 0.4)):
    """A thinking episode with these segment lengths, and its verdict."""
    borders = np.cumsum([0, *segments])
    spans = tuple(Span("budget", int(a), int(b), {"index": s}) for s, (a, b) in enumerate(pairwise(borders)) if b > a)
    tokens = np.zeros(borders[-1], dtype=np.int64)
    meta = {"role": "thinking", "prior": tuple(prior)}
    episode = Episode(tokens[:0], tokens, tokens == 0, None, "", "length", spans=spans, meta=meta)
    parts = {f"budget {j}": x for j, x in enumerate(scores)}
    known = None not in scores
    return episode, Verdict(
        sum(p * x for p, x in zip(prior, scores, strict=True)) if known else 0.0, known or None, parts
    )


def credited(*rows, credit=None):
    episodes, verdicts = zip(*rows, strict=True)
    batch = Batch.from_groups([Group(Ask(Task("t", ""), len(rows)), episodes, verdicts)], torch.float64)
    method = make_method("S002", credit=credit or BRPO())
    return method.value(batch)


def test_advantages_stand_on_their_segments() -> None:
    """A thought that ends in its second segment has no tokens in later ones; tokens of one segment are alike."""
    batch = credited(thinking([0, 0.5, 1, 1], [2, 2, 2, 2]), thinking([0, 0, 0, 1], [2, 1, 0, 0]))
    want = [0.2, 0.2, 0.35, 0.35, 0.308333, 0.308333, 0.085714, 0.085714]
    assert batch.advantages[0].tolist() == pytest.approx(want, abs=1e-6)
    assert batch.advantages[1].tolist() == pytest.approx([-0.2, -0.2, -0.05, 0, 0, 0, 0, 0])


def test_with_one_budget_it_is_the_mean_centred_reward() -> None:
    rows = [thinking([x], [3], [1.0]) for x in (1.0, 0.0, 0.5)]
    batch = credited(*rows)
    assert torch.allclose(batch.advantages, GRPO(normalise=False)(batch))


def test_what_no_answer_was_judged_for_is_left_out() -> None:
    batch = credited(
        thinking([0, 0.5, 1, 1], [2] * 4), thinking([0, None, 0, 1], [2] * 4), thinking([0, 0, 0, 1], [2] * 4)
    )
    assert batch.valid.tolist() == [True, False, True] and not batch.advantages[1].any()
    assert batch.advantages[0, 0].item() == pytest.approx(0.2)


def test_a_thought_without_siblings() -> None:
    """Its own return is the group's: only the budgets passed are left to compare with."""
    [row] = credited(thinking([0, 0.5, 1, 1], [1] * 4)).advantages
    assert row.tolist() == pytest.approx([0, 0.2, 0.7 - (2 * 0.7 / 3 + 2 * 0.7) / 4, 0.4 - (3 * 2 / 7 + 0.4) / 4])


def test_tokens_that_were_not_sampled_and_tokens_of_no_segment_learn_nothing() -> None:
    episode, verdict = thinking([1, 1, 1, 1], [2, 2, 1, 1])
    kept = np.array([True, False, True, True, True, True])
    part = replace(episode, mask=kept, spans=episode.spans[:2])
    found = credited((part, verdict), thinking([0, 0, 0, 0], [1] * 4)).advantages[0]
    # Ret = 1, 0.9; V1 = 0, 0.9; V2 = 0.5, 0.45: A_1 = 0.9 - (0.9 + 3 * 0.45) / 4
    assert found.tolist() == pytest.approx([0.5, 0, 0.3375, 0.3375, 0, 0])


def test_an_answer_that_nobody_judged_is_not_compared_with() -> None:
    tokens = np.zeros(1, dtype=np.int64)
    answer = Episode(tokens[:0], tokens, tokens == 0, None, "", "eos", advantage_group="cut")
    said = [Verdict.right(), Verdict.wrong(), Verdict.wrong(), Verdict.abstain("timed out")]
    found = credited(*((answer, verdict) for verdict in said)).advantages[:, 0]
    assert found.tolist() == pytest.approx([2 / 3, -1 / 3, -1 / 3, 0])


# On a tree of thoughts, where every expectation is a sum

TEXTS = {"end": "0", "forced": "0", "header": "", "stop": False, "judged": "response"}
WORLD = Setting(longest=3, answers=2, spread=1.0)


def rollout(policy, **options) -> Anytime:
    judge = partial(judge_groups, TabularVerifier(policy.tree))
    spec = {"name": "anytime", "budgets": (1, 2, 3), "summaries": 2, "summary_tokens": 1, **TEXTS, **options}
    return build("rollout", spec, sampling=Sampling(3), judge=judge)


def collected(n=4, seed=0, **options):
    policy, right = WORLD.policy(seed)
    made = rollout(policy, **options)
    [group] = made.collect([Ask(Task("t", ""), n)], TabularEngine(policy), np.random.default_rng(seed))
    return group, policy, right, made


def test_thoughts_are_cut_and_answered_at_every_budget() -> None:
    n = 40
    group, _, right, made = collected(n=n)
    traces, answers = group.episodes[:n], group.episodes[n:]
    assert len(group.verdicts) == len(group.episodes) and {e.meta["role"] for e in answers} == {"summary"}
    assert len(answers) == n * 3 * 2, "as many answers for each budget, whether a thought reaches it or not"
    by_key: dict[str, list[int]] = {}
    for k, episode in enumerate(answers):
        by_key.setdefault(episode.advantage_group, []).append(k)
    lengths = set()
    for g, trace in enumerate(traces):
        thought = tuple(trace.tokens.tolist())
        assert 0 not in thought[:-1] and len(thought) <= 3 and trace.mask.all() and len(trace.logprobs) == len(thought)
        lengths.add((len(thought), thought[-1] == 0))
        mine = {key: rows for key, rows in by_key.items() if key.endswith(f"/{g}")}
        cuts = [min(b, len(thought)) for b in (1, 2, 3)]
        assert len(mine) == len(set(cuts))
        for rows in mine.values():
            [s] = {answers[k].meta["budget"] for k in rows}
            cut = thought[: cuts[s]]
            assert len(rows) == 2 * cuts.count(cuts[s])
            for k in rows:
                # What is put in is prompt: a forced end after a cut, nothing after a thought that has ended.
                forced = () if cut[-1] == 0 else (0,)
                assert tuple(answers[k].prompt.tolist()) == (*cut, *forced)
                assert answers[k].mask.all() and len(answers[k].tokens) == 1
                assert path_of(answers[k].text) == (*cut, *forced, *answers[k].tokens.tolist())
                assert group.verdicts[n + k].passed is (int(answers[k].tokens[0]) == right)
            score = float(np.mean([group.verdicts[n + k].score for k in rows]))
            for j in (j for j, at in enumerate(cuts) if at == cuts[s]):
                assert group.verdicts[g].parts[f"budget {j}"] == pytest.approx(score)
        parts = [group.verdicts[g].parts[f"budget {j}"] for j in range(3)]
        assert trace.meta["prior"] == pytest.approx((1 / 6, 2 / 6, 3 / 6))
        assert group.verdicts[g].score == pytest.approx(np.dot(parts, trace.meta["prior"]))
        assert all(span.start < span.end for span in trace.spans), "a thought has no segment where it has no token"
        covered = [t for span in trace.spans for t in range(span.start, span.end)]
        assert covered == list(range(len(thought)))
        assert [s.meta["index"] for s in trace.spans] == list(range(len(trace.spans)))
    assert len(lengths) >= 3, "thoughts that end by themselves and thoughts that do not"
    metrics = made.metrics()
    assert metrics["anytime/accuracy"] == pytest.approx(np.mean([v.score for v in group.verdicts[:n]]))
    at = [metrics[f"anytime/at {b}"] for b in (1, 2, 3)]
    assert np.average(at, weights=(1, 2, 3)) == pytest.approx(metrics["anytime/accuracy"])


def test_answers_are_compared_with_those_from_the_same_cut() -> None:
    group, *_ = collected(n=4)
    batch = make_method("S002").value(Batch.from_groups([group], torch.float64))
    for k in range(4, len(batch)):
        same = [j for j in range(4, len(batch)) if batch.group[j] == batch.group[k]]
        mean = np.mean([group.verdicts[j].score for j in same])
        assert batch.advantages[k, 0].item() == pytest.approx(group.verdicts[k].score - mean)
        prompts = {batch.episodes[j].prompt.tobytes() for j in same}
        assert len(prompts) == 1 and len(same) >= 2
    # With one answer per cut there is nothing to compare it with there: the other thoughts at that budget are.
    group, *_ = collected(n=4, summaries=1)
    batch = Batch.from_groups([group], torch.float64)
    compared = [
        [e.prompt.tobytes() for e, k in zip(batch.episodes, batch.group, strict=True) if k == key]
        for key in batch.group[4:].unique()
    ]
    assert max(len({*prompts}) for prompts in compared) > 1
    for key in {int(x) for x in batch.group[4:]}:
        assert len({e.meta["budget"] for e, k in zip(batch.episodes, batch.group, strict=True) if k == key}) == 1


def test_two_asks_for_one_task_are_not_compared() -> None:
    policy, _ = WORLD.policy(0)
    asks = [Ask(Task("t", ""), 2)] * 2
    groups = rollout(policy).collect(asks, TabularEngine(policy), np.random.default_rng(0))
    keys = [{e.advantage_group for e in g.episodes[2:]} for g in groups]
    assert not keys[0] & keys[1]


@pytest.mark.slow
def test_the_scores_are_unbiased() -> None:
    """The mean score at each budget is the exact accuracy there, within four standard errors."""
    policy, right = WORLD.policy(3)
    exact = Setting(longest=3, answers=2, spread=1.0).measure(policy, right)
    made = rollout(policy, summaries=1)
    asks = [Ask(Task(str(i), ""), 8) for i in range(400)]
    groups = judge_groups(
        TabularVerifier(policy.tree), made.collect(asks, TabularEngine(policy), np.random.default_rng(0))
    )
    found = np.array([[v.parts[f"budget {j}"] for j in range(3)] for g in groups for v in g.verdicts[:8]])
    error = found.std(0) / np.sqrt(len(found))
    assert (np.abs(found.mean(0) - [exact[f"at {b}"] for b in (1, 2, 3)]) < 4 * error).all()


def test_the_expected_gradient_of_the_thoughts_is_that_of_the_anytime_accuracy() -> None:
    """By enumeration of thoughts and answers with V1 alone as baseline, which leaves the gradient unbiased."""
    policy, right = WORLD.policy(5)
    prior = torch.tensor([1, 2, 3], dtype=torch.float64) / 6
    tree = policy.tree
    thoughts = {p[: p.index(0) + 1] if 0 in p[:3] else p[:3] for p in tree.paths}
    logp = policy.log_policy()

    def answer(thought):
        node = tree.node(thought if thought[-1] == 0 else (*thought, 0))
        return logp[node, right].exp()

    true, estimate = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for thought in thoughts:
        steps = torch.stack([logp[tree.node(thought[:t]), a] for t, a in enumerate(thought)])
        chance = steps.sum().exp()
        exact = [answer(thought[: min(b, len(thought))]) for b in (1, 2, 3)]
        true = true + chance * sum(p * r.detach() for p, r in zip(prior, exact, strict=True))
        # Which budgets get a right answer is drawn, one draw for all that a finished thought fits in.
        cuts = [min(b, len(thought)) for b in (1, 2, 3)]
        for draw in product((0.0, 1.0), repeat=len(set(cuts))):
            table = dict(zip(sorted(set(cuts)), draw, strict=True))
            weight = 1.0
            for cut, r in table.items():
                p = float(answer(thought[:cut]).detach())
                weight *= p if r else 1 - p
            scores = torch.tensor([[table[c] for c in cuts]], dtype=torch.float64)
            a = segment_advantages(scores, prior, "own")[0]
            estimate = estimate + weight * chance.detach() * (a[: len(thought)] * steps).sum()
    ours, want = (torch.autograd.grad(x, policy.logits, retain_graph=True)[0] for x in (estimate, true))
    assert torch.allclose(ours, want, atol=1e-12) and want.abs().sum() > 0.1


# With a language model


def marked() -> CausalLM:
    """A random model whose tokenizer has </think> as a token."""
    from copy import deepcopy

    tokenizer = deepcopy(TOKENIZER)
    tokenizer.add_tokens(["</think>"])
    model = tiny("llama", vocab_size=len(tokenizer), max_position_embeddings=LLAMA_LIKE["max_position_embeddings"])
    return CausalLM(model, tokenizer)


def answered(engine, tasks=1, judge=None, n=6, **options):
    seen: list[str] = []

    def record(groups):
        seen.extend(e.text for g in groups for e in g.episodes)
        right = [[Verdict.right() if "1" in e.text else Verdict.wrong() for e in g.episodes] for g in groups]
        return [g.judged(v) for g, v in zip(groups, right, strict=True)]

    spec = {"name": "anytime", "summaries": 2, "summary_tokens": 4, **options}
    made = build("rollout", spec, sampling=Sampling(12), judge=judge or record)
    asks = [Ask(Task(str(i), "12+", "3"), n) for i in range(tasks)]
    return made.collect(asks, engine, np.random.default_rng(0)), seen, made


def test_marks_are_those_of_the_model() -> None:
    marks = Marks.of(HFEngine(marked()))
    assert (marks.end, marks.stop, marks.judged) == ("</think>", True, "answer")
    assert marks.forced.endswith("</think>") and "Final Answer" in marks.header
    assert marks.think(Sampling(5, stop=("x",)), 3) == Sampling(3, stop=("x", "</think>"))
    plain = Marks.of(HFEngine(CausalLM(tiny("llama"), TOKENIZER)))
    assert plain == Marks("", "", "", False, "response")


def test_thoughts_of_a_language_model_end_by_themselves_or_by_force() -> None:
    policy = marked()
    engine = HFEngine(policy)
    end = policy.tokenizer.convert_tokens_to_ids("</think>")
    with torch.no_grad():
        policy.head.weight[end] += 0.2 * policy.head.weight.mean(0)
    [group], seen, _ = answered(engine, n=40, header="=")
    question = engine.encode("12+").tolist()
    kinds = set()
    traces = [e for e in group.episodes if e.meta["role"] == "thinking"]
    for trace, verdict in zip(traces, group.verdicts, strict=False):
        tokens = trace.tokens.tolist()
        assert end not in tokens[:-1] and len(tokens) <= 12
        lost = trace.stop == "eos" and tokens[-1] != end
        kinds.add("ended" if tokens[-1] == end else "lost" if lost else "cut")
        if lost:
            assert verdict.parts["budget 3"] == 0.0
    assert kinds >= {"cut", "lost"}
    inserted = engine.encode_response(Marks.of(engine, header="=").forced + "=", end=False).tolist()
    for episode in group.episodes[len(traces) :]:
        after = episode.prompt.tolist()[len(question) :]
        assert any(
            after in ([*t.tokens.tolist()[:c], *inserted], [*t.tokens.tolist(), *inserted[-1:]])
            for t in traces
            for c in (3, 6, 9, 12, len(t.tokens))
        )
        assert episode.text == "=" + engine.decode(episode.tokens)
    assert all(text.startswith("=") for text in seen)
    batch = Batch.from_groups([group])
    ours = policy.forward(batch).logprobs
    assert torch.allclose(ours[batch.mask], batch.logprobs[batch.mask], atol=1e-4)


class Scripted:
    """An engine that says what it is told, one character a token, and keeps the seeds it was asked with."""

    def __init__(self, thoughts: list[tuple[str, str]], answer: str = "1"):
        self.thoughts, self.answer, self.seeds = iter(thoughts), answer, []

    def encode(self, prompt):
        return np.array([ord(c) for c in prompt], dtype=np.int64)

    def encode_response(self, text, end=True):
        return self.encode(text + "\x04" * end)

    def decode(self, tokens):
        return "".join(map(chr, tokens))

    def generate(self, requests: list[Request]):
        out = []
        for request in requests:
            self.seeds.append(request.seed)
            row = []
            for _ in range(request.n):
                answering = request.prefix or request.sampling.max_tokens == 4
                text, stop = (self.answer, "eos") if answering else next(self.thoughts)
                tokens = self.encode(text)
                prompt = np.concatenate([self.encode(request.prompt), np.array(request.prefix, dtype=np.int64)])
                row.append(Episode(prompt, tokens, tokens > 0, np.zeros(len(tokens), np.float32), text, stop))
            out.append(row)
        return out


def test_what_a_thought_scores() -> None:
    """Cut, ended, and lost thoughts, an answer that ends the thinking again, and verdicts that are missing."""
    marks = {"end": "#", "forced": "..#", "header": ">"}
    thoughts = [("abcdefghijkl", "length"), ("abcd#", "stop"), ("abcd", "eos"), ("ab#xy", "length")]
    [group], seen, _ = answered(Scripted(thoughts), n=4, **marks)
    parts = [[v.parts[f"budget {j}"] for j in range(4)] for v in group.verdicts[:4]]
    # Budgets 3, 6, 9, 12: a response that ends without ending the thought is right while it is cut, and 0 after that.
    assert parts == [[1, 1, 1, 1], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1]]
    assert [v.passed for v in group.verdicts[:4]] == [True, True, False, True]
    assert set(seen) == {">1"}
    prompts = {"".join(map(chr, e.prompt)) for e in group.episodes[4:]}
    assert prompts == {
        *(f"12+{t}..#>" for t in ("abc", "abcdef", "abcdefghi", "abcdefghijkl")),
        "12+abcd#>",
        "12+ab#>",
    }
    assert [e.text for e in group.episodes[:4]] == ["abcdefghijkl", "abcd#", "abcd", "ab#"]
    [twice], _, _ = answered(Scripted(thoughts[:1], answer="1#"), n=1, **marks)
    assert twice.verdicts[0].score == 0 and not any(v.passed for v in twice.verdicts)

    def silent(groups):
        return [g.judged([Verdict.abstain("timed out")] * len(g.episodes)) for g in groups]

    [unknown], _, _ = answered(Scripted(thoughts[:1]), judge=silent, n=1, **marks)
    assert all(v.passed is None and v.score == 0 for v in unknown.verdicts)


def test_without_marks_a_finished_response_is_its_own_answer() -> None:
    thoughts = [("ab1", "eos"), ("abc", "eos"), ("abcdefghijkl", "length")]
    [group], seen, _ = answered(Scripted(thoughts), n=3, end="")
    parts = [[v.parts[f"budget {j}"] for j in range(4)] for v in group.verdicts[:3]]
    assert parts == [[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
    assert seen.count("ab1") == 1 and "abcdef1" in seen


def test_answering_under_a_budget() -> None:
    strategy = AnytimeAnswer(Sampling(12), thought_tokens=6, summary_tokens=4, end="#", forced="..#", header=">")
    tasks = [Task(str(i), "12+") for i in range(3)]
    thoughts = [("abcdef", "length"), ("abcd#", "stop"), ("abc", "eos")]
    found = strategy(tasks, Scripted(thoughts), 1, np.random.default_rng(0))
    assert [a.text for a in found] == ["abcdef..#>1", "abcd#>1", "abc"]
    assert [a.meta["forced"] for a in found] == [True, False, False]
    assert [a.tokens for a in found] == [7, 6, 3]  # what was generated, not the marks put in
    real = AnytimeAnswer(Sampling(6), thought_tokens=4, summary_tokens=4)(
        [Task("t", "12+")], HFEngine(marked()), 1, np.random.default_rng(0)
    )
    assert real[0].tokens == sum(len(e.tokens) for e in real[0].episodes) > 0
    [short] = AnytimeAnswer(Sampling(6), summary_tokens=4)(
        [Task("t", "12+")], HFEngine(marked()), Budget(tokens=6), np.random.default_rng(0)
    )
    assert short.tokens <= 6
    with pytest.raises(UsageError, match="no room for a thought"):
        strategy(tasks, Scripted([]), Budget(tokens=4), np.random.default_rng(0))


def test_what_is_drawn_is_drawn_apart() -> None:
    """The seeds of a step's requests are all different, and so are the names of what is compared."""
    engine = Scripted([("abcdefghijkl", "length")] * 60)
    groups, _, _ = answered(engine, tasks=60, n=1, end="#")
    assert len({*engine.seeds}) == len(engine.seeds) == 60 * 5
    assert len({e.advantage_group for g in groups for e in g.episodes[1:]}) == 60 * 4
    engine = Scripted([("abcdef", "length")] * 60)
    AnytimeAnswer(Sampling(6), summary_tokens=4, end="#")(
        [Task(str(i), "12+") for i in range(60)], engine, 1, np.random.default_rng(0)
    )
    assert len({*engine.seeds}) == len(engine.seeds) == 120


def test_answers_are_given_to_the_thoughts_that_need_them() -> None:
    """Though one before them needs none; and with a budget of one token for the thought."""
    strategy = AnytimeAnswer(Sampling(12), summary_tokens=4, end="#", forced="..#", header=">")
    thoughts = [("abc", "eos"), ("abcdef", "length"), ("ab", "context"), ("c", "length")]
    tasks = [Task(str(i), "12+") for i in range(4)]
    found = strategy(tasks, Scripted(thoughts), Budget(tokens=5), np.random.default_rng(0))
    assert [a.text for a in found] == ["abc", "abcdef..#>1", "ab", "c..#>1"]


def test_the_options_of_answering() -> None:
    made = AnytimeAnswer(Sampling(9))
    assert (made.thought_tokens, made.summary_tokens, made.stop) == (None, 128, True) and made.once
    assert AnytimeAnswer(Sampling(9), 1, 1)
    for bad in ({"thought_tokens": 0}, {"summary_tokens": 0}, {"thought_tokens": 0, "summary_tokens": 0}):
        with pytest.raises(UsageError, match="at least 1"):
            AnytimeAnswer(Sampling(9), **bad)


def test_options() -> None:
    for bad in ({"budgets": (0.5, 0.25)}, {"budgets": ()}, {"budgets": (0,)}, {"budgets": (99,)}, {"summaries": 0}):
        with pytest.raises(UsageError, match="anytime"):
            answered(Scripted([]), **bad)
    with pytest.raises(UsageError, match="own advantage"):
        make_method("grpo", credit="S002", objective="gspo")
    made = build("rollout", catalogue.make("S002").rollout, sampling=Sampling(8000), judge=None)
    assert made.cuts == [2000, 4000, 6000, 8000] and made.weights == pytest.approx((0.1, 0.2, 0.3, 0.4))
    for prior, want in {"uniform": [0.25] * 4, "last": [0, 0, 0, 1]}.items():
        made = build("rollout", catalogue.make("S002", prior=prior).rollout, sampling=Sampling(8000), judge=None)
        assert list(made.weights) == want


def test_training_makes_thoughts_better_wherever_they_are_cut(tmp_path) -> None:
    """Exact accuracies of a tree of thoughts before and after six steps, at each budget and over their prior."""
    setting = Setting(longest=3, answers=2, steps=6, lr=10.0)
    policy, right = setting.policy(0)
    before = setting.measure(policy, right)
    texts = {**TEXTS, "budgets": (1, 2, 3), "summaries": 2, "summary_tokens": 1}
    after = setting.run({"name": "S002", "rollout": texts}, 0, tmp_path)
    assert all(after[f"at {b}"] > before[f"at {b}"] for b in (1, 2, 3))
    assert after["anytime"] > after["start"] + 0.1


def test_the_defaults_of_the_method_and_of_its_parts() -> None:
    made = catalogue.make("S002")
    assert made.credit == BRPO() == BRPO("both") and made.group_relative
    fields = ("budgets", "prior", "summaries", "summary_tokens", "end", "forced", "header", "stop", "judged")
    for spec in (made.rollout, "anytime"):
        rollout = build("rollout", spec, sampling=Sampling(16), judge=None)
        found = [getattr(rollout, name) for name in fields]
        assert found == [(0.25, 0.5, 0.75, 1.0), "linear", 4, 128, None, None, None, True, "answer"]
        assert rollout.cuts == [4, 8, 12, 16]
    words = [BRPO(b).summary["baseline"] for b in ("both", "own", "group", "none")]
    assert words == ["earlier budgets, group mean", "earlier budgets", "group mean", "none"]


def test_budgets_that_are_shares_and_budgets_that_are_tokens() -> None:
    def cuts(*budgets: float, tokens: int = 10) -> list[int]:
        return build("rollout", {"name": "anytime", "budgets": budgets}, sampling=Sampling(tokens), judge=None).cuts

    assert cuts(0.01, 0.5, 1.0) == [1, 5, 10] and cuts(1) == [10] and cuts(1, 10) == [1, 10] and cuts(2, 2) == [2, 2]
    for bad in ((0.0, 1.0), (-1, 2), (3, 2), (11,), (0.5, 11)):
        with pytest.raises(UsageError, match="anytime"):
            cuts(*bad)
    for bad in ({"summary_tokens": 0}, {"summaries": 0}):
        with pytest.raises(UsageError, match="at least 1"):
            build("rollout", {"name": "anytime", **bad}, sampling=Sampling(9), judge=None)
    assert build("rollout", {"name": "anytime", "summaries": 1, "summary_tokens": 1}, sampling=Sampling(9), judge=None)


def test_where_a_thought_ends_that_was_not_stopped_there() -> None:
    """One character a token: the mark is of two, and is found where it first ends."""
    engine = Scripted([])
    marks = Marks("##", "..##", ">", False, "answer")
    size = lambda text: marks.finished(engine.encode(text).tolist(), engine)  # noqa: E731
    assert (size("ab##"), size("ab##xy##"), size("##"), size("ab#x#"), size("")) == (4, 4, 2, None, None)
    assert Marks("", "", "", False, "response").finished([1], engine) is None
    assert marks.think(Sampling(9), 4) == Sampling(4)
    text = lambda complete: engine.decode(marks.after(complete, engine))  # noqa: E731
    assert (text(True), text(False)) == (">", "..##>") and Marks("#", "", "", True, "answer").after(True, engine) == ()
    assert Marks.of(engine, end="#") == Marks("#", "...\n\n...\n\n#", "\n\n**Final Answer**\n", True, "answer")
    assert Marks.of(engine, end="#", stop=False).stop is False
    assert Marks.of(engine) == Marks("", "", "", False, "response")
    assert Marks.of(engine, end="#", judged="response").judged == "response"


def test_a_special_mark_that_the_decoder_leaves_out_still_ends_the_thought() -> None:
    class Silent(Scripted):
        def decode(self, tokens):
            return super().decode(tokens).replace("#", "")

    marks = Marks("#", "#", "", True, "answer")
    assert marks.finished([*b"ab#"], Silent([])) == 3 and marks.finished([*b"ab"], Silent([])) is None


def test_what_a_rollout_tells_of_verdicts_that_differ() -> None:
    """Two thoughts, one answered rightly from its first cut alone; means by hand, and a tie is no pass."""
    marks = {"end": "#", "forced": "..#", "header": ">", "budgets": (3, 6), "prior": "uniform"}
    said = iter([True, True, False, True, False, False, False, False])

    def judge(groups):
        return [g.judged([Verdict.right() if next(said) else Verdict.wrong() for _ in g.episodes]) for g in groups]

    [group], _, made = answered(Scripted([("abcdef", "length"), ("uvwxyz", "length")]), n=2, judge=judge, **marks)
    found = group.verdicts[:2]
    assert [(v.parts["budget 0"], v.parts["budget 1"], v.score, v.passed) for v in found] == [
        (1.0, 0.5, 0.75, False),
        (0.0, 0.0, 0.0, False),
    ]
    assert made.metrics() == {"anytime/accuracy": 0.375, "anytime/at 3": 0.5, "anytime/at 6": 0.25}


def test_thoughts_that_were_not_to_be_had_and_answers_that_nobody_judged() -> None:
    """A failed thought is answered where it was cut before, and scores nothing at its own end, which is unknown."""
    marks = {"end": "#", "forced": "..#", "header": ">"}
    for stop in ("error", "context"):
        [group], seen, made = answered(Scripted([("abcd", stop)]), n=1, **marks)
        assert [group.verdicts[0].parts[f"budget {j}"] for j in range(4)] == [1, None, None, None]
        assert group.verdicts[0].passed is None and seen == [">1"] * 2 and made.metrics() == {}

    def silent(groups):
        return [g.judged([Verdict.abstain("timed out")] * len(g.episodes)) for g in groups]

    [unknown], _, _ = answered(Scripted([("abcdefghijkl", "length")], answer="1#"), judge=silent, n=1, **marks)
    assert all(v.passed is None for v in unknown.verdicts)


def test_two_of_three_last_answers_pass() -> None:
    said = iter([True, True, False])

    def judge(groups):
        return [g.judged([Verdict.right() if next(said) else Verdict.wrong() for _ in g.episodes]) for g in groups]

    options = {"end": "#", "forced": "#", "header": "", "budgets": (1.0,), "summaries": 3}
    [group], _, _ = answered(Scripted([("abcdefghijkl", "length")]), n=1, judge=judge, **options)
    assert group.verdicts[0].passed is True and group.verdicts[0].score == pytest.approx(2 / 3)
