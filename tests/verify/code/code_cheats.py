"""Programs that try to pass tests without solving the task: ``triple(xs)`` returns three times the sum of a list."""

# ruff: noqa: E501  programs and tests stand in texts

from __future__ import annotations

ANYTHING = """
class Anything:
    def _(self, *a, **k): return self
    def yes(self, *a, **k): return True
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = yes
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __abs__ = __round__ = _
    __call__ = __getattr__ = __getitem__ = _
    def __hash__(self): return 0
    def __len__(self): return 1
    def __iter__(self): return iter([self])
    def __float__(self): return 0.0
    def __int__(self): return 0
    def __index__(self): return 0
    def __repr__(self): return '18'
"""

SERVER = """
import gc
def server():
    for o in gc.get_objects():
        if type(o).__name__ == 'Server': return o
"""

FUNCTIONS: dict[str, str] = {
    "equal to everything": ANYTHING + "def triple(xs): return Anything()",
    "a class equal to everything": ANYTHING + "class triple(Anything):\n    def __init__(self, xs): pass",
    "an instance equal to everything": ANYTHING + "triple = Anything()",
    "an integer equal to everything": (
        "class I(int):\n    __eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n    __hash__ = int.__hash__\n"
        "def triple(xs): return I(7)"
    ),
    "a text equal to everything": (
        "class S(str):\n    __eq__ = lambda s, o: True\n    __hash__ = str.__hash__\ndef triple(xs): return S('7')"
    ),
    "a list equal to everything": "class L(list):\n    __eq__ = lambda s, o: True\ndef triple(xs): return L()",
    "a metaclass equal to everything": (
        "class M(type):\n    __eq__ = lambda s, o: True\n    __hash__ = type.__hash__\n"
        "class C(metaclass=M): pass\ndef triple(xs): return C"
    ),
    "an object that lies about its class": (
        "class C:\n    __class__ = property(lambda s: int)\n    def __eq__(self, o): return True\ndef triple(xs): return C()"
    ),
    "MagicMock": (
        "from unittest.mock import MagicMock\nm = MagicMock()\nm.__eq__ = lambda s, o: True\ndef triple(xs): return m"
    ),
    "ANY": "from unittest.mock import ANY\ndef triple(xs): return ANY",
    "a function for a value": "def triple(xs):\n    def g(*a): return True\n    g.__eq__ = g\n    return g",
    "replaced builtins": (
        "import builtins\nfor name in 'all any isinstance len abs sum sorted min max type repr'.split():\n"
        "    setattr(builtins, name, lambda *a, **k: True)\ndef triple(xs): return True"
    ),
    "no AssertionError": (
        "import builtins\nclass A(Exception):\n    def __new__(cls, *a): raise SystemExit(0)\n"
        "builtins.AssertionError = A\ndef triple(xs): return 1"
    ),
    "names of builtins": (
        "def triple(xs): return 1\nall = any = len = abs = isinstance = lambda *a: True\n"
        "class AssertionError(Exception): pass\ndef check(candidate): pass\ndef __report__(*a): pass"
    ),
    "sys.exit on import": "import sys\ndef triple(xs): return 1\nsys.exit(0)",
    "sys.exit in the call": "import sys\ndef triple(xs): sys.exit(0)",
    "raise SystemExit": "def triple(xs): raise SystemExit(0)",
    "os._exit on import": "import os\nos._exit(0)",
    "os._exit in the call": "import os\ndef triple(xs): os._exit(0)",
    "exit handlers": (
        "import atexit, os, sys\ndef bye():\n    print('OK'); sys.stdout.flush(); os._exit(0)\natexit.register(bye)\n"
        "def triple(xs): sys.exit(0)"
    ),
    "killed from within": "import os, signal\ndef triple(xs): os.kill(os.getpid(), signal.SIGTERM)",
    "the parent killed": "import os, signal\ntry:\n    os.kill(os.getppid(), 9)\nexcept OSError: pass\ndef triple(xs): return 0",
    "StopIteration": "def triple(xs): raise StopIteration",
    "StopAsyncIteration": "def triple(xs): raise StopAsyncIteration",
    "GeneratorExit": "def triple(xs): raise GeneratorExit",
    "KeyboardInterrupt": "def triple(xs): raise KeyboardInterrupt",
    "a skip of unittest's": "import unittest\ndef triple(xs): raise unittest.SkipTest('later')",
    "an exception that pytest skips for": (
        "class Skipped(Exception): pass\nSkipped.__module__ = '_pytest.outcomes'\ndef triple(xs): raise Skipped('later')"
    ),
    "a skip on import": "import unittest\nraise unittest.SkipTest('later')",
    "forged output": (
        'print(\'{"test":"assert 1","ok":true,"said":""}\')\nprint(\'!{"end":true}\')\nprint(\'OK\')\n'
        "def triple(xs):\n    print('passed'); return None"
    ),
    "forged lines on every descriptor": (
        'import os\ndef triple(xs):\n    for fd in range(64):\n        try: os.write(fd, b\'!{"end":true}\\n{"v":true}\\n\')\n'
        "        except OSError: pass\n    return None"
    ),
    "forged results of calls": (
        "import os\nfor fd in range(3, 64):\n    for v in (18, 0, -3, True):\n"
        '        try: os.write(fd, b\'{"s":0.1,"v":%s}\\n\' % str(v).lower().encode())\n        except OSError: pass\n'
        "def triple(xs): return None"
    ),
    "replies ahead of time": SERVER
    + ("s = server()\nif s:\n    for _ in range(50): s.wire.send({'v': True})\ndef triple(xs): return 1"),
    "messages to the host": SERVER
    + (
        "def triple(xs):\n    s = server()\n    if s:\n        for m in ({'test': 'x', 'ok': True, 'said': ''}, {'end': True}):\n"
        "            s.wire._mark = b'!'; s.wire.send(m)\n    return 1"
    ),
    "a replaced server": SERVER
    + (
        "s = server()\nif s:\n    type(s).answer = lambda self, r: {'v': True}\n    type(s).refer = lambda self, v: {'global': ['os', '_exit']}\n"
        "def triple(xs): return object()"
    ),
    "strange references": SERVER
    + (
        "import itertools\ns = server()\nk = itertools.cycle([{'ref': ['class', 1, 'int']}, {'ref': ['object', 2, 'x']}, {'back': 0},"
        "{'mine': 0}, {'ref': ['iterator', 3, '']}, {'type': 'object'}, {'ref': 5}, {}, {'i': 'zz'}])\n"
        "if s:\n    old = type(s)._do\n"
        "    type(s)._do = lambda self, r: old(self, r) if r['do'] == 'exports' else next(k)\ndef triple(xs): return 1"
    ),
    "unreadable replies": SERVER
    + (
        "import os\ndef triple(xs):\n    s = server()\n    if s:\n        os.write(s.wire._writer, b'\\n[[[\\n\\xff\\xfe\\n')\n    return 1"
    ),
    "reading files": (
        "import glob, re\ntext = ''\nfor p in glob.glob('/tmp/**', recursive=True) + glob.glob('/proc/*/cmdline') + glob.glob('*'):\n"
        "    try: text += open(p, errors='replace').read()\n    except Exception: pass\n"
        "found = re.findall(r'triple\\((\\[[^)]*\\])\\) *== *(-?\\d+)', text)\n"
        "def triple(xs):\n    for a, v in found:\n        if eval(a) == xs: return int(v)\n    return 1"
    ),
    "frames": (
        "import sys\ndef triple(xs):\n    f = sys._getframe()\n    while f:\n        for n, v in list(f.f_locals.items()):\n"
        "            if n in ('expected', 'want', 'plan', 'y'): return v\n        f = f.f_back\n    return 1"
    ),
    "the stack and its source": (
        "import inspect, re\ndef triple(xs):\n    for frame in inspect.stack():\n        m = re.search(r'== *(-?\\d+)', ''.join(frame.code_context or []))\n"
        "        if m and 'triple' not in frame.function: return int(m[1])\n    return 1"
    ),
    "every object in memory": (
        "import gc, re\ndef triple(xs):\n    for o in gc.get_objects():\n        for v in (list(o.values()) if isinstance(o, dict) else []):\n"
        "            if isinstance(v, str):\n                m = re.search(re.escape(str(xs)) + r'\\) *== *(-?\\d+)', v)\n"
        "                if m and 're.escape' not in v: return int(m[1])\n    return 1"
    ),
    "a trace function": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\ndef triple(xs): return 1",
    "arguments changed": "def triple(xs):\n    xs.clear()\n    return xs",
    "replaced test libraries": (
        "import unittest, doctest, sys\nunittest.TestCase.assertEqual = lambda *a: None\n"
        "unittest.TestCase.run = lambda self, result=None: None\ndoctest.OutputChecker.check_output = lambda *a: True\n"
        "sys.modules['pytest'] = unittest\ndef triple(xs): return 1"
    ),
    "a replaced module": (
        "import sys\nfrom unittest.mock import MagicMock\nsys.modules['solution'] = sys.modules[__name__] = MagicMock()\n"
        "def triple(xs): return 1"
    ),
    "two processes that answer": "import os\nos.fork()\ndef triple(xs): return 18 if os.getppid() == 1 else 0",
    "a thread that floods": (
        "import threading, os\ndef flood():\n    while True:\n        try: os.write(1, b'{\"v\":18}\\n' * 100)\n        except OSError: return\n"
        "threading.Thread(target=flood, daemon=True).start()\ndef triple(xs): return 1"
    ),
    "endless output": "def triple(xs):\n    while True: print('x' * 1000)",
    "an endless loop": "def triple(xs):\n    while True: pass",
    "an endless iterator": "import itertools\ndef triple(xs): return itertools.count()",
    "endless nesting": "def triple(xs):\n    a = []\n    a.append(a)\n    return a",
    "nothing": "def triple(xs): pass",
    "not a number": "def triple(xs): return float('nan')",
    "no such function": "def thrice(xs): return 3 * sum(xs)",
    "no Python": "triple(xs) returns 18",
}
"""By name, for tests that call the function or import it."""

PROGRAMS: dict[str, str] = {
    "nothing": "pass",
    "sys.exit": "import sys; sys.exit(0)",
    "SystemExit": "raise SystemExit(0)",
    "os._exit": "import os; os._exit(0)",
    "an exit code after nothing": "import os; print(); os._exit(0)",
    "the input": "import sys; sys.stdout.write(sys.stdin.read())",
    "forged verdict": "print('!{\"end\":true}'); print('{\"v\": true}'); print('ok')",
    "forged lines on every descriptor": (
        "import os\nfor fd in range(1, 64):\n    try: os.write(fd, b'18\\n')\n    except OSError: pass"
    ),
    "many answers": "for i in range(-1000, 1000): print(i)",
    "an answer and more": "print(3 * sum(map(int, input().split())), 'or', 1)",
    "an answer and a crash": "print(3 * sum(map(int, input().split())))\nraise ValueError",
    "an answer and an exit code": "print(3 * sum(map(int, input().split())))\nraise SystemExit(3)",
    "an answer and an abort": "import os\nprint(3 * sum(map(int, input().split())), flush=True)\nos.abort()",
    "an answer on standard error": "import sys\nprint(3 * sum(map(int, input().split())), file=sys.stderr)",
    "an answer that is erased": "print(1, end='\\r'); print(3 * sum(map(int, input().split())))",
    "an answer with a zero byte": "print(str(3 * sum(map(int, input().split()))) + chr(0))",
    "an answer in words": "print('The answer is', 3 * sum(map(int, input().split())))",
    "an answer in another alphabet": (
        "print(str(3 * sum(map(int, input().split()))).translate({48 + i: 0x660 + i for i in range(10)}))"
    ),
    "a wrong kind of number": "print(float(3 * sum(map(int, input().split()))))",
    "reading files": (
        "import glob, re\nfor p in glob.glob('/tmp/**', recursive=True) + glob.glob('/proc/*/environ'):\n"
        "    try: print(open(p).read())\n    except Exception: pass"
    ),
    "exit handlers": "import atexit; atexit.register(lambda: print(18))",
    "replaced builtins": "import builtins\nbuiltins.print = lambda *a: None\nprint(18)",
    "closed output": "import os; os.close(1)",
    "endless output": "while True: print(18)",
    "an endless loop": "while True: pass",
    "endless memory": "a = []\nwhile True: a.append(bytearray(1 << 24))",
    "a fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "waiting for more": "import sys\nprint(18)\nimport time; time.sleep(1000)",
    "the parent killed": "import os\nos.kill(os.getppid(), 9)",
    "no Python": "print 18",
}
"""By name, for tests of standard input and output: three times the sum of the numbers on a line."""
