"""Freed memory is kept: bodies that come one after the other do not fault their pages in anew."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
if sys.argv[1] == "kept":
    from sidejudge.monitor.runtime.tuning import keep_freed_memory
    keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
body = bytes(1 << 20)
def take():
    copies = [bytes(memoryview(body)[:-n]) for n in range(1, 4)]
take()
before = faults()
for _ in range(100):
    take()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library is left as it is")
def test_bodies_one_after_the_other_use_the_same_pages():
    counts = {
        how: int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, check=True).stdout)
        for how in ("kept", "plain")
    }
    assert counts["kept"] < 1000 < counts["plain"]
