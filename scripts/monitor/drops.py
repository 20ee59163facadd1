# SPDX-License-Identifier: Apache-2.0
"""Which drop reasons have an alert. Every reason of docs/counters.md is in exactly one of the two tables, so
a new reason requires the decision."""

# reason -> (severity, packets a second above which the alert fires after ten minutes)
ALERTED = {
    # bugs of penstockd
    "no_verdict": ("warning", 0),
    "handoff_loop": ("warning", 0),
    # capacity
    "connection_table_full": ("critical", 0),
    "snat_ports_exhausted": ("critical", 0),
    "handoff_ring_full": ("warning", 1),
    "punt_ring_full": ("warning", 10),
    "punt_control_full": ("critical", 0),
    "from_host_ring_full": ("warning", 10),
    "tx_queue_full": ("warning", 1),
    "no_buffer": ("critical", 0),
    "pending_full": ("warning", 1),
    "fragments_full": ("warning", 10),
    # configuration of the gateway or of its network
    "no_snat_address": ("critical", 0),
    "no_route": ("warning", 1),
    "next_hop_unresolved": ("warning", 1),
    "port_removed": ("warning", 0),
    "punt_failed": ("warning", 0),
    "host_frame_invalid": ("warning", 1),
    "frame_shorter_than_ip": ("warning", 1),
    "frame_too_long": ("warning", 1),
    "bad_ip_checksum": ("warning", 10),
    "bad_l4_checksum": ("warning", 10),
    "own_source_mac": ("warning", 1000),
}

# Caused by other hosts or by a configured policy: on the dashboards only.
SHOWN = """frame_too_short wrong_destination_mac bad_ip_header bad_l4_header martian_source source_blocked fragment
    bad_fragment fragment_too_small fragment_overlap fragment_expired ip_options ttl_expired mapped_address
    bad_extension_header source_routed no_udp_checksum too_many_tags vip_port_closed source_not_allowed
    no_local_endpoint no_endpoint reject_limited reject_not_allowed reset_limited bad_icmp icmp_unknown_flow
    icmp_search_limited icmp_not_translated vip_echo sctp_no_association sctp_wrong_tag invalid_tcp_flags
    reverse_path stray_reply stray_ttl packet_too_big bad_link_message""".split()
