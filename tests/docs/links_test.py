"""Each line of docs/semantics.md names the test that shows it, as a link to its file with the test's name: [Name](../tests/path). This is the test
that the file is there and has that name, that nothing on the page stands without a link, and that all other relative links lead somewhere.

links_test.py ROOT
"""
import os
import re
import sys

LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(?:#[^)]*)?\)")


def broken_links(root):
    for directory in ("", "docs", "docs/adr", "docs/deploy"):
        for name in sorted(os.listdir(os.path.join(root, directory))):
            if name.endswith(".md"):
                page = os.path.join(directory, name)
                with open(os.path.join(root, page)) as file:
                    for text, target in LINK.findall(file.read()):
                        if "://" not in target and not os.path.exists(os.path.join(root, directory, target)):
                            yield f"{page}: [{text}] leads to {target}, which is not there"


def unproven(root):
    with open(os.path.join(root, "docs/semantics.md")) as file:
        for number, line in enumerate(file, 1):
            if not line.startswith("| ") or line.startswith(("| What", "| ---")):
                continue
            links = [(text, target) for text, target in LINK.findall(line) if target.startswith("../tests/")]
            if not links:
                yield f"docs/semantics.md:{number}: no test shows this"
            for text, target in links:
                path = os.path.normpath(os.path.join(root, "docs", target))
                if os.path.isfile(path):
                    with open(path) as test:
                        if not re.search(rf"\b{re.escape(text.strip('`'))}\b", test.read()):
                            yield f"docs/semantics.md:{number}: {target} has no test {text}"


def main(root):
    faults = [*broken_links(root), *unproven(root)]
    print("\n".join(faults) or "every line of docs/semantics.md has its test, and every link leads somewhere")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
