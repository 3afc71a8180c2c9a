"""Whole outputs: help, and an error message of each kind."""

import fcntl
import os
import subprocess

from support import golden
from support.case import BUILD, Skipped, wait_until
from support.main import main

COMMANDS = ["", "run", "start", "exec", "cp", "ps", "logs", "kill", "stop", "snapshot", "rm",
            "build", "gc", "providers", "describe", "settings", "settings effective", "config",
            "config check", "plugins", "plugins doctor", "fault-proxy", "new", "conformance"]
FOUND = ("\n  hint: found: docker, local; more by --plugin-path, or by plugins.paths in the configuration: "
         "see sandforge{} plugins doctor")
UNCHECKED = "c.yaml: no mistakes found, but not everything was checked\n"


def test_help(t):
    for command in COMMANDS:
        shown = t.sf(*command.split(), "--help")
        golden.compare("help/" + (command.replace(" ", "-") or "sandforge") + ".txt", shown.text)
        assert max(len(line) for line in shown.text.splitlines()) <= 100, command
        assert shown.err == b"", shown


def test_help_of_every_subcommand_is_looked_at(t):
    listed = t.sf("--help").text.split("Subcommands:\n", 1)[1].split("\n\n", 1)[0]
    names = [line.split()[0] for line in listed.splitlines() if line[2] != " "]
    assert len(names) > 10 and sorted(names) == sorted({c.split()[0] for c in COMMANDS if c}), names


def refused(t, message, *words, code=125, **options):
    """The whole of standard error, after the name of the program."""
    shown = t.sf(*words, code=code, **options)
    assert shown.out == b"", shown
    assert shown.error_text == "sandforge: " + message + "\n", shown


def wrong(t, message, *words):
    refused(t, message + "\nRun with --help for more information.", *words, code=2)


def test_wrong_command_lines(t):
    wrong(t, "A subcommand is required")
    wrong(t, "unknown subcommand 'rnu', did you mean run?", "rnu")
    wrong(t, "unknown subcommand 'doctr', did you mean doctor?", "plugins", "doctr")
    wrong(t, "unknown option --provder, did you mean --provider?", "run", "--provder", "local",
          "--", "true")
    wrong(t, "unknown option --provder, did you mean --provider?", "run", "--provder=local", "--",
          "true")
    wrong(t, "the option --provider is not expected here; see --help of the subcommand",
          "--provider", "local", "run", "--", "true")
    wrong(t, "unknown option --jsno, did you mean --json?", "--jsno", "ps")
    # A variable of a script that is empty does not eat the subcommand.
    wrong(t, "--config= has no value behind its =", "--config=", "run", "--provider", "local", "--",
          "true")
    wrong(t, "unknown option -x", "ps", "-x")
    wrong(t, "the word 'make' is not expected here; a command to run follows after --", "exec", "s",
          "make", "test")
    wrong(t, "the word 's' is not expected here; see --help of the subcommand", "start", "s")
    wrong(t, "there is no command: put it after --, as in: -- make test", "run")
    wrong(t, "this subcommand takes no command after --", "start", "--", "true")
    wrong(t, "this subcommand takes no command after --", "start", "--session", "s", "--", "--json")
    wrong(t, "A subcommand is required", "--", "ps")
    wrong(t, "unknown option -x", "ps", "-x", "--", "s")
    wrong(t, "--session: the name '-x' begins with '-', as options do", "start", "--session", "-x")
    wrong(t, "--session: a session id must not be empty", "start", "--session", "")
    wrong(t, "--session: the name 'a/b' is a path, or a part of one", "run", "--session", "a/b",
          "--", "true")
    wrong(t, "the ref begins with '-'", "start", "--repo", "/a", "--ref", "--x")
    wrong(t, "two repositories would both clone into 'x'", "start", "--repo", "/a/x", "--repo",
          "/b/x")
    wrong(t, "--listen: 'foo' is no address: tcp:IP:PORT or unix:PATH is expected", "fault-proxy",
          "--listen", "foo", "--to", "tcp:127.0.0.1:1")
    wrong(t, "SESSION is required", "exec", "--", "true")
    wrong(t, "--timeout: '5x' is no duration: use 500ms, 90s, 5m or 2h", "run", "--timeout", "5x",
          "--", "true")
    wrong(t, "--progress: 'sometimes' is none of auto, always or never", "run", "--progress",
          "sometimes", "--", "true")
    wrong(t, "--log-level: 'loud' is none of debug, info, warn, error or off", "--log-level",
          "loud", "ps")
    wrong(t, "--env: the variable SURELY_NOT_SET is not set here", "run", "-e", "SURELY_NOT_SET",
          "--", "true")
    wrong(t, "--ref and --repo-token need --repo", "start", "--ref", "main")
    wrong(t, "--ref needs exactly one --repo", "run", "--repo", "/a", "--repo", "/b", "--ref", "x",
          "--", "true")
    wrong(t, "--shell and -- COMMAND exclude each other", "run", "--shell", "a", "--", "b")
    wrong(t, "-i and -n exclude each other", "exec", "-i", "-n", "s", "--", "true")
    no_url = "--repo: the clone URL is no https, http, ssh or file URL and no absolute path"
    wrong(t, no_url, "run", "--repo", "nowhere", "--", "true")
    os.mkdir(t.path("here"))
    for text, meant in (("here", "/here"), ("here/", "/here"), (".", ""), ("here/..", "")):
        wrong(t, no_url + f", did you mean {t.dir}{meant}?", "run", "--repo", text, "--", "true")


def test_a_password_in_a_bad_url_is_not_shown(t):
    shown = t.sf("run", "--repo", "ext://ada:hunter2@example.org/x", "--", "true", code=2)
    assert "hunter2" not in shown.error_text, shown


def test_names_that_nobody_has(t):
    refused(t, "there is no provider lcoal, did you mean local" + FOUND.format(""), "run", "--provider",
            "lcoal", "--", "true")
    refused(t, "there is no provider cloud" + FOUND.format(""), "describe", "cloud")
    refused(t, "there is no session 's'", "exec", "s", "--", "true")
    refused(t, "there is no session 's'", "ps", "s")
    refused(t, "there is no session 's'", "stop", "s")
    refused(t, "there is no session 's'", "rm", "s")
    refused(t, "no sandbox provider: no provider is named, and no platform credentials are set\n"
            "  hint: name one with --provider, or in a configuration file that --config names", "run", "--", "true")
    t.session("--session", "here")
    refused(t, "the session 'here' runs on provider 'local', not 'docker'", "run", "--session",
            "here", "--provider", "docker", "--", "true")


def test_commands_that_cannot_be_run(t):
    session = t.session("--session", "s")
    refused(t, "cannot run nope: No such file or directory", "exec", session, "--", "nope",
            code=127)
    refused(t, "cannot run /: Permission denied", "exec", session, "--", "/", code=126)
    refused(t, f"cannot enter the working directory {t.root}/s/nope: No such file or directory",
            "exec", session, "-C", "nope", "--", "true")


def test_a_configuration_with_mistakes_starts_nothing(t):
    t.write("c.yaml", "sandbox:\n  provider: local\n  options:\n    rot: /tmp\n")
    message = ("{}c.yaml:4:5: /sandbox/options/rot: unknown key \"rot\" (allowed: root, env, guestSilenceMs); "
               "did you mean \"root\"?\n")
    shown = t.sf("config", "check", "c.yaml", code=1)
    assert shown.text == message.format("") and shown.err == b"", shown
    for words in (["run", "--", "true"], ["start"], ["start", "--session", "s"],
                  ["run", "--provider", "local", "--keep", "--", "true"]):
        refused(t, message.format(t.dir + "/").rstrip("\n"), "--config", "c.yaml", *words)
    assert sorted(os.listdir(t.dir)) == ["c.yaml", "home"], os.listdir(t.dir)


def test_settings_with_mistakes_start_nothing(t):
    plugin = os.path.join(BUILD, "tests/unit/loader/fixtures/plugins/good_a/good_a.so")
    t.write("c.yaml", f"plugins: {{paths: [{plugin}]}}\n"
            "sandbox:\n  provider: fixture-good-a\n  settings:\n    sise: 4\n")
    refused(t, f"{t.dir}/c.yaml:5:5: /sandbox/settings/sise: unknown key \"sise\" (allowed: size); "
            "did you mean \"size\"?\n      sise: 4\n      ^", "--config", "c.yaml", "start")
    refused(t, f"{t.dir}/c.yaml:5:5: /sandbox/settings/sise: unknown key \"sise\" (allowed: size); "
            "did you mean \"size\"?\n      sise: 4\n      ^", "--config", "c.yaml", "settings",
            "effective", "fixture-good-a")
    assert sorted(os.listdir(t.dir)) == ["c.yaml", "home"], os.listdir(t.dir)


def test_a_mistyped_key_of_the_host(t):
    t.write("c.yaml", "sandbux:\n  provider: local\n")
    message = (t.dir + "/c.yaml:1:1: /sandbux: unknown key \"sandbux\" (allowed: plugins, sandbox, "
               "providers, secrets, session, log); did you mean \"sandbox\"?\n  sandbux:\n  ^")
    for words in (["run", "--", "true"], ["ps"], ["providers"], ["exec", "s", "--", "true"],
                  ["rm", "s"], ["plugins", "doctor"], ["describe", "local"]):
        refused(t, message, "--config", "c.yaml", *words)
    assert sorted(os.listdir(t.dir)) == ["c.yaml", "home"], os.listdir(t.dir)


def test_text_that_is_no_yaml(t):
    for name, text, message in (
            ("open", "a: [1, 2\n", "1:1: "), ("tab", "a:\n\tb: 1\n", "2:3: "),
            ("twice", "log: {level: info}\nlog: {level: info}\n", "2:1: "),
            ("bytes", b"a: \xff\n", "1:4: ")):
        t.write(name + ".yaml", text)
        shown = t.sf("--config", t.path(name + ".yaml"), "run", "--", "true", code=125)
        assert shown.error_text.startswith(f"sandforge: {t.dir}/{name}.yaml:{message}"), shown
        assert t.sf("config", "check", t.path(name + ".yaml"), code=1).text == \
            shown.error_text.replace("sandforge: ", "", 1)
    refused(t, f"{t.dir}/none.yaml: the configuration cannot be read: No such file or directory",
            "--config", "none.yaml", "ps")
    refused(t, f"{t.dir}/home: the configuration cannot be read: not a regular file",
            "--config", "home", "ps")
    t.write("empty.yaml", "")
    assert t.sf("--config", "empty.yaml", "ps").err == b""


def test_a_plugin_that_is_not_there(t):
    t.write("c.yaml", "plugins: {paths: [plugins/other.so]}\nsandbox: {provider: other}\n")
    gone = f"\n  refused: {t.dir}/plugins/other.so: there is no such file"
    refused(t, "there is no provider other" + gone + FOUND.format(f" --config {t.dir}/c.yaml"),
            "--config", "c.yaml", "run", "--", "true")
    shown = t.sf("--config", "c.yaml", "plugins", "doctor", code=None)
    assert f"{t.dir}/plugins/other.so" in shown.text, shown
    checked = t.sf("config", "check", "c.yaml", code=3)
    assert checked.error_text == (
        "sandforge: warning: the provider 'other' is not installed" + gone +
        "\n  see: sandforge --config c.yaml plugins doctor\n"), checked
    assert checked.text == UNCHECKED, checked
    t.write("c.yaml", "sandbox: {provider: lcoal}\n")
    checked = t.sf("config", "check", "c.yaml", code=3)
    assert checked.error_text == ("sandforge: warning: the provider 'lcoal' is not installed, did "
                                  "you mean 'local'?\n"), checked
    assert checked.text == UNCHECKED, checked
    t.write("c.yaml", "sandbox: {provider: local, options: {env: {A: '${NOBODY_SET_IT}'}}}\n")
    checked = t.sf("config", "check", "c.yaml", code=3)
    assert "the variable NOBODY_SET_IT is not set" in checked.error_text, checked
    assert checked.text == UNCHECKED, checked


class Locked:
    """Holds a lock on bytes of a file, as another connection of SQLite would."""

    def __init__(self, path, start, length):
        self.file = open(path, "r+b")
        fcntl.lockf(self.file, fcntl.LOCK_EX, length, start)  # waits for who writes just now

    def release(self):
        self.file.close()


def test_a_locked_database(t):
    session = t.session()
    locked = "the session database is locked by another process"
    # The bytes that SQLite locks on a database that nobody else may read.
    lock = Locked(t.state + "/sessions.db", 0x40000000, 512)
    refused(t, locked, "start", "--provider", "local", "--session", "other")
    refused(t, locked, "exec", session, "--", "true")
    lock.release()
    # And the one of a writer, in the file that is there as long as somebody has the database open.
    held = t.spawn("exec", "-i", session, "--", "cat", stdin=-1)
    held.stdin.write(b"up\n")
    held.stdin.flush()
    assert held.stdout.readline() == b"up\n"
    lock = Locked(t.state + "/sessions.db-shm", 120, 1)
    refused(t, locked, "start", "--provider", "local", "--session", "other")
    lock.release()
    t.finish(held)
    assert t.sf("exec", session, "--", "echo", "hi").text == "hi\n"
    assert t.sessions() == [session]
    assert sorted(os.listdir(t.root)) == [".sandforge", session]


def test_a_limit_on_the_size_of_files(t):
    session = t.session("--session", "kept")
    full = "no space left to write the session database"
    limited = ["prlimit", "--fsize=4096"]
    refused(t, full, "start", "--provider", "local", "--session", "other", through=limited)
    assert t.sessions() == [session]
    assert t.sf("exec", session, "--", "echo", "hi").text == "hi\n"
    assert sorted(os.listdir(t.root)) == [".sandforge", session]


# Nothing of it reaches the outside. In a chroot, "/" is no mount that could be made private.
FULL_DISK = """
set -e
mount --make-rprivate / 2>/dev/null || true
mkdir "$1"
mount -t tmpfs -o size=512k,mode=700 none "$1" 2>/dev/null || exit 99
trap 'umount -l "$1"' EXIT
"$2" start --provider local --session kept
cat /dev/zero > "$1/filler" 2>/dev/null || true
"$2" start --provider local --session other && exit 1 || echo "code $?"
"$2" exec kept -- echo works || echo "exec $?"
rm "$1/filler"
"$2" ps --json
"$2" exec kept -- echo hi
"$2" rm kept
"""


def test_a_full_disk_loses_no_session(t):
    if os.geteuid() != 0:
        raise Skipped("only root can mount a small file system")
    ran = subprocess.run(["unshare", "-m", "--propagation", "unchanged", "sh", "-c", FULL_DISK, "sh",
                          t.state, t.program],
                         env=t.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    if ran.returncode == 99 or b"unshare failed" in ran.stderr:
        raise Skipped("no file system can be mounted here")
    text = ran.stdout.decode()
    assert ran.returncode == 0, ran
    assert text.startswith("kept\ncode 125\n") and text.endswith("]\nhi\nkept\n"), ran
    assert text.count('"id"') == 1, ran
    errors = set(ran.stderr.decode().splitlines())
    assert "sandforge: no space left to write the session database" in errors, ran
    assert "other" not in os.listdir(t.root)


def test_a_damaged_database(t):
    os.mkdir(t.state, 0o700)
    t.write("state/sessions.db", b"no database, but long enough to be read as one" * 50, 0o600)
    damaged = f"the session database is damaged: file is not a database ({t.state}/sessions.db)"
    refused(t, damaged, "ps")
    refused(t, damaged, "start", "--provider", "local")
    assert not os.path.exists(t.root)
    assert t.read("state/sessions.db").startswith(b"no database"), "what is there is left alone"


def test_a_state_folder_that_cannot_be_written(t):
    through = t.as_nobody()
    os.mkdir(t.state, 0o555)
    if through:
        os.chown(t.state, 65534, 65534)
    why = "the sessions cannot be kept there: "
    refused(t, f"{why}{t.state}/sessions.db: Permission denied", "start", "--provider", "local",
            through=through)
    refused(t, f"{why}{t.state}/below: Permission denied", "--state", f"{t.state}/below/this", "ps",
            through=through)
    assert not os.path.exists(t.root)
    t.write("file", "")
    refused(t, f"{why}{t.dir}/file: Not a directory", "--state", t.path("file"), "ps")
    refused(t, f"{why}{t.dir}/file/x: Not a directory", "--state", t.path("file", "x"), "ps")


def test_no_home(t):
    bare = {"HOME": None, "SANDFORGE_STATE_DIR": None}
    refused(t, "HOME is not set: name a folder with --state", "ps", env=bare)
    refused(t, "HOME is 'here', which is no absolute path: name a folder with --state", "ps",
            env=dict(bare, HOME="here"))
    assert t.sf("--version", env=bare).err == b""


main(globals())
