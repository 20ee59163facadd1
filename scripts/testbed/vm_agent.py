# SPDX-License-Identifier: Apache-2.0
"""The first process inside the virtual machine. Executes the requests of vm.py, which arrive over a
virtio-serial port: one JSON object per line, and one per answer. {"id": 7, "do": "run", "words": ["ip",
"link"], "timeout_s": 10} -> {"id": 7, "code": 0, "out": "...", "err": ""}; on failure {"id": 7, "error":
"why"}.

Uses only few modules of Python's own library: each import is read from the host through an emulated disk."""
import json
import os
import subprocess
import traceback

PORTS = "/sys/class/virtio-ports"
NAME = "penstock"


class Agent:
    def __init__(self):
        self._processes = {}

    def run(self, words, timeout_s, stdin=None):
        try:
            done = subprocess.run(words, input=stdin or "", capture_output=True, text=True, errors="replace", timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return {"error": f"not within {timeout_s} s: {' '.join(words)}"}
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

    def start(self, words, log):
        with open(log, "ab") as output:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        self._processes[process.pid] = process
        return {"pid": process.pid}

    def poll(self, pid):
        return {"code": self._processes[pid].poll()}

    def signal(self, pid, number):
        self._processes[pid].send_signal(number)
        return {}

    def wait(self, pid, timeout_s):
        try:
            return {"code": self._processes[pid].wait(timeout_s)}
        except subprocess.TimeoutExpired:
            return {"error": f"not within {timeout_s} s: the end of process {pid}"}

    def read(self, path):
        with open(path, errors="replace") as file:
            return {"text": file.read()}

    def write(self, path, text, replace=False):
        """Writes a file. With `replace` the file is replaced atomically, as editors do; sysfs needs a plain
        write."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + (".new" if replace else ""), "w") as file:
            file.write(text)
        if replace:
            os.rename(path + ".new", path)
        return {}

    def answer(self, request):
        try:
            return getattr(self, request.pop("do"))(**request)
        except Exception as error:  # noqa: BLE001: returned to the requester
            return {"error": f"{type(error).__name__}: {error}"}


def device():
    for name in os.listdir(PORTS):
        with open(os.path.join(PORTS, name, "name")) as file:
            if file.read().strip() == NAME:
                return f"/dev/{name}"
    raise RuntimeError(f"no virtio port is called {NAME}")


def main():
    agent = Agent()
    with open(device(), "r+b", buffering=0) as channel:
        channel.write(b'{"id": 0}\n')  # greeting
        pending = b""
        while came := channel.read(65536):  # empty: the requester has closed
            pending += came
            while b"\n" in pending:
                line, pending = pending.split(b"\n", 1)
                request = json.loads(line)
                number = request.pop("id")
                answer = memoryview(json.dumps({"id": number, **agent.answer(request)}).encode() + b"\n")
                while answer:
                    answer = answer[channel.write(answer):]


if __name__ == "__main__":
    try:
        main()
    except Exception:  # noqa: BLE001: only the console is left for output; the kernel's panic follows
        traceback.print_exc()
