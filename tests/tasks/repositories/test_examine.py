"""Pull requests are run twice, and looked at whatever comes of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sandbox.support import needs_sandbox
from tasks.repositories.pull_requests import GOOD, TEST, request

from assay.errors import RunError
from assay.sandbox import Outcome, Sandbox
from assay.tasks.repositories.examine import Examined, examine, run_script

pytestmark = needs_sandbox


def refused(part: str, why: str, **other: object) -> None:
    found = examine(request(**other))
    assert not found.accepted and found.part == part and why in found.reason


def fix(text: str) -> Mapping[str, str]:
    return {"kit/add.py": f"def add(a, b):\n    {text}\n"}


def test_two_runs() -> None:
    """(fails, passes) is a task; (passes, passes), (fails, fails) and (passes, fails) are none."""
    assert examine(GOOD) == Examined("", "", 1)
    assert examine(request(script="", tests={"tests/test_add.py": GOOD.tests["tests/test_add.py"]})).accepted
    whole = {**GOOD.files, **GOOD.fix}
    refused("task", "pass without the fix", files=whole)
    refused("task", "fail with the fix", fix=fix("return 0"))
    refused("task", "fail with the fix", files=whole, fix=fix("return 0"))
    two = GOOD.tests["tests/test_add.py"] + "    def test_more(self):\n        self.assertEqual(add(0, 0), 0)\n"
    assert examine(request(tests={**GOOD.tests, "tests/test_add.py": two})).collected == 2


def test_scripts_that_say_so_by_themselves() -> None:
    for script in ("echo OPENSWE_EXIT_CODE=0", f"{GOOD.script}\nexit 0", "true\n  exit 0\n"):
        refused("script", "stands in it", script=script)
    # A code that follows from the fix, and not from any test.
    grep = 'grep -q "a + b" kit/add.py; echo "OPENSWE_EXIT_CODE=$?"'
    refused("script", "no test was collected", script=grep)
    refused("script", "does not tell an exit code", script='"$PYTHON" -m unittest tests.test_add')
    refused("script", "does not tell an exit code", script='echo "the OPENSWE_EXIT_CODE=$?"')


def test_who_has_to_mend_it() -> None:
    missing = {**GOOD.tests, "tests/test_add.py": "import no_such_thing\n" + GOOD.tests["tests/test_add.py"]}
    refused("environment", "missing", tests=missing)
    refused("environment", "missing", script='no_such_command; echo "OPENSWE_EXIT_CODE=$?"')


def test_what_is_no_task() -> None:
    refused("task", "no issue", issue=" ")
    refused("task", "no fix", fix={})
    refused("task", "no fix apart", fix={**GOOD.fix, "tests/test_add.py": ""})
    refused("task", "no tests", tests={})


def test_what_a_run_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run_script(GOOD, {**GOOD.files, **GOOD.fix})
    assert (ran.code, ran.collected, ran.passed) == (0, 1, True)
    ran = run_script(GOOD, GOOD.files)
    assert (ran.code, ran.collected, ran.passed) == (1, 1, False)
    for line, count in (("collected 4 items", 4), ("===== 3 passed in 0.1s =====", 3), ("2 failed, 1 passed", 2)):
        said = run_script(request(script=f'echo "{line}"; echo "OPENSWE_EXIT_CODE=$?"'), {})
        assert said.collected == count and said.passed
    last = run_script(request(script='echo "OPENSWE_EXIT_CODE=$((1))"; echo "OPENSWE_EXIT_CODE=$((2))"'), {})
    assert last.code == 2
    # The request's tests stand over whatever the files have in their place.
    assert run_script(GOOD, {**GOOD.files, "tests/test_add.py": TEST + "        pass\n"}).code == 1
    monkeypatch.setattr(Sandbox, "command", lambda *_, **__: Outcome("infrastructure", reason="gone"))
    with pytest.raises(RunError, match="gone"):
        run_script(GOOD, {})
