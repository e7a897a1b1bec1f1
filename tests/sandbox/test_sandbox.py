"""The sandbox runs ordinary programs as they would run anywhere, and says truly how they ended."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from assay.errors import UsageError
from assay.sandbox import Dialogue, Limits, Program, Sandbox, SandboxUnavailable, cgroup, confine
from assay.sandbox.inside import codec

from .support import needs_sandbox, processes_below

pytestmark = needs_sandbox
SHORT = Limits(cpu_seconds=0.5, wall_seconds=1.5, memory=256 << 20)


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox(2) as made:
        yield made


def needs(tool: str) -> None:
    if shutil.which(tool, path="/usr/bin:/bin") is None:
        pytest.skip(f"needs {tool}")


SCRIPTS = [
    "print(sum(map(int, input().split())))",
    "import sys\nprint(len(sys.stdin.read()), sys.argv[1:])",
    "import sys\nsys.exit('no')",
    "import sys\nsys.exit(3)",
    "raise ValueError('x')",
    "def f():\n  return 1 / 0\nf()",
    "x = (",
    "import sys\nprint('a'); print('b', file=sys.stderr); sys.stdout.write('c')",
    "import atexit\natexit.register(print, 'bye')\nprint('hi')",
    "import threading\nthreading.Thread(target=lambda: print('thread')).start()",
    "print(__name__, type(__builtins__), 'é', open('/dev/stdin').read())",
    "import os\nr, w = os.pipe()\nif os.fork() == 0:\n  os.write(w, b'x')\n  os._exit(0)\n"
    "os.wait()\nprint(os.read(r, 9))",
    "from concurrent.futures import ProcessPoolExecutor as P\nif __name__ == '__main__': print(P)",
    "import asyncio\nasync def f(): await asyncio.sleep(0); print('async')\nasyncio.run(f())",
    "import decimal, fractions, statistics, datetime, hashlib, sqlite3\nprint(hashlib.sha256(b'x').hexdigest())",
    "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(1 << 26)\n"
    "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
    "t = threading.Thread(target=lambda: print(f(50000))); t.start(); t.join()",
    "print(*range(30000))",
    "import dataclasses\n@dataclasses.dataclass\nclass A:\n  x: int\nprint(A(1), A.__module__)",
    "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))",
    "import inspect\ndef f(): return 7\nprint(f())",
]


@pytest.mark.parametrize("source", SCRIPTS)
def test_python_programs_do_what_they_do_in_a_fresh_interpreter(box: Sandbox, source: str) -> None:
    mine = box.run(Program(source, args=("p", "q")), "1 2\n3\n")
    line = [confine.interpreter(), "-I", "-X", "utf8", "main.py", "p", "q"]
    with_file = f"import sys; sys.argv[:] = ['main.py', 'p', 'q']; exec(compile({source!r}, 'main.py', 'exec'))"
    fresh = subprocess.run([*line[:4], "-c", with_file], input=b"1 2\n3\n", capture_output=True, check=False, cwd="/")
    assert (mine.exit_code, mine.stdout) == (fresh.returncode, fresh.stdout), mine.stderr
    assert (mine.status == "ok") == (fresh.returncode == 0)
    assert mine.stderr.splitlines()[-1:] == fresh.stderr.splitlines()[-1:]


def test_a_traceback_shows_the_program_and_nothing_of_the_driver(box: Sandbox) -> None:
    stderr = box.run(Program("def f():\n    return 1 / 0\nf()")).stderr.decode()
    assert 'File "main.py", line 2, in f' in stderr and "return 1 / 0" in stderr
    assert "driver" not in stderr and "sandbox" not in stderr


def test_what_a_program_prints_does_not_change_from_run_to_run(box: Sandbox) -> None:
    program = Program("import random\nprint({'a', 'b', 'c', 'd', 'e'}, hash('x'), random.random())")
    assert len({box.run(program).stdout for _ in range(5)}) == 1


def test_files_and_packages(box: Sandbox) -> None:
    program = Program(
        "import helper\nfrom pkg.inner import y\nprint(helper.x, y, open('data.bin', 'rb').read())",
        files={"helper.py": "x = 1", "pkg/inner.py": "y = 2", "data.bin": b"\0\xff"},
    )
    assert box.run(program).stdout == b"1 2 b'\\x00\\xff'\n"
    for name in ("/etc/x", "../x", "a/../x", "", "a\0b"):
        with pytest.raises(UsageError, match="relative path"):
            box.run(Program("", files={name: ""}))


def test_numpy_is_there_only_when_it_was_asked_for(box: Sandbox) -> None:
    pytest.importorskip("numpy")
    source = "import numpy as np\nprint(np.linalg.det(np.eye(3)))"
    assert box.run(Program(source, packages=("numpy",))).stdout == b"1.0\n"
    outcome = box.run(Program(source))
    assert outcome.status == "error" and b"ModuleNotFoundError" in outcome.stderr
    with pytest.raises(UsageError, match="not installed"):
        box.run(Program("", packages=("no_such_package",)))


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("while True: pass", "timeout"),
        ("import time\ntime.sleep(99)", "timeout"),
        ("bytearray(1 << 33)", "memory"),
        ("print('x' * (1 << 24))", "output"),
        ("1 / 0", "error"),
        ("import os\nos.abort()", "error"),
        ("", "ok"),
    ],
)
def test_how_a_program_ended(box: Sandbox, source: str, status: str) -> None:
    outcome = box.run(Program(source), limits=SHORT)
    assert outcome.status == status
    assert (outcome.reason == "") == (status == "ok")


def test_processor_time_decides_however_it_is_spread(box: Sandbox) -> None:
    burn = "import time\ndef burn(s):\n  while time.process_time() < s: pass\n"
    assert box.run(Program(burn + "burn(0.3)"), limits=SHORT).status == "ok"
    assert box.run(Program(burn + "burn(0.7)"), limits=SHORT).status == "timeout"
    # Four children, none of which is over the limit by itself.
    children = (
        "import os\nfor _ in range(4):\n  if os.fork() == 0: burn(0.3); os._exit(0)\nfor _ in range(4): os.wait()"
    )
    assert box.run(Program(burn + children), limits=SHORT).status == "timeout"


@pytest.mark.slow
def test_a_busy_machine_costs_no_program_its_verdict(box: Sandbox) -> None:
    # Far more runnable programs than cores: each gets a fraction of one, and far more wall time passes than is allowed.
    source = "import time\nwhile time.process_time() < 0.25: pass\nprint('done')"
    limits = Limits(cpu_seconds=0.5, wall_seconds=0.5)
    with Sandbox(8) as wide, ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda _: wide.run(Program(source), limits=limits), range(16)))
    assert [one.status for one in outcomes] == ["ok"] * 16, outcomes


LANGUAGES = {
    "c": '#include <stdio.h>\nint main(){int a,b;scanf("%d %d",&a,&b);printf("%d\\n",a+b);return 0;}',
    "cpp": "#include <bits/stdc++.h>\nint main(){int a,b;std::cin>>a>>b;std::cout<<a+b<<std::endl;}",
    "javascript": "const l=require('fs').readFileSync(0,'utf8').split(' ').map(Number);console.log(l[0]+l[1]);",
    "bash": "read a b; echo $((a+b))",
    "python": "print(sum(map(int, input().split())))",
}


@pytest.mark.parametrize(
    "language", [pytest.param(name, marks=pytest.mark.slow) if name == "cpp" else name for name in LANGUAGES]
)
def test_languages(box: Sandbox, language: str) -> None:
    needs({"c": "gcc", "cpp": "g++", "javascript": "node"}.get(language, "bash"))
    outcomes = box.run_many(Program(LANGUAGES[language], language), ["1 2\n", b"40 2\n", "-1 1\n"])
    assert [(one.status, one.stdout) for one in outcomes] == [("ok", b"3\n"), ("ok", b"42\n"), ("ok", b"0\n")]


@pytest.mark.parametrize("name", ["c", "cpp"])
def test_a_program_is_compiled_again_when_a_file_beside_it_changes(
    box: Sandbox, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Mapping[str, str | bytes]] = []
    command = Sandbox.command

    def counted(self: Sandbox, argv: Sequence[str], files: Mapping[str, str | bytes], *rest: Any, **more: Any) -> Any:
        compiled.append(files)
        return command(self, argv, files, *rest, **more)

    monkeypatch.setattr(Sandbox, "command", counted)
    source = '#include <stdio.h>\n#include "sub/value.h"\nint main() { printf("%d", VALUE); return 0; }'

    def ran(value: str | bytes, **more: str) -> tuple[str, bytes]:
        outcome = box.run(Program(source, name, {"sub/value.h": value, **more}))
        return outcome.status, outcome.stdout

    assert ran("#define VALUE 1\n") == ("ok", b"1")
    assert ran(b"#define VALUE 2\n") == ("ok", b"2")
    assert ran("#define VALUE x\n")[0] == "compile_error"
    assert len(compiled) == 3
    # What has been compiled is found again, whatever the order of the files; so is what did not compile.
    assert ran("#define VALUE 1\n") == ("ok", b"1") and ran("#define VALUE x\n")[0] == "compile_error"
    assert len(compiled) == 3
    # A file that is missing now must not be taken from an earlier program.
    assert box.run(Program(source, name)).status == "compile_error"


def test_crashes_and_signals_of_compiled_programs(box: Sandbox) -> None:
    needs("gcc")
    crash = box.run(Program("#include <stdlib.h>\nint main(){abort();}", "c"))
    assert (crash.status, crash.exit_code, crash.reason) == ("error", -6, "it was ended by SIGABRT")
    assert box.run(Program("int main(){return *(volatile int*)0;}", "c")).exit_code == -11
    assert box.run(Program("#include <signal.h>\nint main(){raise(9);}", "c")).status == "killed"
    broken = box.run_many(Program("int main(", "c"), ["", ""])
    assert [one.status for one in broken] == ["compile_error"] and b"error:" in broken[0].stderr
    # A compiler is a program on untrusted input too.
    secret = Program('#include "/etc/shadow"\nint main(){}', "c")
    assert b"root:" not in box.run(secret).stderr


def test_run_many_stops_when_told(box: Sandbox) -> None:
    program = Program("print(1 // int(input()))")
    outcomes = box.run_many(program, ["1", "0", "1"], stop=lambda outcome: outcome.status != "ok")
    assert [one.status for one in outcomes] == ["ok", "error"]


def test_calls_return_plain_values(box: Sandbox) -> None:
    source = """
import collections
class Solution:
    def __init__(self): self.calls = 0
    def f(self, *args, **kwargs):
        self.calls += 1
        print("noise")
        return self.calls, args, kwargs
def every():
    P = collections.namedtuple("P", "x y")
    return [P(1, 2), collections.Counter("aab"), {1, 2}, frozenset("a"), b"x", 1 + 2j, 10 ** 50, -10 ** 5000, True,
            None, float("inf"), {(1, 2): [3]}, collections.deque([1]), range(3), "\\ud800", 0.1, -0.0]
def fails(n): raise KeyError(n)
def odd(): return object()
"""
    done = box.call(Program(source), "Solution.f", [((1, [2]), {"k": (3,)}), ((), {})])
    assert [call.value for call in done.calls] == [(1, (1, [2]), {"k": (3,)}), (1, (), {})]
    assert done.outcome.status == "ok" and done.outcome.stdout == b"noise\nnoise\n"
    [every] = box.call(Program(source), "every", [((), {})]).calls
    plain = [(1, 2), {"a": 2, "b": 1}, {1, 2}, frozenset("a"), b"x", 1 + 2j, 10**50, -(10**5000), True, None]
    assert every.value == [*plain, float("inf"), {(1, 2): [3]}, [1], [0, 1, 2], "\ud800", 0.1, -0.0]
    assert [type(value) for value in every.value[:3]] == [tuple, dict, set]
    failed = box.call(Program(source), "fails", [((1,), {}), ((2,), {})])
    assert [call.exception for call in failed.calls] == ["KeyError: 1", "KeyError: 2"]
    assert failed.outcome.status == "ok"
    assert "no plain data" in box.call(Program(source), "odd", [((), {})]).calls[0].exception
    missing = box.call(Program(source), "nothing", [((), {})])
    assert missing.calls == () and missing.outcome.status == "error"


def test_calls_before_the_end_are_kept(box: Sandbox) -> None:
    source = "def f(n):\n  while n == 3: pass\n  return n"
    done = box.call(Program(source), "f", [((n,), {}) for n in range(6)], SHORT)
    assert [call.value for call in done.calls] == [0, 1, 2] and done.outcome.status == "timeout"


def test_arrays_come_back_as_arrays(box: Sandbox) -> None:
    np = pytest.importorskip("numpy")
    program = Program("import numpy as np\ndef f(x): return x.T @ x, x.sum(), x > 1", packages=("numpy",))
    x = np.arange(6.0).reshape(2, 3)
    [call] = box.call(program, "f", [((x,), {})]).calls
    np.testing.assert_array_equal(call.value[0], x.T @ x)
    assert type(call.value[1]) is float and call.value[1] == 15.0
    np.testing.assert_array_equal(call.value[2], x > 1)


def test_interactive_programs(box: Sandbox) -> None:
    guesser = """
low, high = 1, 1000
while True:
    middle = (low + high) // 2
    print(middle)
    answer = input()
    if answer == "=": break
    if answer == "<": high = middle - 1
    else: low = middle + 1
"""
    asked: list[int] = []

    def judge(talk: Dialogue) -> None:
        while not talk.ended:
            line = talk.readline()
            if not line:
                return
            asked.append(int(line))
            talk.writeline("=" if asked[-1] == 700 else "<" if asked[-1] > 700 else ">")

    assert box.interact(Program(guesser), judge).status == "ok"
    assert asked[-1] == 700 and len(asked) <= 10
    # Either side may stop talking, talk too much, or fail.
    silent = box.interact(Program("import time\ntime.sleep(99)"), lambda talk: talk.readline() and None, SHORT)
    assert silent.status == "timeout"
    flood = box.interact(Program("while True: print('x' * 999)"), _drain, SHORT)
    assert flood.status == "output"
    assert box.interact(Program("print(1)"), lambda talk: None).status in ("ok", "error")
    with pytest.raises(ZeroDivisionError):
        box.interact(Program("input()"), lambda talk: 1 // 0)


def _drain(talk: Dialogue) -> None:
    while not talk.ended:
        talk.readline()


def test_commands(box: Sandbox) -> None:
    needs("sort")
    outcome = box.command(["sort", "-o", "out", "in"], {"in": "b\na\n"}, outputs=("out", "missing"))
    assert outcome.status == "ok" and outcome.files == {"out": b"a\nb\n"}
    link = box.command(["bash", "-c", "ln -s /proc/1/environ out; mkfifo pipe"], outputs=("out", "pipe"))
    assert link.files == {}
    with pytest.raises(UsageError, match="not installed"):
        box.command(["no-such-tool"])


def test_a_tool_of_the_virtual_environment(box: Sandbox) -> None:
    # Python itself, with a package, as a tool: what a type checker or a test runner needs.
    pytest.importorskip("pytest")
    packages = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")
    files = {"test_it.py": "def test_it(): assert 1 + 1 == 2"}
    line = [confine.interpreter(), "-S", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=/tmp", "test_it.py"]
    outcome = box.command(line, files, environment={"PYTHONPATH": "/sandbox/packages"}, packages=packages)
    assert outcome.status == "ok" and b"1 passed" in outcome.stdout, outcome


def test_one_zygote_per_program_where_namespaces_cannot_be_nested() -> None:
    with Sandbox(1) as box:
        box.check()
        box._nested = False
        leave = "import os\nopen('/tmp/left', 'w')\nif os.fork() == 0:\n  os.setsid()\n  while True: pass\nprint(1)"
        for _ in range(2):
            assert box.run(Program("import os\nprint(os.listdir('/tmp'))")).stdout == b"[]\n"
            assert box.run(Program(leave)).status == "ok"
        assert box.run(Program("import os\nos.kill(-1, 9)\nos.kill(1, 9)\nprint(1)")).status in (
            "ok",
            "killed",
            "error",
        )
    assert not [line for line in processes_below(os.getpid()) if "zygote" in line and not line.strip()]


def test_threads_share_a_sandbox(box: Sandbox) -> None:
    with ThreadPoolExecutor(8) as threads:
        outputs = threads.map(lambda n: box.run(Program(f"print({n} ** 2)")).stdout, range(60))
        assert list(outputs) == [f"{n * n}\n".encode() for n in range(60)]


def test_a_thread_may_end_before_its_zygotes() -> None:
    with Sandbox(1) as box:
        thread = threading.Thread(target=box.run, args=(Program("print(1)"),))
        thread.start()
        thread.join()
        [[worker]] = box._idle.values()
        assert box.run(Program("print(2)")).stdout == b"2\n"
        assert [list(idle) for idle in box._idle.values()] == [[worker]]


def test_nothing_is_left_when_the_host_is_killed() -> None:
    script = (
        "import threading\nfrom assay.sandbox import Program, Sandbox\nbox = Sandbox(1)\nbox.run(Program(''))\n"
        "[[worker]] = box._idle.values()\n"
        "threading.Thread(target=box.run, args=(Program('while True: pass'),)).start()\n"
        "pid = worker.process.pid\nprint(pid, *open(f'/proc/{pid}/task/{pid}/children').read().split(), flush=True)\n"
    )
    host = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert host.stdout is not None
    pids = [int(word) for word in host.stdout.readline().split()]
    assert len(pids) == 2
    host.kill()
    host.communicate()
    handles = []
    for pid in pids:
        try:
            handles.append(os.pidfd_open(pid))
        except ProcessLookupError:
            continue
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    waiting = set(handles)
    while waiting:
        ready = poll.poll(20_000)
        assert ready, "processes outlived the host"
        for handle, _ in ready:
            poll.unregister(handle)
            waiting.discard(handle)
            os.close(handle)
    # Its group is removed by the next host that starts beside it.
    place = cgroup.place()
    if place is not None:
        deadline = time.monotonic() + 20
        while [one for folder in place.folders for one in folder.glob(f"assay-{host.pid}-*")]:
            assert time.monotonic() < deadline
            cgroup.sweep(place)
            time.sleep(0.001)


def test_without_bubblewrap_it_refuses_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    confine.bubblewrap.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    try:
        with Sandbox() as box, pytest.raises(SandboxUnavailable) as refused:
            box.run(Program("print(1)"))
    finally:
        confine.bubblewrap.cache_clear()
    assert "install" in str(refused.value) and "bubblewrap" in str(refused.value) and "\n" not in str(refused.value)


def test_walls_that_do_not_stand_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the kernel had taken the filter without a word.
    from assay.sandbox import worker

    allow_everything = bytes.fromhex("06000000") + (0x7FFF0000).to_bytes(4, "little")
    monkeypatch.setattr(worker, "filter_bytes", lambda: allow_everything)
    with Sandbox() as box, pytest.raises(SandboxUnavailable, match=r"does not hold: .*sockets can be made"):
        box.check()


def test_the_unprotected_mode_says_so_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    with Sandbox(1, unsafe_no_sandbox=True) as box:
        assert box.run(Program("print(open('a').read())", files={"a": "x"})).stdout == b"x\n"
        assert box.run(Program("while True: pass"), limits=SHORT).status == "timeout"
    assert capsys.readouterr().err.count("unprotected") == 2


def test_limits_are_checked() -> None:
    for wrong in ({"cpu_seconds": 0}, {"wall_seconds": float("nan")}, {"memory": 1}, {"processes": 0}, {"output": 1.5}):
        with pytest.raises(UsageError, match="must be"):
            Limits(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="did you mean 'python'"):
        Sandbox(1).run(Program("", language="pyton"))
    with pytest.raises(codec.CodecError):
        Sandbox(1).call(Program(""), "f", [((object(),), {})])
