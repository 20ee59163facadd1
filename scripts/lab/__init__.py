"""A gateway with a client in front and servers behind it, out of network namespaces: what scripts/quickstart shows and tests/e2e tests on.

state.py    what a run has taken from the machine, written down first, so that it can be given back after any crash
network.py  namespaces, veth pairs, the bridge; entering a namespace
servers.py  nginx and UDP echo in the backends' namespaces
gateway.py  penstockd, penstock-sync and penstockctl as the tests use them
traffic.py  requests and datagrams, counted at the client by the kernel
accounting.py  what the client saw against what penstockd counted
quickstart.py  the body of scripts/quickstart
"""
