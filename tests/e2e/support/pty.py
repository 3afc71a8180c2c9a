"""A pseudo-terminal, and what appears on it."""

import fcntl
import os
import select
import struct
import time

_TIOCSWINSZ = 0x5414


def pair(rows=24, cols=80):
    """(ours, the program's): descriptors of a terminal of that size."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, _TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
    return ours, theirs


def read_until(ours, mark, seconds=60):
    """Everything up to and with the mark."""
    seen = b""
    deadline = time.monotonic() + seconds
    while mark not in seen:
        if not select.select([ours], [], [], max(0, deadline - time.monotonic()))[0]:
            raise AssertionError(f"{mark!r} did not appear: {seen!r}")
        try:
            seen += os.read(ours, 4096)
        except OSError:  # nobody has the other end any more
            raise AssertionError(f"{mark!r} did not appear: {seen!r}") from None
    return seen[:seen.index(mark) + len(mark)]


def read_all(ours):
    """Until the other end is closed."""
    seen = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            return seen
        if not piece:
            return seen
        seen += piece
