# SPDX-License-Identifier: Apache-2.0
"""Real Kubernetes API servers on this machine: builds them, runs them with etcd, and controls them with
kubectl."""
