"""The audit of environments finds the fault of each faulty world, and none in a sound one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.audit.environment import audit_environment
from assay.cli import main
from assay.environments.hosted.worlds import Worlds
from assay.errors import UsageError

FAULTY = Path(__file__).with_name("faulty_worlds.py")


def failed(environment: str, workers: int = 2) -> tuple[set[str], dict[str, str]]:
    """Return the names of checks that do not hold, and what each check first saw."""
    worlds = Worlds(environment, workers)
    source = worlds.here().tasks()
    try:
        findings = list(audit_environment(worlds, [source[i] for i in range(6)]))
    finally:
        worlds.close()
    assert all(f.of for f in findings)
    return {f.name for f in findings if not f.passed}, {f.name: f.first for f in findings}


@pytest.mark.slow
@pytest.mark.parametrize("world", ["guess", "household"])
def test_a_sound_world_has_no_fault(world: str) -> None:
    wrong, seen = failed(world)
    assert wrong == set()
    assert list(seen) == [
        "gold passes",
        "idle fails",
        "claims fail",
        "nothing raises",
        "random passes",
        "replay equal",
        "interleaving equal",
        "end is kept",
        "kill is no zero",
    ]


@pytest.mark.parametrize(
    ("world", "fault"),
    [
        pytest.param("Planless", "gold passes", marks=pytest.mark.slow),
        ("Credulous", "claims fail"),
        pytest.param("Outwitted", "attacks fail", marks=pytest.mark.slow),
        pytest.param("Generous", "idle fails", marks=pytest.mark.slow),
        pytest.param("Whimsical", "replay equal", marks=pytest.mark.slow),
        pytest.param("Endless", "end is kept", marks=pytest.mark.slow),
        pytest.param("Brittle", "nothing raises", marks=pytest.mark.slow),
    ],
)
def test_each_fault_is_found(world: str, fault: str) -> None:
    wrong, seen = failed(f"{FAULTY}:{world}")
    assert fault in wrong and "task guess/0/" in seen[fault]
    if world in ("Planless", "Credulous", "Endless", "Brittle"):
        assert wrong == {fault}


@pytest.mark.slow
def test_what_is_shared_is_found_in_a_process_that_hosts_both() -> None:
    # One process, where all episodes live side by side.
    wrong, _ = failed(f"{FAULTY}:Shared", workers=1)
    assert wrong == {"interleaving equal"}


@pytest.mark.slow
def test_without_a_plan_the_rest_is_checked() -> None:
    wrong, seen = failed(f"{FAULTY}:Unplanned")
    assert wrong == set() and "gold passes" not in seen


def test_it_needs_a_process_to_kill() -> None:
    with pytest.raises(UsageError, match="workers >= 1"):
        list(audit_environment(Worlds("guess"), [Worlds("guess").here().tasks()[0]]))


def command(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["audit", "--environment", *words])
    return int(stopped.value.code or 0)


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("guess", "most=9", "--generate", "6", "--out", str(tmp_path)) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "ok     gold passes         6 of 6" and len(printed) == 9
    record = json.loads((tmp_path / "environment.json").read_text())
    assert record["passed"] and record["options"] == {"most": 9} and record["tasks"] == 6
    assert [c["passed"] for c in record["checks"]] == [True] * 4 + [None] + [True] * 4
    assert command(f"{FAULTY}:Generous", "--generate", "4", "--json") == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False
    for words, reason in (
        (("gues",), "did you mean 'guess'"),
        (("guess", "rows.jsonl"), "'rows.jsonl' is no option=value"),
        (("guess", "--generate", "0"), "and a task"),
    ):
        assert command(*words) == 2
        assert reason in capsys.readouterr().err
