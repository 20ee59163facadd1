# SPDX-License-Identifier: Apache-2.0
"""Writes thousands of objects over persistent connections: kubectl would take minutes, the API server takes
seconds."""
import http.client
import itertools
import json
import ssl
import threading


def create(cluster, objects, threads=4):
    """Creates all objects in no particular order, each by a request of its own, as controllers do."""
    _in_threads(cluster, "POST", ((collection_of(entry), entry) for entry in objects), 201, threads)


def delete(cluster, objects, threads=4):
    _in_threads(cluster, "DELETE", ((f"{collection_of(entry)}/{entry['metadata']['name']}", None) for entry in objects), 200, threads)


def replace(cluster, objects, threads=4):
    """Replaces each object by name, whatever its version. `objects` may be a slow generator."""
    _in_threads(cluster, "PUT", ((f"{collection_of(entry)}/{entry['metadata']['name']}", entry) for entry in objects), 200, threads, batch=1)


def collection_of(entry):
    group = "/api/" if "/" not in entry["apiVersion"] else "/apis/"
    return f"{group}{entry['apiVersion']}/namespaces/{entry['metadata']['namespace']}/{entry['kind'].lower()}s"


def _in_threads(cluster, method, requests, expected, threads, batch=20):
    requests, lock, errors = iter(requests), threading.Lock(), []

    def work():
        try:
            connection = http.client.HTTPSConnection(cluster.address, cluster.port, timeout=60,
                                                     context=ssl.create_default_context(cafile=cluster.file("ca.crt")))
            while not errors:
                with lock:  # a generator may be used by one thread at a time
                    taken = list(itertools.islice(requests, batch))
                if not taken:
                    break
                for path, body in taken:
                    _one(connection, cluster.tokens["admin"], method, path, body, expected)
            connection.close()
        except Exception as error:  # noqa: BLE001: raised below, in the caller's thread
            errors.append(error)
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]


def _one(connection, token, method, path, body, expected):
    connection.request(method, path, None if body is None else json.dumps(body),
                       {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read()
    if response.status != expected:
        raise RuntimeError(f"{method} {path}: HTTP {response.status} {text[:500].decode(errors='replace')}")
