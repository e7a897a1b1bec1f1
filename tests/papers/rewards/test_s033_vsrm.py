"""VSRM: the worked rewards, where they are placed, how thoughts are cut, and what is asked after each step."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted, ask, judge
from spelled import NANO
from tiny import LLAMA_LIKE, TOKENIZER, tiny

from assay import catalogue
from assay.batch import Batch
from assay.catalogue.claim import claim_of
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.lab.settings.thinking.overthinking import END, Setting, thoughts
from assay.method import make_method
from assay.papers.rewards.s033_vsrm import WORDS
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.registry import build
from assay.rewards.process.step_gains import StepGains, spread
from assay.rollout.probed import Probed
from assay.rollout.probes import Probe, confidence, probes_of
from assay.signals.entropy_steps import EntropySteps
from assay.signals.pattern_steps import PatternSteps
from assay.signals.steps import Steps
from assay.types import Task
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")

NAN = float("nan")


def gains(*accuracy, discount=0.7, lookahead=4, threshold=0.1):
    return spread(accuracy, discount, lookahead, threshold)


def test_the_papers_numbers() -> None:
    method = catalogue.make("S033")
    rollout, reward = method.rollout, method.reward
    assert (rollout["probes"], rollout["probe_tokens"], rollout["start"], rollout["end"]) == (5, 768, False, None)
    assert (rollout["forced"], rollout["header"]) == ("{end}", "")
    assert rollout["steps"] == PatternSteps(pattern=WORDS, where="sentence", first=1000, apart=400)
    assert reward == StepGains(1.0, 1.0, 0.7, 4, 1e-5, 0.0)


def test_the_worked_example() -> None:
    assert gains(0, 0.25, 0.25, 0.25, 1, 1) == pytest.approx([0.25, 0.3675, 0.525, 0.75, 0])


def test_checks_earn_nothing_and_those_before_a_loss_pay_for_it() -> None:
    assert gains(1, 1, 1, 1) == [0, 0, 0]
    assert gains(1, 1, 1, 0, 0) == pytest.approx([-0.49, -0.7, -1, 0])
    # Up to four steps ahead, and not beyond the next change.
    assert gains(*[0] * 6, 1) == pytest.approx([0, 0.7**4, 0.7**3, 0.49, 0.7, 1])
    assert gains(0, 0, 1, 0) == pytest.approx([0.7, 1, -1])
    assert gains(0, 0.05, 0.5) == pytest.approx([0.7 * 0.45, 0.45])
    assert gains() == gains(0.5) == []


def test_what_is_not_known_earns_nothing_and_hides_what_comes_after() -> None:
    assert gains(0, NAN, 1, 1) == [0, 0, 0]
    assert gains(0, 0, NAN, 0, 1) == pytest.approx([0, 0, 0, 1])


@given(st.lists(st.sampled_from([0.0, 0.2, 0.4, 1.0]), min_size=1, max_size=9), st.integers(0, 5))
def test_rewards_by_the_definition(accuracy, lookahead) -> None:
    """Against the definition written out; without looking ahead they add up to what the response adds."""
    found = gains(*accuracy, lookahead=lookahead)
    d = np.diff(accuracy)
    for k, r in enumerate(found):
        later = [q for q in range(1, lookahead + 1) if k + q < len(d) and abs(d[k + q]) >= 0.1]
        expected = d[k] if abs(d[k]) >= 0.1 else 0.7 ** later[0] * d[k + later[0]] if later else 0
        assert r == pytest.approx(expected)
    assert sum(gains(*accuracy, lookahead=0)) == pytest.approx(accuracy[-1] - accuracy[0])


def probed(batch, row, *places):
    """Give a sample of a batch probes of these accuracies."""
    meta = {"probes": tuple(Probe(at, (), () if a is None else (a,)) for at, a in places)}
    batch.episodes[row] = replace(batch.episodes[row], meta=meta)


def test_rewards_stand_on_the_last_learnable_token_of_a_step(make_batch) -> None:
    batch = make_batch([6, 6, 6], [1.0, 0.0, 1.0], passed=[True, False, None])
    batch.mask[1, 3] = False
    probed(batch, 0, (2, 0.0), (4, 1.0), (6, 1.0))
    probed(batch, 1, (0, 0.5), (2, 0.5), (4, 0.0), (6, None))
    batch.episodes[1] = replace(batch.episodes[1], meta={**batch.episodes[1].meta, "closed": False})
    reward = StepGains(weight=2.0, unclosed=-10.0)(batch)
    assert reward.tokens is not None and reward.valid is not None
    assert reward.tokens[0].tolist() == [0, 0, 0, 2, 0, 0]
    assert reward.tokens[1].tolist() == pytest.approx([0, -0.7, -1, 0, 0, 0])
    assert not reward.tokens[2].any() and reward.valid.tolist() == [True, True, False]
    assert reward.values[:2].tolist() == [1, -10]
    assert reward.terms["unclosed"].tolist() == [0, 1, 0]


def test_advantages_are_whitened_returns(make_batch) -> None:
    """Worked by hand: rewards by token and outcome, summed from each token on, standardised over all tokens."""
    method = catalogue.make("S033")
    batch = make_batch([3, 2], [1.0, 0.0])
    probed(batch, 0, (1, 0.0), (2, 1.0), (3, 0.5))
    batch.signals = {}
    method.value(batch)
    returns = np.array([1.5, 1.5, 0.5, 0, 0])
    expected = (returns - returns.mean()) / np.sqrt(returns.var(ddof=1) + 1e-8)
    assert batch.advantages[batch.mask].tolist() == pytest.approx(expected.tolist())
    plain = make_batch([3, 2], [1.0, 0.0])
    reinforce = make_method("grpo", credit="reinforce++").value(plain).advantages
    batch.episodes[0] = replace(batch.episodes[0], meta={})
    assert torch.equal(method.value(batch).advantages, reinforce)


def cut(text, **options):
    steps = PatternSteps(**options)
    return [text[a:b] for a, b in zip([0, *steps.cuts(text)], [*steps.cuts(text), len(text)], strict=True)]


def test_a_new_thought_begins_after_the_sentence_before_its_word() -> None:
    text = "It is 5. Now, we wait for it. But hmm? Some distribution.\nSo it is 6. Hold on"
    pieces = cut(text, pattern=WORDS, where="sentence")
    # "wait" is within its sentence; "hmm" stands in the sentence that "But" opened; "Some" and "distribution" are none.
    assert pieces == ["It is 5.", " Now, we wait for it.", " But hmm? Some distribution.\n", "So it is 6.", " Hold on"]
    late = cut(text, pattern=WORDS, where="sentence", first=30)
    assert late == ["It is 5. Now, we wait for it.", " But hmm? Some distribution.\n", "So it is 6.", " Hold on"]
    assert (
        cut(text, pattern=WORDS, where="sentence", apart=30)[1] == " Now, we wait for it. But hmm? Some distribution.\n"
    )
    assert cut("a wait b", pattern=WORDS, where="sentence") == ["a ", "wait b"]
    assert cut("a.\n\nb\n\nc.\n\n", pattern=r"\.\n\n") == ["a.\n\n", "b\n\nc.\n\n"]
    assert cut("ab ab", pattern="b", where="before") == ["a", "b a", "b"]
    for bad in ({"pattern": "("}, {"first": -1}, {"apart": -1}):
        with pytest.raises(UsageError, match="steps"):
            PatternSteps(**bad)


def collected(engine, n=1, prompt="Q:", **options):
    spec = {"name": "probed", "end": "#", "forced": "..#", "header": ">", "probes": 2, **options}
    made = build("rollout", spec, sampling=Sampling(30), judge=judge)
    [group] = made.collect([ask(n, prompt)], engine, np.random.default_rng(0))
    return group, made


LINES = {"steps": {"by": "newline"}}


def told(group):
    return [[(p.at, p.scores) for p in probes_of(e)] for e in group.episodes]


def test_what_is_asked_after_each_step() -> None:
    """Thoughts that ended, that were cut, and that ended the response; answers that depend on what stands before."""
    thoughts_ = [("ab\ncd\ne#>1", "eos"), ("ab\ncd", "length"), ("ab\ncd1", "eos"), ("", "length"), ("ab\ncd", "error")]
    engine = Scripted(thoughts_, lambda prefix: "1" if "cd" in prefix else "0")
    group, made = collected(engine, 5, **LINES)
    assert told(group) == [
        [(3, (0, 0)), (6, (1, 1)), (8, (1, 1))],
        [(3, (0, 0)), (5, (1, 1))],
        [(3, (0, 0)), (6, (1,))],
        [],
        [],
    ]
    assert [p.between for p in probes_of(group.episodes[0])] == [tuple(map(ord, t)) for t in ("..#>", "..#>", ">")]
    texts = [engine.decode(r.prefix) for r in engine.asked if r.prefix]
    assert texts == ["ab\n..#>", "ab\ncd\n..#>", "ab\ncd\ne#>", "ab\n..#>", "ab\ncd..#>", "ab\n..#>"]
    assert [e.meta["closed"] for e in group.episodes] == [True, False, False, False, False]
    assert [(s.start, s.end) for s in group.episodes[0].spans] == [(0, 3), (3, 6), (6, 8)]
    assert [v.score for v in group.verdicts[:3]] == [1, 0, 1]
    found = made.metrics()
    assert found["probes/first"] == 0 and found["probes/last"] == 1 and found["probes/places"] == pytest.approx(7 / 3)
    assert found["probes/regret"] == pytest.approx(1 - (2 / 3 + 0.5 + 0.5) / 3) and found["probes/unknown"] == 0


def test_places() -> None:
    def places(**options):
        engine = Scripted([("a\nb\nc\nd\ne#>1", "eos")])
        return [at for at, _ in told(collected(engine, **LINES, **options)[0])[0]]

    assert places() == [2, 4, 6, 8, 10] and places(start=True) == [0, 2, 4, 6, 8, 10]
    assert places(last=False) == [2, 4, 6, 8] and places(most=2) == [2, 4]
    assert places(grouped=2) == [4, 8, 10] and places(grouped=9) == [10]
    group, _ = collected(Scripted([("a\nb#1", "eos")]), **LINES, score=False)
    assert told(group) == [[(2, ()), (4, ())]] and probes_of(group.episodes[0])[0].confidence == 1
    for bad in ({"grouped": 0}, {"probes": 0}, {"probe_tokens": 0}, {"most": 0}):
        with pytest.raises(UsageError, match="probed"):
            collected(Scripted(), **bad)


def test_failures_are_not_wrong_answers() -> None:
    answers = iter(["1", "?", "?", "?", "0", "1"])
    group, made = collected(Scripted([("a\nb\nc#?", "eos")], lambda prefix: next(answers)), **LINES)
    assert told(group) == [[(2, (1,)), (4, ()), (6, (0, 1))]]
    assert group.verdicts[0].passed is None and made.metrics()["probes/unknown"] == pytest.approx(1 / 3)
    assert np.isnan(probes_of(group.episodes[0])[1].accuracy)


def test_the_judge_sees_the_answer_or_all_of_it() -> None:
    seen: list[str] = []

    def watching(groups):
        seen.extend(e.text for g in groups for e in g.episodes if not g.verdicts)
        return judge(groups)

    for judged in ("answer", "response"):
        options = {"end": "#", "forced": "{end}", "header": ">", "probes": 1, "judged": judged, "start": True}
        made = build("rollout", {"name": "probed", **options}, sampling=Sampling(9), judge=watching)
        made.collect([ask(1)], Scripted([("ab#1", "eos")]), np.random.default_rng(0))
    assert seen == ["ab#1", ">1", ">1", "ab#1", "#>1", "ab#>1"]


def test_without_marks_an_answer_is_what_follows() -> None:
    """No end of thinking is known or given: nothing is put, and a finished response is its own answer."""
    engine = Scripted([("a\nb1", "eos"), ("a\nb", "length")])
    group, _ = collected(engine, 2, **LINES, end=None)
    assert [engine.decode(r.prefix) for r in engine.asked if r.prefix] == ["a\n", "a\n", "a\nb"]
    assert told(group) == [[(2, (1, 1)), (4, (1,))], [(2, (1, 1)), (3, (1, 1))]]


def test_a_response_under_another_prompt_is_left_alone() -> None:
    engine = Scripted([("a\nb#1", "eos")] * 2)
    [group] = judge(
        build("rollout", "single_turn", sampling=Sampling(9)).collect([ask(2)], engine, np.random.default_rng(0))
    )
    more, other = (np.concatenate([engine.encode(p), engine.encode("xy")]) for p in ("Q:", "R:"))
    episodes = tuple(replace(e, prompt=p) for e, p in zip(group.episodes, (more, other), strict=True))
    rollout = Probed(Sampling(9), judge, steps=Steps("newline"), end="#", forced="#", header="", probes=1)
    [found] = rollout.probe([replace(group, episodes=episodes)], engine, np.random.default_rng(0))
    assert [len(probes_of(e)) for e in found.episodes] == [2, 0]
    assert [engine.decode(r.prefix) for r in engine.asked if r.prefix] == ["xya\n#", "xya\nb#"]


def test_on_a_language_model() -> None:
    """Prefixes are the response's own tokens, the room in the context is respected, and a seed repeats itself."""
    torch.manual_seed(0)
    policy = CausalLM.load(ModelConfig(source="nano", nano={**NANO, "context": 48}), 0)
    engine = HFEngine(policy)
    spec = {"name": "probed", "steps": {"by": "fixed", "size": 12}, "end": "", "forced": "=", "header": "", "probes": 2}
    spec |= {"probe_tokens": 4, "start": True}

    def run():
        made = build("rollout", spec, sampling=Sampling(200, 1.5), judge=judge)
        return made.collect([ask(4, "40+2=")], engine, np.random.default_rng(3))[0]

    group = run()
    assert [probes_of(e) for e in group.episodes] == [probes_of(e) for e in run().episodes]
    full = [e for e in group.episodes if e.stop == "context"]
    assert full, "some responses fill the context"
    for episode in full:
        last = probes_of(episode)[-1]
        assert last.at == len(episode.tokens) and not last.scores and last.confidence is None
    for episode in group.episodes:
        for probe in probes_of(episode)[:-1]:
            if len(episode.prompt) + probe.at + 1 + 4 < policy.context:
                assert len(probe.scores) == 2 and probe.confidence is not None and 0 < probe.confidence <= 1


def test_a_model_with_an_end_of_thinking() -> None:
    """Its own mark is put by default; without one nothing is, whatever texts are named."""
    tokenizer = deepcopy(TOKENIZER)
    tokenizer.add_tokens(["</think>"])
    model = tiny("llama", vocab_size=len(tokenizer), max_position_embeddings=LLAMA_LIKE["max_position_embeddings"])
    end = tokenizer.convert_tokens_to_ids("</think>")
    spec = catalogue.make("S033").rollout
    made = build("rollout", spec, sampling=Sampling(12), judge=judge)
    thinking, plain = HFEngine(CausalLM(model, tokenizer)), HFEngine(CausalLM(tiny("llama"), TOKENIZER))
    marks = made.marks(thinking)
    assert marks.after(False, thinking) == (end,) and marks.after(True, thinking) == ()
    assert made.marks(plain).after(False, plain) == ()
    spae = build(
        "rollout", catalogue.make("S052").rollout, sampling=Sampling(12), judge=judge, more=None, curriculum=None
    )
    assert spae.marks(plain).after(False, plain) == () and spae.marks(thinking).header.endswith("\\boxed{")
    made = build("rollout", {**spec, "steps": {"by": "fixed", "size": 4}}, sampling=Sampling(12), judge=judge)
    [group] = made.collect([ask(12, "12+")], thinking, np.random.default_rng(0))
    for episode in group.episodes:
        tokens = episode.tokens.tolist()
        closed = end in tokens
        assert episode.meta["closed"] == closed
        thought = tokens.index(end) + 1 if closed else len(tokens)
        places = [*range(4, thought, 4), thought] if thought else []
        own = not closed and episode.stop == "eos"
        expected = [(at, () if at == thought and (own or closed) else (end,)) for at in places]
        assert [(p.at, p.between) for p in probes_of(episode)] == expected


def test_putting_a_gain_off_pays() -> None:
    """What flat steps inherit comes on top of the gain: three of them before it are worth more than none."""
    assert sum(gains(0, 1)) == 1 and sum(gains(0, 0, 0, 0, 1)) == pytest.approx(1 + 0.7 + 0.49 + 0.343)
    assert sum(gains(0, 0, 0, 0, 1, lookahead=0)) == 1


def test_confidence() -> None:
    [[a, b, c]] = Scripted([("xy", "eos"), ("x", "eos"), ("", "eos")]).generate([ask_request(3)])
    a, b = replace(a, entropies=np.array([0.5, 1.5])), replace(b, entropies=np.array([0.0]))
    assert confidence([a, b, c]) == pytest.approx((np.exp(-1) + 1) / 2)
    assert confidence([c]) is None and confidence([replace(a, entropies=None)]) is None


def ask_request(n):
    from assay.engines.base import Request

    return Request("Q:", n, Sampling(5), 0)


def test_on_a_tree_accuracies_are_those_of_the_state() -> None:
    """With an answer that is sure, a probe says whether the solution stands after so many tokens."""
    setting = Setting(sure=1 - 1e-9)
    policy, key = setting.policy(1)
    verifier = TabularVerifier(policy.tree)
    method = make_method("S033", rollout={"steps": {"by": "fixed", "size": 1}, "end": "0", "judged": "response"})
    made = build(
        "rollout", {**method.rollout, "start": True}, sampling=Sampling(7), judge=partial(judge_groups, verifier)
    )
    tasks = Task("0", "", str(key), kind="tabular")
    [group] = made.collect([replace(ask(40), task=tasks)], TabularEngine(policy), np.random.default_rng(0))
    kinds = set()
    for episode in group.episodes:
        tokens = tuple(episode.tokens.tolist())
        thought = tokens[: tokens.index(END)] if END in tokens else tokens
        stands = [done >= setting.need for done in setting.states(thought, 1)]
        kinds.add((END in tokens, len(tokens) == 7))
        expected = [*stands, *([stands[-1]] if END in tokens else [])]
        assert [p.accuracy == 1 for p in probes_of(episode)] == expected
        assert [p.at for p in probes_of(episode)] == list(range(len(expected)))
    assert (True, False) in kinds and (False, True) in kinds


def test_the_setting_measures_what_is_there() -> None:
    """Against a walk through all responses."""
    setting = Setting(longest=4, noise=0.0)
    policy, key = setting.policy(3)
    p = policy.log_policy().exp().detach().numpy()
    right = prompt = checks = length = 0.0
    at = np.zeros(4)
    for thought in thoughts(4):
        node, reach = 0, 1.0
        for token in thought:
            reach *= p[node, token]
            node = int(policy.tree.children[node, token])
        states = setting.states(thought, 3)
        before = sum(done >= 2 for done in states[:-1])
        answer = p[int(policy.tree.children[node, END]), key] * (states[-1] >= 2)
        if len(thought) < 4:
            at[len(thought)] += reach * answer
            at[len(thought) + 1 :] += reach * p[node, END] * answer
        ended = reach * (p[node, END] if len(thought) < 4 else 1)
        size = min(len(thought) + 2, 4)
        checks, length = checks + ended * before, length + ended * size
        if len(thought) + 2 <= 4:
            right += ended * answer
            prompt += ended * answer * (before == 0)
    found = setting.measure(policy, setting.worth(policy.tree, 3), setting.nodes(policy.tree, key), key)
    assert found["right"] == pytest.approx(right) and found["prompt"] == pytest.approx(prompt)
    assert found["checks"] == pytest.approx(checks) and found["length"] == pytest.approx(length)
    assert found["anytime"] == pytest.approx(at.mean()) and found["efficiency"] == pytest.approx(right / length)


def test_options_of_a_recipe() -> None:
    for given_, kind in (
        ({"by": "fixed", "size": 3}, Steps),
        ({"pattern": "x", "where": "before"}, PatternSteps),
        ({"share": 0.5}, EntropySteps),
    ):
        made = build("rollout", {"name": "probed", "steps": given_}, sampling=Sampling(5), judge=judge)
        assert type(made.steps) is kind
    for bad in ({"discount": 1.5}, {"lookahead": -1}, {"threshold": 0.0}):
        with pytest.raises(UsageError, match="step_gains"):
            make_method("S033", reward=bad)
    with pytest.raises(UsageError, match="own advantage"):
        make_method("grpo", credit="S052", objective="gspo")
    assert isinstance(catalogue.make("S033", start=True).reward, StepGains)
    assert Batch.from_groups([]).mask.shape == (0, 0)


def test_it_acts_in_training(tmp_path) -> None:
    """From 0.34 right answers and two checks in each response to four in five right and few checks.

    The arms of the claim differ in the weight alone; both ask two answers of one token after each token.
    """
    vsrm, outcome = (claim_of("S033").arms[name] for name in ("vsrm", "outcome"))
    assert vsrm["rollout"] == outcome["rollout"] and outcome["reward"] == {"weight": 0.0}
    asked = vsrm["rollout"]
    assert asked["steps"] == {"by": "fixed", "size": 1} and (asked["probes"], asked["probe_tokens"]) == (2, 1)
    setting = Setting(steps=10, lr=30.0)
    found = setting.run(claim_of("S033").arms["vsrm"], 0, tmp_path)
    assert found["start"] < 0.4 and found["right"] > 0.8 and found["checks"] < 0.4
