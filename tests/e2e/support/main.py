"""Runs the cases of one file: file.py [CASE …]. Exit code 77: all of them were skipped."""

import sys
import traceback

from support.case import Case, Skipped


def run_case(function):
    """passed, failed or skipped."""
    case = Case()
    passed = False
    try:
        function(case)
        passed = True
    except Skipped as why:
        print(f"SKIPPED: {why}")
        return "skipped"
    except Exception:
        traceback.print_exc()
        return "failed"
    finally:
        try:
            case.close(passed)
        except AssertionError as left:
            print(left, file=sys.stderr)
            passed = False
    return "passed" if passed else "failed"


def main(names):
    cases = {name: value for name, value in names.items() if name.startswith("test_")}
    wanted = sys.argv[1:] or list(cases)
    outcomes = []
    for name in wanted:
        outcomes.append(run_case(cases[name]))
        print(f"{outcomes[-1]}: {name}", flush=True)
    if "failed" in outcomes:
        sys.exit(1)
    sys.exit(77 if set(outcomes) == {"skipped"} else 0)
