"""The language a text is written in, by langdetect with a fixed seed."""

from __future__ import annotations

import functools
import importlib.util
import threading
from typing import Any

from assay.verify.instructions.kinds import CannotTell

MAX_CHARS = 10_000
_LOCK = threading.Lock()


@functools.cache
def _factory() -> Any:
    if importlib.util.find_spec("langdetect") is None:
        raise CannotTell("needs langdetect: pip install assay[instructions]")
    from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory

    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    # langdetect samples; the seed is this factory's alone, so other users of the package are not changed.
    factory.seed = 0
    return factory


def detect(text: str) -> str | None:
    """Return the ISO 639-1 code langdetect finds for the first :data:`MAX_CHARS` characters, ``None`` for no language.

    Chinese is ``zh-cn`` or ``zh-tw``. Raises CannotTell without langdetect.
    """
    with _LOCK:
        detector = _factory().create()
    from langdetect.lang_detect_exception import LangDetectException

    detector.append(text[:MAX_CHARS])
    try:
        language = str(detector.detect())
    except LangDetectException:
        return None
    return None if language == "unknown" else language


def is_language(text: str, code: str) -> bool:
    """Say whether ``text`` is in the language; ``zh`` is either Chinese. A text without letters is in none."""
    found, code = detect(text), code.lower()
    return found is not None and (found == code or found.partition("-")[0] == code)
