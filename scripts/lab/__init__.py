# SPDX-License-Identifier: Apache-2.0
"""A gateway with a client in front and servers behind it, built from network namespaces. Used by
scripts/quickstart and tests/e2e.

state.py       journal of the machine's resources that a run uses, so that they can be released after a crash
network.py     namespaces, veth pairs, the bridge; entering a namespace
servers.py     nginx and UDP echo in the backends' namespaces
gateway.py     penstockd, penstock-sync and penstockctl as the tests use them
traffic.py     requests and datagrams, counted at the client by the kernel
accounting.py  compares the client's counts with penstockd's counters
quickstart.py  the body of scripts/quickstart
"""
