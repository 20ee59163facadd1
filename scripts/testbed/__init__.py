"""Real Kubernetes API servers on this machine: builds them, runs them with etcd, drives them with kubectl."""
