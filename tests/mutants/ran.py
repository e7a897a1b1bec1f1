"""Which lines of a row's modules each test runs, and how long it takes: a fault is tried on tests that run its line."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import coverage
import pytest


@dataclass(frozen=True, slots=True)
class Ran:
    """What tests ran, all of them without a fault.

    Args:
        seconds: of a CPU by a test's pytest id, its fixtures and child processes included.
        runners: by a module's file and the number of a line, who ran it: a test's id; a test file, as it set up its
            fixtures; or ``""``, as something was imported.
    """

    seconds: Mapping[str, float]
    runners: Mapping[str, Mapping[int, Sequence[str]]]

    def tests(self, file: Path, lines: range) -> list[str]:
        """Return the tests that can notice a fault in ``lines``, the quickest file first and there the quickest test.

        They are those that ran one of the lines, or whose file did for its fixtures; all of them where the lines ran as
        something was imported, or (no lines) do so always, or were never seen to run: in another process, perhaps.
        """
        seen = {who for line in lines for who in self.runners.get(str(file), {}).get(line, ())}
        every = not seen or "" in seen
        chosen = [test for test in self.seconds if every or test in seen or file_of(test) in seen]
        took: dict[str, float] = defaultdict(float)
        for test in chosen:
            took[file_of(test)] += self.seconds[test]
        return sorted(chosen, key=lambda test: (took[file_of(test)], file_of(test), self.seconds[test]))


def file_of(test: str) -> str:
    return test.partition("::")[0]


@dataclass(slots=True, eq=False)
class Watch:
    """A pytest plugin that writes what tests ran to a file."""

    files: Sequence[Path]
    out: Path
    seconds: dict[str, float] = field(default_factory=dict)
    cover: coverage.Coverage = field(init=False)

    def pytest_sessionstart(self) -> None:
        self.cover = coverage.Coverage(data_file=None, config_file=False, include=[str(file) for file in self.files])
        self.cover.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = os.times()
        self.cover.switch_context(file_of(item.nodeid))
        result = yield
        self.cover.switch_context("")
        self.seconds[item.nodeid] = sum(os.times()[:4]) - sum(before[:4])
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self.cover.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.cover.switch_context(file_of(item.nodeid))

    def pytest_sessionfinish(self) -> None:
        self.cover.stop()
        data = self.cover.get_data()
        runners = {str(file): data.contexts_by_lineno(str(file)) for file in self.files}
        self.out.write_text(json.dumps([self.seconds, runners]), encoding="utf-8")

    def read(self) -> Ran:
        seconds, runners = json.loads(self.out.read_text(encoding="utf-8"))
        return Ran(seconds, {file: {int(n): who for n, who in lines.items()} for file, lines in runners.items()})


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A pytest plugin that runs certain tests in the order given, and before them any that a fault made."""

    tests: Sequence[str]
    others: bool

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = {test: i for i, test in enumerate(self.tests)}
        kept = [item for item in items if self.others or item.nodeid in place]
        items[:] = sorted(kept, key=lambda item: place.get(item.nodeid, -1))
