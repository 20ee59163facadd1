# SPDX-License-Identifier: Apache-2.0
"""Provides kube-apiserver and kube-proxy: from KUBEBUILDER_ASSETS, or built once into a cache from sources
that a package registry publishes.

There are two releases, five years apart: the oldest one that Penstock supports (v1beta1 slices, topologyKeys)
and a current one. A build that exceeds its time stops cleanly. Go's build cache is kept, so the next run
continues there."""
import contextlib
import dataclasses
import fcntl
import glob
import os
import re
import shutil
import signal
import subprocess
import time

OLD_GO = "/usr/lib/go-1.19/bin/go"  # from golang-1.19-go; most sources of 1.20 predate Go modules
# Kubernetes, the etcd that it is published with, and the Go version that both require. Newest first; the
# first entry that this machine's Go can build is `current`. Debian's etcd is 3.4, whose watches do not report
# progress on request; a current API server then disables features.
CURRENT = (("v1.36.3", "v3.6.8", (1, 26)), ("v1.34.4", "v3.6.4", (1, 24)))
PROGRAMS = ("kube-apiserver", "kube-proxy")
OUT_OF_TIME = "out of time; what was built so far is kept, so the next try is faster"


class NotToBeHad(Exception):
    """One line with the reason."""


@dataclasses.dataclass(frozen=True)
class ApiServer:
    name: str        # "1.20", "current", "assets"
    directory: str
    origin: str

    def program(self, program):
        path = os.path.join(self.directory, program)
        return path if os.path.exists(path) else shutil.which(program)

    @property
    def version(self):
        """(1, 20), as the program itself reports it."""
        said = subprocess.run([self.program("kube-apiserver"), "--version"], capture_output=True, text=True, timeout=60).stdout
        major, minor = re.search(r"v(\d+)\.(\d+)", said).groups()
        return int(major), int(minor)


def cache():
    return os.environ.get("PENSTOCK_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "penstock")


def names():
    return ("assets",) if os.environ.get("KUBEBUILDER_ASSETS") else ("current", "1.20")


def obtain(name, deadline, build=True):
    """The API server of that name, built first if it is not in the cache. Raises NotToBeHad."""
    if name == "assets":
        return _from_assets(os.environ["KUBEBUILDER_ASSETS"])
    recipe = {"current": _Current, "1.20": _Debian}[name]()
    directory = os.path.join(cache(), "api-servers", recipe.version)
    found = ApiServer(name, directory, "cached")
    if not _is_complete(directory):
        if not build:
            raise NotToBeHad(f"{recipe.version} is not built; scripts/testbed/build-api-server {name} does that")
        began = time.monotonic()
        recipe.check()
        with locked(directory + ".lock", deadline):
            if not _is_complete(directory):  # otherwise the previous lock holder built it
                _build(recipe, directory, deadline)
        found = ApiServer(name, directory, f"built in {(time.monotonic() - began) / 60:.1f} minutes")
    for program in ("etcd", "kubectl"):
        if not found.program(program):
            raise NotToBeHad(f"there is no {program}; scripts/setup cluster installs it")
    return found


def _is_complete(directory):
    return all(os.path.exists(os.path.join(directory, program)) for program in PROGRAMS)


def _from_assets(directory):
    for program in ("kube-apiserver", "etcd", "kubectl"):
        if not os.access(os.path.join(directory, program), os.X_OK):
            raise NotToBeHad(f"KUBEBUILDER_ASSETS={directory} has no {program}")
    return ApiServer("assets", directory, "KUBEBUILDER_ASSETS")


def _build(recipe, directory, deadline):
    work = directory + ".build"
    os.makedirs(work, exist_ok=True)
    log = os.path.join(work, "log")
    open(log, "w").close()
    new = directory + ".new"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    recipe.build(work, new, lambda words, **how: bounded(words, log, deadline, **how))
    # The rename is atomic: a folder that exists is complete.
    shutil.rmtree(directory, ignore_errors=True)
    os.rename(new, directory)
    shutil.rmtree(work, ignore_errors=True)


class _Current:
    """Builds from the published module. Its go.mod refers to staging folders that a module cannot contain;
    each of them is a module of the same release."""

    def __init__(self):
        self.go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
        self.has = go_version(self.go)
        self.version, self.etcd, _ = next((release for release in CURRENT if self.has and self.has >= release[2]), CURRENT[0])

    def check(self):
        if not self.go:
            raise NotToBeHad("no go on PATH")
        wanted = CURRENT[-1][2]
        if self.has is None or self.has < wanted:
            raise NotToBeHad(f"{self.go} is older than {wanted[0]}.{wanted[1]}")

    def build(self, work, into, run):
        environment = go_environment(GO111MODULE="on", GOFLAGS="-mod=mod -modcacherw -buildvcs=false -p=2", GOWORK="off", CGO_ENABLED="0")
        number = self.version.removeprefix("v").split(".", 1)[1]
        bed = os.path.join(work, "kubernetes")
        self._module(bed, f"module bed\n\ngo 1.24\n\nrequire k8s.io/kubernetes {self.version}\n")
        run([self.go, "mod", "download", f"k8s.io/kubernetes@{self.version}"], cwd=bed, env=environment)
        listed = subprocess.run([self.go, "list", "-m", "-f", "{{.GoMod}}", f"k8s.io/kubernetes@{self.version}"], cwd=bed, env=environment,
                                capture_output=True, text=True, timeout=120)
        if listed.returncode != 0:
            raise NotToBeHad(f"go list k8s.io/kubernetes@{self.version}: {listed.stderr.strip().splitlines()[-1:]}")
        with open(listed.stdout.strip()) as file:
            published = file.read()
        go_line = re.search(r"^go \S+$", published, re.M).group()
        staged = sorted(set(re.findall(r"^\s*(\S+) => \./staging/", published, re.M)))
        self._module(bed, f"module bed\n\n{go_line}\n\nrequire k8s.io/kubernetes {self.version}\n\nreplace (\n"
                          + "".join(f"\t{module} => {module} v0.{number}\n" for module in staged) + ")\n")
        stamp = "k8s.io/component-base/version"
        major, minor = self.version.removeprefix("v").split(".")[:2]
        flags = (f"-s -w -X {stamp}.gitVersion={self.version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor} "
                 f"-X {stamp}.gitTreeState=clean")
        for program in PROGRAMS:
            run([self.go, "build", "-ldflags", flags, "-o", os.path.join(into, program), f"k8s.io/kubernetes/cmd/{program}"], cwd=bed,
                env=environment)
        etcd = os.path.join(work, "etcd")
        self._module(etcd, f"module bed\n\n{go_line}\n\nrequire go.etcd.io/etcd/server/v3 {self.etcd}\n")
        run([self.go, "build", "-ldflags", "-s -w", "-o", os.path.join(into, "etcd"), "go.etcd.io/etcd/server/v3"], cwd=etcd, env=environment)

    @staticmethod
    def _module(directory, text):
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "go.mod"), "w") as file:
            file.write(text)


class _Debian:
    """Builds from Debian's source package `kubernetes`, in a GOPATH. One source file is generated, as its
    Makefile does."""
    version = "v1.20.2"

    def check(self):
        for program, package in ((OLD_GO, "golang-1.19-go"), ("dpkg-source", "dpkg-dev"), ("etcd", "etcd-server")):
            if not shutil.which(program):
                raise NotToBeHad(f"{package} is not installed; scripts/setup cluster does that")

    def build(self, work, into, run):
        gopath = os.path.join(work, "gopath")
        tree = os.path.join(gopath, "src/k8s.io/kubernetes")
        if not os.path.exists(os.path.join(tree, "cmd")):
            self._unpack(work, tree, run)
        environment = go_environment(GO111MODULE="off", GOPATH=gopath, GOFLAGS="-p=2", CGO_ENABLED="0", GOTOOLCHAIN="local")
        tool = os.path.join(work, "openapi-gen")
        run([OLD_GO, "build", "-o", tool, "./vendor/k8s.io/kube-openapi/cmd/openapi-gen"], cwd=tree, env=environment)
        generated = "pkg/generated/openapi"
        if not os.path.exists(os.path.join(tree, generated, "zz_generated.openapi.go")):
            run([tool, "-O", "zz_generated.openapi", "--go-header-file", "hack/boilerplate/boilerplate.generatego.txt",
                 "-p", f"k8s.io/kubernetes/{generated}", "-r", os.path.join(work, "violations"), "-i", ",".join(_openapi_packages(tree))],
                cwd=tree, env={**environment, "PATH": f"{os.path.dirname(OLD_GO)}:{os.environ['PATH']}"})
        flags = " ".join(["-s -w", *(f"-X k8s.io/kubernetes/{package}.{name}={value}"
                                     for package in ("vendor/k8s.io/component-base/version", "vendor/k8s.io/client-go/pkg/version", "pkg/version")
                                     for name, value in (("gitVersion", self.version), ("gitMajor", 1), ("gitMinor", 20),
                                                         ("gitTreeState", "clean")))])
        for program in PROGRAMS:
            run([OLD_GO, "build", "-ldflags", flags, "-o", os.path.join(into, program), f"./cmd/{program}"], cwd=tree, env=environment)

    def _unpack(self, work, tree, run):
        """Uses package lists of its own: the machine's sources stay unchanged."""
        apt = os.path.join(work, "apt")
        for directory in ("lists/partial", "archives/partial"):
            os.makedirs(os.path.join(apt, directory), exist_ok=True)
        uri, suite = _debian_mirror()
        with open(os.path.join(apt, "sources.list"), "w") as file:
            file.write(f"deb-src {uri} {suite} main\n")
        options = [word for option in (f"Dir::Etc::sourcelist={apt}/sources.list", "Dir::Etc::sourceparts=-", f"Dir::State::lists={apt}/lists",
                                       f"Dir::Cache={apt}", "APT::Sandbox::User=root") for word in ("-o", option)]
        run(["apt-get", "-qq", *options, "update"], cwd=apt)
        run(["apt-get", "-qq", *options, "source", "--download-only", "kubernetes"], cwd=apt)
        described, = glob.glob(os.path.join(apt, "kubernetes_*.dsc"))
        if self.version.removeprefix("v") not in described:  # "1.20.5+really1.20.2-1"
            raise NotToBeHad(f"Debian's source package is {os.path.basename(described)}, not {self.version}")
        os.makedirs(os.path.dirname(tree), exist_ok=True)
        shutil.rmtree(tree, ignore_errors=True)
        run(["dpkg-source", "--no-check", "--extract", described, tree], cwd=apt)


def _openapi_packages(tree):
    for base, prefix in (("staging/src/k8s.io", "k8s.io/kubernetes/vendor/k8s.io"), ("pkg", "k8s.io/kubernetes/pkg")):
        for directory, _, files in sorted(os.walk(os.path.join(tree, base))):
            for name in files:
                if name.endswith(".go") and not name.endswith("_test.go"):
                    with open(os.path.join(directory, name), errors="replace") as file:
                        if "+k8s:openapi-gen=" in file.read():
                            place = os.path.relpath(directory, os.path.join(tree, base))
                            yield prefix if place == "." else f"{prefix}/{place}"
                            break


def _debian_mirror():
    """The mirror that this machine installs from. Only bookworm still had the package when this was
    written."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)", "Created-By: Packages"],
                            capture_output=True, text=True, timeout=60)
    for line in listed.stdout.splitlines():
        words = line.split()
        if len(words) == 4 and words[:2] == ["Debian", "main"] and "-" not in words[2]:
            return words[3], words[2]
    raise NotToBeHad("apt names no Debian mirror; apt-get update helps where no list was ever fetched")


def go_version(go):
    if not go:
        return None
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=60).stdout
    number = re.match(r"go(\d+)\.(\d+)", said)
    return (int(number[1]), int(number[2])) if number else None


def go_environment(**more):
    base = cache()
    # Memory limit of each process of the build; -p=2 runs two at a time.
    own = {"GOCACHE": os.path.join(base, "go-build"), "GOMODCACHE": os.path.join(base, "go-mod"), "GOMEMLIMIT": "3GiB", "GOTOOLCHAIN": "local"}
    return {**os.environ, **own, **more}


def bounded(words, log, deadline, **how):
    """Runs to the end or to the deadline, in a process group of its own so that all its processes can be
    ended."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise NotToBeHad(OUT_OF_TIME)
    with open(log, "ab") as output:
        process = subprocess.Popen(["nice", *words], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                   **how)
        try:
            code = process.wait(left)
        except subprocess.TimeoutExpired:
            raise NotToBeHad(OUT_OF_TIME) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
    if code != 0:
        with open(log, errors="replace") as file:
            last = [line.strip() for line in file if line.strip()][-1:]
        raise NotToBeHad(f"{os.path.basename(words[0])} {words[1]} ended with {code}: {''.join(last)[:300]} (all of it in {log})")


@contextlib.contextmanager
def locked(path, deadline):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise NotToBeHad("out of time: another process builds it") from None
                time.sleep(0.5)
        yield
