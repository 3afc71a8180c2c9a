"""Every code block of the sdk's pages stands in a file that is built or run by a test.

    python3 tests/tools/snippets.py [TREE]

A block follows a comment that says where it is from:
    <!-- from FILE -->         its lines stand in FILE, one after the other, at any indentation
    <!-- run by SCRIPT -->     SCRIPT takes it from the page: it names the page
    <!-- built by SCRIPT -->   the same
FILE lies below sdk/examples or sdk/template, which the tests build, or below tests. In the
template, the marks of names are filled in as for `sandforge new my-cloud`.
"""

import os
import re
import sys

TREE = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else
                       os.path.join(os.path.dirname(__file__), "../.."))
NAMES = {"@NAME@": "my-cloud", "@CLASS@": "MyCloud", "@TARGET@": "my_cloud_plugin",
         "@SOURCE@": "src/provider.cpp", "@LIBS@": "LIBS sandforge::support\n  "}
BUILT = ("sdk/examples/", "sdk/template/", "tests/")


def read(path):
    with open(os.path.join(TREE, path), encoding="utf-8") as file:
        return file.read()


def filled_in(text):
    for mark, value in NAMES.items():
        text = text.replace(mark, value)
    return text


def stands_in(block, lines):
    """The lines of the block, each after the same indentation."""
    for at in range(len(lines) - len(block) + 1):
        indent = lines[at][:len(lines[at]) - len(lines[at].lstrip())]
        if all(have == (indent + want if want else "")
               for want, have in zip(block, lines[at:at + len(block)])):
            return True
    return False


def mistake_of(page, origin, block):
    if origin is None:
        return "says not where it is from"
    how, file = origin
    if not os.path.isfile(os.path.join(TREE, file)):
        return f"is from a file that there is not: {file}"
    if how != "from":
        return None if page in read(file) else f"is not taken by {file}, which does not name the page"
    if not file.startswith(BUILT):
        return f"is from a file that no test builds: {file}"
    return None if stands_in(block, filled_in(read(file)).split("\n")) else f"is not in {file}"


def blocks(text):
    """Of each fenced block: its line, where it is from, and its lines."""
    origin, block, begin = None, None, 0
    for number, line in enumerate(text.split("\n"), 1):
        if block is not None:
            if line == "```":
                yield begin, origin, block
                origin, block = None, None
            else:
                block.append(line)
        elif line.startswith("```"):
            block, begin = [], number
        elif line.strip():
            found = re.fullmatch(r"<!-- (from|run by|built by) (\S+) -->", line)
            origin = found.groups() if found else None


def main():
    docs = os.path.join(TREE, "sdk/docs")
    pages = ["sdk/README.md"] + sorted("sdk/docs/" + name for name in os.listdir(docs))
    count, mistakes = 0, []
    for page in pages:
        text = read(page)
        for line, origin, block in blocks(text):
            count += 1
            mistake = mistake_of(page, origin, block)
            if mistake:
                mistakes.append(f"{page}:{line}: the block {mistake}")
        for target in re.findall(r"\]\(([^)#]+)\)", re.sub(r"(?ms)^```.*?^```$", "", text)):
            if "://" not in target and not os.path.exists(
                    os.path.join(TREE, os.path.dirname(page), target)):
                mistakes.append(f"{page}: a link leads nowhere: {target}")
    for mistake in mistakes:
        print(mistake)
    print(f"{count} code blocks on {len(pages)} pages, {len(mistakes)} mistakes")
    return 1 if mistakes or not count else 0


sys.exit(main())
