"""Running programs that nobody trusts: isolated, limited, and quick.

from assay.sandbox import Program, sandbox

sandbox().run(Program("print(sum(map(int, input().split())))"), stdin="1 2").stdout  # b"3\\n"
"""

from assay.sandbox.confine import SandboxUnavailable
from assay.sandbox.dialogue import Dialogue
from assay.sandbox.pool import Sandbox, sandbox
from assay.sandbox.session import Result, Session
from assay.sandbox.types import Call, CallOutcome, Limits, Outcome, Program
from assay.sandbox.unprotected import run_unprotected

__all__ = [
    "Call",
    "CallOutcome",
    "Dialogue",
    "Limits",
    "Outcome",
    "Program",
    "Result",
    "Sandbox",
    "SandboxUnavailable",
    "Session",
    "run_unprotected",
    "sandbox",
]
