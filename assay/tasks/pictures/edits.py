"""Programs that edit a picture with four settings, run in the sandbox, and questions about what they do."""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.sandbox import Limits, Program, SandboxUnavailable, sandbox
from assay.types import Message, Task

NAME, SETTINGS = "edit_image", "args_list"
COUNT = 4
"""Settings of a program."""
LONGEST = 2000
"""Characters of a program, its settings apart."""
COMMENTS = 2
"""Comments and longer texts that a program may have."""
DARK = 5.0
"""Luminance, of 255, up to which a pixel is black."""
SIMILAR = 0.95
"""Of two sizes: above this, pictures are compared by what is in them."""
BANNED = (".save", "random", "open(", "eval(", "exec(")
Kind = Literal["picture", "setting", "match"]
KINDS: tuple[Kind, ...] = ("picture", "setting", "match")
_BLOCK = re.compile(r"```python\s*\n(.*?)```", re.DOTALL)
_SETTINGS = re.compile(rf"^{SETTINGS}\s*=", re.MULTILINE)
_WRAP = f"""

def _edited(picture, settings):
    import base64, io
    from PIL import Image
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    out, made = io.BytesIO(), {NAME}(image, **settings)
    made.convert("RGB").save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()
"""


@dataclass(frozen=True, slots=True)
class Edit:
    """A program with a function ``edit_image(image, **setting)``, and four settings."""

    program: str
    settings: tuple[Mapping[str, Any], ...]

    @property
    def rotates(self) -> bool:
        return ".rotate(" in self.program

    @property
    def written(self) -> str:
        """The whole as a program has it."""
        lines = "".join(f"    {setting!r},\n" for setting in self.settings)
        return f"{self.program}\n\n{SETTINGS} = [\n{lines}]"


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a program gives no questions; ``ours`` where the sandbox failed, of which it can do nothing."""

    reason: str
    ours: bool = False


def written_program(response: str) -> str:
    """Return what a response's last ``python`` block has before its settings, empty without one."""
    blocks = _BLOCK.findall(response.rpartition("</think>")[2])
    return str(blocks[-1]).partition(SETTINGS)[0].strip() if blocks else ""


def read_edit(response: str) -> Edit | Refused:
    """Return the program of a response's last ``python`` block, and the literals of its ``args_list``."""
    blocks = _BLOCK.findall(response.rpartition("</think>")[2])
    if not blocks:
        return Refused("there is no block of Python")
    code = str(blocks[-1]).strip()
    found = list(_SETTINGS.finditer(code))
    if not found or NAME not in code[: found[-1].start()]:
        return Refused(f"it has no {NAME} and then {SETTINGS}")
    program, written = code[: found[-1].start()].strip(), code[found[-1].end() :].strip()
    if len(program) > LONGEST:
        return Refused(f"it is longer than {LONGEST} characters")
    if banned := next((word for word in BANNED if word in program), ""):
        return Refused(f"it has {banned}")
    try:
        settings = ast.literal_eval(written)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return Refused(f"{SETTINGS} is no list of literals")
    if not isinstance(settings, list) or len(settings) != COUNT:
        return Refused(f"{SETTINGS} has not {COUNT} settings")
    if not all(isinstance(s, dict) and all(isinstance(name, str) for name in s) for s in settings):
        return Refused("a setting is no mapping of names")
    if len({repr(setting) for setting in settings}) < COUNT:
        return Refused("two settings are the same")
    return Edit(program, tuple(settings))


def in_form(response: str) -> bool:
    """Whether a response has one thought in its tags and a block of Python without many comments."""
    blocks = _BLOCK.findall(response.rpartition("</think>")[2])
    thinks = response.count("<think>") == response.count("</think>") == 1
    marks = sum(str(blocks[-1]).count(mark) for mark in ("#", '"""', "'''")) if blocks else 0
    return bool(blocks) and thinks and marks <= COMMENTS


def carried_out(edit: Edit, picture: Picture, least: int = 64, most: int = 2**20) -> tuple[Picture, ...] | Refused:
    """Return what a program makes of a picture by each setting.

    Each is to have ``least`` to ``most`` pixels, at most a tenth of them black, three quarters where the program
    rotates; and no two may look the same (:func:`alike`).
    """
    source = base64.b64encode(picture.data).decode()
    program = Program(edit.program + _WRAP, packages=("PIL", "numpy"))
    try:
        done = sandbox().call(program, "_edited", [((source, dict(s)), {}) for s in edit.settings], Limits(10.0, 30.0))
    except SandboxUnavailable as error:
        return Refused(str(error), ours=True)
    if done.outcome.failed_here:
        return Refused(done.outcome.reason, ours=True)
    made = []
    for call in done.calls:
        if not call.returned:
            return Refused(f"it raises {call.exception[:200]}")
        one = _picture(call.value)
        if isinstance(one, Refused):
            return one
        reason = unfit(np.asarray(one.open()), 0.75 if edit.rotates else 0.1, least, most)
        if reason:
            return Refused(reason)
        made.append(one)
    if len(made) < COUNT:
        return Refused(f"it ends early: {done.outcome.reason}")
    if any(alike(a, b) for a, b in combinations(made, 2)):
        return Refused("two pictures look the same")
    return tuple(made)


def _picture(value: Any) -> Picture | Refused:
    try:
        made = Picture(base64.b64decode(value, validate=True))
        made.open()
    except (TypeError, ValueError, UsageError):
        return Refused("what it returns is no picture")
    return made


def unfit(pixels: np.ndarray, dark: float, least: int, most: int) -> str:
    """Return why a picture ``(H, W, 3)`` will not do, empty where it will."""
    count = pixels.shape[0] * pixels.shape[1]
    if not least <= count <= most:
        return f"a picture has {count} pixels, not {least} to {most}"
    share = float((pixels @ np.array([0.2126, 0.7152, 0.0722]) <= DARK).mean())
    return f"a picture is black by {share:.2f}" if share > dark else ""


def look(picture: Picture) -> bytes:
    """Return a perceptual hash: which of the 64 lowest frequencies, of 32 by 32 grey pixels, are above their median."""
    from scipy.fft import dctn

    grey = np.asarray(picture.open().convert("L").resize((32, 32)), dtype=float)
    low = dctn(grey)[:8, :8]
    return np.packbits(low > np.median(low)).tobytes()


def alike(one: Picture, other: Picture) -> bool:
    """Whether two pictures have about the same size and the same :func:`look`."""
    sizes = zip(one.open().size, other.open().size, strict=True)
    return all(min(a, b) / max(a, b) >= SIMILAR for a, b in sizes) and look(one) == look(other)


def question(
    kind: Kind, edit: Edit, picture: Picture, made: Sequence[Picture], name: str, rng: np.random.Generator
) -> Task:
    """Return a question about an edit whose answer its making tells.

    - ``picture``: which of four pictures a setting makes, by a letter;
    - ``setting``: which of four settings makes a picture, by a letter;
    - ``match``: the settings of four pictures, as four letters.

    Args:
        kind: see above.
        edit, picture: of which they are.
        made: by each setting, in order.
        name: id of the task.
        rng: draws what is asked and the order of options.
    """
    order, asked = rng.permutation(COUNT), int(rng.integers(COUNT))
    shown: list[Picture] = [picture]
    told = f"Picture 0: {MARK}. "
    program = f"A program:\n```python\n{edit.program}\n```\n"
    settings = [f"{edit.settings[i]!r}" for i in order]
    if kind == "picture":
        shown += [made[i] for i in order]
        told += " ".join(f"Picture {k}: {MARK}." for k in range(1, COUNT + 1))
        options = [f"picture {k}" for k in range(1, COUNT + 1)]
        asks = f"Which picture does {NAME} make of picture 0 with {edit.settings[asked]!r}?"
    elif kind == "setting":
        shown.append(made[asked])
        told += f"Picture 1: {MARK}."
        options = settings
        asks = f"With which setting does {NAME} make picture 1 of picture 0?"
    else:
        shown += list(made)
        told += " ".join(f"Picture {k}: {MARK}." for k in range(1, COUNT + 1))
        options = settings
        asks = f"Which settings does {NAME} make pictures 1 to {COUNT} of picture 0 with? Answer as in BDAC."
    place = [int(np.flatnonzero(order == i)[0]) for i in range(COUNT)]
    answer = "".join("ABCD"[k] for k in place) if kind == "match" else "ABCD"[place[asked]]
    listed = "".join(f"\n{label}. {text}" for label, text in zip("ABCD", options, strict=True))
    text = f"{told}\n{program}{asks}{listed}\nThink, then put the answer into \\boxed{{}}."
    message: Message = {"role": "user", "content": text, "images": tuple(shown)}
    kinds = "exact" if kind == "match" else "choice"
    return Task(name, (message,), answer, kinds, meta={"source": "edits", "question": kind})
