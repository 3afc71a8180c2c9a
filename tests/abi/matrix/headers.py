#!/usr/bin/env python3
"""Makes sources out of the C headers.

  headers.py types FILE    a C file with one function that takes every struct: for abidw
  headers.py later FOLDER  the headers as a later minor version may have them: every appendable
                           struct has one more member
  headers.py moved FOLDER  the headers with a mistake: a member in the middle of sf_command
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.dont_write_bytecode = True
import make_layout  # noqa: E402


def types(path):
    with open(path, "w", encoding="utf-8") as file:
        for header in make_layout.headers():
            file.write(f"#include <{header}>\n")
        names = [name for name, _, _ in make_layout.structs()]
        arguments = ", ".join(f"{name}* a{i}" for i, name in enumerate(names))
        file.write(f"extern void sf_all_types({arguments});\nvoid sf_all_types({arguments}) {{\n")
        for i in range(len(names)):
            file.write(f"  (void)a{i};\n")
        file.write("}\n")


def rewritten(folder, change):
    for header in make_layout.headers():
        with open(os.path.join(make_layout.INCLUDE, header), encoding="utf-8") as file:
            text = file.read()
        path = os.path.join(folder, header)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"typedef struct (\w+) \{(.*?)\n\} \1;", change, text, flags=re.S))


def later(match):
    name, body = match.group(1), match.group(2)
    if next(iter(make_layout.members(body))) != "struct_size":
        return match.group(0)
    return f"typedef struct {name} {{{body}\n  uint64_t added_by_a_later_minor;\n}} {name};"


def moved(match):
    name, body = match.group(1), match.group(2)
    if name != "sf_command":
        return match.group(0)
    return f"typedef struct {name} {{{body.replace('size_t argc;', 'uint64_t wrong; size_t argc;')}\n}} {name};"


if __name__ == "__main__":
    what, where = sys.argv[1:]
    if what == "types":
        types(where)
    else:
        rewritten(where, {"later": later, "moved": moved}[what])
