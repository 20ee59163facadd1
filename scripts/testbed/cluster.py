# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes control plane on a loopback address of its own: etcd, kube-apiserver and their files. It
belongs to one run (lab.state), which ends it.

There is no kubelet and no controller: the tests write the EndpointSlices themselves, so that these match the
case exactly. Ports, certificates and tokens are temporary. The API server can be killed, restarted at the
same address, and made to discard its history."""
import base64
import glob
import http.client
import json
import os
import secrets
import shlex
import socket
import ssl
import subprocess
import time

from .kubectl import Kubectl

SYNC_USER = "penstock-sync"
STRANGER = "stranger"  # a user without any rights
SERVICE_RANGES = "10.96.0.0/16,fd00:96::/112"
# A cold start takes 5 s on an idle machine, and tens of seconds on two cores that also compile.
PATIENCE_S = 180


class Cluster:
    def __init__(self, run, server):
        self._run, self.server = run, server
        self.version = server.version
        self.server_version = ".".join(map(str, self.version))
        self.directory = run.file("cluster")
        os.mkdir(self.directory)
        self.address = loopback_address_of(run)
        self.port, self._etcd_port, self._etcd_peer_port = free_ports(self.address, 3)
        self.url = f"https://{self.address}:{self.port}"
        self.tokens = {user: secrets.token_hex(16) for user in ("admin", SYNC_USER, STRANGER)}
        self.api_server = self.etcd = None
        self.rbac = []  # objects of docs/deploy/common/rbac.yaml
        self.admin = Kubectl(server.program("kubectl"), self.file("admin.kubeconfig"), self.file("kubectl-cache"))

    def file(self, name):
        return os.path.join(self.directory, name)

    def start(self):
        self._make_certificates()
        self.write_tokens()
        self.write_kubeconfig("admin", {"token": self.tokens["admin"]})
        self.write_kubeconfig("sync", {"token": self.tokens[SYNC_USER]})
        self._start_etcd()
        self.start_api_server()
        self.create_node("edge-1", "10.80.2.1")
        self.create_node("edge-2", "10.80.2.2")

    # Life cycle of the API server.

    def start_api_server(self):
        self.api_server = self._run.spawn(self._api_server_words(), "kube-apiserver.log")
        self._until("the API server is ready", self.is_ready, self.api_server, "kube-apiserver.log")

    def kill_api_server(self):
        """Kills the API server, as a crash does: no shutdown message is sent, and the kernel resets the
        connections."""
        self.api_server.kill()
        self.api_server.wait()

    def restart_api_server(self):
        if self.api_server.poll() is None:
            self.kill_api_server()
        self.start_api_server()

    def clear(self, namespace):
        """Empties a namespace. There are no controllers to delete its objects, and their external IPs are
        used again by later cases."""
        if self.api_server.poll() is not None:
            self.start_api_server()
        self.admin("delete", "service,endpointslice", "--all", "-n", namespace, "--wait=false")

    def is_ready(self):
        try:
            return self.request("GET", "/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def forget_the_past(self):
        """Compacts etcd up to now: no watch can be resumed from an earlier version."""
        revision = self._etcd("range", {"key": _text64("/"), "limit": "1"})["header"]["revision"]
        self._etcd("compaction", {"revision": revision, "physical": True})
        return int(revision)

    # Credentials and authorization.

    def write_tokens(self):
        """Writes the token file. The API server reads it at start."""
        groups = {"admin": "system:masters"}
        with open(self.file("tokens.csv"), "w") as file:
            for user, token in self.tokens.items():
                file.write(f'{token},{user},{user}-uid,"{groups.get(user, "")}"\n')

    def new_token(self, user):
        self.tokens[user] = secrets.token_hex(16)
        self.write_tokens()
        return self.tokens[user]

    def write_kubeconfig(self, name, user, **cluster):
        """Writes NAME.kubeconfig, as JSON, which is valid YAML. The user's entries have kubeconfig's names:
        token, tokenFile, client-certificate."""
        cluster = {"server": self.url, "certificate-authority": self.file("ca.crt"), **cluster}
        document = {"apiVersion": "v1", "kind": "Config", "current-context": "test",
                    "clusters": [{"name": "test", "cluster": cluster}], "users": [{"name": "test", "user": user}],
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}
        path = self.file(f"{name}.kubeconfig")
        with open(path, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            json.dump(document, file, indent=1)
        return path

    def new_authority(self):
        """Replaces the CA with a new one that signs the server's certificate. The API server must be
        restarted to use it; its clients follow the file."""
        self._make_authority()

    def base64_of(self, name):
        with open(self.file(name), "rb") as file:
            return base64.b64encode(file.read()).decode()

    def grant(self, path):
        """Applies the shipped roles, and also binds them to the token user, in the same way as to its
        ServiceAccount."""
        self.admin("apply", "-f", path)
        self.rbac = self.admin.json("get", "-f", path)["items"]
        for entry in self.rbac:
            role = entry["metadata"]["name"]
            if entry["kind"] == "ClusterRole":
                self.admin("create", "clusterrolebinding", f"{SYNC_USER}-user", f"--clusterrole={role}", f"--user={SYNC_USER}")
            elif entry["kind"] == "Role":
                self.admin("create", "rolebinding", f"{SYNC_USER}-user", f"--role={role}", f"--user={SYNC_USER}",
                           "-n", entry["metadata"]["namespace"])

    def service_account_token(self, namespace, name):
        """A token from the TokenRequest API, which is older than kubectl's command for it."""
        status, answer = self.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
                                      {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
        if status != 201:
            raise RuntimeError(f"token of {namespace}/{name}: HTTP {status} {answer}")
        return answer["status"]["token"]

    def rules_of(self, token, namespace):
        """{(group, resource, verb, name or "")} and {(URL, verb)}: the permissions of this token in a
        namespace, as the API server reports them."""
        status, answer = self.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}}, token=token)
        if status != 201:
            raise RuntimeError(f"SelfSubjectRulesReview: HTTP {status} {answer}")
        resources = {(group, resource, verb, name) for rule in answer["status"]["resourceRules"] for group in rule.get("apiGroups") or [""]
                     for resource in rule.get("resources") or [] for verb in rule["verbs"] for name in rule.get("resourceNames") or [""]}
        urls = {(url, verb) for rule in answer["status"]["nonResourceRules"] for url in rule.get("nonResourceURLs") or [] for verb in rule["verbs"]}
        return resources, urls

    # Direct requests, for cases in which kubectl is too slow, too new or too old.

    def request(self, method, path, body=None, token=None, kind="application/json", timeout_s=30):
        """Returns (HTTP status, decoded JSON or text)."""
        context = ssl.create_default_context(cafile=self.file("ca.crt"))
        connection = http.client.HTTPSConnection(self.address, self.port, context=context, timeout=timeout_s)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {token or self.tokens['admin']}", "Content-Type": kind})
            response = connection.getresponse()
            text = response.read().decode()
            return response.status, json.loads(text) if text.startswith("{") else text
        finally:
            connection.close()

    def patch_status(self, namespace, service, status):
        """Writes the status as a cloud's load balancer controller does. kubectl has --subresource only since
        1.24."""
        code, answer = self.request("PATCH", f"/api/v1/namespaces/{namespace}/services/{service}/status", {"status": status},
                                    kind="application/merge-patch+json")
        if code != 200:
            raise RuntimeError(f"status of {namespace}/{service}: HTTP {code} {answer}")

    def create_node(self, name, address):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
        code, answer = self.request("POST", "/api/v1/nodes", node)
        if code != 201:
            raise RuntimeError(f"node {name}: HTTP {code} {answer}")
        self.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"addresses": [{"type": "InternalIP", "address": address}]}},
                     kind="application/merge-patch+json")

    # Start-up.

    def _start_etcd(self):
        client, peer = f"http://{self.address}:{self._etcd_port}", f"http://{self.address}:{self._etcd_peer_port}"
        words = [self.server.program("etcd"), "--name", "test", "--data-dir", self.file("etcd"), "--listen-client-urls", client,
                 "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"test={peer}", "--auto-compaction-retention", "0", "--unsafe-no-fsync"]
        helped = subprocess.run([words[0], "--help"], capture_output=True, text=True, timeout=30)
        if "unsafe-no-fsync" not in helped.stdout + helped.stderr:
            words.remove("--unsafe-no-fsync")
        # etcd also takes its flags from the environment. A stray variable would set a flag that is absent here.
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ETCD_")}
        self.etcd = self._run.spawn(words, "etcd.log", clean)
        self._until("etcd answers", self._etcd_answers, self.etcd, "etcd.log")

    def _etcd_answers(self):
        try:
            return "header" in self._etcd("range", {"key": _text64("/"), "limit": "1"})
        except (OSError, http.client.HTTPException):
            return False

    def _etcd(self, operation, body):
        connection = http.client.HTTPConnection(self.address, self._etcd_port, timeout=30)
        try:
            connection.request("POST", f"/v3/kv/{operation}", json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def _api_server_words(self):
        words = [self.server.program("kube-apiserver"), f"--bind-address={self.address}", f"--secure-port={self.port}",
                 # history is compacted only by the test cases
                 f"--etcd-servers=http://{self.address}:{self._etcd_port}", "--etcd-compaction-interval=0",
                 f"--service-cluster-ip-range={SERVICE_RANGES if self.version >= (1, 21) else SERVICE_RANGES.split(',')[0]}",
                 f"--tls-cert-file={self.file('server.crt')}", f"--tls-private-key-file={self.file('server.key')}",
                 f"--cert-dir={self.file('certificates')}", f"--client-ca-file={self.file('ca.crt')}",
                 f"--token-auth-file={self.file('tokens.csv')}", "--authorization-mode=RBAC",
                 f"--service-account-key-file={self.file('accounts.pub')}", f"--service-account-signing-key-file={self.file('accounts.key')}",
                 "--service-account-issuer=https://kubernetes.default.svc", "--disable-admission-plugins=ServiceAccount",
                 "--endpoint-reconciler-type=none", "--profiling=false"]
        if self.version < (1, 21):
            words.append("--feature-gates=ServiceTopology=true,SCTPSupport=true")
        return words

    def _make_certificates(self):
        self._make_authority()
        self._openssl("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out accounts.key", "pkey -in accounts.key -pubout -out accounts.pub")

    def _make_authority(self):
        """Creates a CA and the certificates that it signs: the server's for its address and a user's."""
        names = f"subjectAltName=IP:{self.address},DNS:localhost,DNS:kubernetes.default.svc"
        self._openssl(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-ca -keyout ca.key -out ca.crt",
            f"req -newkey rsa:2048 -nodes -subj /CN=kube-apiserver -addext {names} -keyout server.key -out server.csr",
            "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copyall -out server.crt",
            f"req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={SYNC_USER} -keyout sync.key -out sync.csr",
            "x509 -req -in sync.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out sync.crt")

    def _openssl(self, *commands):
        for words in commands:
            done = subprocess.run(["openssl", *shlex.split(words)], cwd=self.directory, capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                raise RuntimeError(f"openssl {words}: {done.stderr.strip()}")
        for key in glob.glob(self.file("*.key")):
            os.chmod(key, 0o600)

    def _until(self, what, condition, process, log):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if process.poll() is not None or time.monotonic() > deadline:
                ended = f"it ended with {process.returncode}" if process.poll() is not None else f"not within {PATIENCE_S} s"
                with open(self._run.file(log), errors="replace") as file:
                    raise RuntimeError(f"waiting until {what}: {ended}\n{''.join(file.readlines()[-15:])}")
            time.sleep(0.1)


def loopback_address_of(run):
    """An address in 127.64.0.0/10 that no other run has. Connections to it have the source 127.0.0.1, so they
    take none of its ports."""
    number = int(run.number)  # a PID, below 2^22
    return f"127.{64 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def free_ports(address, count):
    """Free TCP ports of a run's address. All are kept bound until the last is found."""
    sockets = [socket.create_server((address, 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def _text64(text):
    return base64.b64encode(text.encode()).decode()
