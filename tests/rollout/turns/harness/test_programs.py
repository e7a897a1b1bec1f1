"""Our own harnesses at work in a folder, and what becomes of the folder, the time and the failures."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox.support import needs_sandbox
from scripted import Talking

from assay.engines.base import Sampling
from assay.environments.tools import call, calls
from assay.errors import UsageError
from assay.rollout.turns.harness.folder import put, taken
from assay.rollout.turns.harness.programs.bare import BLOCK
from assay.rollout.turns.harness.programs.desk import SHOWN, Desk
from assay.rollout.turns.harness.programs.planned import FAILED, NOT_YET, PLAN, TRIES, Worker
from assay.rollout.turns.harness.rollout import Harness
from assay.sandbox.workspace import Workspace
from assay.tasks.workspaces.service import Served, Service
from assay.types import Ask, Group, Task

pytestmark = needs_sandbox

ONE = {"id": "made", "weight": 0.8, "file": "made.txt", "is": "7"}
KEPT = {"id": "kept", "weight": 0.2, "kept": ["note.txt"], "beside": True, "guard": True}


def task(routes: dict[str, str] | None = None, failures: int = 0) -> Task:
    service = None if routes is None else {"routes": routes, "failures": failures}
    files = {"note.txt": "c2V2ZW4="}
    meta = {"job": "given", "files": files, "checks": [ONE, KEPT], "gold": "echo 7 > made.txt", "service": service}
    return Task("work/1", "Write 7 into made.txt.", kind="none", meta=meta)


def worked(answer: Any, command: Any = "react", of: Task | None = None, n: int = 1, **options: Any) -> Group:
    rollout = Harness(command, Sampling(2000), "workspace", trace=True, **options)
    [group] = rollout.play([Ask(of or task(), n)], [3], answer if isinstance(answer, Talking) else Talking(answer))
    return group


def said(*turns: str) -> Any:
    """Say one thing after another, in every conversation."""

    def answer(messages: list[dict[str, Any]], tools: list[str]) -> str:
        return turns[sum(m["role"] == "assistant" for m in messages)]

    return answer


WRITE = call("write", path="made.txt", content="7\n").text


def test_a_loop_ends_when_nothing_is_called() -> None:
    heard: list[Any] = []

    def answer(messages: list[dict[str, Any]], tools: list[str]) -> str:
        heard.append((messages, tools))
        plan = calls(("read", {"path": "note.txt"}), ("run", {"command": "echo 7 > made.txt; cat made.txt"})).text
        return plan if len(heard) == 1 else "It is written."

    group = worked(answer)
    [episode], [verdict] = group.episodes, group.verdicts
    assert verdict.passed and verdict.score == 1 and episode.text == "It is written." and episode.stop == "eos"
    assert [m["role"] for m in heard[1][0]] == ["user", "assistant", "tool", "tool"]
    assert [m["content"] for m in heard[1][0][2:]] == ["seven", "7"]
    assert "note.txt (5 bytes)" in heard[0][0][0]["content"] and heard[0][1] == ["run", "read", "write"]
    assert episode.meta["changed"] == 1 and episode.meta["requests"] == 2 and episode.meta["refused"] == 0
    assert [m["role"] for m in episode.meta["trace"]] == ["user", "assistant", "tool", "tool", "assistant"]
    assert not episode.forks and len(episode.turns) == 2


def test_one_shot_is_done_in_order_and_nothing_is_looked_at() -> None:
    text = "First\n```get\n/n n.txt\n\n/none x\n```\nthen\n```bash\ncat n.txt > made.txt\n```\nand it is done."
    of = task({"/n": "7"})
    group = worked(said(text), "bare", of)
    assert group.verdicts[0].passed and group.episodes[0].text == "First\n\nthen\n\nand it is done."
    # The service is busy once, and nobody asks again.
    busy = worked(said(text), "bare", task({"/n": "7"}, 1))
    assert busy.verdicts[0].score == 0 and busy.episodes[0].meta["requests"] == 1
    assert [kind for kind, _ in BLOCK.findall("```sh\na\n```\n```python\nb\n```\n```bash \nc\n```")] == ["sh", "bash"]


def test_a_plan_stays_in_a_file_and_failures_are_mended() -> None:
    heard: list[list[dict[str, Any]]] = []
    acts = [call("get", path="/n", to="made.txt"), call("run", command="exit 3"), call("run", command=f"cat {PLAN}")]
    get, fails, looks = (act.text for act in acts)
    turns = iter(["1. fetch 2. write", get, fails, "Done.", looks, "Now it is done."])

    def answer(messages: list[dict[str, Any]], tools: list[str]) -> str:
        heard.append(messages)
        return next(turns)

    group = worked(answer, "planned", task({"/n": "7"}, TRIES - 1))
    assert group.verdicts[0].passed and group.episodes[0].text == "Now it is done."
    # Busy three times, and asked again without the model.
    assert [m["content"] for m in heard[2] if m["role"] == "tool"] == ["7"]
    failed = [m["content"] for m in heard[3] if m["role"] == "tool"][-1]
    assert failed == "(error: exit code 3)" + FAILED.format(plan="1. fetch 2. write")
    assert heard[4][-1]["content"] == NOT_YET["failed"]
    assert [m["content"] for m in heard[5] if m["role"] == "tool"][-1] == "1. fetch 2. write"
    # Of the folder the plan is no part.
    assert group.episodes[0].meta["changed"] == 1
    idle = worked(said("plan", "Done.", "It cannot be done."), "planned")
    assert idle.episodes[0].text == "It cannot be done." and idle.episodes[0].meta["requests"] == 3
    assert [m["content"] for m in idle.episodes[0].meta["trace"]].count(NOT_YET["idle"]) == 1
    busy = worked(
        said("plan", call("get", path="/n", to="made.txt").text, "no", "no"), "planned", task({"/n": "7"}, TRIES)
    )
    assert busy.verdicts[0].score == 0


def test_budgets_are_judged_as_the_folder_stands() -> None:
    for command in ("react", "planned"):
        group = worked(said(*["plan"] * (command == "planned"), *[WRITE] * 9), command, turns=3)
        assert group.episodes[0].stop == "turns" and group.verdicts[0].passed
        assert group.episodes[0].meta["requests"] == 4 and group.episodes[0].meta["refused"] == 1
    context = worked(Talking(said(*[WRITE] * 9), window=700), "react")
    assert context.episodes[0].stop == "context" and context.verdicts[0].passed
    late = worked(said(WRITE, "Done."), [sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.5)
    assert late.episodes[0].stop == "limit" and late.verdicts[0].passed is False and late.verdicts[0].score == 0
    assert worked(said("x"), "bare", turns=1).verdicts[0].passed is False


def test_a_program_that_breaks_off_is_not_judged() -> None:
    group = worked(said(WRITE), [sys.executable, "-c", "raise SystemExit('I broke')"])
    assert group.verdicts[0].passed is None and "I broke" in group.verdicts[0].feedback
    assert group.episodes[0].stop == "error"
    # Nor is one whose model failed.
    failing = Talking(said(WRITE))
    failing.reply = lambda messages, tools: ""
    made = failing.generate

    def lost(requests: Any) -> Any:
        return [
            [type(e)(e.prompt, e.tokens, e.mask, e.logprobs, "", "error", meta={"error": "away"})]
            for [e] in made(requests)
        ]

    failing.generate = lost  # type: ignore[method-assign]
    group = worked(failing)
    assert group.verdicts[0].passed is None and group.episodes[0].meta["refused"] == 1


def test_the_world_failing_is_nobodys_fault() -> None:
    broken = Task("work/2", "p", kind="none", meta={**task().meta, "files": {"/x": ""}})
    group = worked(said(WRITE), of=broken)
    assert group.verdicts[0].passed is None and "relative path" in group.verdicts[0].feedback
    assert group.episodes[0].stop == "error"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("open('made.txt', 'w').write('7'); open('big', 'wb').truncate(9 << 20)", "more than 4 MiB"),
        ("open('made.txt', 'w').write('7'); open('a\\nb', 'w')", "no text"),
    ],
)
def test_what_cannot_be_kept_is_wrong(code: str, told: str) -> None:
    group = worked(said(), [sys.executable, "-c", code])
    assert group.verdicts[0].passed is False and told in group.verdicts[0].feedback


def test_an_engine_that_is_asked_by_messages() -> None:
    by = Talking(said(call("run", command="echo 7 > made.txt").text, "Done."))
    by.by_messages = True  # type: ignore[attr-defined]
    by.encode = lambda prompt: Talking.encode(
        by, prompt if isinstance(prompt, str) or hasattr(prompt, "ids") else by.decode(by.opening(prompt, ()))
    )  # type: ignore[method-assign]
    group = worked(by)
    assert group.verdicts[0].passed and group.episodes[0].text == "Done."
    first, second = (request.prompt for request in by.asked)
    assert first[0]["role"] == "system" and '"name": "run"' in first[0]["content"]
    # What was called stands in the text, and what tools answer is the user's.
    assert [m["role"] for m in second] == ["system", "user", "assistant", "user"]
    assert second[2]["content"] == call("run", command="echo 7 > made.txt").text
    assert second[3]["content"] == "<tool_response>\n(no output)\n</tool_response>"


def test_an_environment_must_be_a_folder() -> None:
    with pytest.raises(UsageError, match="'guess' is no folder"):
        Harness("react", Sampling(5), "guess")


def test_calls_at_the_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    assert [t["name"] for t in desk.tools] == ["run", "read", "write"] and desk.listing() == "(no files)"
    assert desk.call("write", {"path": "./in/a.txt", "content": "one"}) == ("written", True)
    assert (tmp_path / "in/a.txt").read_text() == "one" and desk.listing() == "in/a.txt (3 bytes)"
    assert desk.call("read", {"path": "in/a.txt"}) == ("one", True)
    assert desk.call("read", {"path": "b"}) == ("error: there is no file b", False)
    assert desk.call("run", {"command": "rm in/a.txt; echo two > b; echo three >&2"}) == ("three", True)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["b", "in"]
    assert desk.call("run", {"command": "echo x; exit 3"}) == ("x\n(error: exit code 3)", False)
    text, well = desk.call("run", {"command": "seq 9999"})
    assert well and len(text) == SHOWN
    text, well = desk.call("run", {"command": "yes"})
    assert not well and "\n(error: " in text and len(text) < SHOWN + 200
    for name, arguments, told in (
        ("write", {"path": "../x", "content": ""}, "relative path"),
        ("write", {"path": "x"}, "there is no write(path)"),
        ("get", {"path": "/", "to": ""}, "there is no get"),
        ("run", {"command": 3}, "arguments are texts"),
        ("run", {"command": "a\0"}, "zero bytes"),
    ):
        text, well = desk.call(name, arguments)
        assert not well and text.startswith("error: ") and told in text


def test_what_is_busy_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service({"/n": "7", "/m": "8"}, failures=2)
    with Served(service) as served:
        monkeypatch.setenv("SERVICE_URL", served.url)
        desk = Desk(tmp_path)
        assert desk.tools[-1]["name"] == "get"
        assert desk.call("get", {"path": "n", "to": ""}) == ("error: 503 busy, try again", False)
        worker = Worker(desk)
        assert worker.doubt() == NOT_YET["idle"]
        assert worker.call("get", {"path": "/m", "to": "a"}) == "8" and worker.doubt() == ""
        assert service.asked.count(("/m", 503)) == 2 and (tmp_path / "a").read_text() == "8"
        assert worker.call("get", {"path": "/x", "to": "b"}).startswith(
            "error: 404 there is nothing at /x\n\nThis failed."
        )
        assert worker.doubt() == NOT_YET["failed"] and service.asked.count(("/x", 404)) == 1


def test_a_folder_and_back(tmp_path: Path) -> None:
    space = Workspace({"a/b.txt": b"\x00\xff", "c": "d"})
    space.run(["bash", "-c", "chmod 755 c; mkdir empty; ln -s /etc/passwd link"])
    put(space.entries, tmp_path)
    back = taken(tmp_path, 1000)
    assert set(back) == {"a", "a/b.txt", "c", "empty"} and back["a/b.txt"][0] == b"\x00\xff"
    assert stat.S_IMODE(back["c"][1]) == 0o755
    os.symlink("/etc/passwd", tmp_path / "other")
    os.symlink("/etc", tmp_path / "folder")
    os.mkfifo(tmp_path / "pipe")
    assert taken(tmp_path, 3) == back
    with pytest.raises(UsageError, match="holds more"):
        taken(tmp_path, 2)
    put({"x": (b"", stat.S_IFREG | 0o000)}, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["x"] and (tmp_path / "x").stat().st_mode & 0o600 == 0o600
    assert Path("/etc/passwd").is_file()


@given(st.dictionaries(st.text("abc./", min_size=1, max_size=6), st.binary(max_size=9), max_size=5))
def test_any_files_come_back(files: dict[str, bytes]) -> None:
    space = Workspace()
    for name, data in files.items():
        try:
            space.write(name, data)
        except UsageError:
            continue
    with tempfile.TemporaryDirectory() as folder:
        put(space.entries, Path(folder))
        assert taken(Path(folder), 1000) == {
            name: (data, (Path(folder) / name).stat().st_mode) for name, (data, _) in space.entries.items()
        }


def test_what_is_said_is_the_seeds() -> None:
    one, two = (worked(said(WRITE, "Done."), n=2) for _ in range(2))
    assert [e.tokens.tolist() for e in one.episodes] == [e.tokens.tolist() for e in two.episodes]
    assert [v.score for v in one.verdicts] == [1.0, 1.0] and len({e.trajectory for e in one.episodes}) == 2
