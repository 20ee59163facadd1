# SPDX-License-Identifier: Apache-2.0
"""Recording rules: sums and ratios that several panels and alerts share. Each name is LEVEL:METRIC:OPERATION.
`without` keeps the labels that the operator adds to his targets, for example a cluster."""


def summed_rate(metric, *labels):
    return f"sum without ({', '.join(labels)}) (rate({metric}[5m]))"


RECORDINGS = {
    "instance:penstock_rx_packets:rate5m": summed_rate("penstock_rx_packets_total", "worker"),
    "instance:penstock_tx_packets:rate5m": summed_rate("penstock_tx_packets_total", "worker"),
    "instance:penstock_rx_bytes:rate5m": summed_rate("penstock_rx_bytes_total", "worker"),
    "instance:penstock_tx_bytes:rate5m": summed_rate("penstock_tx_bytes_total", "worker"),
    "instance_reason:penstock_drops:rate5m": summed_rate("penstock_drops_total", "worker"),
    "instance:penstock_drops:rate5m": summed_rate("penstock_drops_total", "worker", "reason"),
    "instance:penstock_new_connections:rate5m": summed_rate("penstock_new_connections_total", "worker"),
    "instance:penstock_connections:sum": "sum without (worker) (penstock_connections)",
    "instance_worker:penstock_worker_busy:ratio_rate5m": "rate(penstock_worker_busy_seconds_total[5m])",
    "instance_worker:penstock_connections:ratio": "penstock_connections / penstock_connections_max",
    "instance_address:penstock_snat_ports:ratio": "penstock_snat_ports_in_use_busiest_endpoint / penstock_snat_ports",
    "instance_pool:penstock_packet_buffers:ratio": "penstock_packet_buffers_in_use / penstock_packet_buffers",
    "service:penstock_service_new_flows:rate5m":
        "sum by (namespace, service, port, protocol) (rate(penstock_service_new_flows_total[5m]))",
}
