# SPDX-License-Identifier: Apache-2.0
"""The limits of test programs (scripts/test_results.py): a program is ended when it stops working, not when it is
slow.

limits_test.py ROOT"""
import os
import subprocess
import sys
import time
import unittest

ROOT = sys.argv.pop(1)
sys.path.insert(0, os.path.join(ROOT, "scripts"))

import test_results  # noqa: E402

test_results.POLL_S = 0.05
WORKS_S = test_results.WORKS_S
PYTHON = (sys.executable, "-c")
# It ends by itself if nothing else ends it.
COMPUTE = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\nwhile True: pass"


def run(program, limit_s):
    return test_results.run_while_it_works([*PYTHON, program], limit_s)


def state_of(pid):
    return subprocess.run(["ps", "-o", "state=", "-p", pid], capture_output=True, text=True).stdout.strip()


class Limits(unittest.TestCase):
    def test_a_program_without_output_or_processor_time_is_over_after_its_limit(self):
        work = test_results.Work(300, 1000)
        self.assertFalse(work.is_over(1299, 0, WORKS_S / 2))
        self.assertTrue(work.is_over(1300, 0, WORKS_S / 2))

    def test_output_is_progress(self):
        work = test_results.Work(300, 1000)
        for minute in range(60):
            self.assertFalse(work.is_over(1000 + 60 * minute, minute, 0))
        self.assertFalse(work.is_over(1000 + 60 * 59 + 299, 59, 0))
        self.assertTrue(work.is_over(1000 + 60 * 59 + 300, 59, 0))

    def test_processor_time_is_progress_and_bounded(self):
        work = test_results.Work(300, 1000)
        for minute in range(290):  # a second of each minute, as at the lowest priority
            self.assertFalse(work.is_over(1000 + 60 * minute, 0, minute))
        self.assertFalse(work.is_over(1000 + 60 * 290, 0, 299.9))
        self.assertTrue(work.is_over(1000 + 60 * 290, 0, 300))

    def test_without_a_limit_nothing_is_over(self):
        self.assertFalse(test_results.Work(0, 1000).is_over(1e6, 0, 1e5))

    def test_a_program_that_ends_has_its_code_and_output(self):
        program = "import sys; print('out', flush=True); print('err', file=sys.stderr, flush=True); sys.exit(3)"
        self.assertEqual(run(program, 3600), (3, "out\nerr\n"))

    def test_a_program_that_waits_for_ever_is_ended(self):
        self.assertIsNone(run("import time; time.sleep(3600)", 0.3)[0])

    def test_a_program_that_computes_for_ever_is_ended(self):
        self.assertIsNone(run(COMPUTE, 0.3)[0])

    def test_descendants_count_and_are_ended(self):
        program = f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {COMPUTE!r}])\nprint(child.pid, flush=True)\nchild.wait()"
        code, output = run(program, 3)
        self.assertIsNone(code)
        until_s = time.monotonic() + 60
        # Gone, or a zombie until its new parent has waited.
        while (state := state_of(output.strip())) not in ("", "Z") and time.monotonic() < until_s:
            time.sleep(0.05)
        self.assertIn(state, ("", "Z"))


if __name__ == "__main__":
    unittest.main()
