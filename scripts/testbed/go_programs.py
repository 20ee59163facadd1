# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects that the suites use as counterparts: built once into the cache from their
published Go modules."""
import dataclasses
import os
import re
import shutil

from .api_servers import NotToBeHad, bounded, cache, go_environment, go_version, locked


@dataclasses.dataclass(frozen=True)
class GoProgram:
    name: str        # for people, and folder of the cache
    module: str
    version: str
    go: tuple        # the oldest Go version that builds it
    packages: tuple  # import paths of the programs
    programs: tuple  # their names in the folder

    def obtain(self, deadline):
        """The folder with the programs. Raises NotToBeHad."""
        directory = os.path.join(cache(), self.name.lower(), self.version)
        if not self._is_complete(directory):
            with locked(directory + ".lock", deadline):
                if not self._is_complete(directory):  # otherwise the previous lock holder built it
                    self._build(directory, deadline)
        return directory

    def _is_complete(self, directory):
        return all(os.access(os.path.join(directory, program), os.X_OK) for program in self.programs)

    def _build(self, directory, deadline):
        go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
        version = go_version(go)
        if version is None or version < self.go:
            raise NotToBeHad(f"{self.name} {self.version} needs Go {self.go[0]}.{self.go[1]}, and "
                             + ("no go is on PATH" if not go else f"{go} is older"))
        work, new = directory + ".build", directory + ".new"
        for path in (work, new):
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)
        with open(os.path.join(work, "go.mod"), "w") as file:
            file.write(f"module bed\n\ngo {self.go[0]}.{self.go[1]}\n\nrequire {self.module} {self.version}\n")
        environment = go_environment(GO111MODULE="on", GOFLAGS="-mod=mod -modcacherw -buildvcs=false -p=2", GOWORK="off", CGO_ENABLED="0")
        bounded([go, "build", "-ldflags", "-s -w", "-o", new + "/", *self.packages], os.path.join(work, "log"), deadline, cwd=work, env=environment)
        # The rename is atomic: a folder that exists is complete.
        shutil.rmtree(directory, ignore_errors=True)
        os.rename(new, directory)
        shutil.rmtree(work, ignore_errors=True)


GOBGP = GoProgram("GoBGP", "github.com/osrg/gobgp/v4", "v4.8.0", (1, 25),
                  tuple(f"github.com/osrg/gobgp/v4/cmd/{program}" for program in ("gobgpd", "gobgp")), ("gobgpd", "gobgp"))
METALLB = GoProgram("MetalLB", "go.universe.tf/metallb", "v0.16.1", (1, 25), ("go.universe.tf/metallb/controller",), ("controller",))
# Its package contains the clients of all DNS providers: the build takes longer than that of an API server.
EXTERNAL_DNS = GoProgram("external-dns", "sigs.k8s.io/external-dns", "v0.21.0", (1, 26), ("sigs.k8s.io/external-dns",), ("external-dns",))
HELM = GoProgram("Helm", "helm.sh/helm/v3", "v3.22.0", (1, 26), ("helm.sh/helm/v3/cmd/helm",), ("helm",))
GOFLOW2 = GoProgram("goflow2", "github.com/netsampler/goflow2/v2", "v2.2.6", (1, 24), ("github.com/netsampler/goflow2/v2/cmd/goflow2",), ("goflow2",))
KUBECONFORM = GoProgram("kubeconform", "github.com/yannh/kubeconform", "v0.7.0", (1, 24), ("github.com/yannh/kubeconform/cmd/kubeconform",), ("kubeconform",))


def module_folder(module, version, deadline):
    """The folder of a Go module's published files in Go's module cache. Raises NotToBeHad."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not go:
        raise NotToBeHad("no go on PATH")
    place = os.path.join(cache(), "modules")
    os.makedirs(place, exist_ok=True)
    environment = go_environment(GO111MODULE="on", GOFLAGS="-mod=mod -modcacherw", GOWORK="off", GOTOOLCHAIN="local")
    log = os.path.join(place, f"{module.replace('/', '-')}-{version}.json")
    bounded([go, "mod", "download", "-json", f"{module}@{version}"], log, deadline, cwd=place, env=environment)
    with open(log) as file:
        return re.search(r'"Dir": "([^"]+)"', file.read()).group(1)
