"""One test case: its folders, the program that it runs, and what it must not leave behind."""

import os
import random
import signal
import stat
import subprocess
import time

from support import processes, strict_json

BUILD = os.environ.get("SANDFORGE_BINARY_DIR", "")
SOURCE = os.environ.get("SANDFORGE_SOURCE_DIR", "")
PROGRAM = os.path.join(BUILD, "bin/sandforge")
# A sanitizer makes everything slower, and memory is no measure then.
SANITIZED = bool(os.environ.get("SANDFORGE_SANITIZE"))
PATIENCE = 120 if SANITIZED else 60  # seconds for whatever must come


class Skipped(Exception):
    pass


class Result:
    def __init__(self, code, out, err):
        self.code = code
        self.out = out  # bytes
        self.err = err

    @property
    def text(self):
        return self.out.decode()

    @property
    def error_text(self):
        return self.err.decode()

    @property
    def json(self):
        return strict_json.parse(self.out)

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out[:4000]!r}\n--- stderr\n{self.err[:4000]!r}"


def wait_until(condition, what, seconds=PATIENCE):
    """What the condition answers, once that is something."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain: {what}")
        time.sleep(0.01)


def remove_tree(path):
    for folder, folders, files in os.walk(path, topdown=False):
        for name in files:
            os.unlink(os.path.join(folder, name))
        for name in folders:
            full = os.path.join(folder, name)
            os.unlink(full) if os.path.islink(full) else os.rmdir(full)
    os.rmdir(path)


def make_folder():
    while True:
        path = f"/tmp/sandforge-e2e-{random.getrandbits(48):012x}"
        try:
            os.mkdir(path, 0o700)
            return path
        except FileExistsError:
            continue


class Case:
    def __init__(self):
        self.dir = make_folder()
        self.program = PROGRAM
        self.state = self.path("state")
        self.root = self.path("root")
        self.started = []
        os.mkdir(self.path("home"))
        self.env = {
            # A folder that cannot be searched turns "not found" into "not permitted".
            "PATH": ":".join(folder for folder in os.environ.get("PATH", "/usr/bin:/bin").split(":")
                             if os.access(folder, os.R_OK | os.X_OK)),
            "HOME": self.path("home"),
            "LANG": "C.UTF-8",
            "SANDFORGE_STATE_DIR": self.state,
            "SANDFORGE_LOCAL_ROOT": self.root,
            "SANDFORGE_RUNTIME_DIR": self.path("run"),
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        if os.geteuid() != 0:
            self.look_for_no_leaks()

    def look_for_no_leaks(self):
        """The program forbids to be traced, and only root may look for leaks all the same."""
        if SANITIZED:
            self.env["ASAN_OPTIONS"] = self.env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        return path

    def read(self, *names):
        with open(self.path(*names), "rb") as file:
            return file.read()

    # ---- the program

    def spawn(self, *args, env=None, **options):
        """Starts the program; it is ended with the case."""
        merged = dict(self.env)
        for name, value in (env or {}).items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = value
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("cwd", self.dir)
        before = options.pop("through", [])  # words of a program that runs it
        child = subprocess.Popen([*before, PROGRAM, *args], env=merged, **options)
        self.started.append(child)
        return child

    def finish(self, child, code=None, input=None):
        """The result of a program that was started, once it has ended."""
        try:
            out, err = child.communicate(input, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            raise AssertionError(f"it did not end: {child.args}\n{out!r}\n{err!r}") from None
        result = Result(child.returncode, out or b"", err or b"")
        if code is not None and result.code != code:
            raise AssertionError(f"exit code {code} was expected of {child.args}\n{result}")
        return result

    def sf(self, *args, code=0, input=None, **options):
        """Runs the program and expects the exit code; None: any."""
        if input is not None:
            options["stdin"] = subprocess.PIPE
        return self.finish(self.spawn(*args, **options), code, input)

    def session(self, *args):
        return self.sf("start", "--provider", "local", *args).text.strip()

    def sessions(self):
        return [record["id"] for record in self.sf("ps", "--json").json]

    # ---- what tests share

    def as_nobody(self):
        """Words before a program that must not be root."""
        if os.geteuid() != 0:
            return []
        os.chmod(self.dir, 0o755)
        self.look_for_no_leaks()
        words = ["setpriv", "--reuid", "65534", "--clear-groups"]
        if subprocess.run([*words, PROGRAM, "--version"], capture_output=True).returncode != 0:
            raise Skipped("the program cannot be run by another user here")
        return words

    def repository(self, name="origin"):
        """A git repository with one commit, whose subject is `first`."""
        path = self.path(name)
        self.write(f"{name}/README", "hello\n")
        git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", path]
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
            subprocess.run(git + words, check=True, env=self.env, stdin=subprocess.DEVNULL)
        return path

    def no_guest(self):
        """No process of any session."""
        return not [line for line in processes.below(self.dir).values() if "sandforge-guest" in line]

    # ---- the end

    def remove_sessions(self):
        if not os.path.exists(os.path.join(self.state, "sessions.db")):
            return
        listed = self.sf("ps", "--json", code=None)
        if listed.code == 0 and listed.json:
            self.sf("rm", "-f", *[record["id"] for record in listed.json], code=None)

    def close(self, passed):
        """Ends everything; after a case that passed, whatever is still there is a failure."""
        for child in self.started:
            if child.poll() is None:
                child.kill()
                child.communicate()
        self.remove_sessions()
        left = []
        try:
            wait_until(lambda: not processes.below(self.dir), "processes of the case end", 20)
        except AssertionError:
            for pid, line in processes.below(self.dir).items():
                left.append(f"process {pid}: {line}")
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not processes.below(self.dir), "killed processes end")
        for folder, _, files in os.walk(self.dir):
            for name in files:
                path = os.path.join(folder, name)
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    left.append(f"socket {path}")
        remove_tree(self.dir)
        if passed and left:
            raise AssertionError("left behind:\n" + "\n".join(left))
