# SPDX-License-Identifier: Apache-2.0
"""Form of the sources: each begins with its licence identifier, and no comment line of C++ exceeds 110 columns.

clang-format keeps the lines of comments, because they hold drawings and tables.

source_form_test.py ROOT
"""
import os
import subprocess
import sys

COLUMNS = 110
LICENSE = "SPDX-License-Identifier: Apache-2.0"
WITH_LICENSE = (".cpp", ".hpp", ".py", ".proto", "meson.build", "meson_options.txt")


def sources(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        return [path for path in listed.stdout.splitlines() if os.path.isfile(os.path.join(root, path))]
    return [os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names]


def complaints(path, text):
    """Violations of one file, as lines of text."""
    if (path.endswith(WITH_LICENSE) or text.startswith("#!")) and LICENSE not in "\n".join(text.split("\n")[:2]):
        yield f"{path}:1: no line {LICENSE}"
    if path.endswith((".cpp", ".hpp")):
        for number, line in enumerate(text.split("\n"), 1):
            if line.lstrip().startswith("//") and len(line) > COLUMNS:
                yield f"{path}:{number}: a comment of {len(line)} columns"


def main():
    wide = f"// {LICENSE}\n    // {'x' * COLUMNS}\n"
    if len(list(complaints("a.cpp", wide))) != 1 or len(list(complaints("meson.build", "# room\n"))) != 1:
        print("the test does not find violations")
        return 1
    found, judged = [], 0
    for path in sources(sys.argv[1]):
        if path.endswith(WITH_LICENSE) or path.startswith(("scripts/", ".ci/")):
            with open(os.path.join(sys.argv[1], path), errors="replace") as file:
                found += complaints(path, file.read())
            judged += 1
    print("\n".join(found) or f"{judged} sources")
    return 1 if found or judged < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
