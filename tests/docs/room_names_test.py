# SPDX-License-Identifier: Apache-2.0
"""Several files of a room are compiled as one (docs/adr/0032). A function in an unnamed namespace is then
visible in the files after it, where it may be the better match of a call. Checks that no two files of a room
have such a function of the same name, and that each test file keeps its helpers in a namespace of the file's
name.

room_names_test.py ROOT"""
import collections
import os
import re
import subprocess
import sys

ROOMS = ("control", "dataplane", "drivers")
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace\n", re.DOTALL | re.MULTILINE)
FUNCTION = re.compile(r"^(?!static_assert|using |struct |class |enum |namespace |[ }#/]|template)[\w\[\]:<>,&* ()]*?\b(\w+)\((?!\*)")


def sources(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.cpp"], capture_output=True, text=True)
    if listed.returncode == 0:
        return [path for path in listed.stdout.split() if os.path.exists(os.path.join(root, path))]
    return [os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names if name.endswith(".cpp")]


def functions_in(text):
    """Names of the functions in unnamed namespaces."""
    return {found[1] for body in UNNAMED.findall(text) for line in body.split("\n") if (found := FUNCTION.match(line))}


def room_of(root, folder):
    """The nearest folder with a meson.build: its files are compiled together."""
    while not os.path.exists(os.path.join(root, folder, "meson.build")):
        folder = os.path.dirname(folder)
    return folder


def complaints(root):
    files_of = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in sources(root):
        with open(os.path.join(root, path)) as file:
            text = file.read()
        folder, name = os.path.split(path)
        if path.startswith("tests/") and name.endswith("_test.cpp"):
            if "\nnamespace {\n" in text and not path.startswith("tests/fuzz/"):
                yield f"{path}: its helpers are in an unnamed namespace, not in namespace {name[:-4]}"
        elif path.split("/")[0] in ROOMS:
            for function in functions_in(text):
                files_of[room_of(root, folder)][function].append(name)
    for folder, functions in sorted(files_of.items()):
        for function, names in sorted(functions.items()):
            if len(names) > 1:
                yield f"{folder}: {function}() is in the unnamed namespaces of {' and '.join(sorted(names))}"


def main():
    if functions_in("namespace {\n\nint one(int a) {\n}\nstatic_assert(sizeof(int) == 4);\n\n}  // namespace\nint two() {\n}\n") != {"one"}:
        print("the test does not find functions")
        return 1
    found = list(complaints(sys.argv[1]))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
