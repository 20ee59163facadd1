# SPDX-License-Identifier: Apache-2.0
"""Grafana dashboards and Prometheus rules, rendered from tables that name the metrics of docs/counters.md."""
