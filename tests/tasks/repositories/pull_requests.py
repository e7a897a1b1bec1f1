"""A small pull request, right as it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from assay.tasks.repositories.examine import PullRequest

TEST = "import unittest\nfrom kit.add import add\nclass T(unittest.TestCase):\n    def test_add(self):\n"
GOOD = PullRequest(
    "1",
    "add(1, 2) gives -1",
    {"kit/__init__.py": "", "kit/add.py": "def add(a, b):\n    return a - b\n"},
    {"kit/add.py": "def add(a, b):\n    return a + b\n"},
    {"tests/__init__.py": "", "tests/test_add.py": TEST + "        self.assertEqual(add(1, 2), 3)\n"},
    '"$PYTHON" -m unittest tests.test_add; echo "OPENSWE_EXIT_CODE=$?"',
)


def request(**other: Any) -> PullRequest:
    return replace(GOOD, **other)
