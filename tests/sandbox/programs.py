# ruff: noqa: E501
"""Programs that try to be rewarded without solving anything, to get out, or to stay.

Each is one entry: a name, how it is run (``input``: on standard input; ``call``: its function ``solve`` is called), and
its source. One that finds or reaches what it should not prints ``ESCAPED``; none of them computes the answer.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Hostile(NamedTuple):
    mode: Literal["input", "call"]
    source: str
    language: str = "python"
    statuses: tuple[str, ...] = ()
    """The statuses it may end with; any but ``infrastructure`` if empty."""


C = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def syscall(*a):
    return libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
def attempt(what, result):
    if result >= 0: print("ESCAPED", what)
"""
WALK = """
import os
def search(top, limit=20000):
    seen = 0
    for folder, _, names in os.walk(top):
        for name in names:
            seen += 1
            if seen > limit: return
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path):
                    with open(path, "rb") as f: text = f.read(65536)
                    if MARK in text: print("ESCAPED", path)
            except OSError: pass
# In two pieces, so that this program is not what it finds.
MARK = b"the-right-" + b"answer-is"
"""
SOLVE = "def solve(n): return 0\n"

HOSTILE: dict[str, Hostile] = {
    # exhausting
    "fork bomb": Hostile(
        "input",
        """
import os
while True:
  try: os.fork()
  except OSError: pass
""",
    ),
    "fork bomb that sleeps": Hostile(
        "input",
        """
import os, time
try:
  while True: os.fork()
except OSError: time.sleep(60)
""",
        statuses=("timeout",),
    ),
    "fork bomb in bash": Hostile(
        "input",
        """
:(){ :|:& };:
wait
""",
        "bash",
    ),
    "thread bomb": Hostile(
        "input",
        """
import threading, time
while True:
  try: threading.Thread(target=time.sleep, args=(60,)).start()
  except RuntimeError: pass
""",
        statuses=("timeout",),
    ),
    "memory bomb": Hostile(
        "input",
        """
x = []
while True: x.append(bytearray(1 << 20))
""",
        statuses=("memory", "timeout"),
    ),
    "memory bomb, caught": Hostile(
        "input",
        """
x = []
while True:
  try: x.append(bytearray(1 << 20))
  except MemoryError: pass
""",
        statuses=("timeout", "memory"),
    ),
    "memory bomb in children": Hostile(
        "input",
        """
import os, time
for _ in range(7):
  if os.fork() == 0:
    x = b'x' * (150 << 20)
    time.sleep(60)
time.sleep(60)
""",
        statuses=("memory", "timeout"),
    ),
    "memory bomb in shared memory": Hostile(
        "input",
        """
import mmap
x = []
while True:
  m = mmap.mmap(-1, 1 << 24)
  m.write(b'x' * (1 << 24))
  x.append(m)
""",
        statuses=("memory", "error", "timeout"),
    ),
    "memory bomb in /dev/shm": Hostile(
        "input",
        """
f = open('/dev/shm/x', 'wb')
for i in range(1000):
  open(f'/dev/shm/{i}', 'wb').write(bytes(1 << 20))
""",
        statuses=("error",),
    ),
    "memory bomb in pipes": Hostile(
        "input",
        """
import os, fcntl
while True:
  r, w = os.pipe()
  fcntl.fcntl(w, 1031, 1 << 20)
  os.set_blocking(w, False)
  os.write(w, bytes(1 << 20))
""",
        statuses=("error",),
    ),
    "memory bomb in C": Hostile(
        "input",
        """
#include <stdlib.h>
#include <string.h>
int main(){for(;;){char*p=malloc(1<<20);if(!p)return 1;memset(p,1,1<<20);}}
""",
        "c",
        statuses=("error", "memory", "timeout"),
    ),
    "memory bomb in a number": Hostile("input", "x = 9 ** 9 ** 9", statuses=("timeout", "memory")),
    "disk bomb": Hostile(
        "input",
        """
for i in range(10**6):
  open(f'/tmp/{i}', 'wb').write(bytes(1 << 20))
""",
        statuses=("error", "output"),
    ),
    "file-name bomb": Hostile(
        "input", "for i in range(10**7): open(f'/tmp/{i}', 'w').close()", statuses=("error", "timeout")
    ),
    "one huge file": Hostile(
        "input",
        """
f = open('/tmp/x', 'wb')
while True: f.write(bytes(1 << 20))
""",
        statuses=("error", "output"),
    ),
    "sparse huge file": Hostile(
        "input",
        """
import os
os.truncate(open('/tmp/x', 'wb').fileno(), 1 << 50)
""",
        statuses=("error", "output"),
    ),
    "huge file as output": Hostile(
        "input",
        """
import os
os.truncate(1, 1 << 50)
""",
        statuses=("error", "output"),
    ),
    "output flood": Hostile("input", "while True: print('x' * 10000)", statuses=("output",)),
    "output flood, caught": Hostile(
        "input",
        """
while True:
  try: print('x' * 10000)
  except OSError: pass
""",
        statuses=("output",),
    ),
    "error flood": Hostile(
        "input",
        """
import sys
while True: sys.stderr.write('x' * 10000)
""",
        statuses=("output",),
    ),
    "output flood from yes": Hostile("input", "yes", "bash", statuses=("output",)),
    "descriptor bomb": Hostile(
        "input",
        """
x = []
while True: x.append(open('/dev/null'))
""",
        statuses=("error",),
    ),
    "busy loop": Hostile("input", "while True: pass", statuses=("timeout",)),
    "busy loop in a signal-proof process": Hostile(
        "input",
        """
import signal
for s in set(signal.Signals) - {9, 19}:
  try: signal.signal(s, signal.SIG_IGN)
  except (OSError, ValueError): pass
while True: pass
""",
        statuses=("timeout",),
    ),
    "busy children": Hostile(
        "input",
        """
import os
for _ in range(6):
  if os.fork() == 0:
    while True: pass
os.wait()
""",
        statuses=("timeout",),
    ),
    "short-lived busy children": Hostile(
        "input",
        """
import os, time
while True:
  if os.fork() == 0:
    t = time.time()
    while time.time() < t + 0.05: pass
    os._exit(0)
  os.wait()
""",
        statuses=("timeout",),
    ),
    "sleep": Hostile(
        "input",
        """
import time
time.sleep(1000)
""",
        statuses=("timeout",),
    ),
    "stopped by itself": Hostile(
        "input",
        """
import os, signal
pid = os.fork()
if pid == 0:
  os.kill(os.getpid(), signal.SIGSTOP)
os.waitpid(pid, 0)
""",
        statuses=("timeout",),
    ),
    "waits for input that never comes": Hostile(
        "input",
        """
import os
r, w = os.pipe()
os.read(r, 1)
""",
        statuses=("timeout",),
    ),
    "exponential regular expression": Hostile(
        "input",
        """
import re
re.match('(a+)+$', 'a' * 60 + 'b')
""",
        statuses=("timeout",),
    ),
    "deep recursion": Hostile(
        "input",
        """
import sys
sys.setrecursionlimit(10**9)
def f(): return f()
f()
""",
        statuses=("memory", "error", "timeout"),
    ),
    "deep recursion in C": Hostile(
        "input",
        "int f(int n){volatile char x[4096];x[0]=n;return f(n+1)+x[0];}int main(){return f(0);}",
        "c",
        statuses=("error",),
    ),
    "deeply nested source": Hostile("input", "x = " + "(" * 100000 + ")" * 100000, statuses=("error", "memory")),
    "deeply nested literal": Hostile(
        "input",
        """
import ast
ast.literal_eval('[' * 90000)
""",
        statuses=("error", "memory"),
    ),
    "source with a NUL": Hostile("input", "print(1)\x00", statuses=("error",)),
    "source of surrogates": Hostile("input", "x = '\ud800'", statuses=("error", "ok")),
    "exit handler that loops": Hostile(
        "input",
        """
import atexit
@atexit.register
def f():
  while True: pass
""",
        statuses=("timeout",),
    ),
    "thread that outlives the script": Hostile(
        "input",
        """
import threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
""",
        statuses=("timeout",),
    ),
    "object that loops when it is freed": Hostile(
        "input",
        """
class X:
  def __del__(self):
    while True: pass
X()
""",
        statuses=("timeout",),
    ),
    # crashing
    "null pointer": Hostile(
        "input",
        """
import ctypes
ctypes.string_at(0)
""",
        statuses=("error",),
    ),
    "abort": Hostile(
        "input",
        """
import os
os.abort()
""",
        statuses=("error",),
    ),
    "kills itself": Hostile(
        "input",
        """
import os
os.kill(os.getpid(), 9)
""",
        statuses=("ok", "killed", "error"),
    ),
    "kills everybody": Hostile(
        "input",
        """
import os
os.kill(-1, 9)
""",
        statuses=("ok", "killed", "error"),
    ),
    "kills everybody in bash": Hostile("input", "kill -9 -1", "bash", statuses=("killed", "error")),
    "kills its parents": Hostile(
        "input",
        """
import os
for pid in range(0, 5000):
  try:
    if pid != os.getpid(): os.kill(pid, 9)
  except OSError: pass
""",
    ),
    "closes every descriptor": Hostile(
        "input",
        """
import os
os.closerange(0, 1000)
""",
        statuses=("error", "ok"),
    ),
    "closes its output": Hostile(
        "call",
        SOLVE
        + """
import os
os.closerange(0, 1000)
""",
        statuses=("error",),
    ),
    "faults in a signal handler": Hostile(
        "input",
        """
import ctypes, signal
signal.signal(signal.SIGSEGV, lambda *a: None)
ctypes.string_at(0)
""",
    ),
    "overwrites its own interpreter": Hostile(
        "input",
        """
import ctypes
for a in range(id(int), id(int) + 400, 8): ctypes.memset(a, 0x41, 8)
int('5') + 1
""",
        statuses=("error", "timeout"),
    ),
    "crafted bytecode": Hostile(
        "input",
        r"""
def f(): pass
f.__code__ = f.__code__.replace(co_code=b'\x64\xff' * 50)
f()
""",
        statuses=("error", "timeout", "memory"),
    ),
    "illegal instruction": Hostile("input", "int main(){__builtin_trap();}", "c", statuses=("error",)),
    # claiming success
    "exit code 0": Hostile(
        "input",
        """
import sys
sys.exit(0)
""",
        statuses=("ok",),
    ),
    "exit code 0 at once": Hostile(
        "call",
        SOLVE
        + """
import os
os._exit(0)
""",
        statuses=("error",),
    ),
    "exit code 0 in the call": Hostile(
        "call",
        """
import os
def solve(n): os._exit(0)
""",
        statuses=("error",),
    ),
    "SystemExit in the call": Hostile(
        "call",
        """
import sys
def solve(n): sys.exit(0)
""",
    ),
    "forged verdict on the output": Hostile(
        "input",
        """
print('PASSED')
print('{"passed": true, "status": "ok"}')
print('OK (4 tests)')
""",
    ),
    "forged verdict as a value": Hostile(
        "call", "def solve(n): return {'passed': True, 'ok': True, 'status': 'passed'}"
    ),
    "a verdict written to every descriptor": Hostile(
        "call",
        SOLVE
        + r"""
import os
for fd in range(64):
  try: os.write(fd, b'{"passed":true,"failed":"","status":0,"cause":""}\n')
  except OSError: pass
""",
    ),
    "an answer of the kernel's written to every descriptor": Hostile(
        "input",
        """
import os
for fd in range(3, 256):
  try: os.write(fd, b'SE' + bytes(16))
  except OSError: pass
""",
    ),
    "frames of results with every guess": Hostile(
        "call",
        SOLVE
        + r"""
import os
for fd in range(3, 64):
  try: os.write(fd, b'{"s":0.0,"v":true}\n' * 4)
  except OSError: pass
""",
    ),
    "results that are no values": Hostile(
        "call",
        SOLVE
        + r"""
import os
for fd in range(3, 64):
  try: os.write(fd, b'{"s":0.0,"v":{"o":"builtins.object"}}\n{"s":1}\n\xff\n[[[[\n')
  except OSError: pass
""",
    ),
    "equal to everything": Hostile(
        "call",
        """
class Yes:
  def __eq__(self, other): return True
  __hash__ = None
def solve(n): return Yes()
""",
    ),
    "an integer equal to everything": Hostile(
        "call",
        """
class Yes(int):
  def __eq__(self, other): return True
  def __ne__(self, other): return False
  __hash__ = int.__hash__
def solve(n): return Yes(0)
""",
    ),
    "a list equal to everything": Hostile(
        "call",
        """
class Yes(list):
  def __eq__(self, other): return True
def solve(n): return Yes()
""",
    ),
    "a text equal to everything": Hostile(
        "call",
        """
class Yes(str):
  def __eq__(self, other): return True
  def __str__(self): return self
def solve(n): return Yes('x')
""",
    ),
    "a NumPy array that compares as true": Hostile(
        "call",
        """
import sys, types
class ndarray:
  __module__ = 'numpy'
  def __eq__(self, o): return True
def solve(n): return ndarray()
""",
    ),
    "patched builtins": Hostile(
        "call",
        SOLVE
        + """
import builtins
builtins.all = builtins.any = lambda *a: True
builtins.isinstance = lambda *a: True
builtins.len = lambda x: 0
builtins.print = lambda *a, **k: None
builtins.Exception = BaseException
""",
    ),
    "patched json": Hostile(
        "call",
        SOLVE
        + """
import json
json.dumps = lambda *a, **k: 'true'
json.loads = lambda *a, **k: True
json.JSONEncoder.encode = lambda *a: 'true'
""",
    ),
    "patched runner": Hostile(
        "call",
        SOLVE
        + """
import sys
f = sys._getframe()
while f:
  g = f.f_globals
  for k in ('codec', '_one_line', 'os', 'time'):
    if k in g and k != 'os': g[k] = None
  f = f.f_back
""",
    ),
    "patched runner's encoder": Hostile(
        "call",
        SOLVE
        + """
import gc
for o in gc.get_objects():
  if getattr(o, '__name__', '') == 'codec' and hasattr(o, 'dumps'): o.dumps = lambda v: 'true'
""",
    ),
    "patched os.write": Hostile(
        "call",
        SOLVE
        + r"""
import os
w = os.write
os.write = lambda fd, b: w(fd, b'{"s":0.0,"v":true}\n') and len(b)
""",
    ),
    "a trace function over the runner": Hostile(
        "call",
        SOLVE
        + """
import sys
def t(f, e, a):
  f.f_locals['value'] = True
  return t
sys.settrace(t)
sys.setprofile(t)
""",
    ),
    "an import hook": Hostile(
        "call",
        SOLVE
        + """
import sys
class F:
  def find_spec(self, *a): print('hook'); return None
sys.meta_path.insert(0, F())
sys.modules.clear()
""",
    ),
    "assertion errors swallowed": Hostile(
        "input",
        """
import sys
sys.excepthook = lambda *a: None
raise AssertionError
""",
        statuses=("error",),
    ),
    "exit code changed at exit": Hostile(
        "input",
        """
import atexit, os
atexit.register(os._exit, 0)
raise ValueError
""",
        statuses=("ok", "error"),
    ),
    "another process answers": Hostile(
        "call",
        """
import os
def solve(n):
  if os.fork() == 0: os._exit(0)
  return True
""",
    ),
    "every child returns": Hostile(
        "call",
        """
import os
def solve(n):
  os.fork(); return n
""",
    ),
    "a huge value": Hostile(
        "call", "def solve(n): return 'x' * (1 << 26)", statuses=("output", "error", "memory", "timeout")
    ),
    "a huge number": Hostile(
        "call", "def solve(n): return 1 << 100_000_000", statuses=("output", "error", "memory", "timeout")
    ),
    "a deep value": Hostile(
        "call",
        """
def solve(n):
  x = []
  for _ in range(10**5): x = [x]
  return x
""",
    ),
    "a value that contains itself": Hostile(
        "call",
        """
def solve(n):
  x = []
  x.append(x)
  return x
""",
    ),
    "an endless value": Hostile(
        "call",
        """
import itertools
def solve(n): return itertools.count()
""",
    ),
    "an endless list": Hostile(
        "call",
        """
class L(list):
  def __iter__(self):
    while True: yield 1
def solve(n): return L()
""",
        statuses=("timeout", "memory"),
    ),
    "a pickle": Hostile(
        "call",
        """
import os, pickle
class P:
  def __reduce__(self): return os.system, ('touch /tmp/assay-hostile',)
def solve(n): return pickle.dumps(P())
""",
    ),
    "an object with a reducer": Hostile(
        "call",
        """
import os
class P:
  def __reduce__(self): return os.system, ('touch /tmp/assay-hostile',)
def solve(n): return P()
""",
    ),
    "an exception that lies": Hostile(
        "call",
        """
class E(Exception):
  def __str__(self): raise RuntimeError
def solve(n): raise E
""",
    ),
    "an exception of a huge text": Hostile(
        "call", "def solve(n): raise ValueError('x' * (1 << 25) + '\\n{\"s\":0.0,\"v\":true}')"
    ),
    "returns every candidate": Hostile("call", "def solve(n): return list(range(1000))"),
    # reading what is hidden
    "tests in frames": Hostile(
        "call",
        SOLVE
        + """
import re, sys
f = sys._getframe()
while f:
  if re.search('the-right-answer-is-[0-9]', repr(f.f_locals) + repr(f.f_globals.get('job'))): print('ESCAPED')
  f = f.f_back
""",
    ),
    "tests in gc": Hostile(
        "call",
        SOLVE
        + """
import gc, re
for o in gc.get_objects():
  if isinstance(o, (dict, list, tuple)):
    for x in (o.values() if isinstance(o, dict) else o):
      if isinstance(x, str) and re.search('the-right-answer-is-[0-9]', x): print('ESCAPED')
""",
    ),
    "tests in its memory": Hostile(
        "input",
        """
import re
M = b'the-right-' + b'answer-is'
with open('/proc/self/maps') as f: lines = f.readlines()
with open('/proc/self/mem', 'rb', 0) as m:
  for l in lines:
    a, b = (int(x, 16) for x in l.split()[0].split('-'))
    if l.split()[1].startswith('rw') and b - a < 1 << 26:
      try:
        m.seek(a); text = m.read(b - a)
      except (OSError, ValueError, OverflowError): continue
      for found in re.finditer(re.escape(M) + b'-[0-9]+', text): print('ESCAPED')
""",
    ),
    "tests in files": Hostile(
        "input",
        WALK
        + "for top in ('/tmp', '/root', '/home', '/etc', '/var', '/work', '/opt', '/sandbox', '/dev', '/run', '/srv', '/mnt'): search(top)",
    ),
    "the environment": Hostile(
        "input",
        """
import os
if 'the-right-' + 'answer-is' in repr(dict(os.environ)): print('ESCAPED')
for k in os.environ:
  if k not in ('PATH', 'HOME', 'LANG', 'PYTHONHASHSEED', 'PWD', 'LC_CTYPE') and 'NUM_THREADS' not in k: print('ESCAPED', k)
""",
    ),
    "/proc of others": Hostile(
        "input",
        """
import os
for p in os.listdir('/proc'):
  if p.isdecimal() and int(p) != os.getpid(): print('ESCAPED', p)
for n in ('environ', 'cmdline', 'mem', 'maps'):
  for p in (2, 3, 10, 100): 
    try: print('ESCAPED', open(f'/proc/{p}/{n}', 'rb').read(10))
    except OSError: pass
""",
    ),
    "the zygote, from bash": Hostile(
        "input",
        "(cat /proc/1/environ; cat /proc/1/maps; head -c 10 /proc/1/mem; ls /proc/1/fd /proc/1/root/ /proc/1/cwd/) 2>/dev/null | grep -q . && echo ESCAPED",
        "bash",
    ),
    "inherited descriptors": Hostile(
        "input",
        """
import os
for fd in map(int, os.listdir('/proc/self/fd')):
  try:
    if fd > 3: os.fstat(fd); print('ESCAPED', fd, os.readlink(f'/proc/self/fd/{fd}'))
  except OSError: pass
""",
    ),
    "password file": Hostile(
        "input",
        """
for p in ('/etc/passwd', '/etc/shadow', '/proc/1/root/etc/passwd', '/etc/hostname'):
  try: open(p); print('ESCAPED', p)
  except OSError: pass
""",
    ),
    "above the root": Hostile(
        "input",
        """
import os
os.chdir('/')
for _ in range(50): os.chdir('..')
if set(os.listdir('.')) - {'usr', 'lib', 'lib64', 'lib32', 'libx32', 'bin', 'etc', 'dev', 'proc', 'tmp', 'sandbox', 'root', 'home', 'opt'}: print('ESCAPED', os.listdir('.'))
""",
    ),
    "symlinks to everywhere": Hostile(
        "input",
        """
import os
for i, p in enumerate(('/etc/shadow', '/proc/1/root', '/proc/self/root/../..', '/dev/mem', '/proc/kcore')):
  os.symlink(p, f'/tmp/l{i}')
  try:
    with open(f'/tmp/l{i}', 'rb') as f: print('ESCAPED', p, f.read(1))
  except OSError: pass
""",
    ),
    "devices": Hostile(
        "input",
        """
import os
for n in ('mem', 'kmem', 'port', 'vda', 'sda', 'kvm', 'fuse', 'tty', 'console', 'ptmx', 'loop0', 'net/tun'):
  try: os.open('/dev/' + n, os.O_RDWR); print('ESCAPED', n)
  except OSError: pass
try: os.mknod('/tmp/m', 0o20666, os.makedev(1, 1)); os.open('/tmp/m', 0); print('ESCAPED')
except OSError: pass
""",
    ),
    "writing where the interpreter is": Hostile(
        "input",
        """
import os, sys
for p in (os.__file__, sys.executable, '/sandbox/inside/zygote.py', '/usr/lib/x', '/lib/x', '/dev/x', '/dev/shm/../x', '/x', '/proc/sys/kernel/hostname', '/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern'):
  try: open(p, 'a'); print('ESCAPED', p)
  except OSError: pass
""",
    ),
    # getting out
    "network": Hostile(
        "input",
        """
import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 16, 17, 38, 40):
  for kind in (1, 2, 3, 5):
    try: socket.socket(family, kind); print('ESCAPED', family)
    except OSError: pass
""",
    ),
    "a download": Hostile(
        "input",
        """
import urllib.request
try: urllib.request.urlopen('http://1.1.1.1', timeout=1); print('ESCAPED')
except OSError: pass
""",
    ),
    "network from bash": Hostile("input", "(echo > /dev/tcp/1.1.1.1/80) 2>/dev/null && echo ESCAPED", "bash"),
    "network in node": Hostile(
        "input",
        "const n=require('net');const s=n.connect(80,'1.1.1.1');s.on('connect',()=>console.log('ESCAPED'));s.on('error',()=>process.exit(3));",
        "javascript",
    ),
    "datagram pairs": Hostile(
        "input",
        """
import socket
for kind in (2, 3):
  try: socket.socketpair(socket.AF_UNIX, kind); print('ESCAPED')
  except OSError: pass
socket.socketpair()
""",
    ),
    "ptrace": Hostile(
        "input",
        C
        + """
for p in (1, 2, os.getppid()): attempt('ptrace', libc.ptrace(16, p, 0, 0))
attempt('traceme', libc.ptrace(0, 0, 0, 0))
""",
    ),
    "another's memory": Hostile(
        "input",
        C
        + """
b = ctypes.create_string_buffer(64)
attempt('readv', syscall(310, os.getppid() or 1, b, 1, b, 1, 0))
""",
    ),
    "mount": Hostile(
        "input",
        C
        + """
attempt('mount', libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))
attempt('bind', libc.mount(b'/', b'/tmp', None, 4096, None))
attempt('umount', libc.umount2(b'/proc', 2))
attempt('remount', libc.mount(None, b'/', None, 32, None))
attempt('fsopen', syscall(430, b'tmpfs', 0))
attempt('pivot', syscall(155, b'/tmp', b'/tmp'))
attempt('chroot', libc.chroot(b'/tmp'))
""",
    ),
    "namespaces": Hostile(
        "input",
        C
        + """
for f in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x2000000, 0x80): attempt('unshare', libc.unshare(f))
if os.uname().machine == 'x86_64':
  for f in (0x10000000, 0x40000000): attempt('clone', syscall(56, f | 17, 0, 0, 0, 0))
attempt('clone3', syscall(435, ctypes.create_string_buffer((0x10000000).to_bytes(8, 'little') + bytes(80)), 88))
attempt('setns', libc.setns(os.open('/proc/self/ns/user', 0), 0))
""",
    ),
    "the kernel's machinery": Hostile(
        "input",
        C
        + """
b = ctypes.create_string_buffer(256)
for n in (321, 323, 425, 298, 250, 248, 175, 246, 169, 103, 304, 303, 317, 319, 447) if os.uname().machine == 'x86_64' else (): attempt(n, syscall(n, b, b, b, b, b))
""",
    ),
    "system calls of other tables": Hostile(
        "input", C + "for n in (0x40000000 + 39, 500, 1 << 20): attempt(n, syscall(n, 0, 0, 0))"
    ),
    "32-bit system calls": Hostile(
        "input",
        'int main(){int r;__asm__ volatile("int $0x80":"=a"(r):"a"(20));return r>0?0:1;}',
        "c",
        statuses=("error", "compile_error", "killed"),
    ),
    "shared memory by key": Hostile(
        "input",
        C
        + """
attempt('shmget', libc.shmget(7, 4096, 0o1666))
attempt('msgget', libc.msgget(7, 0o1666))
attempt('semget', libc.semget(7, 1, 0o1666))
attempt('mq', libc.mq_open(b'/x', 66, 0o666, None))
""",
    ),
    "becoming root": Hostile(
        "input",
        C
        + """
for n in (0, 1, 1000): attempt('setuid', libc.setuid(n)); attempt('setgid', libc.setgid(n))
attempt('capset', libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(1 << 21, 1 << 21, 0, 0, 0, 0)))
attempt('groups', libc.setgroups(0, None))
""",
    ),
    "set-user-id programs": Hostile(
        "input",
        "for p in su sudo mount newuidmap ping; do $p -h </dev/null >/dev/null 2>&1; done; cp /bin/bash /tmp/b; chmod 6755 /tmp/b; /tmp/b -p -c 'cat /etc/shadow' && echo ESCAPED; id -u | grep -qx 0 && echo ESCAPED; mount -t tmpfs x /tmp && echo ESCAPED; unshare -r true && echo ESCAPED; exit 3",
        "bash",
    ),
    "limits raised": Hostile(
        "input",
        """
import resource
for w in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
  try: resource.setrlimit(w, (-1, -1)); print('ESCAPED', w)
  except (OSError, ValueError): pass
""",
    ),
    "priority raised": Hostile(
        "input",
        """
import os
for f in (lambda: os.nice(-5), lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))):
  try: f(); print('ESCAPED')
  except OSError: pass
""",
    ),
    "a shell": Hostile(
        "input",
        """
import os, subprocess
for p in ('/bin/sh', '/usr/bin/bash', '/usr/bin/env'):
  try: subprocess.run([p, '-c', 'echo ESCAPED'])
  except OSError: pass
""",
    ),
    "typing into the terminal": Hostile(
        "input",
        """
import fcntl
for fd in (0, 1, 2):
  try: fcntl.ioctl(fd, 0x5412, b'x'); print('ESCAPED')
  except OSError: pass
""",
    ),
    # staying
    "a daemon": Hostile(
        "input",
        """
import os, time
if os.fork() == 0:
  os.setsid()
  if os.fork() == 0:
    for i in range(256):
      try: os.close(i)
      except OSError: pass
    while True: time.sleep(1)
  os._exit(0)
""",
        statuses=("ok",),
    ),
    "a daemon in C": Hostile(
        "input",
        """
#include <unistd.h>
int main(){if(!fork()){setsid();if(!fork())for(;;)sleep(1);}return 0;}
""",
        "c",
        statuses=("ok",),
    ),
    "a daemon in bash": Hostile(
        "input", "setsid nohup sleep 1000 >/dev/null 2>&1 & disown; exit 0", "bash", statuses=("ok",)
    ),
    "files for the next": Hostile(
        "input",
        """
import os
for p in ('/tmp/left', '/dev/shm/left', '/dev/left', '/left', '/sandbox/left', '/proc/left'):
  if os.path.exists(p): print('ESCAPED', p)
for p in ('/tmp/left', '/dev/left', '/left', '/sandbox/left', '/proc/left'):
  try: open(p, 'w').write('left')
  except OSError: pass
""",
        statuses=("ok",),
    ),
    "files for the next, again": Hostile(
        "input",
        """
import os
for p in ('/tmp/left', '/dev/shm/left', '/dev/left', '/left', '/sandbox/left', '/proc/left'):
  if os.path.exists(p): print('ESCAPED', p)
""",
        statuses=("ok",),
    ),
    "modules for the next": Hostile(
        "input",
        """
import collections, json
if hasattr(json, 'left'): print('ESCAPED')
json.left = collections.left = 1
json.dumps = None
""",
        statuses=("ok",),
    ),
    "modules for the next, again": Hostile(
        "input",
        """
import json
if hasattr(json, 'left'): print('ESCAPED')
json.dumps(1)
""",
        statuses=("ok",),
    ),
    "a file that runs at the next start": Hostile(
        "input",
        """
import os, sys
for d in [*sys.path, os.path.expanduser('~/.local/lib'), '/tmp']:
  for n in ('sitecustomize.py', 'usercustomize.py', 'json.py', 'x.pth'):
    try: open(os.path.join(d, n), 'w').write('print("ESCAPED")')
    except OSError: pass
""",
    ),
    "a file that runs at the next start, again": Hostile(
        "input",
        """
import json, sys
from importlib import reload
reload(json)
""",
        statuses=("ok",),
    ),
    "a name nobody else may see": Hostile(
        "input",
        """
import multiprocessing.shared_memory as s
try:
  s.SharedMemory('left'); print('ESCAPED')
except OSError: s.SharedMemory('left', True, 4096)
""",
    ),
    "a name nobody else may see, again": Hostile(
        "input",
        """
import multiprocessing.shared_memory as s
try:
  s.SharedMemory('left'); print('ESCAPED')
except OSError: pass
""",
    ),
    # being taken for a fault of the machine's, or of the host's
    "busy children that nobody waits for": Hostile(
        "input",
        """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
  try:
    if os.fork() == 0:
      t = time.process_time()
      while time.process_time() < t + 0.05: pass
      os._exit(0)
  except OSError: pass
  time.sleep(0.06)
""",
        statuses=("timeout",),
    ),
    "children too short to be seen, that nobody waits for": Hostile(
        "input",
        """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
  try:
    if os.fork() == 0:
      for _ in range(20000): pass
      os._exit(0)
  except OSError: pass
""",
        statuses=("timeout",),
    ),
    "slower than it could be": Hostile(
        "input",
        """
import os
for f in (
  lambda: os.nice(19),
  lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)),
  lambda: os.setpriority(os.PRIO_PROCESS, 0, 19),
  lambda: open('/proc/self/autogroup', 'w').write('19'),
):
  try: f(); print('ESCAPED', flush=True)
  except OSError: pass
while True: pass
""",
        statuses=("timeout",),
    ),
    "settings of its own process": Hostile(
        "input",
        """
import os
for n in ('oom_score_adj', 'autogroup', 'timerslack_ns', 'coredump_filter', 'clear_refs', 'comm', 'sched', 'mem', 'uid_map'):
  try: os.close(os.open(f'/proc/self/{n}', os.O_WRONLY)); print('ESCAPED', n)
  except OSError: pass
""",
    ),
    "every signal to the first process": Hostile(
        "input", "for s in $(seq 1 64); do kill -$s 1; done; kill -INT 1; sleep 0.1; exit 0", "bash", statuses=("ok",)
    ),
    "every signal to itself": Hostile(
        "input",
        """
import os, signal
for s in range(1, 65):
  if s not in (9, 11, 32, 33):
    try: os.kill(1, s)
    except (OSError, KeyboardInterrupt): pass
""",
    ),
    "all memory within a moment": Hostile(
        "input",
        """
import os, time
r, w = os.pipe()
for _ in range(12):
  if os.fork() == 0:
    os.read(r, 1)
    x = bytearray(b'x') * (200 << 20)
    time.sleep(60)
os.write(w, bytes(12))
time.sleep(60)
""",
        statuses=("memory", "timeout"),
    ),
    "memory of a child's that is ended for it": Hostile(
        "input",
        """
import os
pids = []
for _ in range(8):
  pid = os.fork()
  if pid == 0:
    try: x = bytearray(b'x') * (220 << 20)
    finally: os._exit(0)
  pids.append(pid)
for pid in pids: os.waitpid(pid, 0)
""",
        statuses=("ok", "memory", "timeout"),
    ),
    "the kernel's memory in sockets": Hostile(
        "input",
        """
import socket, time
x = []
try:
  while True:
    a, b = socket.socketpair()
    for one in (a, b):
      one.setblocking(False)
      one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
      try:
        while True: one.send(bytes(1 << 16))
      except BlockingIOError: pass
    x.append((a, b))
except OSError: time.sleep(60)
""",
        statuses=("timeout", "memory"),
    ),
    "flushing every disk": Hostile(
        "input",
        C
        + """
import platform
a, b = (162, 306) if platform.machine() == 'x86_64' else (81, 267)
attempt('sync', syscall(a))
attempt('syncfs', syscall(b, os.open('/', 0)))
""",
    ),
    "a set whose members have one hash": Hostile(
        "call",
        r"""
import os
line = b'{"s":0.0,"v":{"s":[%s]}}\n' % b','.join(b'%d' % (i * ((1 << 61) - 1)) for i in range(40000))
def solve(n):
  os.write(3, line)
  return n
""",
        statuses=("error", "output"),
    ),
    "a dict whose keys have one hash": Hostile(
        "call",
        r"""
import os
line = b'{"s":0.0,"v":{"d":[%s]}}\n' % b','.join(b'[%d,0]' % (i * ((1 << 61) - 1)) for i in range(36000))
def solve(n):
  os.write(3, line)
  return n
""",
        statuses=("error", "output"),
    ),
}
