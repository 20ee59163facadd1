# SPDX-License-Identifier: Apache-2.0
"""What scripts/package has built, and the trees of Debian that it is tested in. obtain() runs before the first case."""
import functools
import os
import re
import shutil
import subprocess
import sys

from fixture import Skip

from packing import image, trees
from testbed import python_programs
from testbed.api_servers import NotToBeHad

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEBIAN = os.path.join(ROOT, "debian")
SPDX_REQUIREMENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spdx_requirements.txt")
PAGE = os.path.join(ROOT, "docs/install-bare-metal.md")

_folder = None
_had, _why_not = {}, {}


def obtain(folder, wanted):
    """wanted: of "pool", "image", "bundle", the unpacked image, and "spdx", a validator. What cannot be made is the reason why the cases
    that need it are skipped."""
    global _folder
    _folder = folder
    for name, make in (("pool", lambda: trees.pool(trees.debs_in(folder))), ("image", lambda: image.build(folder)),
                       ("bundle", lambda: _unpacked(folder, had("image")[0])),
                       ("spdx", lambda: os.path.join(python_programs.environment("spdx-tools", SPDX_REQUIREMENTS, "pyspdxtools"), "bin/pyspdxtools"))):
        if name in wanted:
            try:
                _had[name] = make()
            except (NotToBeHad, RuntimeError, Skip) as why:
                _why_not[name] = why
                print(f"{name}: {why}", file=sys.stderr)


def had(name):
    if name in _had:
        return _had[name]
    if isinstance(why := _why_not[name], RuntimeError):
        raise why
    raise Skip(str(why))


def _unpacked(folder, layout):
    """Once for all cases: they change nothing in it."""
    bundle = os.path.join(folder, "penstock-bundle")
    with open(os.path.join(layout, "index.json")) as file:
        index = file.read()
    mark = os.path.join(bundle, "index.json")
    if os.path.exists(mark):
        with open(mark) as file:
            if file.read() == index:
                return bundle
    shutil.rmtree(bundle, ignore_errors=True)
    tag = subprocess.run(["umoci", "list", "--layout", layout], capture_output=True, text=True, check=True).stdout.strip()
    done = subprocess.run(["umoci", "unpack", "--image", f"{layout}:{tag}", bundle], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"umoci unpack: {done.stderr.strip()}")
    with open(mark, "w") as file:
        file.write(index)
    return bundle


def debs():
    """{package: path}."""
    return trees.debs_in(_folder)


def changes():
    return next(os.path.join(_folder, name) for name in sorted(os.listdir(_folder)) if name.endswith(".changes"))


def fields(package):
    """Fields of a built package."""
    text = subprocess.run(["dpkg-deb", "--field", debs()[package]], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^([A-Za-z-]+): (.*(?:\n .*)*)", text, re.MULTILINE))


def files(package):
    """{path: (mode, owner)} of a built package."""
    text = subprocess.run(["dpkg-deb", "--contents", debs()[package]], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in text.splitlines():
        mode, owner, _, _, _, path = line.split(None, 5)
        found[path.split(" -> ")[0].removeprefix(".")] = (mode, owner)
    return found


def script(package, name):
    """A maintainer script; "": there is none."""
    done = subprocess.run(["dpkg-deb", "--info", debs()[package], name], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def extract(package, folder):
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["dpkg-deb", "--extract", debs()[package], folder], check=True)


@functools.cache
def source_control():
    """{package: {field: text}} of debian/control; the source is under ""."""
    with open(os.path.join(DEBIAN, "control")) as file:
        text = "".join(line for line in file if not line.startswith("#"))
    stanzas = (dict(re.findall(r"^([A-Za-z-]+): (.*(?:\n .*)*)", stanza, re.MULTILINE)) for stanza in text.split("\n\n"))
    return {stanza.get("Package", ""): stanza for stanza in stanzas}


def names_in(dependencies):
    """Names of packages in a field such as Depends, without versions and variables."""
    bare = re.sub(r"\([^)]*\)|\[[^]]*\]|\$\{[^}]*\}", "", dependencies)
    return [name for name in re.split(r"[,|\s]+", bare) if name]
