"""``assay eval``: kept as it goes, gone on with after kill -9 with the same result, written for others to read."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from assay import api, cli
from assay.console import Reporter
from assay.errors import RunError, UsageError
from assay.evaluate.results import lm_eval, results, schema
from assay.evaluate.run import run
from assay.evaluate.source import Options
from assay.records.evaluation_folder import EvaluationFolder
from assay.records.sample import Sample, read_samples

NANO = ("tasks=arithmetic", "tasks.eval_size=48", "rollout.max_tokens=6")


def called(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main(["eval", *arguments])
    out, err = capfd.readouterr()
    return int(end.value.code or 0), out, err


def samples_of(folder: Path) -> list[Sample]:
    return [s for part in sorted((folder / "samples").glob("part-*.parquet")) for s in read_samples(part)[0]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation that nobody stopped."""
    folder = tmp_path_factory.mktemp("eval") / "whole"
    api.evaluate("nano", overrides=NANO, samples=2, out=folder, quiet=True)
    return folder


SLOW = """
import sys, time
from assay.records import evaluation_folder as folder
from assay import api

stored = folder.write_samples
def slowly(*arguments):
    stored(*arguments)
    print("stored", flush=True)
    time.sleep(60 if sys.argv[2] == "rest" else 0)
folder.write_samples = slowly
api.evaluate("nano", overrides=sys.argv[3:], samples=2, out=sys.argv[1], quiet=True)
"""


@pytest.mark.slow
def test_an_evaluation_that_was_killed_ends_as_if_it_had_not_been(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "stopped"
    command = [sys.executable, "-c", SLOW, str(folder), "rest", *NANO]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "stored\n"
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    assert 0 < len(samples_of(folder)) < len(samples_of(whole))
    (folder / "samples" / ".part-00003.parquet.partial").write_bytes(b"half a part")
    code, out, _ = called(capfd, str(folder), "--json")
    assert code == 0
    assert samples_of(folder) == samples_of(whole)
    assert not list((folder / "samples").glob(".*"))
    found = json.loads(out)
    _, again, _ = called(capfd, str(whole), "--json")
    assert found == json.loads(again) and found["complete"]


def test_metrics_are_made_again_without_a_model(
    whole: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from assay.policies.causal_lm import CausalLM

    monkeypatch.setattr(CausalLM, "load", lambda *a, **k: pytest.fail("the model was loaded again"))
    code, out, _ = called(capfd, str(whole))
    assert code == 0 and "pass@2" in out and "by difficulty" in out
    assert api.evaluate(whole, quiet=True).samples == tuple(samples_of(whole))
    one = sorted((whole / "samples").iterdir())[0]
    assert api.evaluate(one, quiet=True).samples == tuple(read_samples(one)[0])


def test_a_changed_configuration_is_refused_in_one_line(whole: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capfd, "nano", *NANO, "evaluate.temperature=0.5", "--samples", "2", "--out", str(whole))
    assert code == 2 and err.count("\n") == 1
    assert "sampling.temperature: 1.0 -> 0.5" in err and "another folder" in err
    code, _, err = called(capfd, "nano", *NANO, "--samples", "2", "--scorer", "none", "--out", str(whole))
    assert code == 2 and "scorer: 'confidence' -> 'none'" in err
    code, _, err = called(capfd, str(whole), "--samples", "3")
    assert code == 2 and "leave out --samples" in err
    before = samples_of(whole)
    assert api.evaluate("nano", overrides=NANO, samples=2, out=whole, quiet=True).samples == tuple(before)


def test_a_damaged_part_is_named(whole: Path, tmp_path: Path) -> None:
    import shutil

    folder = shutil.copytree(whole, tmp_path / "copy")
    part = folder / "samples" / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(RunError, match=r"part-00001.parquet.*remove it and make it again"):
        api.evaluate(folder, quiet=True)
    part.unlink()
    assert api.evaluate(folder, quiet=True).samples == tuple(samples_of(whole))


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds something else"):
        api.evaluate("nano", overrides=NANO, out=tmp_path, quiet=True)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(UsageError, match="neither a run"):
        api.evaluate(tmp_path, quiet=True)


def test_a_model_that_is_not_there_leaves_no_folder(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="cannot be read"):
        api.evaluate(tmp_path / "model", overrides=NANO, out=tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match=r"no folder .*whol; did you mean '.*/whole'\?"):
        api.evaluate(whole.parent / "whol", quiet=True)


def test_two_processes_do_not_work_on_one_evaluation(whole: Path) -> None:
    folder = EvaluationFolder.open(whole)
    with folder.locked(), pytest.raises(UsageError, match="another process"), EvaluationFolder.open(whole).locked():
        pass


def test_the_results_follow_their_schema(whole: Path, capfd: pytest.CaptureFixture[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install assay[structured]")
    jsonschema.Draft202012Validator.check_schema(schema())
    called(capfd, str(whole))
    written = json.loads((whole / "results.json").read_text())
    jsonschema.validate(written, schema())
    assert {m["group"] for m in written["metrics"].values()} >= {"accuracy", "voting", "cost", "calibration"}
    for wrong in ({"tasks": -1}, {"metrics": {"x": {"value": 1}}}, {"schema": "else"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(written | wrong, schema())


def about(**changes: Any) -> dict[str, Any]:
    base = {
        "target": "my/model",
        "step": 0,
        "tasks": 2,
        "settings": {"tasks": {"source": {"name": "gsm8k"}}, "seed": 3},
    }
    return base | changes


def judged(task: str, passed: bool | None, **more: Any) -> Sample:
    values = {
        "prompt": "q",
        "response": "r",
        "score": float(passed is True),
        "feedback": "",
        "length": 3,
        "stop": "eos",
    }
    return Sample(task_id=task, passed=passed, **(values | more))


def test_readers_of_lm_evaluation_harness_find_what_they_look_for() -> None:
    document = results([judged("a", True), judged("a", False), judged("b", True), judged("b", True)], about())
    path, content = lm_eval(document, "2026-01-02T03:04:05+00:00")
    # Results are found by their name in a folder of the model's.
    assert path == "lm_eval/my__model/results_2026-01-02T03-04-05.000000.json"
    assert content["date"] == 1767323045.0
    [(task, values)] = content["results"].items()
    assert task == "gsm8k" and values["pass@1,none"] == 0.75
    # What its table reads: versions, n-shot, and for each "metric,filter" a "metric_stderr,filter".
    for key in ("versions", "n-shot", "higher_is_better", "configs", "n-samples", "group_subtasks"):
        assert task in content[key]
    metrics = [key for key in values if "," in key and not key.partition(",")[0].endswith("_stderr")]
    for key in metrics:
        name, _, name_of_filter = key.partition(",")
        assert f"{name}_stderr,{name_of_filter}" in values and content["higher_is_better"][task][name] is True
    assert {"model", "model_args", "batch_size", "gen_kwargs", "random_seed"} <= content["config"].keys()
    assert content["n-samples"][task] == {"original": 2, "effective": 2}
    json.dumps(content, allow_nan=False)


def test_a_part_is_a_data_set(whole: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install assay[datasets]")
    files = sorted(str(p) for p in (whole / "samples").glob("*.parquet"))
    loaded = datasets.Dataset.from_parquet(files, cache_dir=str(whole.parent / "cache"))
    assert len(loaded) == 96
    expected = [(s.task_id, s.response, s.passed, s.entropy) for s in samples_of(whole)]
    columns = ("task_id", "response", "passed", "entropy")
    assert list(zip(*(loaded[c] for c in columns), strict=True)) == expected
    assert pq.read_schema(files[0]).names == ["label", "step", *Sample.__dataclass_fields__]


def test_what_is_stored_of_each_response(whole: Path) -> None:
    stored = samples_of(whole)
    assert all(s.confidence is not None and 0 < s.confidence <= 1 for s in stored)
    assert all(s.logprob is not None and s.entropy is not None and s.logprob <= 0 <= s.entropy for s in stored)
    assert {"difficulty", "operation", "source"} == json.loads(stored[0].meta).keys()
    assert all(s.answer for s in stored if s.response.strip())


def test_an_endpoint_reaches_its_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from assay import registry
    from assay.engines.target import resolve

    asked: list[Any] = []
    monkeypatch.setattr(registry, "names", lambda seam: ["openai"])
    monkeypatch.setattr(registry, "build", lambda seam, spec, **given: asked.append((seam, spec)))
    found = resolve("openai:org/model:8b@http://localhost:8000/v1/", ["tasks=countdown"])
    assert found.config.tasks.source == "countdown"
    found.open()
    table = {"name": "openai", "model": "org/model:8b", "base_url": "http://localhost:8000/v1"}
    assert asked == [("engine", table)]
    resolve("openai:org/model:8b@http://localhost:8000/v1?api=completions&concurrency=8").open()
    assert asked[1] == ("engine", table | {"api": "completions", "concurrency": 8})
    for wrong in ("openai:model", "openai:@http://x", "openai:model@localhost"):
        with pytest.raises(UsageError, match="openai:MODEL@http"):
            resolve(wrong)


def test_an_endpoint_is_evaluated(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The server answers "said PROMPT 0", which is right of the prompt alone where the task is to say so."""
    pytest.importorskip("httpx2", reason="engine openai needs httpx2: pip install assay[openai]")
    from faulty import serving, status

    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text("".join(json.dumps({"prompt": p, "answer": f"said {p} 0"}) + "\n" for p in "abcdefghij"))
    more = (f"tasks.source={{name='file', path='{tasks}'}}", "tasks.eval_size=3", "tasks.eval_share=0.5")
    with serving() as server:
        target, out = f"openai:good-model@{server.url}?retries=0", str(tmp_path / "out")
        server.choose = lambda body: status(500, "broken")
        code, _, err = called(capfd, target, *more, "--samples", "2", "--out", out)
        assert code == 1 and "gave no response to any of 6 requests: generation failed" in err and "broken" in err
        server.choose = lambda body: None
        code, said, err = called(capfd, out, "--json")
    found = json.loads(said)
    # One of the two responses to each, "... 0" and "... 1", is right.
    assert code == 0 and found["metrics"]["pass@1"]["value"] == 0.5 and found["metrics"]["pass@2"]["value"] == 1


def test_responses_that_failed_are_asked_for_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of one task the server gives one response of two at first, of another none; then nothing; then everything."""
    pytest.importorskip("httpx2", reason="engine openai needs httpx2: pip install assay[openai]")
    from faulty import choices, serving, status

    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text("".join(json.dumps({"prompt": p, "answer": f"said {p} 0"}) + "\n" for p in "abcdefghij"))
    more = (f"tasks.source={{name='file', path='{tasks}'}}", "tasks.eval_size=4", "tasks.eval_share=0.5")
    with serving() as server:
        target, out = f"openai:good-model@{server.url}?retries=0", str(tmp_path / "out")
        down: list[str] = []

        def choose(body: dict[str, Any]) -> Any:
            prompt = body["messages"][0]["content"]
            if prompt not in down[:2] and len(down) < 2:
                down.append(prompt)
            return (
                {0: choices(lambda n: n - 1), 1: status(500, "broken")}[down.index(prompt)] if prompt in down else None
            )

        server.choose = choose
        code, _, _ = called(capfd, target, *more, "--samples", "2", "--out", out)
        before = samples_of(Path(out))
        assert code == 0 and sum(s.failed for s in before) == 3
        server.choose, asked = lambda body: status(500, "still broken"), len(server.seen)
        code, said, err = called(capfd, out)
        assert code == 0 and "asking again for 3 responses" in err and "0 of 3 responses were given" in err
        assert "8 samples" in said and len(server.seen) == asked + 2
        server.choose = lambda body: None
        code, said, err = called(capfd, out)
        assert code == 0 and "3 of 3 responses were given" in err
        assert sorted(body["n"] for body in server.seen[-2:]) == [1, 2]
        after, asked = samples_of(Path(out)), len(server.seen)
        assert not any(s.failed for s in after)
        assert [a for b, a in zip(before, after, strict=True) if not b.failed] == [b for b in before if not b.failed]
        code, _, err = called(capfd, out)
        assert code == 0 and "asking" not in err and len(server.seen) == asked


@pytest.mark.parametrize(
    ("metrics", "there", "gone"),
    [
        ("main", ["pass@2", "entropy", "more: --metrics all"], ["g_pass@2_0.5"]),
        ("all", ["g_pass@2_0.5", "abstaining@0.9"], ["more:"]),
        ("voting,brier", ["maj@1", "brier"], ["pass@1", "more:"]),
    ],
)
def test_what_is_printed(
    metrics: str, there: list[str], gone: list[str], whole: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = called(capfd, str(whole), "--metrics", metrics)
    assert all(name in out for name in there) and not any(name in out for name in gone)
    assert "48 tasks, 96 samples" in out
    if metrics == "main":
        assert len(out.splitlines()) < 35


def test_an_unknown_metric_is_named(whole: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capfd, str(whole), "--metrics", "calibratoin")
    assert code == 2 and "did you mean 'calibration'?" in err


def interrupted(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let Ctrl-C strike while the engine answers for the ``after``-th time."""
    from assay.engines.hf import HFEngine

    calls, generate = [0], HFEngine.generate

    def struck(self: HFEngine, requests: Any) -> Any:
        calls[0] += 1
        if calls[0] == after:
            raise KeyboardInterrupt
        return generate(self, requests)

    monkeypatch.setattr(HFEngine, "generate", struck)


def test_an_interrupted_evaluation_says_how_to_go_on(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "stopped"
    interrupted(monkeypatch, 3)
    code, out, err = called(capfd, "nano", *NANO, "--samples", "2", "--out", str(folder))
    assert code == 130 and not out
    assert f"stopped with 16 of 48 tasks stored; go on with: assay eval {folder}" in err
    monkeypatch.undo()
    code, _, err = called(capfd, str(folder))
    assert code == 0 and "16 of 48 tasks are in" in err
    assert samples_of(folder) == samples_of(whole)


def test_progress_says_rate_and_time_left(capfd: pytest.CaptureFixture[str]) -> None:
    run("nano", NANO, Options(samples=1), None, Reporter(interval=0.0))
    [first, *_, last] = [line for line in capfd.readouterr().err.splitlines() if line.startswith("evaluate ")]
    assert "evaluate 8/48" in first and "/s  " in first and "s left  pass@1" in first
    assert "evaluate 48/48" in last


SCORER = "def score(task, response):\n    return {value}\n"


def test_an_evaluation_does_not_go_on_with_another_scorer_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, scorer = tmp_path / "out", tmp_path / "scorer.py"
    scorer.write_text(SCORER.format(value=0.1))
    interrupted(monkeypatch, 2)
    asked = ["nano", *NANO, "--samples", "1", "--scorer", f"{scorer}:score", "--out", str(folder)]
    assert called(capfd, *asked)[0] == 130
    monkeypatch.undo()
    scorer.write_text(SCORER.format(value=0.2))
    for again in (asked, [str(folder)]):
        code, _, err = called(capfd, *again)
        assert code == 2 and f"holds an evaluation with other settings (files.{scorer}: " in err
    scorer.write_text(SCORER.format(value=0.1))
    assert called(capfd, str(folder))[0] == 0
    assert {s.confidence for s in samples_of(folder)} == {0.1}


def test_strategies_do_not_go_on_with_another_scorer_or_verifier_of_the_same_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scorer, verifier = tmp_path / "scorer.py", tmp_path / "verifier.py"
    scorer.write_text(SCORER.format(value=0.1))
    verifier.write_text("from assay.types import Verdict\ndef judge(task, response):\n    return Verdict(1, True)\n")
    asked = ["nano", "tasks=arithmetic", "tasks.eval_size=2", "rollout.max_tokens=2", "--budgets", "1"]
    asked += ["--strategy", f"best_of_n(scorer={scorer}:score)", "--verifier", f"{verifier}:judge"]
    asked += ["--out", str(tmp_path / "out")]
    assert called(capfd, *asked)[0] == 0 == called(capfd, *asked)[0]
    for file in (scorer, verifier):
        before = file.read_text()
        file.write_text(before + "\n# edited\n")
        code, _, err = called(capfd, *asked)
        assert code == 2 and f"with other settings (files.{file}: " in err
        file.write_text(before)


def test_what_a_setting_names_is_marked_by_its_content(tmp_path: Path) -> None:
    from assay.engines.target import files_mark

    head, folder = tmp_path / "head.safetensors", tmp_path / "prm"
    # An edit far from both ends is an edit.
    head.write_bytes(b"a" * 400_000)
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"1")
    spec = [{"name": "S038", "head": str(head)}, {"scorer": {"name": "steps", "scorer": str(folder)}}]
    first = files_mark(spec, None, 3, "judge", "a\nb: {question}?", "no/such.py:f", "x" * 5000)
    assert set(first) == {str(head), str(folder)}
    head.write_bytes(b"a" * 200_000 + b"b" + b"a" * 199_999)
    (folder / "model.bin").write_bytes(b"2")
    second = files_mark(spec)
    assert all(first[name] != second[name] for name in first)


class Made:
    """Stands for an engine with a copy of the weights."""

    def __init__(self, policy: Any, name: str):
        self.policy, self.name, self.followed, self.closed = policy, name, [], False  # type: tuple[Any, str, Any, bool]

    def follow(self, policy: Any) -> None:
        self.followed.append(policy)

    def close(self) -> None:
        self.closed = True


def test_the_engine_that_is_named_generates(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.engines.hf import HFEngine
    from assay.engines.target import resolve
    from assay.evaluate.model_source import ModelSource

    assert isinstance(resolve("nano", NANO).open(), HFEngine)
    asked: list[Any] = []

    def engine_of(policy: Any, spec: Any, max_rows: int) -> Made:
        asked.append((spec, max_rows))
        return Made(policy, spec["name"])

    monkeypatch.setattr("assay.engines.base.engine_of", engine_of)
    more = (*NANO, "engine=vllm", "engine.options.eager=true", "rollout.max_rows=7")
    source = ModelSource("nano", more, Options(samples=1))
    assert source.about["settings"]["engine"] == {"name": "vllm", "eager": True}
    assert "engine" not in ModelSource("nano", NANO, Options(samples=1)).about["settings"]
    source.start()
    assert asked == [({"name": "vllm", "eager": True}, 7)]
    assert source.engine.followed == [source.engine.policy]
    source.close()
    assert source.engine.closed
    with pytest.raises(UsageError, match="leave out engine=vllm"):
        resolve("openai:m@http://localhost:1/v1", ["engine=vllm"])


def test_an_engine_that_is_not_here_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        import vllm  # noqa: F401
    except ImportError:
        code, _, err = called(capfd, "nano", *NANO, "engine=vllm")
        assert code == 2 and "vllm" in err and "engine=hf does without vllm" in err
    else:
        pytest.skip("vllm is installed")
