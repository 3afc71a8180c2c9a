"""What README.md shows is what there is, and works."""

import os
import re
import subprocess

from support.case import BUILD, SOURCE
from support.main import main


def blocks(language):
    with open(os.path.join(SOURCE, "README.md")) as file:
        return re.findall(rf"^```{language}\n(.*?)^```$", file.read(), re.M | re.S)


def shell(t, text, cwd):
    env = dict(t.env, PATH=t.path("bin") + ":" + t.env["PATH"])
    return subprocess.run(["bash", "-e", "-u", "-o", "pipefail", "-c", text], env=env, cwd=cwd,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def test_the_program_is_the_example(t):
    with open(os.path.join(SOURCE, "hosts/example/main.cpp")) as file:
        assert blocks("cpp")[0] == file.read()


def test_the_example_runs(t):
    program = os.path.join(BUILD, "hosts/example/sandforge_example")
    ran = subprocess.run([program, os.path.join(BUILD, "lib/sandforge/plugins"), t.root], env=t.env,
                         cwd=t.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=120)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"hello from\n{t.root}/first\n", ""), ran
    assert t.no_guest()
    missing = subprocess.run([program, t.path("nowhere"), t.path("no/x\0".rstrip("\0"))],
                             env=dict(t.env, HOME=""), capture_output=True, text=True, timeout=120)
    assert missing.returncode in (0, 1), missing


def test_the_main_job_by_hand(t):
    (text,) = [block for block in blocks("sh") if "--repo" in block]
    repo = t.repository()
    os.makedirs(os.path.join(repo, "build/release"))
    os.symlink(os.path.join(BUILD, "bin"), os.path.join(repo, "build/release/bin"))
    ran = shell(t, text, repo)
    assert ran.returncode == 0 and ran.stdout.endswith(" first\n") and ran.stderr == "", ran


def test_sessions_outlive_a_call(t):
    (text,) = [block for block in blocks("sh") if "exec " in block]
    os.mkdir(t.path("bin"))
    os.symlink(t.program, t.path("bin/sandforge"))
    ran = shell(t, text, t.dir)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0 and ran.stderr == "", ran
    assert lines[0] == "hello" and lines[1].startswith("SESSION") and len(lines) == 4, ran
    assert lines[2].split()[0] == lines[3], ran


def test_the_first_commands_are_there(t):
    (text,) = [block for block in blocks("sh") if "quickstart" in block]
    for line in text.splitlines():
        path = os.path.join(SOURCE, line.split()[0])
        assert os.access(path, os.X_OK), path


def test_the_configuration(t):
    (text,) = blocks("yaml")
    t.write("sandforge.yaml", text)
    assert t.sf("config", "check", "sandforge.yaml").text == "sandforge.yaml: no mistakes found\n"
    ran = t.sf("--config", "sandforge.yaml", "run", "--", "sh", "-c", "pwd; echo $GIT_AUTHOR_NAME")
    lines = ran.text.splitlines()
    assert lines[0].startswith(t.path("home/sandboxes/")) and lines[1] == "Ada", ran
    (text,) = [block for block in blocks("sh") if "--config" in block]
    os.mkdir(t.path("bin"))
    os.symlink(t.program, t.path("bin/sandforge"))
    ran = shell(t, text, t.dir)
    assert ran.returncode == 0 and ran.stderr == "", ran
    assert ran.stdout.startswith(f"Ada works in {t.path('home/sandboxes')}/"), ran


def test_its_links_lead_somewhere(t):
    with open(os.path.join(SOURCE, "README.md")) as file:
        for target in re.findall(r"\]\(([^)#]+)\)", file.read()):
            assert "://" in target or os.path.exists(os.path.join(SOURCE, target)), target


main(globals())
