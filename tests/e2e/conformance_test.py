"""sandforge conformance: the command line around the suite. The suite itself: integration tests."""

import os

from support.case import BUILD
from support.main import main

LOCAL = os.path.join(BUILD, "lib/sandforge/plugins/local.so")
ENV = {"SANDFORGE_LOCAL_ROOT": None}


def conformance(t, *words, code=0):
    return t.sf("conformance", *words, code=code, env=ENV)


def own_case(t, name, step):
    return t.write(name + ".json", '{"cases":[{"id":"own.%s","about":"one of ours","steps":[%s]}]}'
                   % (name, step))


def test_list_names_each_case_with_one_line(t):
    shown = conformance(t, "--list")
    lines = shown.text.splitlines()
    assert lines[0].split() == ["CASE", "ABOUT"], lines[0]
    assert any(line.startswith("cases.A01 ") for line in lines), shown
    cases = conformance(t, "--list", "--json", "--include", "contract.C*").json["cases"]
    assert len(cases) == 39 and cases[0]["id"] == "contract.C1" and cases[0]["about"], cases


def test_the_exit_code_is_the_worst_verdict(t):
    wrong = own_case(t, "wrong", r'{"run":"echo hi","expect":{"out":"ho\n"}}')
    undecided = own_case(t, "undecided", '{"run":5}')
    shown = conformance(t, LOCAL, "--include", "contract.A[12]", "--include", "cases.E05",
                        "--include", "contract.A1", code=2)
    assert "'contract.A[12]' fits no case" in shown.error_text, shown
    good = conformance(t, LOCAL, "--include", "contract.A1", "--include", "cases.E05")
    assert "local: 2 cases: 1 pass, 0 fail, 1 not applicable, 0 unverified" in good.text, good
    bad = conformance(t, LOCAL, "--cases", wrong, "--cases", undecided, "--include", "own.*",
                      code=1)
    assert 'fail: own.wrong: one of ours' in bad.text and r' is "hi\n", and must be "ho\n"' in bad.text, bad
    unsure = conformance(t, LOCAL, "--cases", undecided, "--include", "own.*", code=3)
    assert "This is no pass" in unsure.text, unsure


def test_json_and_junit_say_the_same(t):
    wrong = own_case(t, "wrong", '{"run":"exit 3"}')
    report = t.path("report.xml")
    shown = conformance(t, LOCAL, "--cases", wrong, "--include", "own.*", "--include", "contract.A1",
                        "--junit", report, "--seed", "7", "--jobs", "1", "--json", code=1).json
    assert shown["provider"] == "local" and shown["seed"] == "7", shown
    assert shown["summary"] == {"pass": 1, "fail": 1, "notApplicable": 0, "unverified": 0}, shown
    assert [case["verdict"] for case in shown["cases"]] == ["pass", "fail"], shown
    suite = t.read("report.xml").decode()
    assert '<testsuite name="local" tests="2" failures="1" errors="0" skipped="0"' in suite, suite
    assert '<failure message="this must hold, and does not: result.success' in suite, suite


def test_a_case_is_ended_at_the_bound(t):
    slow = own_case(t, "slow", '{"run":"sleep 600"}')
    shown = conformance(t, LOCAL, "--cases", slow, "--include", "own.*", "--bound", "1500ms",
                        code=1)
    assert "took longer than 1500 ms" in shown.text and "sleep 600" in shown.text, shown


def test_options_come_from_a_file_and_name_the_folder_of_a_case(t):
    options = t.write("options.yaml", 'root: "${SANDFORGE_CASE_DIR}/scratch/here"\n')
    case = own_case(t, "place", '{"run":"pwd","expect":{"out_has":"/scratch/here/"}}')
    conformance(t, LOCAL, "--options", options, "--cases", case, "--include", "own.*")
    wrong = conformance(t, LOCAL, "--options", t.write("o.yaml", "a: [\n"), code=2)
    assert "o.yaml:1:" in wrong.error_text, wrong


def test_wrong_usage_is_2(t):
    assert "PLUGIN is required" in conformance(t, code=2).error_text
    assert "text.so" in conformance(t, t.write("text.so", "text\n"), code=2).error_text
    assert "is a folder" in conformance(t, os.path.dirname(LOCAL), code=2).error_text
    assert "only: local" in conformance(t, LOCAL, "--provider", "docker", code=2).error_text
    assert "--jobs" in conformance(t, LOCAL, "--jobs", "0", code=2).error_text


main(globals())
