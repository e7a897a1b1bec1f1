"""S034: soft and hard scores by hand, standardised rewards, what the judge is shown, replies that say nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import TOKENIZER, plain_logits, tiny

from assay.engines.asking import ask, filled
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.errors import RunError, UsageError
from assay.lab.settings.open_ended import free_form
from assay.method import make_method
from assay.ops import outcome
from assay.papers.rewards.s034_soft_verifier import JudgedReward, distillation, soft_verifier
from assay.policies.causal_lm import CausalLM
from assay.rewards.judges.reference_judge import ReferenceJudge, decision
from assay.rewards.shaping.standardised import StandardisedReward
from assay.types import Ask, Episode, Group, Task

pytestmark = pytest.mark.usefixtures("one_thread")
GREEDY = Sampling(4, 0.0)
TASK = Task("t", "What causes tides?", reference="the Moon's gravity")


class Judge:
    """An engine whose tokens are characters; it says of each answer what it was told to, with that probability."""

    def __init__(self, said: dict[str, tuple[str, float]], stop: str = "eos", known: bool = True):
        self.said, self.stop, self.known, self.asked = said, stop, known, list[str]()

    def encode(self, prompt: object) -> np.ndarray:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        raise NotImplementedError

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(map(chr, tokens)).replace("\0", "")

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            assert isinstance(request.prompt, str) and request.n == 1 and request.sampling.temperature == 0
            self.asked.append(request.prompt)
            text, p = self.said[request.prompt.rpartition("Answer: ")[2]]
            tokens = np.array([ord(c) for c in text + "\0"])
            # Only the digit, or the first letter of a word, is uncertain.
            logprobs = np.array([math.log(p) if c in "01YyNn" else 0.0 for c in text + "\0"], dtype=np.float32)
            none = tokens[:0]
            out.append(
                [Episode(none, tokens, tokens >= 0, logprobs if self.known else None, self.decode(tokens), self.stop)]
            )
        return out


def rewarded(make_batch, judge: Judge, answers: Sequence[str], task: Task = TASK, **options):
    batch = make_batch([1] * len(answers), passed=[False] * len(answers), texts=answers, tasks=[task] * len(answers))
    return batch, JudgedReward(ReferenceJudge(judge, **options))(batch)


def test_the_score_is_the_probability_of_right_as_the_judge_says_it(make_batch) -> None:
    """1 with 0.9 -> 0.9, 0 with 0.7 -> 0.3; hard: 1 and 0. What is on neither digit counts against 1, and for 0."""
    judge = Judge({"a": ("1", 0.9), "b": ("0", 0.7), "c": (" \n1.", 0.4), "d": ("0", 0.3)})
    _, soft = rewarded(make_batch, judge, ["a", "b", "c", "d"])
    assert soft.values.tolist() == pytest.approx([0.9, 0.3, 0.4, 0.7], abs=1e-6)
    assert soft.terms["accepted"].tolist() == [1, 0, 1, 0]
    assert bool(soft.valid.all())
    _, hard = rewarded(make_batch, judge, ["a", "b", "c", "d"], score="hard")
    assert hard.values.tolist() == [1, 0, 1, 0]


def test_the_authors_verifier_says_yes_and_no(make_batch) -> None:
    judge = Judge({"a": ("YES", 0.9), "b": ("NO", 0.7), "c": (" no.\n", 0.6)})
    _, soft = rewarded(make_batch, judge, ["a", "b", "c"])
    assert soft.values.tolist() == pytest.approx([0.9, 0.3, 0.4], abs=1e-6)
    assert soft.terms["accepted"].tolist() == [1, 0, 0] and bool(soft.valid.all())


@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_a_certain_judge_is_a_hard_one(said) -> None:
    judge = Judge({str(k): (str(int(c)), 1.0) for k, c in enumerate(said)})
    pairs = [(TASK, str(k)) for k in range(len(said))]
    soft, hard = (ReferenceJudge(judge, score=score).map(pairs) for score in ("soft", "hard"))
    assert soft == hard and [v.passed for v in soft] == said


def test_rewards_are_standardised_over_the_batch_and_zero_if_equal(make_batch) -> None:
    batch = make_batch([1] * 4, rewards=[0.9, 0.2, 0.6, 0.1])
    for ddof, want in {
        0: [1.405564, -0.780869, 0.468521, -1.093216],
        1: [1.217254, -0.676252, 0.405751, -0.946753],
    }.items():
        assert StandardisedReward(ddof=ddof)(batch).values.tolist() == pytest.approx(want, abs=1e-6)
    # A third is no sum of powers of two: the mean of equal numbers must still be that number.
    equal = make_batch([1] * 3, rewards=[1 / 3] * 3)
    assert StandardisedReward()(equal).values.tolist() == [0, 0, 0]
    assert StandardisedReward()(make_batch([1], rewards=[0.7])).values.tolist() == [0]


def test_abstentions_are_in_no_mean(make_batch) -> None:
    batch = make_batch([1] * 4, rewards=[1.0, 0.0, 0.0, 0.0], passed=[True, False, None, None])
    found = StandardisedReward(ddof=0)(batch)
    assert found.valid.tolist() == [True, True, False, False]
    assert found.values.tolist() == pytest.approx([1, -1, 0, 0])


def test_prompts_are_standardised_by_themselves(make_batch) -> None:
    batch = make_batch([1] * 4, rewards=[1.0, 0.0, 0.9, 0.8])
    batch.prompt_group = torch.tensor([0, 0, 1, 1])
    assert StandardisedReward(over="prompt", ddof=0)(batch).values.tolist() == pytest.approx([1, -1, 1, -1])


def test_reinforce_takes_the_standardised_reward_as_advantage(make_batch) -> None:
    """And by prompt, with the population's deviation of n - 1, that is GRPO's advantage (its epsilon aside)."""
    method = make_method("S034", reward={"name": "standardised", "over": "prompt"})
    batch = make_batch([2, 3, 1], rewards=[1.0, 0.0, 0.0], passed=[True, False, False])
    batch.prompt_group = torch.zeros(3, dtype=torch.int64)
    method.value(batch)
    grpo = make_batch([2, 3, 1], rewards=[1.0, 0.0, 0.0], passed=[True, False, False])
    make_method("grpo").value(grpo)
    assert torch.allclose(batch.advantages, grpo.advantages, atol=1e-4)
    assert outcome(batch).tolist() == pytest.approx(batch.advantages[:, 0].tolist())


def test_a_judge_that_fails_or_mumbles_is_no_verdict(make_batch) -> None:
    judge = Judge({"a": ("1", 0.9), "b": ("yes it is", 0.9), "c": ("10", 0.9), "d": ("0.5", 0.9), "e": ("", 1.0)})
    _, found = rewarded(make_batch, judge, ["a", "b", "c", "d", "e"])
    assert found.valid.tolist() == [True, False, False, False, False]
    assert found.terms["abstained"].tolist() == [0, 1, 1, 1, 1]
    _, paper = rewarded(make_batch, judge, ["a", "b"], unread="wrong")
    assert bool(paper.valid.all()) and paper.values.tolist() == pytest.approx([0.9, 0])
    for unread in ("abstain", "wrong"):
        _, failed = rewarded(make_batch, Judge({"a": ("1", 0.9)}, stop="error"), ["a"], unread=unread)
        assert failed.valid.tolist() == [False], "a judge out of reach is no wrong answer"


def test_a_task_without_reference_and_an_empty_answer_are_not_asked_about(make_batch) -> None:
    judge = Judge({})
    _, found = rewarded(make_batch, judge, ["a"], Task("t", "?", reference=" "))
    assert found.valid.tolist() == [False]
    _, found = rewarded(make_batch, judge, ["  \n\n "])
    assert found.valid.tolist() == [True] and found.values.tolist() == [0] and judge.asked == []


def test_the_task_verifiers_failure_stays_one(make_batch) -> None:
    batch = make_batch([1], passed=[None], texts=["a"], tasks=[TASK])
    assert JudgedReward(ReferenceJudge(Judge({"a": ("1", 0.9)})))(batch).valid.tolist() == [False]


def test_the_judge_is_shown_the_end_and_asked_once() -> None:
    judge = Judge({"so it is the Moon {question}": ("1", 0.8), "first\n\nso it is the Moon {question}": ("0", 0.8)})
    text = "first\n\nso it is the Moon {question}\n"
    assert [v.passed for v in ReferenceJudge(judge).map([(TASK, text)] * 3)] == [True] * 3
    assert len(judge.asked) == 1
    assert "Question: What causes tides?\nReference answer: the Moon's gravity\nAnswer: so" in judge.asked[0]
    assert ReferenceJudge(judge, shown="response")(TASK, text).passed is False


def test_soft_scores_need_log_probabilities() -> None:
    judge = Judge({"a": ("1", 0.9)}, known=False)
    with pytest.raises(RunError, match="score = 'hard'"):
        ReferenceJudge(judge)(TASK, "a")
    assert ReferenceJudge(judge, score="hard")(TASK, "a").score == 1


def test_the_decision_is_the_token_with_the_digit() -> None:
    judge = Judge({"a": ("  0", 0.9)})
    [[reply]] = judge.generate([Request("Answer: a", 1, GREEDY, 0)])
    assert decision(reply, judge) == (False, 2)


def test_probabilities_are_those_of_the_judges_own_model() -> None:
    """A transformers model as judge, asked about many answers at once, against its logits for each prompt alone."""
    plain = tiny("grouped queries")
    engine = HFEngine(CausalLM(deepcopy(plain), TOKENIZER))
    judge = ReferenceJudge(engine, max_tokens=1, template="{reference}={answer}")
    tasks = [Task(str(i), "", reference=f"{i}+{i * i % 17}") for i in range(300)]
    found = judge.map([(task, task.reference[::-1]) for task in tasks])
    read = 0
    for task, verdict in zip(tasks, found, strict=True):
        prompt = engine.encode(judge.question(task, task.reference[::-1]))
        with torch.no_grad():
            p = plain_logits(plain, prompt, np.zeros(1, dtype=np.int64))[0].softmax(-1)
        said = engine.decode([int(p.argmax())]).strip()
        if said not in ("0", "1"):
            assert verdict.passed is None
            continue
        read += 1
        assert verdict.passed is (said == "1")
        assert verdict.score == pytest.approx(float(p.max() if said == "1" else 1 - p.max()), abs=1e-5)
    assert read > 0


def test_a_teacher_labels_what_the_small_judge_will_be_asked() -> None:
    judge = Judge({"a": ("1", 0.9), "b": ("0", 0.7), "c": ("well", 0.7)})
    none = np.zeros(0, dtype=np.int64)
    episodes = tuple(Episode(none, none, none > 0, None, text, "eos") for text in ["a", "b", "a", "c"])
    teacher = ReferenceJudge(judge)
    tasks = distillation([Group(Ask(TASK, 4), episodes)], teacher)
    assert [t.solution for t in tasks] == ["1", "0"] == [t.reference for t in tasks]
    assert [t.prompt for t in tasks] == [teacher.question(TASK, "a"), teacher.question(TASK, "b")]
    assert len({t.id for t in tasks}) == 2


def test_the_three_optimisers(make_batch) -> None:
    """Of rewards 1 and 0, standardised to 0.707 and -0.707: as they are; less the sibling's; whitened by token."""
    half = math.sqrt(0.5)
    for optimiser, want in {
        "reinforce": [half, -half],
        "rloo": [2 * half, -2 * half],
        "reinforce++": [0.730297, -1.095445],
    }.items():
        method = soft_verifier(optimiser=optimiser, kl_weight=0.0)
        batch = make_batch([3, 2], rewards=[1.0, 0.0], passed=[True, False])
        batch.prompt_group = torch.zeros(2, dtype=torch.int64)
        method.value(batch)
        # Whitened: three tokens at h and two at -h have mean h / 5 and variance 1.2 h^2.
        assert batch.advantages[:, 0].tolist() == pytest.approx(want, abs=1e-5)
    judge = Judge({})
    judged = soft_verifier(judge, kl_weight=0.0).reward
    made = judged.inner["raw"].judge
    assert (made.judge, made.score, made.shown, made.unread) == (judge, "soft", "final_step", "abstain")
    assert judged.over == "batch" and judged.ddof == 1


def test_the_divergence_is_subtracted_from_what_was_standardised(make_batch) -> None:
    """Rewards 1 and 0 are 0.707 and -0.707; the first response is e^0.6 times as likely as it was, the other e^-0.2."""
    half = math.sqrt(0.5)
    for weight, want in {0.5: [half - 0.3, -half + 0.1], 0.01: [half - 0.006, -half + 0.002]}.items():
        method = soft_verifier() if weight == 0.01 else soft_verifier(kl_weight=weight)
        batch = make_batch([3, 2], rewards=[1.0, 0.0], passed=[True, False])
        now = torch.tensor([[-1.0, -1.0, -1.0], [-2.0, -2.0, 0.0]])
        batch.signals = {"policy_logprobs": now, "reference_logprobs": now - torch.tensor([[0.2], [-0.1]])}
        method.value(batch)
        assert batch.advantages[:, 0].tolist() == pytest.approx(want, abs=1e-6)
        assert method.objective.kl_weight == 0


def test_options() -> None:
    with pytest.raises(UsageError, match=r"reference judge.*engine"):
        ReferenceJudge(object())
    with pytest.raises(UsageError, match=r"reference judge.*answer"):
        ReferenceJudge(Judge({}), template="judge {reference}")
    assert soft_verifier(optimiser="rloo").credit.group_relative


def test_equal_questions_have_one_seed_and_braces_are_text() -> None:
    assert filled("{a} {b}", a="{b}", b="x") == "{b} x"
    seeds = []

    class Recorder(Judge):
        def generate(self, requests):
            seeds.append([r.seed for r in requests])
            return super().generate(requests)

    judge = Recorder({"a": ("1", 0.9), "b": ("0", 0.9)})
    ask(judge, ["Answer: a", "Answer: b", "Answer: a"], GREEDY)
    ask(judge, ["Answer: b"], GREEDY)
    assert ask(judge, [], GREEDY) == []
    assert len(seeds[0]) == 2 and seeds[1] == seeds[0][1:] and len(seeds) == 2


def test_the_settings_judge_is_calibrated() -> None:
    """Among answers it believes right with probability p, p of them are."""
    setting = free_form.Setting(questions=4000)
    beliefs = setting.beliefs(np.random.default_rng(0))
    truth = np.broadcast_to(np.arange(setting.answers) < setting.right, beliefs.shape)
    for low in (0.1, 0.3, 0.5, 0.7):
        chosen = (beliefs >= low) & (beliefs < low + 0.2)
        assert truth[chosen].mean() == pytest.approx(beliefs[chosen].mean(), abs=0.02)


def test_an_arm_is_given_the_settings_judge(tmp_path) -> None:
    setting = free_form.Setting(steps=3)
    arms = [{"name": "S034", "reward": {"name": "S034", "judge": "here", "score": s}} for s in ("soft", "hard")]
    soft, hard = (setting.run(arm, 0, tmp_path) for arm in arms)
    assert soft["start"] == hard["start"] and soft["rollouts"] == hard["rollouts"] == 3 * 4 * 8
    assert soft["right"] != hard["right"]
    judge = free_form.Judge(np.array([[0.2, 0.9]]))
    for answer, want in enumerate((0.2, 0.9)):
        verdict = ReferenceJudge(judge)(Task("0", "0", reference="0"), str(answer))
        assert verdict.score == pytest.approx(want) and verdict.passed is (want > 0.5)


def test_it_acts_in_training(tmp_path) -> None:
    """The chance of a right answer rises beyond what the judge's mistakes explain, without any rule that knows it."""
    setting = free_form.Setting(steps=10)
    found = setting.run({"name": "S034", "reward": {"name": "S034", "judge": "here"}}, 0, tmp_path)
    assert found["right"] > found["start"] + 0.05
