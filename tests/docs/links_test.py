# SPDX-License-Identifier: Apache-2.0
"""Each line of docs/semantics.md and docs/rfc.md links to its test: [Name](../tests/path). Checks that the
file exists and contains that name, that no line of these pages lacks a link, and that all other relative
links of the documents have a target, including the heading if they name one.

links_test.py ROOT"""
import os
import re
import sys

PAGES = ("docs/semantics.md", "docs/rfc.md")
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([^)#\s:]*)#([^)\s]+)\)")


def anchors_of(page):
    """Anchors of headings, as forges derive them."""
    with open(page) as file:
        headings = re.findall(r"^#+ (.*)$", file.read(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def broken_links(root):
    for directory in ("", "charts/penstock", "docs", "docs/adr", "docs/deploy"):
        for name in sorted(os.listdir(os.path.join(root, directory))):
            if name.endswith(".md"):
                page = os.path.join(directory, name)
                with open(os.path.join(root, page)) as file:
                    content = file.read()
                for text, target in LINK.findall(content):
                    if "://" not in target and not os.path.exists(os.path.join(root, directory, target)):
                        yield f"{page}: [{text}] leads to {target}, which is not there"
                for target, anchor in ANCHOR.findall(content):
                    path = os.path.join(root, directory, target) if target else os.path.join(root, page)
                    if path.endswith(".md") and os.path.exists(path) and anchor not in anchors_of(path):
                        yield f"{page}: {target}#{anchor} is no heading"


def unproven(root, page):
    with open(os.path.join(root, page)) as file:
        for number, line in enumerate(file, 1):
            if not line.startswith("| ") or line.startswith(("| What", "| Section", "| ---")):
                continue
            links = [(text, target) for text, target in LINK.findall(line) if target.startswith("../tests/")]
            if not links:
                yield f"{page}:{number}: no test shows this"
            for text, target in links:
                path = os.path.normpath(os.path.join(root, "docs", target))
                if os.path.isfile(path):
                    with open(path) as test:
                        if not re.search(rf"\b{re.escape(text.strip('`'))}\b", test.read()):
                            yield f"{page}:{number}: {target} has no test {text}"


def main(root):
    faults = [*broken_links(root), *(fault for page in PAGES for fault in unproven(root, page))]
    print("\n".join(faults) or f"every line of {' and '.join(PAGES)} has its test, and every link leads somewhere")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
