"""Finding something out of stored samples again gives what an evaluation that had asked for it at once would have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay import cli
from assay.console import Reporter
from assay.engines.base import Request
from assay.errors import UsageError
from assay.evaluate.run import run
from assay.evaluate.source import Options
from assay.lab.settings.reasoning._words import Words
from assay.records.evaluation_folder import EvaluationFolder
from assay.records.sample import Sample, read_samples, write_samples
from assay.types import Episode

NANO = ("tasks=arithmetic", "tasks.eval_size=10", "rollout.max_tokens=3", "rollout.max_rows=15")
NANO += ("model.nano.hidden=16", "model.nano.layers=1", "model.nano.heads=2")
QUIET = Reporter(True)


class Critic(Words):
    """Says of a solution what its length says, three times, and now and then nothing."""

    asked = 0

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += len(requests)
        words = (r"\boxed{True}", r"\boxed{False}", "hm")
        return [[self.episode(r, [words[(len(str(r.prompt)) + j * j) % 3]]) for j in range(r.n)] for r in requests]


def made(target: Any, out: Path | None = None, overrides: Sequence[str] = (), **options: Any) -> list[Sample]:
    return run(str(target), overrides, Options(**options), out, QUIET)[0]


def called(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main(["eval", *arguments])
    out, err = capfd.readouterr()
    return int(end.value.code or 0), out, err


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of the nano model."""
    folder = tmp_path_factory.mktemp("eval") / "stored"
    made("nano", folder, NANO, samples=3)
    return folder


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.policies.causal_lm import CausalLM

    monkeypatch.setattr(CausalLM, "load", lambda *a, **k: pytest.fail("a model was loaded"))


SCORER = "def score(task, response):\n    return len(response) / 10 + len(str(task.reference)) / 100\n"


def test_it_is_as_if_it_had_been_asked_at_once(stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.policies.causal_lm import CausalLM

    scorer = tmp_path / "scorer.py"
    scorer.write_text(SCORER)
    asked: list[dict[str, Any]] = [
        {"equal": "exact"},
        {"equal": "verifier"},
        {"scorer": f"{scorer}:score"},
        {"scorer": "none"},
        {"chain": Critic(), "every": True, "votes": 4, "rule": "any"},
        {"chain": f"{scorer}:score", "equal": "exact", "scorer": "verifier"},
    ]
    at_once = [made("nano", None, NANO, samples=3, **options) for options in asked]
    before = (stored / "evaluation.json").read_bytes(), made(stored)
    monkeypatch.setattr(CausalLM, "load", lambda *a, **k: pytest.fail("a model was loaded"))
    for options, wanted in zip(asked, at_once, strict=True):
        assert made(stored, **options) == wanted, options
        assert wanted != before[1] or "equal" in options
    assert (stored / "evaluation.json").read_bytes() == before[0] and made(stored) == before[1]


def test_the_models_own_confidence_comes_back_from_its_log_probabilities(
    stored: Path, tmp_path: Path, no_model: None
) -> None:
    first, none = made(stored), tmp_path / "none"
    assert {s.confidence for s in made(stored, none, scorer="none")} == {None}
    again = made(none, scorer="confidence")
    assert [s.confidence for s in again] == pytest.approx([s.confidence for s in first])
    # What was found out of it once is there to find something else out of.
    assert made(none, equal="exact", scorer="verifier")[0].confidence in (0.0, 1.0)


def test_what_was_found_out_is_kept_elsewhere_and_goes_on(stored: Path, tmp_path: Path, no_model: None) -> None:
    out, critic = tmp_path / "out", Critic()
    whole = made(stored, out, chain=critic, every=True)
    once = critic.asked
    assert EvaluationFolder.open(out).samples() == whole == made(out)
    (lost := EvaluationFolder.open(out).part(1)).unlink()
    about = EvaluationFolder.open(out).about
    assert made(stored, out, chain=critic, every=True) == whole and lost.is_file()
    assert once < critic.asked < 2 * once
    assert about["settings"]["samples_of"]["path"] == str(stored)
    with pytest.raises(UsageError, match="other settings"):
        made(stored, out, chain=critic)
    with pytest.raises(UsageError, match="other settings"):
        made(stored, stored, equal="exact")
    # Votes that are there are settled by another rule without a judge.
    for rule, settled in (("any", any), ("all", all)):
        for s in made(out, rule=rule):
            known = [v for v in s.votes if v is not None]
            assert s.sound == (settled(known) if known else None)


def test_the_command_leaves_the_results_of_the_evaluation_alone(
    stored: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert called(capfd, str(stored))[0] == 0
    results = (stored / "results.json").read_bytes()
    code, said, _ = called(capfd, str(stored), "--equal", "exact", "--json")
    assert code == 0 and json.loads(said)["settings"]["equal"] == "exact"
    code, said, _ = called(capfd, str(stored), "--scorer", "none", "--metrics", "all", "--out", str(tmp_path / "out"))
    assert code == 0 and "auroc" not in said and (tmp_path / "out" / "results.json").is_file()
    assert (stored / "results.json").read_bytes() == results


def test_the_model_itself_may_judge_its_chains(stored: Path) -> None:
    judge = {"name": "judge", "template": "{response}", "sampling": {"max_tokens": 3}}
    found = made(stored, chain=judge, every=True, votes=2)
    assert {len(s.votes) for s in found if s.passed is not None} == {2}
    assert found == made("nano", None, NANO, samples=3, chain=judge, every=True, votes=2)


def test_a_file_of_samples_is_judged_too(tmp_path: Path, no_model: None) -> None:
    file, out = tmp_path / "samples.jsonl", tmp_path / "out"
    rows = [
        {"prompt": f"{i}+1?", "completions": [f"{i + 1}", "It is 7.", "no"], "answer": str(i + 1)} for i in range(6)
    ]
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    how: dict[str, Any] = {"verifier": "number", "workers": 0}
    plain, critic = made(file, out, **how), Critic()
    judged = made(file, None, **how, chain=critic)
    assert [s.passed for s in judged] == [s.passed for s in plain]
    assert all(len(s.votes) == (3 if s.passed else 0) for s in judged) and critic.asked == sum(
        bool(s.passed) for s in plain
    )
    # The same of the evaluation of the file, whose tasks are read from the file again.
    assert made(out, chain=Critic()) == judged
    assert made(out, equal="verifier") == made(file, None, **how, equal="verifier")
    with pytest.raises(UsageError, match="no model is known to judge it"):
        made(out, chain="judge")
    with pytest.raises(UsageError, match="does not say which model wrote"):
        made(file, None, **how, chain="judge")
    file.write_text(file.read_text().replace("It is 7.", "It is 8."))
    with pytest.raises(UsageError, match="no longer those"):
        made(out, equal="verifier")


def test_what_cannot_be_found_out_again_is_said(stored: Path, tmp_path: Path) -> None:
    single = tmp_path / "samples.parquet"
    write_samples(single, made(stored), "evaluation", 0)
    for target, options, words in (
        (stored, {"scorer": "flex"}, "reads tokens or states"),
        (stored, {"chain": "confidence"}, "reads tokens or states"),
        (stored, {"rule": "all"}, "no votes of a judge are stored"),
        (stored, {"votes": 5}, "--chain-votes is for a judge of chains"),
        (stored, {"samples": 5, "equal": "exact"}, "leave out --samples"),
        (single, {"scorer": "verifier"}, "holds samples alone"),
        (single, {"chain": "judge"}, "does not say which model"),
    ):
        with pytest.raises(UsageError, match=words):
            made(target, **options)  # type: ignore[arg-type]
    assert made(single, equal="exact") == made(stored, equal="exact")
    copy = tmp_path / "copy"
    made(stored, copy, scorer="none")
    EvaluationFolder.open(copy).part(0).unlink()
    with pytest.raises(UsageError, match="is not finished"):
        made(copy, equal="exact")
    assert read_samples(single)[0] == made(stored)
