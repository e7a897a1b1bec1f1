"""The system-call filter, run by an interpreter of its own and compared with the kernel's headers."""

from __future__ import annotations

import errno
import platform
import re
import struct
from pathlib import Path

import pytest

from assay.errors import UsageError
from assay.sandbox import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSED, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS


def evaluate(number: int, *arguments: int, audit: int | None = None) -> int:
    """Classic BPF by the manual, over a ``struct seccomp_data``."""
    code = list(struct.iter_unpack("<HBBI", seccomp.filter_bytes()))
    arguments = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, seccomp.machine()[1] if audit is None else audit, 0, *arguments)
    place = register = 0
    while True:
        operation, yes, no, k = code[place]
        place += 1
        match operation:
            case 0x20:
                register = struct.unpack_from("<I", data, k)[0]
            case 0x05:
                place += k
            case 0x15:
                place += yes if register == k else no
            case 0x35:
                place += yes if register >= k else no
            case 0x45:
                place += yes if register & k else no
            case 0x54:
                register &= k
            case 0x06:
                return k
            case _:
                raise AssertionError(f"no operation {operation:#x}")


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_every_number_leads_where_it_should(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    column, _ = seccomp.machine()
    refused = {pair[column] for _, *pair in seccomp.REFUSED}
    by_argument = (seccomp.CLONE, seccomp.SOCKETPAIR, seccomp.IOCTL, seccomp.FCNTL, seccomp.SETRLIMIT, seccomp.PRLIMIT)
    special = {numbers[column] for numbers in by_argument}
    for number in range(1200):
        if number in special:
            continue
        unknown = number == seccomp.CLONE3 or number > seccomp.LAST
        expected = UNKNOWN if unknown else REFUSED if number in refused else ALLOW
        assert evaluate(number) == expected, number
    for number in (0x40000000, 0x40000000 + 101, 0xFFFFFFFF, 1 << 31):
        assert evaluate(number) == UNKNOWN
    assert evaluate(0, audit=0x40000003) == KILL
    clone, pair, ioctl = seccomp.CLONE[column], seccomp.SOCKETPAIR[column], seccomp.IOCTL[column]
    for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x2000000, 0x4000000, 0x8000000, 0x80):
        assert evaluate(clone, flag | 17) == REFUSED
    assert evaluate(clone, 17) == evaluate(clone, 0x3D0F00) == ALLOW
    assert evaluate(pair, 1, 1) == evaluate(pair, 1, 1 | 0o2000000) == evaluate(pair, 1, 5) == ALLOW
    assert evaluate(pair, 1, 2) == evaluate(pair, 2, 1) == evaluate(pair, 1, 3) == REFUSED
    assert evaluate(ioctl, 0, 0x5412) == evaluate(ioctl, 0, 0x541C) == REFUSED
    assert evaluate(ioctl, 0, 0x5401) == ALLOW
    fcntl, setrlimit, prlimit = (numbers[column] for numbers in by_argument[3:])
    assert {evaluate(fcntl, 0, command) for command in (5, 36, 1026, 1031)} == {REFUSED}
    assert {evaluate(fcntl, 0, command) for command in (0, 1, 2, 3, 4, 6, 7, 35, 37, 38, 1030, 1032)} == {ALLOW}
    # Of the limits only the one on processor time, and only where it would be changed.
    assert evaluate(setrlimit, 0, 1) == evaluate(prlimit, 0, 0, 1) == evaluate(prlimit, 0, 0, 1 << 32) == REFUSED
    assert evaluate(setrlimit, 3, 1) == evaluate(prlimit, 0, 0, 0, 1) == evaluate(prlimit, 0, 3, 1) == ALLOW


def test_numbers_agree_with_the_headers() -> None:
    headers = {
        0: Path(f"/usr/include/{platform.machine()}-linux-gnu/asm/unistd_64.h"),
        1: Path("/usr/include/asm-generic/unistd.h"),
    }
    compared = 0
    for column, header in headers.items():
        if not header.exists() or (column == 0 and platform.machine() != "x86_64"):
            continue
        pattern = r"#define __NR(?:3264)?_(\w+)\s+(\d+)"
        numbers = {name: int(number) for name, number in re.findall(pattern, header.read_text())}
        for name, *pair in seccomp.REFUSED:
            if name in numbers:
                assert pair[column] == numbers[name], name
                compared += 1
    if not compared:
        pytest.skip("no kernel headers here")


def test_other_machines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(UsageError, match="riscv64"):
        seccomp.filter_bytes()
