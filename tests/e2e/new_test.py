"""sandforge new: whole projects, or nothing. tests/package builds them."""

import os
import re

from support.main import main

FILES = {"cpp": {"src/provider.cpp"}, "coroutine": {"src/provider.cpp"}, "c": {"src/provider.c"}}
ALL = {"CMakeLists.txt", "README.md", ".gitignore", ".github/workflows/ci.yml", "sandforge.yaml",
       "manifest.json", "tests/provider_test.cpp"}


def tree(path):
    return {os.path.relpath(os.path.join(folder, name), path)
            for folder, _, names in os.walk(path) for name in names}


def read(path):
    with open(path) as file:
        return file.read()


def test_a_project_of_each_language(t):
    for language, own in FILES.items():
        name = "my-" + language
        made = t.sf("--json", "new", name, "--lang", language).json
        assert tree(t.path(name)) == ALL | own, tree(t.path(name))
        assert made["name"] == name and made["folder"] == t.path(name), made
        assert set(made["files"]) == ALL | own, made
        for file in tree(t.path(name)):
            text = read(t.path(name, file))
            assert not re.search("@[A-Z]+@", text), file
            assert text.endswith("\n"), file
        assert f'"name": "{name}"' in read(t.path(name, "manifest.json"))
    assert "class MyCppFactory" in read(t.path("my-cpp/src/provider.cpp"))
    assert os.stat(t.path("my-cpp")).st_mode & 0o777 == 0o777 & ~umask()
    assert sorted(os.listdir(t.dir)) == ["home", "my-c", "my-coroutine", "my-cpp"], os.listdir(t.dir)


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_it_says(t):
    made = t.sf("new", "my-cloud")
    assert made.text.startswith(f"The provider my-cloud is in {t.path('my-cloud')}:\n"), made
    assert made.text.endswith("  sandforge --config sandforge.yaml run -- echo hello\n"), made
    assert t.sf("config", "check", "my-cloud/sandforge.yaml", code=3).text.endswith(
        "not everything was checked\n")


def test_a_folder_of_another_name(t):
    os.mkdir(t.path("empty"))
    for folder in ("empty", "other", "other/inner/"):
        t.sf("new", "x", "--dir", folder)
        assert "CMakeLists.txt" in os.listdir(t.path(folder)), folder
    os.mkdir(t.path("here"))
    t.sf("new", "x", "--dir", ".", cwd=t.path("here"))
    assert "CMakeLists.txt" in os.listdir(t.path("here"))


def refused(t, message, *words, code=125):
    shown = t.sf("new", *words, code=code)
    assert shown.out == b"" and shown.error_text == "sandforge: " + message + "\n", shown


def test_a_folder_that_is_taken_stays_as_it_is(t):
    os.mkdir(t.path("taken"))
    t.write("taken/mine", "mine")
    t.write("file", "mine")
    refused(t, f"cannot make {t.path('taken')}: the folder is not empty", "x", "--dir", "taken")
    refused(t, f"cannot make {t.path('file')}: there is a file of that name", "x", "--dir", "file")
    refused(t, f"cannot make {t.path('no/where')}: its parent folder does not exist", "x", "--dir",
            "no/where")
    assert sorted(os.listdir(t.dir)) == ["file", "home", "taken"], os.listdir(t.dir)
    assert os.listdir(t.path("taken")) == ["mine"]


def test_names_that_are_refused(t):
    more = "\nRun with --help for more information."
    for name in ("", "My", "1st", "a--b", "a-", "a_b", "a/b", "../a", "a b", "é", "a" * 49, "a\nb"):
        shown = t.sf("new", name, code=2)
        assert "is no name for a provider: a-z, 0-9 and single dashes" in shown.error_text, shown
    for name in ("local", "docker", "e2b", "platform", "none", "custom", "sandforge-local"):
        refused(t, f"NAME: '{name}' is a name of sandforge's own: of two providers or plugins with "
                "one name, a host has only the first that it finds" + more, name, code=2)
    refused(t, "--lang: rust not in {cpp,coroutine,c}" + more, "x", "--lang", "rust", code=2)
    refused(t, "NAME is required" + more, code=2)
    assert os.listdir(t.dir) == ["home"], os.listdir(t.dir)


main(globals())
