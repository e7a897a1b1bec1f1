"""Diagnosis: answers and pairing, aids, what models read of each other, and the command."""

from __future__ import annotations

import json
import math
import re
import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from running import run

from assay.cli import main
from assay.diagnose.ablation import Aid, aided, aided_rates, aids
from assay.diagnose.change_spectrum import change_spectrum
from assay.diagnose.checkpoints import diagnose_names
from assay.diagnose.diagnosis import diagnose
from assay.diagnose.readings import Kept, read_models
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.target import resolve
from assay.errors import UsageError
from assay.evaluate.answers import answers_of
from assay.evaluate.asking import evaluate
from assay.evaluate.paired import change, paired_samples
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.records.evaluation import Evaluation
from assay.records.evaluation_folder import EvaluationFolder
from assay.records.sample import Sample
from assay.report.diagnosis import rows, table, verdict
from assay.report.diagnosis_page import render
from assay.tasks.arithmetic import Arithmetic
from assay.tasks.chunks import solution_chunks
from assay.types import Episode, Task, Verdict
from assay.verify.kind import KindVerifier
from assay.verify.text.compare import same

pytestmark = pytest.mark.usefixtures("one_thread")


def sample(task: str, passed: bool | None, response: str = "1") -> Sample:
    return Sample(task, f"what is {task}?", response, float(bool(passed)), passed, "", 3, "eos")


def evaluation(label: str, table: dict[str, list[bool | None]]) -> Evaluation:
    return Evaluation(label, 0, tuple(sample(t, p, str(int(bool(p)))) for t, row in table.items() for p in row))


# Pairing


def test_only_tasks_with_enough_judged_samples_on_both_sides_are_compared() -> None:
    full = {f"t{i}": [True, False, True, False] for i in range(39)}
    before = evaluation("b", full | {"odd": [None, None, None, True]})
    after = evaluation("a", full | {"odd": [True] * 4})
    pairs = paired_samples(before, after)
    assert (pairs.k, len(pairs.tasks), pairs.left_out, pairs.abstained) == (4, 39, 1, (3, 0))
    # With abstentions in many tasks, k falls instead.
    many = evaluation("b", {t: [None, *row[1:]] for t, row in full.items()} | {"odd": [True] * 4})
    assert paired_samples(many, after).k == 3


def test_evaluations_that_cannot_be_paired_are_refused() -> None:
    before = evaluation("b", {"x": [True]})
    with pytest.raises(UsageError, match="different tasks"):
        paired_samples(before, evaluation("a", {"y": [True]}))
    with pytest.raises(UsageError, match="no judged sample"):
        paired_samples(before, evaluation("a", {"x": [None]}))


def test_hits_are_of_the_first_k_judged_samples() -> None:
    before = evaluation("b", {"x": [None, False, False, True], "y": [False, True]})
    after = evaluation("a", {"x": [False, False], "y": [False, None, False, True]})
    pairs = paired_samples(before, after)
    assert pairs.k == 2
    assert [h.tolist() for h in pairs.hits()] == [[False, True], [False, False]]


def test_a_change_is_paired_and_leaves_out_what_is_not_known() -> None:
    found = change([0.1, 0.5, math.nan], [0.2, 0.6, 0.9])
    assert (found.tasks, found.before.value, found.after.value) == (2, pytest.approx(0.3), pytest.approx(0.4))
    assert found.difference.value == pytest.approx(0.1)
    # Differences that are all the same say nothing of their spread, and so not that it went up.
    assert math.isnan(found.difference.low) and math.isnan(found.difference.high) and verdict(found) == ""
    assert math.isnan(change([math.nan], [1.0]).difference.value)


def test_answers_are_compared_as_numbers_and_right_ones_by_verdict() -> None:
    before = [sample("x", True, r"so \boxed{0.5}"), sample("x", False, "the answer is 3")]
    after = [sample("x", True, r"\boxed{1/2}"), sample("x", True, "the answer is 7."), sample("x", False, "")]
    found = answers_of(before, after)
    assert found.before[0] == found.after[0] != found.after[1] and found.after[2] == -1
    assert found.reach() == [(True, True), (False, True)]


@given(
    st.lists(st.sampled_from(["1/2", "0.5", ".50", "1", "1.0", "A", "a", r"\text{a}", "x", "$x$.", "2e0"]), max_size=8)
)
def test_answers_share_a_number_iff_they_are_the_same(texts: list[str]) -> None:
    found = answers_of([sample("x", False, rf"\boxed{{{t}}}") for t in texts], []).before
    for a, i in zip(texts, found, strict=True):
        for b, j in zip(texts, found, strict=True):
            assert (i == j) == same(a, b)


def test_answers_that_are_noted_are_not_looked_for_again() -> None:
    noted = [replace(sample("x", True, "the answer is 3"), answer="4"), sample("x", False, "the answer is 3")]
    found = answers_of(noted, [sample("x", True, "the answer is 4")])
    assert found.before == (found.after[0], -1)


# Aids


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("a\n\nb\n\nc\n\nd\n\ne", ["a\n\n", "b\n\n", "c\n\n", "d\n\ne"]),
        ("One. Two! Three?\n\nFour. Five.", ["One. ", "Two! ", "Three?\n\n", "Four. Five."]),
        ("7+6=13\n5+8=13\n143", ["7+6=13\n", "5+8=13\n", "143"]),
        ("3.14 is pi", ["3.14 is pi"]),
        ("", []),
    ],
)
def test_solutions_are_cut_at_paragraphs_or_else_sentences(text: str, chunks: list[str]) -> None:
    assert solution_chunks(text, 4) == chunks


@given(st.text(alphabet="ab.!? \n", max_size=60), st.integers(1, 6))
def test_chunks_are_the_text_and_not_blank(text: str, n: int) -> None:
    chunks = solution_chunks(text, n)
    assert "".join(chunks) == text and len(chunks) <= n
    assert all(c.strip() for c in chunks) or not text.strip()


class Knowing:
    """Answers right (``yes``) iff the prompt or what the response begins with holds a word."""

    def __init__(self, word: str):
        self.word, self.seen = word, list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        return np.array([ord(c) for c in prompt], dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.array([ord(c) for c in text] + [0] * end, dtype=np.int64)

    def decode(self, tokens: Any) -> str:
        return "".join(map(chr, tokens))

    def generate(self, requests: Any) -> list[list[Episode]]:
        self.seen += requests
        out = []
        for r in requests:
            text = "yes" if self.word in f"{r.prompt}{self.decode(r.prefix)}" else "no"
            tokens = self.encode_response(text)
            e = Episode(self.encode(r.prompt), tokens, np.ones(len(tokens), bool), None, text, "eos")
            out.append([e] * r.n)
        return out


def judged(task: Task, response: str) -> Verdict:
    return Verdict.right() if response.endswith(str(task.reference)) else Verdict.wrong()


def annotated() -> list[Task]:
    meta = {
        "plan": ["first", "then"],
        "knowledge": "water is wet",
        "subproblems": [{"question": "q1", "answer": "yes"}, {"question": "q2", "answer": "no"}],
    }
    return [Task("t", "Q", "yes", solution="a\nb\nc\nd", meta=meta), Task("bare", "R", "yes")]


def test_every_aid_is_asked_as_it_should_be() -> None:
    found = {a.name: a for a in aids(annotated())}
    assert set(found) == {"plan", "knowledge", "subproblems", *(f"solution {n}/4" for n in (1, 2, 3))}
    assert found["plan"].tasks[0].prompt == "Q\n\nFollow this plan:\nfirst\nthen"
    assert "water is wet" in found["knowledge"].tasks[0].prompt
    parts = found["subproblems"].tasks
    assert [t.prompt for t in parts] == ["q1", "q1\nyes\n\nq2"] and [t.reference for t in parts] == ["yes", "no"]
    assert found["subproblems"].of == ("t", "t")
    assert found["solution 2/4"].begun == ("a\nb\n",)


def test_an_aid_helps_who_lacks_it() -> None:
    sampling = Sampling(max_tokens=8)
    rates = {}
    for word in ("first", "q1", "c"):
        for aid in aids(annotated()):
            rng = np.random.default_rng(0)
            for name, found in aided_rates(aid, Knowing(word), judged, samples=2, sampling=sampling, rng=rng).items():
                rates[word, name] = found
    assert rates["first", "plan"] == {"t": 1.0} and rates["c", "plan"] == {"t": 0.0}
    # Of two parts the first is answered yes and the second is too, which is wrong.
    assert rates["q1", "subproblems"] == {"t": 0.5} and rates["q1", "all subproblems"] == {"t": 0.0}
    assert rates["c", "solution 2/4"] == {"t": 0.0} and rates["c", "solution 3/4"] == {"t": 1.0}


def test_a_begun_response_is_continued_judged_whole_and_bounded() -> None:
    engine = Knowing("no")
    aid = Aid("solution 1/2", (Task("t", "Q", "12yes"),), ("t",), ("12",))
    heard = []

    def verifier(task: Task, response: str) -> Verdict:
        heard.append(response)
        return Verdict.abstain("no idea")

    found = aided_rates(aid, engine, verifier, samples=1, sampling=Sampling(8), rng=np.random.default_rng(0))
    assert heard == ["12no"] and found == {"solution 1/2": {}}  # nothing was judged
    assert engine.seen[0].prefix == (49, 50) and engine.seen[0].sampling.max_tokens == 6


class Scripted(Knowing):
    """Gives each prompt the responses that are written for it."""

    def __init__(self, **said: str):
        super().__init__("")
        self.said = said

    def generate(self, requests: Any) -> list[list[Episode]]:
        none = np.zeros(0, dtype=np.int64)
        return [[Episode(none, none, none > 0, None, text, "eos") for text in self.said[r.prompt]] for r in requests]


def test_a_problem_is_solved_in_parts_where_every_part_is() -> None:
    """Four samples of two parts: both right; one, then the other wrong; one right and one not judged."""
    tasks = tuple(Task(name, name, "y", "exact") for name in ("p1", "p2", "q1", "q2"))
    aid = Aid("subproblems", tasks, ("p", "p", "q", "q"), ("",) * 4)
    engine = Scripted(p1="yyny", p2="yny?", q1="nnnn", q2="????")

    def verifier(task: Task, response: str) -> Verdict:
        return Verdict.abstain("no idea") if response == "?" else Verdict(float(response == "y"), response == "y")

    found = aided_rates(aid, engine, verifier, samples=4, sampling=Sampling(8), rng=np.random.default_rng(0))
    # Shares of 3/4 and 2/3; of three samples that count one solves both. Of q the second part is never judged.
    assert found == {"subproblems": {"p": pytest.approx((3 / 4 + 2 / 3) / 2)}, "all subproblems": {"p": 1 / 3, "q": 0}}


def test_gains_are_compared_over_the_same_tasks_and_by_level() -> None:
    without = {"a": 0.0, "b": 0.5, "c": 1.0}, {"a": 0.5, "b": 0.5, "c": 1.0, "d": 0.0}
    helped = {"a": 0.5, "b": 1.0, "d": 1.0}, {"a": 0.5, "b": 1.0, "d": 1.0}
    whole, hard = aided("plan", without, helped, {"a": "hard"})
    assert (whole.level, whole.gain.tasks, hard.level, hard.gain.tasks) == (None, 2, "hard", 1)
    assert (whole.gain.before.value, whole.gain.after.value) == (0.5, 0.25)
    assert whole.gain.difference.value == -0.25 and hard.gain.difference.value == -0.5


@pytest.mark.parametrize("meta", [{"plan": 3}, {"knowledge": [1]}, {"subproblems": ["q"]}, {"subproblems": [{"a": 1}]}])
def test_annotations_of_another_shape_are_refused(meta: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"task 't': its"):
        aids([Task("t", "Q", "yes", meta=meta)])


# Models


@pytest.fixture(scope="module")
def policies() -> tuple[CausalLM, CausalLM]:
    config = ModelConfig(source="nano", nano={"hidden": 16, "layers": 1, "heads": 2, "context": 48})  # type: ignore[arg-type]
    before, after = CausalLM.load(config, 0), CausalLM.load(config, 0)
    with torch.no_grad():
        for p in after.module.parameters():
            p.add_(0.05 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1)))
    return before, after


TASKS = [Arithmetic(digits=1, scratchpad=1.0)[i] for i in range(5)]


def read(pair: tuple[CausalLM, CausalLM], **options: Any) -> Any:
    settings = {"samples": 6, "sampling": Sampling(max_tokens=6), "aid_samples": 0, **options}
    return read_models(pair, ("b", "a"), TASKS, KindVerifier(), **settings)


def test_a_model_differs_from_itself_in_nothing(policies: tuple[CausalLM, CausalLM]) -> None:
    one, other, r = read((policies[0], policies[0]))
    assert one.samples == other.samples
    assert r.familiar.value == 0.5 and max(i.value for i in r.divergence) == pytest.approx(0, abs=1e-9)
    entropy = diagnose(one, other).measures["token_entropy"]
    for found in (entropy, r.own, r.trained, r.solutions):
        assert found.difference.value == pytest.approx(0, abs=1e-6) and found.tasks == len(TASKS)


def test_readings_are_those_of_the_models_distributions(policies: tuple[CausalLM, CausalLM]) -> None:
    one, other, r = read(policies)
    plain = {id(p): deepcopy(p.model) for p in policies}
    for model in plain.values():
        model.set_attn_implementation("eager")

    def nats(policy: CausalLM, prompt: Any, response: list[int]) -> tuple[float, float]:
        ids = torch.tensor([*policy.encode(prompt), *response])
        with torch.no_grad():
            logits = plain[id(policy)](input_ids=ids[None]).logits[0, -len(response) - 1 : -1]
        logp = logits.double().log_softmax(-1)
        at = logp[torch.arange(len(response)), torch.tensor(response)]
        return float(-at.mean()), float(-(logp.exp() * logp).sum(-1).mean())

    solutions = [[nats(p, t.prompt, p.encode_response(t.solution or "").tolist())[0] for t in TASKS] for p in policies]
    assert r.solutions.before.value == pytest.approx(np.mean(solutions[0]), rel=1e-4)
    assert r.solutions.after.value == pytest.approx(np.mean(solutions[1]), rel=1e-4)
    for side, evaluation in ((0, one), (1, other)):
        means, likelihoods = [], ([], [])
        kept = Kept(HFEngine(policies[side]))
        again = evaluate(
            TASKS,
            kept,
            KindVerifier(),
            samples=6,
            sampling=Sampling(max_tokens=6),
            rng=np.random.default_rng([0, 1]),
            label="again",
            step=0,
        )
        assert [s.response for s in again.samples] == [s.response for s in evaluation.samples]
        for task, episodes in zip(TASKS, kept.groups, strict=True):
            entropies: list[float] = []
            each: tuple[list[float], list[float]] = ([], [])
            for ids in (e.tokens.tolist() for e in episodes):
                entropies.append(nats(policies[side], task.prompt, ids)[1])
                for p, row in zip(policies, each, strict=True):
                    row.append(nats(p, task.prompt, ids)[0])
            means.append(float(np.mean(entropies)))
            for row, out in zip(each, likelihoods, strict=True):
                out.append(np.mean(row))
        found = diagnose(one, other).measures["token_entropy"]
        assert (found.before, found.after)[side].value == pytest.approx(np.mean(means), rel=1e-4)
        under = (r.own, r.trained)[side]
        expected = [np.mean(out) for out in likelihoods]
        assert [under.before.value, under.after.value] == pytest.approx(expected, rel=1e-4)


def test_greedy_responses_have_no_divergence_and_aids_are_read(policies: tuple[CausalLM, CausalLM]) -> None:
    _, _, r = read(policies, sampling=Sampling(6, temperature=0), aid_samples=2)
    assert r.divergence is None
    assert {a.aid for a in r.aids} >= {"solution 1/2"}


def test_the_spectrum_of_a_change_of_known_rank() -> None:
    generator = torch.Generator().manual_seed(0)
    u, v = (torch.linalg.qr(torch.randn(20, 20, generator=generator, dtype=torch.float64))[0] for _ in range(2))
    old = {"a.q_proj.weight": torch.eye(20), "a.k_proj.weight": torch.eye(20), "embed_tokens.weight": torch.eye(20)}
    # Singular values 3 and 4: the first direction holds 16 / 25 of the squared norm, the stable rank is 25 / 16.
    moved = 4 * u[:, :1] @ v[:, :1].mT + 3 * u[:, 1:2] @ v[:, 1:2].mT
    new = {**old, "a.q_proj.weight": torch.eye(20) + moved, "embed_tokens.weight": torch.zeros(20, 20)}
    found = change_spectrum(old, new, (0.025, 0.05, 0.1, 1.0))
    assert found is not None and found.matrices == (1, 2)
    assert found.change == pytest.approx((0.32, 0.64, 1, 1), abs=1e-6)
    assert found.weights == pytest.approx((0.025, 0.05, 0.1, 1))
    assert found.stable_rank == pytest.approx(25 / 16 / 20, abs=1e-6)
    assert change_spectrum(old, old) is None
    with pytest.raises(UsageError, match="not of one model"):
        change_spectrum(old, {"a.q_proj.weight": torch.eye(20)})
    with pytest.raises(UsageError, match="shares"):
        change_spectrum(old, new, ())


def taught(replies: dict[Any, list[str]], folder: Path) -> CausalLM:
    """A nano model that was shown these replies to each prompt alike, stored and read again."""
    config = ModelConfig(source="nano", nano={"hidden": 32, "layers": 2, "heads": 2, "context": 16})
    policy = CausalLM.load(config, 0)
    pairs = [(policy.encode(q).tolist(), policy.encode_response(r).tolist()) for q, row in replies.items() for r in row]
    width = max(len(q) + len(r) for q, r in pairs)
    ids = torch.tensor([[*q, *r, *[0] * (width - len(q) - len(r))] for q, r in pairs])
    where = torch.arange(width - 1)
    said = torch.stack([(where >= len(q) - 1) & (where < len(q) + len(r) - 1) for q, r in pairs])
    policy.model.set_attn_implementation("eager")
    optimizer = torch.optim.Adam(policy.module.parameters(), lr=1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        logp = policy.model(input_ids=ids).logits[:, :-1].log_softmax(-1)
        loss = -logp.gather(-1, ids[:, 1:, None])[..., 0][said].mean()
        loss.backward()
        optimizer.step()
    policy.save(folder)
    return CausalLM.load(config.model_copy(update={"source": str(folder)}), 0)


@pytest.mark.slow
def test_a_crossing_of_two_models_is_found(tmp_path: Path) -> None:
    """Before: a quarter right on every task. After: nearly always right on half of them, and never on the others.

    pass@k is 1 - .75^k before and .5 after: they cross between k = 2 (.44) and k = 3 (.58).
    """
    tasks = [t for t in (Arithmetic(digits=1)[i] for i in range(60)) if len(str(t.reference)) == 1]
    tasks = list({t.prompt: t for t in tasks}.values())[:20]
    wrong = {t.prompt: [str((int(str(t.reference)) + d) % 10) for d in (1, 2, 3)] for t in tasks}
    known = {t.prompt: i % 2 == 0 for i, t in enumerate(tasks)}
    first = {t.prompt: [str(t.reference), *wrong[t.prompt]] for t in tasks}
    second = {q: row[:1] if known[q] else row[1:] for q, row in first.items()}
    sides = []
    for name, replies in (("before", first), ("after", second)):
        engine = HFEngine(taught(replies, tmp_path / name))
        sampling, rng = Sampling(max_tokens=4), np.random.default_rng(0)
        sides.append(
            evaluate(tasks, engine, KindVerifier(), samples=64, sampling=sampling, rng=rng, label=name, step=0)
        )
    found = diagnose(*sides)
    assert found.crossing.verdict == "crosses" and found.crossing.k in (2, 3, 4) and found.crossing.most == 64
    assert found.crossing.low <= 3 <= found.crossing.high
    assert found.crossing.first.value > 0.1 and found.crossing.last.value < -0.3
    assert "The curves cross at" in " ".join(table(found))
    # The other way round it is no crossing of this kind.
    assert diagnose(sides[1], sides[0]).crossing.verdict == "rises"


# The command


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("diagnose") / "run", tasks={"eval_size": 5})


def test_two_checkpoints_from_one_command(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = sorted((trained / "checkpoints").iterdir())[0]
    with pytest.raises(SystemExit) as done:
        main(["diagnose", str(first), str(trained), "--samples", "4", "--aid-samples", "1", "--out", str(tmp_path)])
    out = capsys.readouterr().out
    assert done.value.code == 0 and "pass@4" in out and "q_proj" in out and "answer entropy" in out
    record = json.loads((tmp_path / "diagnosis.json").read_text())
    assert record["schema"] == "assay-diagnosis/1" and record["k"] == 4 and record["tasks"] == 5
    assert record["spectrum"]["change"][-1] == pytest.approx(1) and "stable rank" in out
    assert record["weights"]["all"]["relative"] > 0 and record["readings"]["divergence"][1]["value"] > 0
    page = (tmp_path / "diagnosis.html").read_text()
    assert page.count("<svg") >= 4 and not re.search(r"<script|https?://|src=", page)
    # The samples give the same again, without the models.
    with pytest.raises(SystemExit) as done:
        main(["diagnose", str(tmp_path / "before.parquet"), str(tmp_path / "after.parquet"), "--json"])
    again = json.loads(capsys.readouterr().out)
    assert done.value.code == 0 and again["weights"] is None and again["readings"] is None
    for key in ("curve", "crossing", "support", "answers", "measures", "reach"):
        assert again[key] == record[key]


def test_a_checkpoint_is_a_model_of_its_own(trained: Path, tmp_path: Path) -> None:
    first, *_, last = sorted((trained / "checkpoints").iterdir())
    early, late, whole = resolve(str(first)), resolve(str(last)), resolve(str(trained))
    assert (whole.folder, whole.step, whole.weights) == (late.folder, late.step, late.weights)
    assert early.weights != late.weights and early.trained and not resolve("nano").trained
    stage, _, step = first.name.partition("-")
    assert early.step == (int(step) if stage == "rl" else 0)
    assert early.config.tasks == whole.config.tasks
    here, there = (dict(t.load().model.state_dict()) for t in (early, late))
    assert any(not torch.equal(here[name], there[name]) for name in here)
    copy = Path(shutil.copytree(first, tmp_path / "mine"))
    assert resolve(str(copy)).weights == early.weights and resolve(str(copy)).step == 0
    # What the checkpoint says of its files is held against what there is.
    [*_, missing] = sorted(p for p in (copy / "policy").iterdir() if p.suffix == ".safetensors")
    missing.unlink()
    with pytest.raises(UsageError, match="not whole"):
        resolve(str(copy))
    with pytest.raises(UsageError, match="is an endpoint"):
        resolve("openai:m@http://localhost:1/v1").load()


def test_what_cannot_be_compared_is_said(trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    evaluation("x", {"t": [True]}).to_parquet(path)
    with pytest.raises(UsageError, match="not one with the other"):
        diagnose_names(str(path), str(trained))
    folder = EvaluationFolder.create(tmp_path / "eval", {"settings": {}, "parts": 2, "step": 3})
    with pytest.raises(UsageError, match="not finished"):
        diagnose_names(str(folder.path), str(path))
    folder.fill(lambda part: [sample("t", not part)], lambda part, samples: None)
    found, _ = diagnose_names(str(path), str(folder.path))
    assert (found.k, found.tasks, found.curve[0].after.value) == (1, 1, 0.5)
    with pytest.raises(UsageError, match="leave tasks"):
        diagnose_names(str(path), str(path), tasks="arithmetic")
    with pytest.raises(UsageError, match="--tasks"):
        diagnose_names("nano", "nano")
    with pytest.raises(UsageError, match="recipe"):
        diagnose_names("quickstart.toml", "nano")
    with pytest.raises(UsageError, match="samples of 1 or more"):
        diagnose_names(str(trained), str(trained), samples=0)


def test_a_page_escapes_what_tasks_say(tmp_path: Path) -> None:
    rows_ = [Sample("<b>", "<script>x</script>", "1", 1.0, True, "", 1, "eos")]
    wrong = [Sample("<b>", "<script>x</script>", "2", 0.0, False, "", 1, "eos")]
    found = diagnose(Evaluation("b", 0, tuple(rows_)), Evaluation("a", 0, tuple(wrong)), labels=("<i>", "a&b"))
    page = render(found)
    assert "<script>" not in page and "<i>" not in page.replace("<i></i>", "") and "&lt;script&gt;" in page
    assert [m.task for m in found.lost] == ["<b>"] and found.gained == ()
    assert found.lost[0].responses == ("1", "2") and "1 of 1 right" in page and "0 of 1 right" in page
    assert found.support.counts.lost == 1 and "1 were lost" in " ".join(table(found))


def test_no_direction_is_given_where_an_interval_holds_zero() -> None:
    rng = np.random.default_rng(0)
    tables = [{f"t{i}": (rng.random(8) < 0.4).tolist() for i in range(30)} for _ in range(2)]
    found = diagnose(evaluation("b", tables[0]), evaluation("a", tables[1]))
    said = {r["name"]: r["verdict"] for r in rows(found)}
    assert said["pass@1"] == "" and found.crossing.verdict == "undecided"


def test_curves_that_only_meet_at_the_top_are_not_said_to_cross() -> None:
    before = {f"t{i}": [True, False, False, False] for i in range(20)}
    after = {f"t{i}": [True, True, True, False] for i in range(20)}
    lines = "\n".join(table(diagnose(evaluation("b", before), evaluation("a", after))))
    assert "the model before catches up at k = 4, within 4 in 100.0% of the resamples" in lines
    assert "curves cross" not in lines
