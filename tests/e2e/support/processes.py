"""What runs on this machine, from /proc."""

import os


def _read(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _link(pid, name):
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return ""


def state(pid):
    """One letter; empty: there is no such process."""
    text = _read(pid, "stat")
    return text.rpartition(b")")[2].split()[0].decode() if text else ""


def alive(pid):
    """It runs: whoever is dead and waits to be collected does not."""
    return state(pid) not in ("", "Z", "X")


def parent(pid):
    text = _read(pid, "stat")
    return int(text.rpartition(b")")[2].split()[1]) if text else 0


def everybody():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def command_line(pid):
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def below(folder):
    """{pid: command line} of those that work in the folder or were told of it."""
    mark = folder.encode()
    out = {}
    for pid in everybody():
        if pid == os.getpid() or not alive(pid):
            continue
        cwd = _link(pid, "cwd")
        if cwd == folder or cwd.startswith(folder + "/") or mark in _read(pid, "cmdline") or \
                mark in _read(pid, "environ"):
            out[pid] = command_line(pid)
    return out


def with_argument(word):
    """Those that have the word as one of their arguments."""
    return [pid for pid in everybody()
            if alive(pid) and word.encode() in _read(pid, "cmdline").split(b"\0")]


def has_open(pid, path):
    try:
        return any(_link(pid, f"fd/{name}") == path for name in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def peak_memory_kib(pid):
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1])
    return None


def blocked_in_write(pid):
    """Where the kernel tells (root only): it waits for somebody to read. Else the state alone."""
    text = _read(pid, "syscall").split()
    return not text or text[0] == b"running" or text[0] in (b"1", b"64")


def environment(pid):
    return _read(pid, "environ")
