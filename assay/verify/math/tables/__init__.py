"""Words, names and units of many languages, as data: one TOML file for each kind of value."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def load(name: str) -> dict[str, Any]:
    """Return the table ``name``; who asks keeps what it makes of it, so that each file is read once."""
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))
