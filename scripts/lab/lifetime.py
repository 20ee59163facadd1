# SPDX-License-Identifier: Apache-2.0
"""The end of a program's run: regular, by a failure or by an interruption. In each case its resources are
released."""
import os
import shutil
import signal
import sys
import tempfile

from . import state


def carry_out(purpose, body, failures=(RuntimeError, OSError)):
    """Calls body(run) in a run of its own. The run is undone however it ends, unless the body has kept it.
    The exit code is 0; 1 after one of `failures`, which is printed with the path of a copy of the logs; or
    130 after Ctrl-C, a closed terminal or a kill, even if the shell started this process with Ctrl-C
    ignored."""
    run = None
    _on_interruption(_interrupted)
    try:
        run = state.Run.start(purpose)
        body(run)
        return 0
    except KeyboardInterrupt:
        print(f"{purpose}: interrupted", file=sys.stderr)
        return 130
    except failures as failure:
        print(f"{purpose}: FAILED: {failure}" + (f"\n{purpose}: logs are in {save_logs(run)}" if run else ""), file=sys.stderr)
        return 1
    finally:
        if run and not run.kept:
            _on_interruption(signal.SIG_IGN)
            run.undo()


def _on_interruption(handler):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def _interrupted(*_):
    _on_interruption(signal.SIG_IGN)  # a second Ctrl-C must not interrupt the clean-up
    raise KeyboardInterrupt


def save_logs(run):
    """The run's directory is removed with the run. The logs are needed afterwards, so they are copied."""
    saved = os.path.join(tempfile.gettempdir(), f"penstock-{run.name}-logs")
    shutil.rmtree(saved, ignore_errors=True)
    for directory, _, names in os.walk(run.path):
        for name in names:
            if name.endswith(".log"):
                there = os.path.join(saved, os.path.relpath(directory, run.path))
                os.makedirs(there, exist_ok=True)
                shutil.copy(os.path.join(directory, name), there)
    return saved
