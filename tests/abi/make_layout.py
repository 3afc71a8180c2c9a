#!/usr/bin/env python3
"""Reads the C headers of sdk/include/sandforge and writes layout.inc of sdk/wire/runner: one line for each
member of each struct, with its offset and size as the compiler lays them out on this machine
(LP64).

  make_layout.py           writes the table
  make_layout.py --check   fails when a struct or a member is missing in the table, when they stand
                           in another order, or when a comment contradicts the struct's kind
  make_layout.py --rust    prints the table as constants of Rust, for plugins that declare the structs
                           themselves and check what the compiler made of them

Run it without an argument only for an addition, and read the difference: a changed offset of a
member that was there before breaks every plugin that exists.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.normpath(os.path.join(HERE, "../../sdk/include"))
TABLE = os.path.normpath(
    os.path.join(HERE, "../../sdk/wire/runner/include/sandforge/wire/runner/layout.inc")
)


def headers():
    ext = os.path.join(INCLUDE, "sandforge", "ext")
    return ["sandforge/abi.h"] + sorted("sandforge/ext/" + name for name in os.listdir(ext))


def members(body):
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    for declaration in body.split(";"):
        declaration = " ".join(declaration.split())
        if not declaration:
            continue
        function = re.search(r"\(\*(\w+)\)\(", declaration)
        yield function.group(1) if function else re.search(r"(\w+)$", declaration).group(1)


def structs():
    """(name, kind, [member...]) of every struct that is defined, in the order of the headers."""
    for header in headers():
        with open(os.path.join(INCLUDE, header), encoding="utf-8") as file:
            text = file.read()
        for match in re.finditer(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, flags=re.S):
            name, body = match.group(1), match.group(2)
            names = list(members(body))
            kind = "APPENDABLE" if names[0] == "struct_size" else "FROZEN"
            above = re.search(r"/\*((?:(?!\*/).)*)\*/\n\Z", text[: match.start()], flags=re.S)
            inline = re.match(r" /\*(.*?)\*/", body)
            said = (above.group(1) if above else "") + (inline.group(1) if inline else "")
            if kind not in said and not (name.endswith("_vtbl") or name.endswith("_service")):
                sys.exit(f"{header}: the comment of {name} does not say {kind}")
            yield name, kind, names


def measure(found):
    lines = [f"#include <{header}>" for header in headers()] + ["#include <stdio.h>", "int main(void) {"]
    for name, kind, names in found:
        lines.append(f'printf("\\nSF_STRUCT({name}, {kind}, %zu)\\n", sizeof({name}));')
        for member in names:
            lines.append(
                f'printf("SF_MEMBER({name}, {member}, %zu, %zu)\\n", offsetof({name}, {member}), '
                f"sizeof((({name}*)0)->{member}));"
            )
        lines.append(f'printf("SF_STRUCT_END({name}, {names[-1]})\\n");')
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "m.c"), os.path.join(folder, "m")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        subprocess.run(["cc", "-std=c11", "-I", INCLUDE, source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def check(found):
    with open(TABLE, encoding="utf-8") as file:
        table = file.read()
    have = re.findall(r"^SF_(STRUCT|MEMBER)\((\w+), (\w+)", table, flags=re.M)
    want = []
    for name, kind, names in found:
        want.append(("STRUCT", name, kind))
        want += [("MEMBER", name, member) for member in names]
    for have_line, want_line in zip(have + [None] * len(want), want + [None] * len(have)):
        if have_line != want_line:
            sys.exit(f"layout.inc has {have_line}, the headers have {want_line}: run make_layout.py")
    print(f"{len(found)} structs, {len(want) - len(found)} members")


def rust():
    """sf_tty::SIZE and sf_tty::term: (offset, size), from the table alone."""
    with open(TABLE, encoding="utf-8") as file:
        table = file.read()
    print("// Written by tests/abi/make_layout.py: offset and size of every member (LP64).")
    print("#![allow(non_upper_case_globals, non_camel_case_types)]")
    for name, size in re.findall(r"^SF_STRUCT\((\w+), \w+, (\d+)\)", table, flags=re.M):
        print(f"pub mod {name} {{\n    pub const SIZE: usize = {size};")
        pattern = rf"^SF_MEMBER\({name}, (\w+), (\d+), (\d+)\)"
        for member, offset, bytes_ in re.findall(pattern, table, flags=re.M):
            # Words of the language are members, too.
            member = f"r#{member}" if member in ("move", "type", "fn", "ref") else member
            print(f"    pub const {member}: (usize, usize) = ({offset}, {bytes_});")
        print("}")


def main():
    found = list(structs())
    if sys.argv[1:] == ["--rust"]:
        rust()
        return
    if sys.argv[1:] == ["--check"]:
        check(found)
        return
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write(
            "/* Every struct of the boundary: its kind and size, and each member's offset and size "
            "(LP64).\n * Written by make_layout.py, whose first lines say when to run it. */\n"
        )
        file.write(measure(found))


main()
