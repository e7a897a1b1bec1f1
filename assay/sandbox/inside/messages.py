"""What host and zygote tell each other about a job, in as few bytes and steps as there are: numbers in fixed places.

Between two programs every page a zygote writes to has to be made its own again, so what it does is kept small.
"""

from __future__ import annotations

import struct

JOB = struct.Struct("<ddqd??")
"""Processor seconds, wall seconds, bytes of memory, patience in seconds, whether the program talks to somebody, and
whether what it has made is wanted though a limit ends it."""
ANSWER = struct.Struct("<Biddq?")
"""Why the program was ended (an index of :data:`CAUSES`), its wait status, processor seconds, wall seconds, most bytes
of memory, and whether the status is that of the first process of its namespace; what failed, if anything did, follows
as text."""
BUDGET = struct.Struct("<ddd")
"""Processor seconds, wall seconds and patience that a program which lasts may have from now on."""
CAUSES = ("", "cpu", "wall", "memory", "load")
