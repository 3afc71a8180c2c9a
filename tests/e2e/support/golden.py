"""Whole outputs, compared with files in golden/; SANDFORGE_UPDATE_GOLDEN=1 writes them."""

import os

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden")


def compare(name, text):
    path = os.path.join(_FOLDER, name)
    if os.environ.get("SANDFORGE_UPDATE_GOLDEN"):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return
    with open(path) as file:
        expected = file.read()
    assert text == expected, f"{name} differs:\n--- expected\n{expected}\n--- got\n{text}"
