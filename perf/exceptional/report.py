# SPDX-License-Identifier: Apache-2.0
"""Instruction counts, by callgrind, of packets outside established flows, and their ratio to those of a
packet inside.

report.py PROGRAM FLAGS prints one `name value unit` per line; PROGRAM is exceptional_count, FLAGS the build
options to print as a remark"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "instructions"))
import report


def main(program, flags):
    # The stages that report.run() separates are summed, because a path consists of few functions of its own.
    whole = {name: value for name, value in report.run(program).items() if name.count(".") == 2}
    for line in report.conditions(flags):
        print(f"# {line}")
    for name, (value, unit) in whole.items():
        print(f"{name}.instructions {value:.1f} {unit}")
    for name, (value, _) in whole.items():
        yardstick, _ = whole[f"exceptional.established.{name.rpartition('.')[2]}"]
        print(f"{name}.instructions.ratio {value / yardstick:.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
