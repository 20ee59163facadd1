# SPDX-License-Identifier: Apache-2.0
"""Copies the project's pages, and the files that they link to, into a folder with the same layout, as input of
mkdocs. The pages are written for forges; what Python-Markdown reads differently is converted: indentation within lists,
tables of contents (the site has its own), and links to folders."""
import os
import re
import shutil

FENCE = re.compile(r"^ *(```|~~~)")
ITEM = re.compile(r"^( *)([-*]|\d+\.)( +)\S")
LINK = re.compile(r"(\[[^\]]*\])\(([^)#\s:]+)(#[^)\s]*)?\)")
CODE = re.compile(r"`[^`]*`")
CONTENTS = re.compile(r"<!-- contents -->\n.*?<!-- end of contents -->\n\n?", re.DOTALL)
# Folders whose files get a page that lists them.
LISTED = {"docs/adr": "Decisions", "docs/examples": "Examples"}
WIDTH = 4  # of an indentation, in Python-Markdown


def pages(root):
    """Paths of the pages, relative to the root."""
    found = [name for name in sorted(os.listdir(root)) if name.endswith(".md")]
    for top in ("docs", "charts"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            found += [os.path.relpath(os.path.join(folder, name), root) for name in sorted(names) if name.endswith(".md")]
    return found


def converted(text):
    """Lists with an indentation of four for each level, and an empty line before each list."""
    made, items, in_fence, may_start_list = [], [], False, True
    for line in CONTENTS.sub("", text).split("\n"):
        if not line.strip():
            made.append("")
            may_start_list = True
            continue
        indent = len(line) - len(line.lstrip(" "))
        if not in_fence:
            while items and indent < items[-1]:
                items.pop()
        within = items[-1] if items else 0
        # Four more is a block of code.
        item = None if in_fence or indent >= within + WIDTH else ITEM.match(line)
        if item and not items and not may_start_list:
            made.append("")
        made.append(" " * (WIDTH * len(items) + max(0, indent - within)) + line.lstrip(" "))
        if FENCE.match(line):
            in_fence = not in_fence
        if item:
            items.append(indent + len(item[2]) + len(item[3]))
        may_start_list = bool(items)
    return "\n".join(made)


def stage(root, into):
    """Returns the paths of the staged pages. Raises FileNotFoundError for a link without a target."""
    own = pages(root)
    folders = {os.path.dirname(page) for page in own if os.path.basename(page) == "README.md"} | set(LISTED)
    for page in own:
        with open(os.path.join(root, page)) as file:
            text = file.read()
        write(into, page, converted(_with_links(root, into, page, text, folders)))
    for folder, title in LISTED.items():
        listed = sorted(name for name in os.listdir(os.path.join(root, folder)) if os.path.isfile(os.path.join(root, folder, name)))
        lines = [f"- [{_title(os.path.join(root, folder, name))}]({name})" for name in listed]
        write(into, f"{folder}/README.md", f"# {title}\n\n" + "\n".join(lines) + "\n")
        for name in listed:
            _copy(root, into, f"{folder}/{name}")
    return [*own, *(f"{folder}/README.md" for folder in LISTED)]


def write(into, path, text):
    os.makedirs(os.path.dirname(os.path.join(into, path)), exist_ok=True)
    with open(os.path.join(into, path), "w") as file:
        file.write(text)


def _with_links(root, into, page, text, folders):
    """Copies the linked files. A link to a folder leads to its page, or is replaced by its words."""
    def replaced(match):
        words, target, anchor = match[1], match[2], match[3] or ""
        path = os.path.normpath(os.path.join(os.path.dirname(page), target))
        if os.path.isdir(os.path.join(root, path)):
            return f"{words}({os.path.join(target, 'README.md')}{anchor})" if path in folders else words[1:-1]
        if not path.endswith(".md") and os.path.exists(os.path.join(root, path)):
            _copy(root, into, path)
        return match[0]
    parts, at = [], 0
    for code in CODE.finditer(text):  # no links in code
        parts += [LINK.sub(replaced, text[at:code.start()]), code[0]]
        at = code.end()
    return "".join(parts) + LINK.sub(replaced, text[at:])


def _copy(root, into, path):
    if not os.path.exists(os.path.join(into, path)):
        os.makedirs(os.path.dirname(os.path.join(into, path)), exist_ok=True)
        shutil.copyfile(os.path.join(root, path), os.path.join(into, path))


def _title(path):
    if path.endswith(".md"):
        with open(path) as file:
            return file.readline().lstrip("# ").strip()
    return os.path.basename(path)


def navigation(root):
    """The sections of docs/README.md, as mkdocs' nav: [{"Operate": [{"Sizing": "docs/sizing.md"}, ...]}, ...]."""
    sections, home = [], {"Penstock": "README.md"}
    with open(os.path.join(root, "docs/README.md")) as file:
        for line in file:
            if line.startswith("## "):
                sections.append({line[3:].strip(): []})
            link = re.match(r"\| \[[^\]]*\]\(([^)#]+)\)", line)
            if link:
                path = os.path.normpath(os.path.join("docs", link[1]))
                if path in LISTED:
                    path += "/README.md"
                if path.endswith(".md") and path != "README.md":
                    list(sections[-1].values())[0].append({_title(os.path.join(root, path)) if path not in {f"{folder}/README.md" for folder in LISTED}
                                                           else LISTED[os.path.dirname(path)]: path})
    return [home, *(section for section in sections if list(section.values())[0])]
