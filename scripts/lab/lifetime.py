"""How a program's run ends: by itself, by a failure, or by whoever interrupts it. In each case what it took is given back."""
import os
import shutil
import signal
import sys
import tempfile

from . import state


def carry_out(purpose, body, failures=(RuntimeError, OSError)):
    """body(run), in a run of its own that is undone however it ends, unless the body has kept it. What the program exits with: 0; 1 after one
    of `failures`, told with a copy of the logs; 130 after Ctrl-C, a closed terminal or a kill, even where a shell started us with Ctrl-C ignored."""
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
        print(f"{purpose}: FAILED: {failure}" + (f"\n{purpose}: logs are in {_save_logs(run)}" if run else ""), file=sys.stderr)
        return 1
    finally:
        if run and not run.kept:
            _on_interruption(signal.SIG_IGN)
            run.undo()


def _on_interruption(handler):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def _interrupted(*_):
    _on_interruption(signal.SIG_IGN)  # a second Ctrl-C must not end the clean-up
    raise KeyboardInterrupt


def _save_logs(run):
    """The run's directory goes with the run; its logs must not when they are needed."""
    saved = os.path.join(tempfile.gettempdir(), f"penstock-{run.name}-logs")
    shutil.rmtree(saved, ignore_errors=True)
    for directory, _, names in os.walk(run.path):
        for name in names:
            if name.endswith(".log"):
                there = os.path.join(saved, os.path.relpath(directory, run.path))
                os.makedirs(there, exist_ok=True)
                shutil.copy(os.path.join(directory, name), there)
    return saved
