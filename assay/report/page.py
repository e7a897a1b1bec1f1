"""What every HTML page of assay shares: its style sheet, the template engine, texts cut to a bearable length."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

LONGEST_TEXT = 6000


@functools.cache
def template(package: str, name: str) -> Any:
    """Return the template ``name`` of a package; it knows ``style``, escapes every value, and refuses unknown names."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals["style"] = resources.files("assay.report").joinpath("style.css").read_text(encoding="utf-8")
    return environment.from_string(resources.files(package).joinpath(name).read_text(encoding="utf-8"))


def clip(text: str | None) -> str:
    """The text, or its two ends if it is very long."""
    text = text or ""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n\n[… {len(text) - 2 * half:,} characters left out …]\n\n{text[-half:]}"
