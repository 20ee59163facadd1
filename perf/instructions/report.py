# SPDX-License-Identifier: Apache-2.0
"""Runs the `instructions` program under callgrind, prints its counts, and compares them with
perf/baseline/instructions.txt.

report.py print PROGRAM FLAGS             prints one `name value unit` per line
report.py write PROGRAM FLAGS BASELINE    writes the same to the baseline, after the compiler's version
report.py check PROGRAM FLAGS BASELINE    one case per count; the last line is `N passed, N failed, N skipped`

FLAGS are the build options that the counts depend on, as one word or several. A count that grew by more than
GROWTH fails, and so does a count that only the baseline or only the program has. A count that shrank passes
with a remark, because the gap would hide the next growth.
"""
import collections
import glob
import math
import os
import platform
import re
import subprocess
import sys
import tempfile

GROWTH = 0.05
# An idle stage costs a few instructions per burst, less than one per packet; one more there is negligible.
LEAST = 0.5
# Promises of the documents, whatever the baseline has.
LIMITS = {f"capture.{family}.{filter}": 60 for family in ("ipv4", "ipv6") for filter in ("no_match", "no_match_port")}
# Of a packet with a feature, in addition to the same packet without it.
ADDITIONS = {f"shares.{family}.tcp.established": (f"pipeline.{family}.tcp.established", 8) for family in ("ipv4", "ipv6")}
RUN_STAGES = re.compile(r"\bpenstock::pipeline::run_stages\(")
# glibc selects memcpy by the processor; with these settings all processors use the SSE2 version.
SAME_LIBC_EVERYWHERE = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-ERMS,-FSRM"


def run(program):
    """{name: (value, unit)} in the program's order."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--compress-strings=no", f"--callgrind-out-file={folder}/out", program],
            env={**os.environ, "GLIBC_TUNABLES": SAME_LIBC_EVERYWHERE}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"valgrind ended with {done.returncode}:\n{done.stdout.rstrip()}")
        for path in sorted(glob.glob(f"{folder}/out.*"), key=lambda name: int(name.rpartition(".")[2])):
            figures.update(figures_of(path))
    if not figures:
        sys.exit("callgrind counted nothing")
    return figures


def figures_of(path):
    """One region: its total, and for the pipeline each function that run_stages calls."""
    region = total = None
    function = callee = None
    is_call = False
    stages = collections.Counter()
    with open(path) as file:
        for line in file:
            line = line.rstrip("\n")
            if line.startswith("desc: Trigger: Client Request: "):
                region, operations, unit = line.rpartition(": ")[2].split()
            elif line.startswith("totals: "):
                total = int(line.split()[1])
            elif line.startswith("fn="):
                function = line[3:]
            elif line.startswith("cfn="):
                callee = line[4:]
            elif line.startswith("calls="):
                is_call = True
            # the line after calls=: source line, and the inclusive instruction count of the calls
            elif is_call:
                is_call = False
                if RUN_STAGES.search(function):
                    stages[stage_name(callee)] += int(line.split()[1])
    if region is None or total is None:  # counts between the last region and the program's end
        return {}
    unit = "instructions/" + unit
    figures = {region: (total / int(operations), unit)}
    # callgrind's own order is arbitrary
    figures.update({f"{region}.{stage}": (cost / int(operations), unit) for stage, cost in sorted(stages.items())})
    return figures


def stage_name(function):
    """penstock::pipeline::classify(WorkerContext&, Burst&) -> classify"""
    return re.sub(r"'\d+$", "", function).partition("(")[0].rpartition("::")[2].partition("<")[0]


def written(figures, flags):
    return [f"# {line}" for line in conditions(flags)] + [f"{name} {value:.2f} {unit}" for name, (value, unit) in figures.items()]


def conditions(flags):
    compiler = subprocess.check_output([os.environ.get("CXX", "c++"), "--version"], text=True).splitlines()[0]
    return [f"compiler: {compiler.partition(' ')[2]}", f"libc: {' '.join(platform.libc_ver())}", f"flags: {flags}"]


def check(program, flags, baseline):
    with open(baseline) as file:
        lines = file.read().splitlines()
    taken_with = [line[2:] for line in lines if line.startswith("# ")]
    differs = [f"{now} (baseline: {then})" for now, then in zip(conditions(flags), taken_with) if now != then]
    before = {name: float(value) for name, value, _ in (line.split() for line in lines if not line.startswith("#"))}
    if differs:
        print(f"SKIP instructions: figures of another build cannot be compared: {'; '.join(differs)}")
        return totals(0, 0, len(before))
    now = {name: value for name, (value, _) in run(program).items()}
    failed = shrunk = 0
    unreasoned = commit_without_reason(baseline)
    if unreasoned:
        failed += 1
        print(f"FAIL instructions baseline: commit {unreasoned} changed it and gives no reason in its body")
    for name in dict.fromkeys([*before, *now]):
        if name not in now or name not in before:
            failed += 1
            print(f"FAIL instructions {name}: {'not measured any more' if name not in now else 'not in the baseline'}")
        elif now[name] > LIMITS.get(name, math.inf):
            failed += 1
            print(f"FAIL instructions {name}: {now[name]:.2f}, more than the limit of {LIMITS[name]}")
        elif name in ADDITIONS and now[name] > now[ADDITIONS[name][0]] + ADDITIONS[name][1]:
            failed += 1
            print(f"FAIL instructions {name}: {now[name]:.2f}, more than {ADDITIONS[name][1]} above {ADDITIONS[name][0]}, {now[ADDITIONS[name][0]]:.2f}")
        elif now[name] > max(before[name] * (1 + GROWTH), before[name] + LEAST):
            failed += 1
            print(f"FAIL instructions {name}: {before[name]:.2f} -> {now[name]:.2f}, {now[name] / before[name] - 1:+.1%}")
        elif now[name] < min(before[name] * (1 - GROWTH), before[name] - LEAST):
            shrunk += 1
            print(f"instructions {name}: {before[name]:.2f} -> {now[name]:.2f}, {now[name] / before[name] - 1:+.1%}")
    if failed or shrunk:
        print("If that is meant: `scripts/bench instructions --write-baseline`, in the commit that brings it, with the reason in its body.")
    return totals(len({*before, *now}) + 1 - failed, failed, 0)  # plus one for the reason


def commit_without_reason(baseline):
    """The last commit that changed the baseline, if its message has no reason. Otherwise, or without a
    repository, the empty string."""
    def git(*words):
        done = subprocess.run(["git", "-C", os.path.dirname(baseline), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    # The first commit of a shallow clone appears to change every file.
    if git("rev-parse", "--is-shallow-repository") != "false":
        return ""
    commit, _, body = git("log", "-1", "--no-merges", "--format=%h%n%b", "--", baseline).partition("\n")
    return commit if commit and not body.strip() else ""


def totals(passed, failed, skipped):
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def main(action, program, flags, baseline=None):
    if action == "check":
        return check(program, flags, baseline)
    lines = written(run(program), flags)
    if action == "write":
        with open(baseline, "w") as file:
            file.write("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
