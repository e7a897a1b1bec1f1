"""The command that starts a zygote behind the wall: what bubblewrap is asked for, and whether it can be had."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from assay.errors import UsageError

USER = 59999
"""The account programs run as: nobody's, so that no file on the machine is theirs."""
ACCOUNTS = 0x70000000
"""As root each zygote has an account of its own outside: this and a process's number; nobody gives such numbers out."""
INSIDE = Path(__file__).parent / "inside"
CAP_SYS_ADMIN, CAP_SETGID, CAP_SETUID = 21, 6, 7
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    # The same program gives the same output: sets of strings are iterated in the same order every time.
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
TOOLS = ("/usr/bin", "/usr/include", "/usr/libexec", "/usr/share", "/bin", "/etc/alternatives")


class SandboxUnavailable(UsageError):
    """This machine cannot run programs in isolation; the message says what to install or allow."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a zygote's programs see: Python with ``packages``; if wanted the machine's ``tools`` and more folders."""

    packages: tuple[str, ...] = ()
    tools: bool = False
    readable: tuple[str, ...] = ()


def as_root() -> bool:
    """Whether this is a root that can mount and become another user, rather than somebody without privileges."""
    if os.geteuid() != 0:
        return False
    with open("/proc/self/status") as file:
        capabilities = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))
    if not all(capabilities >> one & 1 for one in (CAP_SYS_ADMIN, CAP_SETGID, CAP_SETUID)):
        return False
    return _mapped(USER)


def account(pid: int) -> int:
    """Return the account for the zygote that process ``pid`` holds, where this one is root.

    What the kernel counts by account (pages of pipes, signals waiting, watches) is then no program's to use up for the
    others. A container may have only the usual 65,536 accounts; then all share one.
    """
    return ACCOUNTS + pid if _mapped(ACCOUNTS + pid) else USER


def _mapped(user: int) -> bool:
    for name in ("uid", "gid"):
        with open(f"/proc/self/{name}_map") as file:
            ranges = [[int(number) for number in line.split()] for line in file]
        if not any(first <= user < first + length for first, _, length in ranges):
            return False
    return True


@functools.cache
def bubblewrap() -> str:
    """Return the path of bubblewrap; raise SandboxUnavailable where there is none."""
    if sys.platform != "linux":
        raise SandboxUnavailable(
            f"running programs needs Linux namespaces, and this is {sys.platform}; use Linux or a container"
        )
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable(
            "running programs needs bubblewrap: install it (apt install bubblewrap, dnf install bubblewrap), "
            "or give --unsafe-no-sandbox if you trust the programs"
        )
    return found


def interpreter() -> str:
    """The real interpreter, of which a virtual environment's is a link."""
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return str(base if base.exists() else Path(sys.executable).resolve())


LIBRARIES = {"PIL": "pillow"}
"""Whose libraries lie in a folder of another name than the package."""


def module_paths(packages: tuple[str, ...]) -> dict[str, str]:
    """Return, for each package and the libraries beside it, its path inside and its path here."""
    shown = {}
    for name in packages:
        spec = importlib.util.find_spec(name) if name.isidentifier() else None
        if spec is None or spec.origin is None:
            raise UsageError(f"a program may use {name!r}, which is not installed here: pip install {name}")
        origin = Path(spec.origin)
        origin = origin.parent if spec.submodule_search_locations else origin
        for path in (origin, origin.with_name(f"{LIBRARIES.get(name, name)}.libs")):
            if path.exists():
                shown[f"/sandbox/packages/{path.name}"] = str(path)
    return shown


def visible(path: str) -> str:
    """Where a program finds a readable file of this machine: in its place, unless its own ``/tmp`` would hide it."""
    return f"/sandbox/readable{path}" if path.startswith("/tmp/") else path


def command(kind: Kind, nested: bool, control: int) -> list[str]:
    """Return the command that starts a zygote of ``kind``, which is told its socket's descriptor ``control``."""
    python = interpreter()
    root = as_root()
    line = [bubblewrap(), "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    line += ["--as-pid-1", "--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"]
    if root and nested:
        line += [
            "--cap-drop",
            "ALL",
            "--cap-add",
            "CAP_SYS_ADMIN",
            "--cap-add",
            "CAP_SETUID",
            "--cap-add",
            "CAP_SETGID",
        ]
    else:
        line += ["--unshare-user", "--uid", str(USER), "--gid", str(USER), "--cap-drop", "ALL"]
    shown: dict[str, str] = {}
    links: dict[str, str] = {}
    for path in ("/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64", *(TOOLS if kind.tools else ())):
        if os.path.islink(path):
            links[path] = os.readlink(path)
        elif os.path.isdir(path):
            shown[path] = path
    for path in ("/etc/ld.so.cache", python):
        if os.path.exists(path):
            shown[path] = path
    stdlib = sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix})
    libraries = str(Path(stdlib).parent)
    shown.setdefault(libraries, libraries)
    shown["/sandbox/inside"] = str(INSIDE)
    shown.update(module_paths(kind.packages))
    shown.update((visible(path), path) for path in kind.readable)
    # Spelt out, because parents that bubblewrap makes by itself can be read by their owner alone.
    for folder in sorted(
        {str(parent) for inside in (*shown, *links) for parent in Path(inside).parents} - {"/"} - set(links)
    ):
        if folder not in shown:
            line += ["--perms", "0755", "--dir", folder]
    for inside, here in sorted(shown.items()):
        line += ["--ro-bind", here, inside]
    for inside, target in links.items():
        line += ["--symlink", target, inside]
    for hidden in (
        Path(stdlib) / "site-packages",
        Path(libraries) / "python3" / "dist-packages",
        Path(stdlib) / "dist-packages",
    ):
        if hidden.is_dir() and not any(path.startswith(f"{hidden}/") for path in kind.readable):
            line += ["--tmpfs", str(hidden), "--remount-ro", str(hidden)]
    line += [
        "--proc",
        "/proc",
        "--tmpfs",
        "/dev",
        "--symlink",
        "/tmp",
        "/dev/shm",
        "--symlink",
        "/proc/self/fd",
        "/dev/fd",
    ]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        line += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    for device in ("null", "zero", "full", "random", "urandom"):
        line += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    line += ["--remount-ro", "/dev"]
    line += ["--dir", "/tmp"] if nested else ["--size", str(256 << 20), "--tmpfs", "/tmp"]
    # A nested zygote writes its programs' maps of users there.
    line += [] if nested else ["--remount-ro", "/proc"]
    line += ["--remount-ro", "/", "--chdir", "/"]
    # Symbols are looked up when the zygote starts, and not in every program's process.
    for name, value in {**ENVIRONMENT, "LD_BIND_NOW": "1"}.items():
        line += ["--setenv", name, value]
    return [*line, "--", *zygote(python, "/sandbox/inside", control)]


def zygote(python: str, inside: str, control: int) -> list[str]:
    """The interpreter's own command: no site, no user folder, no bytecode, UTF-8 whatever the locale.

    Integers are read and written however long they are: how long that takes is limited as all else is.
    """
    return [
        python,
        "-P",
        "-s",
        "-S",
        "-B",
        "-X",
        "utf8",
        "-X",
        "int_max_str_digits=0",
        f"{inside}/zygote.py",
        str(control),
    ]
