# SPDX-License-Identifier: Apache-2.0
"""Python programs of other projects: each in an environment of its own in the cache, from a list of pinned packages."""
import hashlib
import os
import shutil
import subprocess
import sys
import time

from .api_servers import NotToBeHad, cache, locked

LIMIT_S = 600


def environment(name, requirements, program):
    """The folder of the environment with the packages in the file `requirements`, of which one has `program`; made if it is not in the
    cache. If the file has hashes, every package needs one. Raises NotToBeHad."""
    folder = _folder(name, requirements)
    unfinished = folder + ".unfinished"
    with locked(folder + ".lock", time.monotonic() + LIMIT_S):
        if os.path.exists(unfinished) or not os.access(os.path.join(folder, "bin", program), os.X_OK):
            open(unfinished, "w").close()
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", folder], "cannot create a Python environment: python3-venv is missing (scripts/setup package or deploy)")
            _run([os.path.join(folder, "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", requirements],
                 f"cannot install {program}")
            os.remove(unfinished)
    return folder


def is_ready(name, requirements, program):
    """Whether the environment is in the cache."""
    folder = _folder(name, requirements)
    return os.access(os.path.join(folder, "bin", program), os.X_OK) and not os.path.exists(folder + ".unfinished")


def _folder(name, requirements):
    with open(requirements, "rb") as file:
        digest = hashlib.sha256(file.read() + sys.version.encode()).hexdigest()[:16]
    return os.path.join(cache(), name, digest)


def _run(words, what):
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"{what}: no end after {LIMIT_S} s") from None
    if done.returncode != 0:
        lines = (done.stderr + done.stdout).strip().splitlines()
        raise NotToBeHad(f"{what}: {lines[-1] if lines else f'exit code {done.returncode}'}")
