"""Let many clients of ``assay serve`` hang up, then many come at once: memory, threads and sockets stay as they are.

    python benchmarks/serve_hangups.py [--hangups 2000] [--clients 200]

A quarter of the clients leave in the midst of sending, a quarter before their turn, a quarter in the midst of a stream,
and a quarter when their answer is there, unread. Printed are resident memory, threads and open files after the first
tenth and after all. Exit code 0 means that memory grew by less than 16 MiB, threads and open files by none, and that
every one of the clients that came at once was answered.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import subprocess
import sys
import time

import psutil

GROWTH = 16 << 20
"""Bytes by which memory may grow: what an allocator keeps."""

PATIENCE = 60.0


def request(**more: object) -> bytes:
    body = json.dumps({"model": "nano", "prompt": "1+1=" * 8, "max_tokens": 64, **more}).encode()
    return b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def hang_up(address: tuple[str, int], kind: int) -> None:
    with socket.create_connection(address, timeout=PATIENCE) as client:
        if kind == 0:
            client.sendall(request()[:-9])
        elif kind == 1:
            client.sendall(request(n=8))
        elif kind == 2:
            client.sendall(request(stream=True, n=8))
            client.recv(1)
        else:
            client.sendall(request(max_tokens=2))
            client.recv(1)


def settled(process: psutil.Process, address: tuple[str, int]) -> tuple[int, int, int]:
    """Return resident bytes, threads and open files once an answer shows that nothing waits before it."""
    at_once(address, 1)
    end = time.monotonic() + PATIENCE
    while any(c.status != "LISTEN" for c in process.net_connections()) and time.monotonic() < end:
        time.sleep(0.1)  # the last client's connection is still being closed; one that stays is counted
    return process.memory_info().rss, process.num_threads(), process.num_fds()


def at_once(address: tuple[str, int], count: int) -> int:
    """Send ``count`` requests before reading an answer; return how many are answered."""
    clients = [socket.create_connection(address, timeout=PATIENCE) for _ in range(count)]
    for i, client in enumerate(clients):
        client.sendall(request(seed=i))
    answered = 0
    for client in clients:
        answered += client.recv(12) == b"HTTP/1.1 200"
        client.close()
    return answered


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hangups", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=200)
    args = parser.parse_args()
    command = [sys.executable, "-m", "assay", "serve", "nano", "--port", "0", "model.device=cpu"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        found = re.search(r"http://([\d.]+):(\d+)/", server.stdout.readline())
        assert found is not None, "the server did not start"
        address, process = (found[1], int(found[2])), psutil.Process(server.pid)
        before = None
        start = time.monotonic()
        for i in range(args.hangups):
            if i == args.hangups // 10:
                before = settled(process, address)
                print(f"after {i} hang-ups: {before[0] / 2**20:.1f} MiB, {before[1]} threads, {before[2]} files")
            hang_up(address, i % 4)
        after = settled(process, address)
        print(f"after {args.hangups} hang-ups: {after[0] / 2**20:.1f} MiB, {after[1]} threads, {after[2]} files")
        print(f"{args.hangups} hang-ups took {time.monotonic() - start:.0f} s")
        start = time.monotonic()
        answered = at_once(address, args.clients)
        print(f"{answered} of {args.clients} clients at once were answered, in {time.monotonic() - start:.1f} s")
    finally:
        server.terminate()
        server.wait(PATIENCE)
    assert before is not None, "too few hang-ups to compare"
    flat = after[0] - before[0] < GROWTH and after[1] <= before[1] and after[2] <= before[2]
    return 0 if flat and answered == args.clients else 1


if __name__ == "__main__":
    sys.exit(main())
