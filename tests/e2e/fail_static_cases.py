"""Nothing is torn down because something ended."""
import json
import os
import signal
import threading

from fixture import NODE_PORT, VIP, Background, case, check, equal, until
from lab import network as net
from manifests import endpoints, service


def web():
    return service("web", external_ips=[VIP]), endpoints("web")


@case()
def penstock_sync_killed_and_restarted_is_not_noticed_by_traffic(lab):
    lab.start(*web())
    lab.make_file("slow", 4_000_000)
    download = []
    slow = threading.Thread(target=lambda: download.append(lab.get(path="/slow/slow", timeout_s=30)))
    slow.start()
    with Background(lab.get) as load:
        lab.gateway.sync.kill()
        lab.gateway.sync.wait()
        equal(sum(lab.answered_by(9).values()), 9, "new connections without a control plane")
        lab.gateway.start_sync(lab.manifests)
        lab.apply(*web(), service("more", 81, external_ips=[VIP]), endpoints("more"))
        until("the new process reconciles", lambda: lab.connection_outcome(VIP, 81) == "open")
        check(slow.is_alive(), "the download ended too early to show anything")
    slow.join()
    equal(load.errors, [], "failed requests")
    equal(len(download[0].body), 4_000_000, "bytes of the download that was under way")


@case(workers=(1, 2))
def a_client_keeps_its_endpoint_over_frontends_and_a_restart_of_penstock_sync_AFF001_AFF011(lab):
    objects = service("web", external_ips=[VIP], node_port=NODE_PORT, affinity_timeout_s=3600), endpoints("web")
    lab.start(*objects)
    mine = set(lab.answered_by(6))
    equal(len(mine), 1, "endpoints that one client met by the VIP")
    equal(set(lab.answered_by(6, net.UPLINK, NODE_PORT)), mine, "endpoint by the NodePort")
    lab.gateway.sync.kill()
    lab.gateway.sync.wait()
    equal(set(lab.answered_by(6)), mine, "endpoint without a control plane")
    lab.gateway.start_sync(lab.manifests)
    lab.apply(*objects, service("more", 81, external_ips=[VIP]), endpoints("more"))
    until("the new process reconciles", lambda: lab.connection_outcome(VIP, 81) == "open")
    equal(set(lab.answered_by(6)), mine, "endpoint after the restart")
    pinned = json.loads(lab.gateway.ctl("-o", "json", "get", "affinity", "default/web").stdout)
    equal([(entry["client"], entry["service"]["name"]) for entry in pinned], [(net.CLIENT, "web")], "entries shown")
    equal(lab.gateway.ctl("clear", "affinity", "default/web").stdout, "cleared 1 entry\n", "the CLI's word")
    equal(lab.gateway.ctl("-o", "json", "get", "affinity").stdout, "[]\n", "entries left")


@case(end=("SIGTERM", "SIGKILL"))
def penstockd_alone_forwards_its_last_good_configuration(lab):
    lab.start(*web())
    equal(lab.get().status, 200, "before")
    lab.gateway.sync.kill()
    lab.gateway.sync.wait()
    lab.gateway.daemon.send_signal(getattr(signal, lab.variant["end"]))
    lab.gateway.daemon.wait(timeout=10)
    lab.gateway.start_daemon()
    until("requests are answered", lambda: lab.connection_outcome(VIP, 80, timeout_s=0.3) == "open")
    equal(sum(lab.answered_by(9).values()), 9, "answers before any control plane came back")
    equal(oct(os.stat(lab.gateway.state_file).st_mode & 0o777), "0o600", "mode of the last-good file")


@case()
def a_damaged_last_good_file_is_named_and_the_start_is_empty(lab):
    lab.start(*web())
    lab.gateway.sync.kill()
    lab.gateway.sync.wait()
    lab.gateway.daemon.terminate()
    lab.gateway.daemon.wait(timeout=10)
    with open(lab.gateway.state_file, "r+b") as file:
        file.seek(os.path.getsize(lab.gateway.state_file) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x40]))
    lab.gateway.start_daemon()
    equal(lab.gateway.services(), {}, "services after a start with a damaged file")
    with open(lab.run.file("penstockd.log")) as log:
        said = log.read()
    check(lab.gateway.state_file in said, f"the log does not name the file:\n{said[-2000:]}")
    lab.gateway.start_sync(lab.manifests)
    lab.gateway.until_served({"default/web/tcp"})
    equal(lab.get().status, 200, "after the control plane came back")
