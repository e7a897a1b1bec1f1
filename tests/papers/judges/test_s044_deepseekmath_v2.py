"""S044: forms of analyses, rewards of three roles by hand, labels from votes, refinement and the pool of proofs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from grouped import grouped
from marked import Critic
from running import metrics, run
from scripted import Scripted

from assay import catalogue
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.inference.sampling.refine import Refine
from assay.inference.scoring.self_score import SelfScore
from assay.inference.search.proof_pool import Pooled, ProofPool
from assay.method import Method
from assay.rewards.proofs.analysis import AnalysisReward
from assay.rewards.proofs.self_analysed import SelfAnalysed
from assay.tasks.judging.proof_judge import ProofJudge, label_of, proof_judge_of
from assay.tasks.judging.proofs import Proofs
from assay.types import Task
from assay.verify.proofs.analysis import Analysis, divided, score_of
from assay.verify.proofs.prompts import ANALYSE, META, PROVE, RUBRIC


def analysis(score: Any, words: str = "It holds.") -> str:
    return f"My analysis:\n{words}\nSo the score is:\n\\boxed{{{score}}}"


def proof(text: str, score: Any, words: str = "It holds.") -> str:
    return f"## Solution\n{text}\n## Self-Evaluation\n{analysis(score, words)}"


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (analysis(0.5), 0.5),
        (analysis(".5") + "\n", 0.5),
        (analysis(" 0 "), 0.0),
        ("<think>So the score is:</think> Well. " + analysis(1), 1.0),
        (analysis("0.7"), None),
        (analysis(2), None),
        (analysis(1) + " or so", None),
        (analysis(1).replace("My analysis:", ""), None),
        (analysis(1).replace("So the score is:", ""), None),
        ("So the score is:\n\\boxed{1}\nMy analysis:", None),
        (r"\boxed{1}", None),
    ],
)
def test_the_form_of_an_analysis(text: str, score: float | None) -> None:
    assert score_of(text) == score
    verdict = Analysis()(Task("t", "q", 0.5), text)
    assert verdict.parts == {"form": float(score is not None), "said": score}
    assert verdict.score == (0 if score is None else 1 - abs(score - 0.5)) and verdict.passed is (score == 0.5)


def test_what_has_no_score() -> None:
    for reference in (None, 0.7, "x"):
        assert Analysis()(Task("t", "q", reference), analysis(1)).passed is None
    assert Analysis()(Task("t", "q", "1"), analysis(0.5)).score == 0.5
    assert divided(proof("So.", 1)) == ("So.", analysis(1)) and divided("So.") is None
    assert (
        divided("## Solution\n \n## Self-Evaluation\nx") is None
        and divided("## Solution\nx\n## Self-Evaluation\n") is None
    )
    assert divided("<think>## Solution\na\n## Self-Evaluation\nb</think>c") is None
    assert all(RUBRIC in text for text in (ANALYSE, META, PROVE)) and "admitted" in PROVE and "misses" in META


def batch_of(*texts: str, **task: Any) -> Batch:
    batch = grouped(list(texts))
    batch.tasks = [replace(t, **task) for t in batch.tasks]
    return batch


PROBLEM = {"problem": "P", "proof": "Y"}


def test_the_verifiers_reward_by_hand() -> None:
    """s = .5, s' = 1 -> .5; s = 0, s' = 0, ms = .5 -> .5; out of form, or wholly wrong, nobody is asked."""
    meta = Critic(lambda p, k: None if "fails" in str(p) else analysis(0.5 if "half" in str(p) else 1))
    for reference, said, words, worth in (
        (0.5, 1, "whole", 0.5),
        (0.0, 0, "half", 0.5),
        (0.5, 1, "half", 0.25),
        (1.0, 1, "whole", 1.0),
        (0.0, 1, "half", 0.0),
    ):
        batch = batch_of(analysis(said, words), "no form", meta=PROBLEM)
        batch.verdicts = [Analysis()(Task("t", "q", reference), e.text) for e in batch.episodes]
        before = len(meta.asked)
        found = AnalysisReward(meta)(batch)
        assert found.values.tolist() == [worth, 0] and len(meta.asked) == before + (worth > 0)
        assert AnalysisReward()(batch).values.tolist() == [1 - abs(reference - said), 0]
    shown = str(meta.asked[0].prompt)
    assert "Problem:\nP\n" in shown and "Solution:\nY\n" in shown and f"Analysis:\n{analysis(1, 'whole')}\n" in shown
    batch = batch_of(analysis(1, "fails"), "broken", meta=PROBLEM)
    batch.verdicts = [Analysis()(Task("t", "q", 1.0 if i == 0 else None), e.text) for i, e in enumerate(batch.episodes)]
    found = AnalysisReward(meta)(batch)
    assert found.valid is not None and found.valid.tolist() == [False, False]
    before = len(meta.asked)
    about = batch_of(analysis(1), meta={**PROBLEM, "analysis": "Z"})  # the meta-verifier has nobody above it
    about.verdicts = [Analysis()(Task("t", "q", 0.5), e.text) for e in about.episodes]
    assert AnalysisReward(meta)(about).values.tolist() == [0.5] and len(meta.asked) == before


def judge(score: Any, quality: Any) -> Critic:
    def say(prompt: Any, k: int) -> str | None:
        told = quality if str(prompt).startswith("Analyse the analysis") else score
        return None if told is None else analysis(told)

    return Critic(say)


@pytest.mark.parametrize(
    ("s", "own", "ms", "worth"),
    [
        (1, 1, 1, 1.0),
        (0, 0, 1, 0.24),
        (0, 1, 1, 0.0),
        (0.5, 0.5, 1, 0.62),
        (0.5, 1, 1, 0.5),
        (1, 0.5, 1, 0.88),
        (0, 0, 0, 0.0),
        (1, 1, 0.5, 0.88),
    ],
)
def test_the_generators_reward_by_hand(s: float, own: float, ms: float, worth: float) -> None:
    """To admit a flaw is worth more than to deny it."""
    engine = judge(s, ms)
    found = SelfAnalysed(engine)(batch_of(proof("Y", own), meta={"problem": "P"}))
    assert found.values.tolist() == [pytest.approx(worth)]
    terms = {name: values.tolist() for name, values in found.terms.items()}
    assert terms == {"form": [1], "proof": [s], "self": [own], "honesty": [pytest.approx((1 - abs(own - s)) * ms)]}
    assert "Problem:\nP\n" in str(engine.asked[0].prompt) and "Solution:\nY\n" in str(engine.asked[0].prompt)
    assert len(engine.asked) == 1 + (abs(own - s) < 1)


def test_who_has_no_reward() -> None:
    engine = judge(1, 1)
    found = SelfAnalysed(engine)(batch_of("no form", proof("Y", 2), "broken"))
    assert found.values.tolist() == [0, 0, 0] and not engine.asked
    assert found.valid is not None and found.valid.tolist() == [True, True, False]
    for unread in (judge(None, 1), judge(1, None), judge(3, 1)):
        lost = SelfAnalysed(unread)(batch_of(proof("Y", 1)))
        assert lost.valid is not None and lost.valid.tolist() == [False] and lost.values.tolist() == [0]
    assert SelfAnalysed(judge(1, 1), 0.5, 0.25)(batch_of(proof("Y", 1))).values.tolist() == [0.75]
    mixed = Critic(lambda p, k: analysis(k % 2))
    halves = SelfAnalysed(mixed, n=4)(batch_of(proof("Y", 0.5)))
    assert halves.terms["proof"].tolist() == [0.5] and mixed.asked[0].n == 4
    with pytest.raises(UsageError, match="n 0"):
        SelfAnalysed(engine, n=0)


def test_labels_by_hand() -> None:
    """An objection that most votes confirm is valid; the lowest score with two valid ones is the label."""
    yes, no = True, False
    rows = [(1.0, []), (0.0, [yes, yes, no]), (0.0, [yes, no, yes]), (0.5, [no, no, yes])]
    assert label_of(rows, 2) == 0 and label_of(rows, 3) is None
    assert label_of([(1.0, []), (0.0, [no, no, yes]), (0.5, [no, yes, no])], 2) == 1
    assert label_of([(1.0, []), (0.0, [yes, yes, no]), (0.5, [yes, yes, no])], 2) is None
    assert label_of([(0.5, [yes, yes]), (0.5, [yes, yes]), (1.0, [])], 2) == 0.5
    assert label_of([(0.5, [yes, no]), (0.5, [yes, no])], 2) == 1  # half is no majority
    assert label_of([(1.0, [])], 1) == 1


def test_labels_of_a_judge() -> None:
    engine = judge(0, 1)
    assert ProofJudge(engine).label([("P", "Y"), ("P", "Y2")]) == [0, 0]
    first, second = engine.asked[0], engine.asked[2]
    assert (first.n, second.n, first.sampling.max_tokens, first.sampling.temperature) == (8, 3, 65536, 1.0)
    assert ProofJudge(judge(0, 0.5)).label([("P", "Y")]) == [1] and ProofJudge(judge(1, None)).label([("P", "Y")]) == [
        1
    ]
    assert ProofJudge(judge(0, None)).label([("P", "Y")]) == ProofJudge(judge(None, 1)).label([("P", "Y")]) == [None]
    apart = ProofJudge(judge(0, 0), judge(0, 1))
    assert apart.label([("P", "Y")], n=2) == [0] and ProofJudge(judge(0, 1)).label([("P", "Y")], n=1) == [None]
    assert proof_judge_of(apart) is apart and proof_judge_of({"judge": engine, "max_tokens": 9}).max_tokens == 9
    with pytest.raises(UsageError, match="need a judge"):
        ProofJudge(None)


def jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_three_roles(tmp_path: Path) -> None:
    rows = ({"problem": "P"}, {**PROBLEM, "score": 0.5}, {**PROBLEM, "analysis": "Z", "score": 1})
    write, analyse, meta = Proofs(jsonl(tmp_path / "rows.jsonl", *rows)).tasks
    assert (write.kind, write.reference, write.meta) == ("none", None, {"problem": "P"})
    assert write.question.startswith("Solve the problem") and "Problem:\nP\n" in write.question
    assert (analyse.kind, analyse.reference, analyse.meta) == ("analysis", 0.5, PROBLEM)
    assert "Solution:\nY\n" in analyse.question and "Analysis:\nZ\n" in meta.question and meta.reference == 1
    for wrong in (
        {"proof": "Y", "score": 1},
        PROBLEM,
        {**PROBLEM, "score": 0.7},
        {"problem": " "},
        {"problem": "P", "analysis": "Z"},
        {"problem": "P", "score": 1},
    ):
        with pytest.raises(UsageError, match="a row has problem"):
            Proofs(jsonl(tmp_path / "wrong.jsonl", wrong))
    for role, kind in (("verifier", AnalysisReward), ("generator", SelfAnalysed)):
        made = catalogue.make("S044", role=role, judge=judge(1, 1))
        assert isinstance(made, Method) and isinstance(made.reward, kind) and isinstance(made.credit, GRPO)
    reward: Any = made.reward
    assert (reward.alpha, reward.beta, reward.n) == (0.76, 0.24, 1) and made.objective.kl_weight == 0  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="need a judge"):
        catalogue.make("S044")


def test_proofs_without_labels(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "rows.jsonl", {"problem": "P"}, PROBLEM, {"problem": "P", "proof": "bad"})
    keep = tmp_path / "kept.jsonl"
    engine = Critic(lambda p, k: None if "\nbad\n" in str(p) else analysis(1))
    source = Proofs(path, labeller=engine, keep=keep)
    assert [(t.kind, t.reference) for t in source.tasks] == [("none", None), ("analysis", 1.0)] and source.size == 2
    asked = len(engine.asked)
    assert [t.reference for t in Proofs(path, labeller=engine, keep=keep).tasks] == [None, 1.0]
    assert len(engine.asked) == asked and source[1].meta == PROBLEM
    only = jsonl(tmp_path / "only.jsonl", {"problem": "P", "proof": "bad"})
    with pytest.raises(UsageError, match="could be labelled"):
        Proofs(only, labeller=engine, keep=tmp_path / "none.jsonl")
    for options in ({"labeller": engine}, {"keep": keep}, {"n": 0}, {"m": 0}, {"k": 0}):
        with pytest.raises(UsageError, match="go together"):
            Proofs(path, **options)  # type: ignore[arg-type]


def test_refined_until_it_is_content() -> None:
    """The third draft finds no flaw in itself."""
    drafts = [proof("a", 0, "Gap."), proof("b", 0.5, "Typo."), proof("c", 1), proof("d", 1)]
    engine = Scripted([(text, "eos") for text in drafts])
    [answer] = Refine(SelfScore())([Task("t", "Prove it.")], engine, 8, np.random.default_rng(0))
    assert answer.text == drafts[2] and len(answer.episodes) == 3 and "Gap." in str(engine.asked[1].prompt)
    [alone] = SelfScore().score(
        [(Task("t", "q"), replace(answer.episodes[0], text="So."))], engine, np.random.default_rng()
    )
    assert (alone.value, alone.tokens, alone.feedback) == (0, 0, "")


def grading(prompt: Any, k: int) -> str:
    """What is of worth m has m analyses of score 1 in 4, the last ones."""
    shown = str(prompt).partition("Solution:\n")[2].partition("\n")[0]
    return analysis(int(k >= 4 - int(shown)), f"No. {k} of {shown}.")


class Counted(Critic):
    """Whose replies have a token a character."""

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.zeros(len(text), dtype=np.int64)


def test_the_pool() -> None:
    """Two proofs; then of the two best two analyses each make a refinement, until one passes all four."""
    drafts = [proof(text, own) for text, own in (("1", 0), ("2", 0.5), ("2", 1), ("0", 1), ("3", 0), ("1", 1))]
    last = [proof("4", 1)] * 4
    engine, critic = Scripted([(text, "eos") for text in [*drafts, *last]]), Counted(grading)
    pool = ProofPool(critic, size=2, n=4, pairs=2)
    [answer] = pool([Task("t", "Prove it.", meta={"problem": "P"})], engine, 100, np.random.default_rng(0))
    assert answer.meta["pool"] == [0.25, 0.5, 0.5, 0, 0.75, 0.25, 1, 1, 1, 1] and answer.meta["passes"] is True
    assert answer.text == last[0] and len(answer.episodes) == 10
    assert answer.scoring == 10 * 4 * len(grading("Solution:\n1\n", 0)) < answer.tokens
    # After the first round the best are "2" and "1", after the second "3" and that "2" whose own score is 1.
    asked = [str(r.prompt) for r in engine.asked]
    assert asked[:2] == ["Prove it."] * 2
    shown = [p.partition("No. ")[2][:6] for p in asked[2:]]
    assert set(shown[:2]) == set(shown[6:]) == {"0 of 2", "1 of 2"} and "0 of 3" in shown[4:6]
    assert set(shown[2:4]) < {"0 of 1", "1 of 1", "2 of 1"} and set(shown[4:6]) < {f"{k} of 3" for k in range(4)}
    assert all(p.startswith("Prove it.\n") and "analysis of it:\n\n2\n" in p for p in asked[2:4])
    assert "Problem:\nP\n" in str(critic.asked[0].prompt) and critic.asked[0].n == 4


def test_objections_are_drawn_before_praise() -> None:
    """Of analyses with 1, 0, .5, 1 and .5 two are drawn: any two that object, whatever they score."""
    opinions = tuple((score, f"No. {k}.") for k, score in enumerate((1.0, 0.0, 0.5, 1.0, 0.5)))
    [episode] = grouped(["x"]).episodes
    one, pool, rng = Pooled(episode, "Y", 1.0, opinions), ProofPool(size=1, n=5, pairs=2), np.random.default_rng(0)
    drawn = [[p.partition("No. ")[2][0] for p in pool.prompts(Task("t", "q"), [one], rng)] for _ in range(60)]
    assert {"".join(sorted(pair)) for pair in drawn} == {"12", "14", "24"}
    [all_of_it] = [pool.prompts(Task("t", "q"), [one], rng) for pool in [ProofPool(size=1, n=5, pairs=4)]]
    assert {p.partition("No. ")[2][0] for p in all_of_it[:3]} == set("124") and all_of_it[3][-40:].count("No. ") <= 1


def test_the_pool_ends() -> None:
    task = Task("t", "Prove it.")
    engine = Scripted([(proof("1", 0), "eos")] * 3 + [("", "error")] + [(proof("2", 0), "eos")] * 9)
    [answer] = ProofPool(Critic(grading), size=2, n=4, pairs=2)([task], engine, 5, np.random.default_rng(0))
    assert answer.meta["pool"] == [0.25, 0.25, 0.25, 0.5] and answer.meta["passes"] is False
    engine = Scripted([(proof("1", 0), "eos")] * 9)
    [answer] = ProofPool(Critic(grading), size=1, n=4, pairs=1, rounds=2)([task], engine, 99, np.random.default_rng(0))
    assert len(answer.episodes) == 3
    unread = ProofPool(Critic(lambda p, k: "?"), size=1, n=2)
    [answer] = unread([task], Scripted([("So.", "eos")]), 9, np.random.default_rng(0))
    assert answer.text == "So." and answer.meta == {"passes": False, "pool": [-1]}
    [answer] = unread([task], Scripted([("", "error")] * 20), 2, np.random.default_rng(0))
    assert answer.abstains
    made = ProofPool()
    assert (made.size, made.n, made.pairs, made.rounds, made.sampling.max_tokens) == (64, 64, 8, 16, 131_072)
    with pytest.raises(UsageError, match="not of tokens"):
        unread([task], Scripted(), "99t", np.random.default_rng(0))  # type: ignore[arg-type]
    for name in ("size", "n", "pairs", "rounds"):
        with pytest.raises(UsageError, match="at least 1"):
            ProofPool(**{name: 0})  # type: ignore[arg-type]


def test_between_rounds() -> None:
    """Of a proof and of an analysis, each twice, the one of full worth is learned from: tokens of no other."""
    sheet = judge(1, 1)
    made: Any = catalogue.make("S044", role="both", judge=sheet)
    batch = grouped([proof("Y", 1), proof("Y", 0)], [analysis(0.5), analysis(1)], ["broken", "no form"])
    tasks = [Task("w", "q", meta={"problem": "P"}), Task("a", "q", 0.5, meta=PROBLEM), Task("u", "q", meta=PROBLEM)]
    batch.tasks = [tasks[i // 2] for i in range(6)]
    batch.verdicts[2:4] = [Analysis()(batch.tasks[i], batch.episodes[i].text) for i in (2, 3)]
    batch.verdicts[5] = batch.verdicts[4]
    made.value(batch)
    assert batch.rewards.tolist() == [1, pytest.approx(0.76), 1, 0.5, 0, 0]
    assert batch.weights.tolist() == [1, 0, 1, 0, 0, 0] and batch.reward_terms["worth"][4] == -1
    logprobs = torch.zeros_like(batch.advantages).requires_grad_()
    made.objective(logprobs, batch).value.backward()
    assert logprobs.grad is not None
    assert logprobs.grad.ne(0).any(1).tolist() == [True, False, True, False, False, False]
    looser: Any = catalogue.make("S044", role="both", judge=sheet, least=0.7)
    assert looser.value(batch).weights.tolist() == [1, 1, 1, 0, 0, 0]
    with pytest.raises(UsageError, match="need a judge"):
        catalogue.make("S044", role="both")


def test_it_trains(tmp_path: Path) -> None:
    """The generator's role, with a judge that knows some words."""
    path = jsonl(tmp_path / "problems.jsonl", *({"problem": f"{k}"} for k in range(12)))
    told: Callable[[Any], str] = analysis
    keywords = {"name": "keywords", "replies": [["^Analyse the analysis", told(1)]], "otherwise": told(0.5)}
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 1000, "alphabet": alphabet}},
        tasks={"source": {"name": "proofs", "path": str(path)}, "eval_size": 1, "eval_share": 0.4},
        method={"name": "S044", "reward": None, "options": {"judge": keywords}},
        rollout={"prompts": 1, "group": 2, "max_tokens": 4},
        warmup={"steps": 0},
        train={"steps": 1, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 1},
    )
    [row] = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert row["reward/form"] == row["reward/mean"] == 0


def test_honesty_in_the_lab() -> None:
    options: dict[str, Any] = {"steps": 12, "problems": 4, "lr": 3.0}
    honest, alone = (learned("S044", arm, **options) for arm in ("honest", "proof alone"))
    assert honest["calibrated"] > alone["calibrated"] + 0.05 and honest["rollouts"] == 12 * 4 * 8
    assert 0.3 < alone["worth"] < 1
