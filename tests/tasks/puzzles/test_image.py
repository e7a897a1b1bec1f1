"""Recipes carried out: what stands where, what runs, and what a visit is answered."""

from __future__ import annotations

import pytest
from sandbox.support import needs_sandbox

from assay.errors import RunError
from assay.sandbox import Outcome, Sandbox
from assay.tasks.puzzles.image import ROOT, Image, built, visited

pytestmark = needs_sandbox
SERVER = b"print('password?')\nprint(open('/flag').read() if input() == 'sesame' else 'no')\n"
FILES = {"server.py": SERVER, "data/a.txt": b"1", "data/deep/b.txt": b"2", "raw": b"\xff/flag"}
RECIPE = """FROM python:3.11-slim
ARG WHO=me
ENV A=1 B="2 3"
ENV OLD style
WORKDIR /srv
RUN apt-get update && apt-get install -y socat && mkdir -p /srv/log && echo "$WHO $B" > /srv/log/y
COPY server.py /srv/
COPY ["data/", "/opt/data"]
COPY server.py other.py
COPY data/*.txt raw more/
EXPOSE 1337
ENTRYPOINT ["python3"]
CMD ["/srv/server.py"]
"""


def test_a_recipe_is_carried_out() -> None:
    image, wrong = built(RECIPE, FILES)
    assert wrong == [] and image.folder == "srv" and image.command == f"python3 {ROOT}/srv/server.py"
    assert image.environment == {"WHO": "me", "A": "1", "B": "2 3", "OLD": "style"}
    assert sorted(image.files) == [
        *("opt/data/a.txt", "opt/data/deep/b.txt", "srv/log/y", "srv/more/a.txt", "srv/more/raw"),
        *("srv/other.py", "srv/server.py"),
    ]
    assert image.files["srv/log/y"] == b"me 2 3\n" and image.files["srv/more/raw"] == b"\xff/flag"
    assert f"open('{ROOT}/flag')".encode() in image.files["srv/server.py"]


def test_a_service_is_visited_from_its_beginning() -> None:
    image, _ = built(RECIPE, FILES)
    assert visited(image, "flag{abc}", "sesame\n") == ("password?\nflag{abc}\n", "")
    assert visited(image, "flag{abc}", "x\n") == ("password?\nno\n", "")
    assert visited(image, "flag{abc}", "") == ("password?\n", "")  # it fails when nothing is sent, having spoken
    none = Image({}, command="no_such_program")
    said, why = visited(none, "f", "")
    assert said == "" and "not found" in why
    assert visited(Image({}, command="true"), "f", "") == ("", "")


def test_what_cannot_be_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _, [several, failed] = built(RECIPE.replace("RUN apt", "RUN exit 3 && apt") + "FROM debian\n", FILES)
    assert several == "it has several stages" and failed.startswith("RUN exit 3") and "exit code 3" in failed
    monkeypatch.setattr(Sandbox, "command", lambda *_, **__: Outcome("infrastructure", reason="gone"))
    with pytest.raises(RunError, match="gone"):
        built(RECIPE, FILES)
    with pytest.raises(RunError, match="the service: gone"):
        visited(Image({}, command="true"), "f", "")
