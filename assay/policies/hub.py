"""Whether the hub has a model, asked once and briefly: its client would try for most of a minute."""

from __future__ import annotations

import os
import textwrap
import threading
from pathlib import Path

PATIENCE = 5.0
"""Seconds to wait for the hub, unless ``HF_HUB_ETAG_TIMEOUT`` of its own client says otherwise."""


def names_hub(source: str) -> bool:
    """Whether ``model.source`` can only be a hub id: none of assay's own, nothing here, and no path by its look."""
    path = Path(source).expanduser()
    return not (
        source in ("nano", "flow", "control")
        or source.startswith((".", "/", "~"))
        or path.suffix == ".gguf"
        or path.exists()
    )


def why_absent(source: str) -> str | None:
    """Say why a hub model cannot be had; ``None`` where there is a copy of it, the hub has it, or it is not clear.

    A copy in the cache is enough, and then nothing is asked. Where the hub answers something else than yes or no (it
    is overloaded, or wants a licence accepted), that is left to the client, which tries again and has the words for it.

    Args:
        source: a hub id, or what was taken for one.
    """
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, HfHubHTTPError, RepositoryNotFoundError
    from huggingface_hub.utils import HFValidationError

    try:
        if isinstance(try_to_load_from_cache(source, "config.json"), str):
            return None
    except HFValidationError:
        return f"no folder {source!r}, and no model on the hub can be called that"
    wait = float(os.environ.get("HF_HUB_ETAG_TIMEOUT") or PATIENCE)
    answer = _asked(source, wait)
    if isinstance(answer, RepositoryNotFoundError) and not isinstance(answer, GatedRepoError):
        return f"no model {source!r} on the hub and no folder of that name"
    if answer is None or isinstance(answer, HfHubHTTPError | EntryNotFoundError):
        return None
    reason = textwrap.shorten(str(answer), 160, placeholder=" ...") or type(answer).__name__
    return f"no folder {source!r} and no copy of a hub model of that name, and the hub cannot be reached: {reason}"


def _asked(source: str, wait: float) -> BaseException | None:
    """Ask for a model's configuration; return the error that this ended with, if any, within ``wait`` seconds."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    found: list[BaseException | None] = []

    def ask() -> None:
        try:
            get_hf_file_metadata(hf_hub_url(source, "config.json"), timeout=wait)
            found.append(None)
        except Exception as error:  # of the client, or of whatever it asks with
            found.append(error)

    # Names are looked up, and several addresses tried, without regard to the client's own limit.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(wait)
    return found[0] if found else TimeoutError(f"no answer within {wait:g} s")
