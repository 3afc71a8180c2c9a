"""build, by a provider that builds nothing but in words."""

import subprocess

from support.case import BUILD
from support.main import main


def test_a_build_without_a_log_is_waited_for(t):
    origin = t.repository()
    commit = subprocess.run(["git", "-C", origin, "rev-parse", "HEAD"], check=True,
                            capture_output=True, env=t.env, text=True).stdout.strip()
    plugin = BUILD + "/tests/integration/conformance/conformance_crooked_builds.so"
    for options in ("{}", '{"fault": "keeps no log"}'):
        config = t.write("c.yaml", f"plugins: {{paths: ['{plugin}']}}\n"
                         f"sandbox: {{provider: crooked-builds, options: {options}}}\n")
        built = t.sf("--config", config, "build", "--repo", f"file://{origin}", "--ref", commit,
                     "--json")
        assert built.json["status"] == "ready", built
        assert bool(built.error_text) == (options == "{}"), built


main(globals())
