"""What every HTML page of assay shares: its style sheet, the template engine, texts cut to a bearable length."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Any

LONGEST_TEXT = 6000
PICTURE = re.compile(r"(data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2})")
"""A picture in a text, as models that draw answer with."""


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


def shown(text: str | None) -> Any:
    """The text as HTML, escaped and clipped, its pictures as pictures."""
    from markupsafe import Markup, escape

    parts = PICTURE.split(text or "")
    return Markup("").join(
        Markup('<img class="drawn" alt="picture" src="{}">').format(part) if i % 2 else escape(clip(part))
        for i, part in enumerate(parts)
    )
