# SPDX-License-Identifier: Apache-2.0
"""Tests `progress` in scripts/lib.sh: a long step reports its progress, and its exit code is that of its
command.

progress_test.py SOURCE_DIR"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = sys.argv[1]


def run(script):
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(["bash", "-c", f"set -euo pipefail; source '{ROOT}/scripts/lib.sh'; cd '{folder}'; {script}"],
                              capture_output=True, text=True, timeout=60)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


# The command runs until its progress was reported, so the result does not depend on the machine's speed.
done = run("""
exec 2>lines
trap 'cat lines' EXIT
progress_of() { cat at; }
work() { echo 3 4 >at; until grep -q '75 %' lines; do sleep 0.1; done; return 7; }
echo >at
progress "building" 1 work
""")
check(done.returncode == 7, f"exit code {done.returncode}\n{done.stdout}")
check(re.search(r"building: 75 %, about \d+ s left\n", done.stdout), done.stdout)

quiet = run("progress_of() { :; }; progress building 30 true; echo after")
check(quiet.returncode == 0 and quiet.stdout == "after\n" and quiet.stderr == "", f"a short step is silent: {quiet}")
print("ok")
