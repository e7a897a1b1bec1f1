"""Recipes of challenges: what their text tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.tasks.puzzles.recipe import issues, repaired

FILES = {"server.py": b"print(1)", "data/a.txt": b"1", "data/b.txt": b"2", "flag.sha256": b"0" * 64, "checker.py": b""}
CLEAN = """# a challenge
FROM python:3.11-slim
WORKDIR /srv
COPY server.py /srv/
COPY data/*.txt /srv/data/
EXPOSE 1337
CMD ["python3", "server.py"]
"""


def test_a_clean_recipe_has_no_issue() -> None:
    assert issues(CLEAN, FILES) == []
    assert issues(CLEAN.replace("python:3.11-slim", "docker.io/library/python@sha256:00"), FILES) == []


@pytest.mark.parametrize(
    ("old", "new", "issue"),
    [
        ("EXPOSE 1337\n", "", "no port is exposed"),
        ("EXPOSE 1337\n", "EXPOSE http\n", "no port is exposed"),
        ('CMD ["python3", "server.py"]', "", "no start command"),
        ("COPY server.py /srv/", "COPY sever.py /srv/", "COPY sever.py: there is no such file"),
        ("COPY data/*.txt", "ADD data/*.csv", "ADD data/*.csv: there is no such file"),
        ("COPY server.py", "COPY server.py flag.sha256", "flag.sha256: must not be in the image"),
        (
            "COPY server.py",
            'COPY ["checker.py", "/srv/"]\nCOPY server.py',
            "checker.py: must not be in the image",
        ),
        ("FROM python:3.11-slim", "FROM windows:latest", "base image windows:latest: not one of "),
        ("FROM python:3.11-slim\n", "", "no base image"),
    ],
)
def test_one_fault_one_issue(old: str, new: str, issue: str) -> None:
    found = issues(CLEAN.replace(old, new), FILES)
    assert len([one for one in found if one.startswith(issue)]) == 1
    assert len(found) == 1 or issue.startswith("no base image")


def test_what_is_copied_whole() -> None:
    assert issues(CLEAN.replace("COPY server.py /srv/", "COPY . /srv/"), FILES) == [
        "checker.py: must not be in the image",
        "flag.sha256: must not be in the image",
    ]
    assert issues(CLEAN.replace("COPY data/*.txt", "COPY ./data"), FILES) == []
    assert issues(CLEAN + "COPY --from=build /x /y\nADD https://a.b/c /d\nCOPY --chown=a:b server.py /e\n", FILES) == []


def test_what_has_to_run() -> None:
    plain = CLEAN.replace("FROM python:3.11-slim", "FROM ubuntu:22.04").replace("python3", "./run")
    assert issues(plain, FILES) == ["Python sources without an interpreter"]
    assert issues(plain.replace("WORKDIR", "RUN apt-get install -y python3\nWORKDIR"), FILES) == []
    binary = {"run": b"\x7fELF..."}
    recipe = "FROM debian\nCOPY run /\nEXPOSE 1\nCMD /run\n"
    assert issues(recipe, binary) == ["a binary without an executable bit"]
    for mode in ("+x", "755", "a+x", "u+rwx"):
        assert issues(recipe.replace("EXPOSE", f"RUN chmod {mode} /run\nEXPOSE"), binary) == []
    assert issues(recipe.replace("EXPOSE", "RUN chmod 644 /run\nEXPOSE"), binary) != []
    assert issues(recipe.replace("run", "index.php"), {"index.php": b"<?php"}) == []
    assert issues(recipe.replace("run", "index.html"), {"index.html": b"<p>"}) == ["web files without a web server"]


def test_files_alone_need_no_service() -> None:
    recipe = "FROM debian\nCOPY data /data\n"
    assert issues(recipe, FILES) == ["no port is exposed", "no start command"]
    assert issues(recipe, FILES, server=False) == []


def test_stray_continuations() -> None:
    broken = "FROM python:3\nRUN a && \\\n    b -y x \\\nCOPY server.py / \\\n\nEXPOSE 1\nCMD x\n"
    mended = "FROM python:3\nRUN a && \\\n    b -y x \nCOPY server.py / \n\nEXPOSE 1\nCMD x\n"
    assert repaired(broken) == mended and repaired(mended) == mended
    assert issues(broken, FILES) == []
    assert repaired("RUN a \\\n  # why\n  b\n") == "RUN a \n  # why\n  b\n"


@given(st.text(alphabet="FROMCPY \\\n.\"'[]*#abc/=", max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(issues(text, FILES), list) and repaired(repaired(text)) == repaired(text)
