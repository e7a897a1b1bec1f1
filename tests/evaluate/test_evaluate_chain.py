"""``assay eval --chain``: votes of a judge, how they are settled, what is kept of them, what endpoints were paid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opinions import MUMBLE, NO, YES, Opinions

from assay import cli
from assay.errors import UsageError
from assay.evaluate.chain_judge import ChainJudge, as_chain_judge, check_rule, settle
from assay.evaluate.detail import Detail
from assay.evaluate.measures import measures
from assay.evaluate.model_source import ModelSource
from assay.evaluate.source import Options
from assay.records.evaluation_folder import added
from assay.records.sample import Sample, read_samples, write_samples
from assay.types import Episode, Task


def sample(task: str, response: str, passed: bool | None, **more: Any) -> Sample:
    return Sample(task, "q", response, float(passed is True), passed, "", 3, "eos", **more)


def detailed(judge: Opinions, rows: Sequence[Sample], **options: Any) -> list[Sample]:
    none = np.zeros(0, dtype=np.int64)
    pairs = [
        (Task(s.task_id, "q", "1", "exact"), Episode(none, none, none.astype(bool), None, s.response, "eos"))
        for s in rows
    ]
    return Detail(chain=ChainJudge(judge), **options).add(pairs, rows, judge, np.random.default_rng(0))


REPLIES = {
    "sound": [YES, NO, YES],
    "lucky": [NO, NO, YES],
    "sure": [YES] * 3,
    "odd": [MUMBLE, YES, MUMBLE],
    "mute": [MUMBLE] * 3,
}


def test_only_chains_of_right_answers_are_judged_unless_every_one_is_to_be() -> None:
    rows = [sample("t", "sound a", True), sample("t", "lucky b", False), sample("t", "sure c", None)]
    judge = Opinions(REPLIES)
    found = detailed(judge, rows)
    assert [s.votes for s in found] == [(True, False, True), (), ()] and len(judge.asked) == 1
    assert [s.sound for s in found] == [True, None, None]
    found = detailed(judge, rows, every=True)
    assert [s.votes for s in found] == [(True, False, True), (False, False, True), ()]
    assert [s.sound for s in detailed(judge, rows, every=True, rule="any")] == [True, True, None]
    assert [s.sound for s in detailed(judge, rows, every=True, rule="all")] == [False, False, None]


def test_every_rule_is_measured_from_the_votes() -> None:
    """Five right answers of ten, two of them sound by majority: C(8, 5) / C(10, 5) = 56 / 252 miss both."""
    words = ["sound", "sure", "lucky", "lucky", "lucky"]
    rows = [sample("t", f"{w} {i}", True) for i, w in enumerate(words)] + [
        sample("t", f"no {i}", False) for i in range(5)
    ]
    value = {m.name: m.value for m in measures(detailed(Opinions(REPLIES), rows))}
    assert value["cot_pass@1"] == value["cot_pass_majority@1"] == pytest.approx(0.2)
    assert value["cot_pass@4"] == pytest.approx(1 - 70 / 210)
    assert value["cot_pass_any@1"] == pytest.approx(0.5) and value["cot_pass_all@1"] == pytest.approx(0.1)
    assert value["sound|right"] == pytest.approx(2 / 5)
    assert value["chain/unanimous"] == pytest.approx(1 / 5) and value["chain/abstained"] == 0
    assert value["pass@1"] == 0.5


def test_the_share_of_right_answers_with_sound_chains_is_a_mean_over_tasks() -> None:
    """One of one of a task, none of three of another: 1/2, though of all right answers it is 1/4."""
    rows = [sample("a", "sound", True), *(sample("b", f"lucky {i}", True) for i in range(3)), sample("c", "no", False)]
    found = {m.name: m for m in measures(detailed(Opinions(REPLIES), rows))}["sound|right"]
    assert found.value == 0.5 and found.tasks == 2


def test_unreadable_votes_do_not_count_and_a_chain_without_others_is_left_out() -> None:
    rows = [
        sample("t", "odd a", True),
        sample("t", "mute b", True),
        sample("t", "no c", False),
        sample("t", "no d", False),
    ]
    found = detailed(Opinions(REPLIES), rows)
    assert [s.sound for s in found] == [True, None, None, None] and found[0].votes == (None, True, None)
    value = {m.name: m.value for m in measures(found)}
    # One of the three that are known; the right answer whose chain nobody could judge is out.
    assert value["cot_pass@1"] == pytest.approx(1 / 3) and value["chain/abstained"] == pytest.approx(1 / 2)
    assert value["sound|right"] == 1
    assert settle((None, True, None), "all") is True and settle((), "any") is None


def test_votes_are_stored(tmp_path: Path) -> None:
    rows = [sample("t", "a", True, votes=(True, None, False)), sample("t", "b", False)]
    write_samples(tmp_path / "x.parquet", rows, "e", 0)
    assert read_samples(tmp_path / "x.parquet")[0] == rows


def test_who_judges() -> None:
    assert as_chain_judge("judge", 5) == ChainJudge(None, 5)
    assert as_chain_judge("path/to/file.py:sound") is None and as_chain_judge("confidence") is None
    made = as_chain_judge({"name": "judge", "template": "{response}?"}, 2)
    assert made is not None and (made.n, made.template) == (2, "{response}?")
    assert as_chain_judge(judge := Opinions({})).engine is judge  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="did you mean 'majority'"):
        check_rule("majorit")
    with pytest.raises(UsageError, match="templat"):
        as_chain_judge({"name": "judge", "templat": "x"})
    with pytest.raises(UsageError, match="--chain judge"):
        ModelSource("nano", (), Options(rule="all"))
    with pytest.raises(UsageError, match="1 vote or more"):
        Options(votes=0)


def test_usage_adds_up() -> None:
    assert added({"model": {"cost": 1.0}}, {"model": {"cost": 0.5, "requests": 2}, "judge": {"cost": 3.0}}) == {
        "model": {"cost": 1.5, "requests": 2},
        "judge": {"cost": 3.0},
    }


def called(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main(["eval", *arguments])
    out, err = capfd.readouterr()
    return int(end.value.code or 0), out, err


def test_an_endpoint_and_a_judge_are_paid_and_the_bill_is_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two models on one server: 10 and 6 tokens a call, at 1000 and 2000 per million; a run that failed is paid too."""
    pytest.importorskip("httpx2", reason="engine openai needs httpx2: pip install assay[openai]")
    from faulty import answer, send, serving, status

    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text("".join(json.dumps({"prompt": p, "answer": f"said {p} 0"}) + "\n" for p in "abcdefghij"))
    more = (f"tasks.source={{name='file', path='{tasks}'}}", "tasks.eval_size=3", "tasks.eval_share=0.5")

    def model(handler: Any, body: dict[str, Any]) -> None:
        usage = {"prompt_tokens": 4, "completion_tokens": 6, "total_tokens": 10}
        send(handler, 200, {**answer(body, int(body.get("n", 1))), "usage": usage})

    def judge(handler: Any, body: dict[str, Any]) -> None:
        made = answer(body, int(body.get("n", 1)))
        for i, choice in enumerate(made["choices"]):
            choice["message"]["content"] = NO if i == 1 else YES
        send(handler, 200, {**made, "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}})

    with serving() as server:
        priced = "price_prompt=1000&price_completion=2000"
        target = f"openai:good-model@{server.url}?retries=0&{priced}"
        chain = f"openai:other@{server.url}?retries=0&{priced}"
        options = ("--samples", "2", "--chain", chain, "--chain-rule", "all", "--out", str(tmp_path / "out"))
        server.choose = lambda body: status(500, "broken")
        code, _, _ = called(capfd, target, *more, *options)
        assert code == 1
        failed = json.loads((tmp_path / "out" / "evaluation.json").read_text())["usage"]["model"]
        assert failed["failed"] == failed["requests"] > 0 and failed["cost"] == 0
        server.choose = lambda body: judge if body["model"] == "other" else model
        code, said, _ = called(capfd, str(tmp_path / "out"))
    assert code == 0
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    usage = written["usage"]
    calls = usage["model"]["requests"] - failed["requests"]
    assert usage["model"]["cost"] == pytest.approx(calls * (4 * 1000 + 6 * 2000) / 1e6)
    assert usage["model"]["completion_tokens"] == 6 * calls and usage["model"]["failed"] == failed["failed"]
    # One of the two responses to each task is right: three chains, each judged in one request of three votes.
    assert usage["judge"]["requests"] == 3 and usage["judge"]["cost"] == pytest.approx(3 * (5 * 1000 + 2000) / 1e6)
    assert f"model: {usage['model']['requests']:.0f} requests" in said and "judge: 3 requests" in said
    metrics = {name: m["value"] for name, m in written["metrics"].items()}
    assert metrics["cot_pass@1"] == metrics["cot_pass_all@1"] == 0
    assert metrics["cot_pass_majority@1"] == metrics["cot_pass_any@1"] == metrics["pass@1"] == 0.5
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install assay[structured]")
    from assay.evaluate.results import schema

    jsonschema.validate(written, schema())
