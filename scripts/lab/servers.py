# SPDX-License-Identifier: Apache-2.0
"""The backends: a real nginx that returns its name, and a UDP echo that does the same."""
import os
import socket
import sys
import time

from .network import BACKENDS, inside
from .patience import Patience

HTTP_PORT = 9376  # targetPort of the Kubernetes documentation's example
ECHO_PORT = 5353
ECHO_PROGRAM = os.path.join(os.path.dirname(__file__), "udp_echo.py")  # NAME PORT

# daemon and root: one foreground process tree that may read the files of a run (a directory of mode 0700).
_NGINX = """daemon off; user root; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3; uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
    server {{
        listen {port} backlog=4096;
        listen [::]:{port} backlog=4096;
        default_type text/plain;
        add_header X-Backend {name} always;
        location = / {{ return 200 "{name}\\n"; }}
        location = /server {{ return 200 "$server_addr\n"; }}
        location = /client {{ return 200 "$remote_addr\\n"; }}
        location = /source {{ return 200 "$remote_addr $remote_port\\n"; }}
        location /files/ {{ alias {files}/; sendfile on; }}
        location /slow/ {{ alias {files}/; limit_rate 2m; }}
    }}
}}
"""


def start(network, run):
    files = run.file("files")
    os.makedirs(files, exist_ok=True)
    started = {}
    for name in BACKENDS:
        directory = run.file(name)
        os.makedirs(directory, exist_ok=True)
        config = os.path.join(directory, "nginx.conf")
        with open(config, "w") as file:
            file.write(_NGINX.format(dir=directory, name=name, port=HTTP_PORT, files=files))
        started[name, "http"] = network.start(name, ["nginx", "-p", directory, "-e", f"{directory}/error.log", "-c", config],
                                              f"{name}/nginx.log")
        started[name, "udp"] = network.start(name, [sys.executable, ECHO_PROGRAM, name, str(ECHO_PORT)], f"{name}/udp_echo.log")
    for name, address in BACKENDS.items():
        _wait_until_serving(network.namespace(name), name, address)
    return started


def _wait_until_serving(namespace, name, address, patience_s=10):
    patience = Patience(patience_s)
    with inside(namespace):
        while True:
            try:
                socket.create_connection((address, HTTP_PORT), timeout=1).close()
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                    client.settimeout(0.5)
                    client.connect((address, ECHO_PORT))
                    client.send(b"up?")
                    client.recv(100)
                return
            except OSError as error:
                if not patience.lasts():
                    raise RuntimeError(f"{name} does not serve within {patience_s} s ({error}); see {name}/*.log") from error
                time.sleep(0.02)
