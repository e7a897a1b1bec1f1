"""A folder that lasts while nothing else does."""

from __future__ import annotations

import stat
from dataclasses import replace

import pytest

from assay.errors import UsageError
from assay.sandbox import Limits, Outcome
from assay.sandbox.workspace import LIMITS, Workspace
from sandbox.support import needs_sandbox

pytestmark = needs_sandbox
SHORT = Limits(cpu_seconds=1, wall_seconds=1)


def sh(space: Workspace, command: str, limits: Limits | None = None, at: str = "") -> Outcome:
    return space.run(["bash", "-c", command], limits=limits, at=at)


def test_what_a_folder_holds_lasts() -> None:
    space = Workspace({"a/b.txt": "one\n", "run.sh": b"echo run"})
    assert sh(space, "mkdir -p x/y; ln -s a/b.txt l; chmod 755 run.sh; printf 2 > x/two").status == "ok"
    seen = sh(space, "cat l; ./run.sh; ls -d x/y; readlink l")
    assert seen.stdout == b"one\nrun\nx/y\na/b.txt\n"
    assert space.files == {"a/b.txt": b"one\n", "run.sh": b"echo run", "x/two": b"2"}
    assert sh(space, "pwd; ls", at="x").stdout == b"/tmp/space/x\ntwo\ny\n"
    assert sh(space, "rm -rf ./* && ls -A").stdout == b"" and space.entries == {}


def test_nothing_else_lasts() -> None:
    space = Workspace()
    sh(space, "export A=1; cd /tmp; echo x > /tmp/beside; (setsid sleep 100 &)")
    assert (
        sh(space, "echo [$A]; ls /tmp; cat /proc/[0-9]*/comm | grep -c sleep; pwd").stdout
        == b"[]\nspace\n0\n/tmp/space\n"
    )


def test_modes_that_shut_their_owner_out_are_kept() -> None:
    space = Workspace({"f": "secret", "d/g": "1"})
    sh(space, "chmod 000 f; chmod 500 d; chmod u-w d/g")
    assert {n: stat.S_IMODE(m) for n, (_, m) in space.entries.items()} == {"f": 0, "d": 0o500, "d/g": 0o444}
    assert space.files["f"] == b"secret"
    assert b"denied" in sh(space, "cat f").stderr and b"denied" in sh(space, "touch d/new").stderr


@pytest.mark.parametrize("hang", ["sleep 100", "while :; do :; done", "setsid sleep 100 & wait"])
def test_a_limit_leaves_the_folder_as_it_is(hang: str) -> None:
    space = Workspace({"old": "1"})
    outcome = sh(space, f"echo before; echo 2 > new; rm old; {hang}; echo after", SHORT)
    assert (outcome.status, outcome.stdout) == ("timeout", b"before\n")
    assert space.files == {"new": b"2\n"}


def test_what_runs_on_cannot_change_it_later() -> None:
    space = Workspace()
    sh(space, "(setsid sh -c 'while :; do echo x >> log; done' &); while ! test -s log; do :; done")
    kept = space.files["log"]
    assert kept and sh(space, "sleep 0.1; cat log").stdout == kept == space.files["log"]


def test_too_much_is_undone() -> None:
    space = Workspace({"a": "1"})
    for flood in ("for i in 1 2 3; do truncate -s 3M $i; done", "truncate -s 4M x; truncate -s 1M y"):
        outcome = sh(space, f"rm a; {flood}")
        assert outcome.status == "output" and "undone" in outcome.reason
        assert space.files == {"a": b"1"}


def test_pipes_and_odd_names_are_left_out() -> None:
    space = Workspace()
    sh(space, "mkfifo p; touch $'\\xff'; touch 'a b'; ln -s /etc/passwd l; ln -s nowhere m")
    assert sorted(space.entries) == ["a b", "l", "m"] and space.files == {"a b": b""}
    assert sh(space, "readlink m").stdout == b"nowhere\n"


def test_the_same_folder_is_listed_the_same_way() -> None:
    space = Workspace({"a/b": "1"})
    sh(space, "touch c; ln -s c d")
    assert sh(space, "ls -laR --time-style=+%Y").stdout.count(b" 2024 ") == 8


def test_it_cannot_be_told_otherwise() -> None:
    """Neither by killing everybody, nor by writing where results go."""
    space = Workspace({"a": "1"})
    outcome = sh(space, "echo 2 > a; for f in /proc/1/fd/3 /dev/fd/3; do echo '{}' > $f; done; kill -9 $PPID 1 -1")
    assert not outcome.failed_here and space.files == {"a": b"2\n"}


def test_a_snapshot_is_come_back_to() -> None:
    space = Workspace({"a": b"\xff\x00", "b/c": "é"})
    sh(space, "ln -s a l; chmod 755 a")
    kept, before = space.snapshot(), dict(space.entries)
    sh(space, "rm -r ./*")
    space.restore(kept)
    assert space.entries == before
    assert space.digests() == {
        "a": "ea5dbf9596d187e9500f23e9a680109475341cf4e81f7e043f7d97152c10772f",
        "b/c": "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c",
    }


def test_what_cannot_be_there_is_refused() -> None:
    space = Workspace({"a": "1"})
    sh(space, "mkdir d; ln -s d l")
    for name in ("", "/etc/x", "../x", "a/b", "d", "l", "l/x", "x\0"):
        with pytest.raises(UsageError):
            space.write(name, "")
    with pytest.raises(UsageError, match="twice"):
        Workspace(limits=replace(LIMITS, output=LIMITS.disk))
    space.write("e/f/g", "1")
    assert sh(space, "cat e/f/g").stdout == b"1"
