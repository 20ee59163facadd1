// SPDX-License-Identifier: Apache-2.0
// Names, labels and values of the metrics, and a scrape over HTTP.
#include "control/metrics/prometheus.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "tests/support/free_port.hpp"

namespace penstock::metrics {
namespace prometheus_test {

Reading reading() {
    Reading r{.version = "1.2.3",
              .control_connected = true,
              .applied_version = 7,
              .generation = 9,
              .affinity_entries = 5,
              .affinity_entries_max = 70};
    r.workers.resize(2);
    r.workers[0].counters[static_cast<size_t>(stats::Counter::RxPackets)] = 10;
    r.workers[1].counters[static_cast<size_t>(stats::Counter::RxPackets)] = 20;
    r.workers[1].counters[static_cast<size_t>(stats::Counter::Connections)] = 3;
    r.workers[1].drops[static_cast<size_t>(DropReason::NoRoute)] = 4;
    r.workers[0].connections_max = 1024;
    r.workers[1].busy_s = 2.5;
    r.workers[1].asleep_s = 7.5;
    r.started_s = 1.5;
    r.services.push_back({.key = {"default", "web", "http", Protocol::Tcp},
                          .new_flows = 5,
                          .forward_bytes = 6000,
                          .connections = 2,
                          .backends = 3});
    r.services[0].latency = LatencyReading{};
    r.services[0].latency->connect.buckets[1] = 3;  // 0.1 to 0.25 ms
    r.services[0].latency->connect.buckets[4] = 4;  // 1 to 2.5 ms
    r.services[0].latency->connect.buckets.back() = 1;
    r.services[0].latency->connect.sum_s = 12.5;
    r.services[0].latency->first_byte.buckets[0] = 2;
    r.ports.push_back({.twin = "pen0",
                       .rx_packets = 11,
                       .handed_off = 12,
                       .handoff_lost = 13,
                       .replies_misplaced = 14,
                       .punted = 15,
                       .from_host = 16,
                       .from_host_dropped = 17,
                       .from_host_waits = 18,
                       .twin_dropped = 19,
                       .link_up = true});
    r.snat = {{.address = "10.0.0.1",
               .protocol = Protocol::Tcp,
               .ports = 64512,
               .in_use = 70000,
               .busiest_endpoint = 41},
              {.address = "2001:db8::1",
               .protocol = Protocol::Udp,
               .ports = 42,
               .in_use = 43,
               .busiest_endpoint = 44}};
    r.buffer_pools = {{.name = "penstock_mbufs_0", .buffers = 51, .in_use = 52},
                      {.name = "own_segments", .buffers = 53, .in_use = 54}};
    r.probes = {.sent = 21,
                .succeeded = 22,
                .failed = 23,
                .turned_up = 24,
                .turned_down = 25,
                .targets = 26,
                .down = 27,
                .failing_open = 28};
    r.drained = true;
    r.vips_withheld = true;
    r.vips = VipReading{.routes = {{100, 7}, {900, 0}},
                        .addresses = 0,
                        .answered = 3,
                        .absent = 2,
                        .others = 4,
                        .conflicts = 1};
    r.is_well = false;
    r.workers[1].open_connections = 2;
    r.loops = {{"worker 0", false}, {"worker 1", true}};
    r.save_failing = true;
    r.save_failures = 31;
    r.captures = {.is_running = true, .begun = 81, .records = 82, .lost = 83};
    r.upgrades = {.done = 75, .failed = 76, .pause_s = 0.0125, .is_running = true};
    r.tables = {.kept = true,
                .adopted = 71,
                .lost = {{"expired", 72}},
                .adoption_s = 0.25,
                .refused_files = 73,
                .name_failures = 74};
    r.applied_s = 91.5;
    r.last_good_in_force = true;
    r.backends = {{.key = {"default", "web", "http", Protocol::Tcp},
                   .endpoint = "10.0.0.7:8080",
                   .new_flows = 92,
                   .connections = 93,
                   .open_connections = 94}};
    r.backends[0].latency = LatencyReading{};
    r.backends[0].latency->first_byte.buckets[2] = 5;
    r.backends_without_series = 95;
    r.workers[1].counters[static_cast<size_t>(stats::Counter::FragmentsWaiting)] = 96;
    r.flow_records = {.queued = 81, .logged = 82, .sent = 83, .lost = {{"queue", 84}, {"disk", 85}}};
    r.bfd = {
        .connected = true,
        .sessions = {{.peer = "192.0.2.2", .twin = "up0", .is_up = true, .times_down = 86, .withheld = 87}}};
    r.shares = {.plan_version = 88, .has_fault = true, .shares = {{0, "primary", true}, {12, "heir", {}}}};
    r.shares->channels = {{.gateway = "edge-2",
                           .state = "copying",
                           .is_on = true,
                           .is_complete = false,
                           .held = 101,
                           .complete_age_s = 1.5,
                           .received = 102,
                           .refused = {{"share", 103}, {"full", 104}},
                           .sent = 105},
                          {.gateway = "edge-3", .state = "off", .complete_age_s = {}, .refused = {}}};
    r.shares->stray_targets = {{"edge-2", true}, {"edge-3", false}};
    r.shares->copies_max = 106;
    r.shares->copies_taken = 107;
    r.shares->awaiting_fail_back = 108;
    r.connections = {.open = 61, .max = 62, .refused_per_source = 63, .refused_all = 64};
    r.tls = {
        .certificate_starts_s = 30, .certificate_expires_s = 32, .authority_expires_s = 33, .broken = true};
    return r;
}

std::string text() {
    return prometheus::TextSerializer().Serialize(families(reading()));
}

void expect_line(const std::string& all, const std::string& line) {
    EXPECT_NE(all.find("\n" + line + "\n"), std::string::npos) << line << "\nis not in\n" << all;
}

TEST(Metrics, CountersDropsServicesAndPortsHaveTheirSeries) {
    const std::string all = text();
    expect_line(all, R"(penstock_rx_packets_total{worker="0"} 10)");
    expect_line(all, R"(penstock_rx_packets_total{worker="1"} 20)");
    expect_line(all, R"(penstock_connections{worker="1"} 3)");
    expect_line(all, R"(penstock_open_connections{worker="1"} 2)");
    expect_line(all, R"(penstock_connections_max{worker="0"} 1024)");
    expect_line(all, R"(penstock_drops_total{reason="no_route",worker="1"} 4)");
    expect_line(all, R"(penstock_drops_total{reason="no_route",worker="0"} 0)");
    expect_line(
        all,
        R"(penstock_service_new_flows_total{namespace="default",service="web",port="http",protocol="TCP"} 5)");
    expect_line(
        all,
        R"(penstock_service_forward_bytes_total{namespace="default",service="web",port="http",protocol="TCP"} 6000)");
    expect_line(
        all,
        R"(penstock_service_connections{namespace="default",service="web",port="http",protocol="TCP"} 2)");
    expect_line(
        all, R"(penstock_service_backends{namespace="default",service="web",port="http",protocol="TCP"} 3)");
    expect_line(all, R"(penstock_port_rx_packets_total{twin="pen0"} 11)");
    expect_line(all, R"(penstock_port_punted_total{twin="pen0"} 15)");
    expect_line(all, R"(penstock_port_from_host_total{twin="pen0"} 16)");
    expect_line(all, R"(penstock_port_from_host_dropped_total{twin="pen0"} 17)");
    expect_line(all, R"(penstock_port_from_host_waits_total{twin="pen0"} 18)");
    expect_line(all, R"(penstock_port_twin_dropped_total{twin="pen0"} 19)");
    expect_line(all, R"(penstock_port_handed_off_total{twin="pen0"} 12)");
    expect_line(all, R"(penstock_port_handoff_lost_total{twin="pen0"} 13)");
    expect_line(all, R"(penstock_port_replies_misplaced_total{twin="pen0"} 14)");
    expect_line(all, R"(penstock_port_link_up{twin="pen0"} 1)");
    expect_line(all, R"(penstock_build_info{version="1.2.3"} 1)");
    expect_line(all, R"(penstock_worker_busy_seconds_total{worker="1"} 2.5)");
    expect_line(all, R"(penstock_worker_asleep_seconds_total{worker="1"} 7.5)");
    expect_line(all, "penstock_start_time_seconds 1.5");
    expect_line(all, "penstock_control_connected 1");
    expect_line(all, "penstock_applied_version 7");
    expect_line(all, "penstock_services 1");
    expect_line(all, "penstock_affinity_entries 5");
    expect_line(all, "penstock_affinity_entries_max 70");
}

TEST(Metrics, SnatPortsAndPacketBuffersHaveUseAndTotal) {
    const std::string all = text();
    expect_line(all, R"(penstock_snat_ports{address="10.0.0.1",protocol="TCP"} 64512)");
    expect_line(all, R"(penstock_snat_ports{address="2001:db8::1",protocol="UDP"} 42)");
    expect_line(all, R"(penstock_snat_ports_in_use{address="10.0.0.1",protocol="TCP"} 70000)");
    expect_line(all, R"(penstock_snat_ports_in_use{address="2001:db8::1",protocol="UDP"} 43)");
    expect_line(all, R"(penstock_snat_ports_in_use_busiest_endpoint{address="10.0.0.1",protocol="TCP"} 41)");
    expect_line(all,
                R"(penstock_snat_ports_in_use_busiest_endpoint{address="2001:db8::1",protocol="UDP"} 44)");
    expect_line(all, R"(penstock_packet_buffers{pool="penstock_mbufs_0"} 51)");
    expect_line(all, R"(penstock_packet_buffers{pool="own_segments"} 53)");
    expect_line(all, R"(penstock_packet_buffers_in_use{pool="penstock_mbufs_0"} 52)");
    expect_line(all, R"(penstock_packet_buffers_in_use{pool="own_segments"} 54)");
}

TEST(Metrics, ProbesAndDrain_HC010_DRAIN006) {
    const std::string all = text();
    for (const char* line : {"penstock_probes_sent_total 21",
                             "penstock_probes_succeeded_total 22",
                             "penstock_probes_failed_total 23",
                             "penstock_endpoints_turned_up_total 24",
                             "penstock_endpoints_turned_down_total 25",
                             "penstock_probe_targets 26",
                             "penstock_probe_targets_down 27",
                             "penstock_services_failing_open 28",
                             "penstock_drained 1",
                             "penstock_vips_withheld 1",
                             R"(penstock_vips{presence="route",metric="100"} 7)",
                             R"(penstock_vips{presence="arp",metric=""} 3)",
                             R"(penstock_vips{presence="none",metric=""} 2)",
                             R"(penstock_vips{presence="other",metric=""} 4)",
                             "penstock_vip_foreign_routes 1",
                             "penstock_ready 0",
                             R"(penstock_loop_stalled{loop="worker 0"} 0)",
                             R"(penstock_loop_stalled{loop="worker 1"} 1)",
                             "penstock_state_save_failing 1",
                             "penstock_state_save_failures_total 31",
                             "penstock_tables_kept 1",
                             "penstock_adopted_connections 71",
                             R"(penstock_adoption_lost{reason="expired"} 72)",
                             "penstock_adoption_seconds 0.25",
                             "penstock_table_files_refused 73",
                             "penstock_table_name_failures_total 74",
                             R"(penstock_upgrades_total{outcome="done"} 75)",
                             R"(penstock_upgrades_total{outcome="failed"} 76)",
                             "penstock_upgrade_running 1",
                             "penstock_capture_running 1",
                             "penstock_captures_total 81",
                             "penstock_capture_records_total 82",
                             "penstock_capture_records_lost_total 83",
                             "penstock_applied_timestamp_seconds 91.5",
                             "penstock_last_good_in_force 1",
                             R"(penstock_fragments_waiting{worker="1"} 96)",
                             R"(penstock_fragments_waiting_max{worker="1"} 512)",
                             "penstock_backends_without_series 95",
                             "penstock_flow_records_queued_total 81",
                             R"(penstock_flow_records_written_total{destination="file"} 82)",
                             R"(penstock_flow_records_written_total{destination="collector"} 83)",
                             R"(penstock_flow_records_lost_total{reason="queue"} 84)",
                             R"(penstock_flow_records_lost_total{reason="disk"} 85)",
                             "penstock_shares_plan_version 88",
                             "penstock_shares_plan_fault 1",
                             R"(penstock_share_role{share="0",role="primary"} 1)",
                             R"(penstock_share_holds{share="0"} 1)",
                             R"(penstock_share_role{share="12",role="heir"} 1)",
                             R"(penstock_share_copies{gateway="edge-2"} 101)",
                             R"(penstock_share_copies{gateway="edge-3"} 0)",
                             R"(penstock_share_channel_state{gateway="edge-2",state="copying"} 1)",
                             R"(penstock_share_channel_state{gateway="edge-3",state="off"} 1)",
                             R"(penstock_share_copies_complete{gateway="edge-2"} 0)",
                             R"(penstock_share_copies_age_seconds{gateway="edge-2"} 1.5)",
                             R"(penstock_share_records_received_total{gateway="edge-2"} 102)",
                             R"(penstock_share_records_refused_total{gateway="edge-2",reason="share"} 103)",
                             R"(penstock_share_records_refused_total{gateway="edge-2",reason="full"} 104)",
                             R"(penstock_share_records_sent_total{gateway="edge-2"} 105)",
                             "penstock_shares_awaiting_fail_back 108",
                             R"(penstock_share_stray_target{gateway="edge-2"} 1)",
                             R"(penstock_share_stray_target{gateway="edge-3"} 0)",
                             "penstock_share_copies_max 106",
                             "penstock_share_copies_taken 107",
                             "penstock_bfd_connected 1",
                             R"(penstock_bfd_session_up{peer="192.0.2.2",twin="up0"} 1)",
                             R"(penstock_bfd_session_downs_total{peer="192.0.2.2",twin="up0"} 86)",
                             R"(penstock_bfd_packets_withheld_total{peer="192.0.2.2",twin="up0"} 87)",
                             "penstock_upgrade_pause_seconds 0.0125",
                             "penstock_tls_certificate_start_timestamp_seconds 30",
                             "penstock_tls_certificate_expiry_timestamp_seconds 32",
                             "penstock_tls_authority_expiry_timestamp_seconds 33",
                             "penstock_tls_files_broken 1",
                             "penstock_rpc_connections 61",
                             "penstock_rpc_connections_max 62",
                             R"(penstock_rpc_connections_refused_total{rule="source"} 63)",
                             R"(penstock_rpc_connections_refused_total{rule="all"} 64)"}) {
        expect_line(all, line);
    }
}

TEST(Metrics, BackendsHaveSeriesOnRequest) {
    const std::string all = text();
    const std::string labels =
        R"({namespace="default",service="web",port="http",protocol="TCP",backend="10.0.0.7:8080"})";
    expect_line(all, "penstock_backend_new_flows_total" + labels + " 92");
    expect_line(all, "penstock_backend_connections" + labels + " 93");
    expect_line(all, "penstock_backend_open_connections" + labels + " 94");
    Reading without = reading();
    without.backends.clear();
    without.backends_without_series.reset();
    const std::string none = prometheus::TextSerializer().Serialize(families(without));
    EXPECT_EQ(none.find("penstock_backend"), std::string::npos);
}

TEST(Metrics, LatenciesAreCumulativeHistograms) {
    const std::string all = text();
    const std::string labels = R"(namespace="default",service="web",port="http",protocol="TCP")";
    const auto bucket = [&](const std::string& name, const char* bound) {
        return name + "_bucket{" + labels + ",le=\"" + bound + "\"}";
    };
    const std::string connect = "penstock_service_connect_seconds";
    expect_line(all, "# TYPE " + connect + " histogram");
    expect_line(all, bucket(connect, "0.0001") + " 0");
    expect_line(all, bucket(connect, "0.00025") + " 3");
    expect_line(all, bucket(connect, "0.001") + " 3");
    expect_line(all, bucket(connect, "0.0025") + " 7");
    expect_line(all, bucket(connect, "10") + " 7");
    expect_line(all, bucket(connect, "+Inf") + " 8");
    expect_line(all, connect + "_count{" + labels + "} 8");
    expect_line(all, connect + "_sum{" + labels + "} 12.5");
    expect_line(all, bucket("penstock_service_first_byte_seconds", "0.0001") + " 2");
    const std::string of_backend = labels + R"(,backend="10.0.0.7:8080")";
    expect_line(all, "penstock_backend_connect_seconds_count{" + of_backend + "} 0");
    expect_line(all, "penstock_backend_first_byte_seconds_count{" + of_backend + "} 5");
    Reading off = reading();
    off.services[0].latency.reset();
    off.backends[0].latency.reset();
    const std::string none = prometheus::TextSerializer().Serialize(families(off));
    EXPECT_EQ(none.find("connect_seconds"), std::string::npos);
    EXPECT_EQ(none.find("first_byte"), std::string::npos);
}

TEST(Metrics, EveryCounterAndDropReasonOfTheListsIsThere) {
    const std::string all = text();
    for (const auto& counter : stats::kCounterTexts) {
        EXPECT_NE(all.find("\npenstock_" + std::string(counter.name)), std::string::npos) << counter.name;
    }
    for (const auto& reason : kDropReasonTexts) {
        EXPECT_NE(all.find("reason=\"" + std::string(reason.counter) + "\""), std::string::npos)
            << reason.counter;
    }
}

// Dashboards and alerts are rendered from the page (scripts/monitor), so it must list every metric.
TEST(Metrics, TheCountersPageListsThem) {
    std::ifstream file(PENSTOCK_COUNTERS_PAGE);
    const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    for (const auto& family : families(reading())) {
        if (family.name == "penstock_drops_total") {
            continue;  // by reason
        }
        std::string counter = family.name.substr(std::string("penstock_").size());
        if (counter.ends_with("_total")) {
            counter.erase(counter.size() - std::string("_total").size());
        }
        EXPECT_TRUE(page.contains("\n| `" + family.name + "` |") || page.contains("\n| `" + counter + "` |"))
            << family.name << " is missing in docs/counters.md";
    }
}

TEST(Metrics, NamesFollowPrometheusAndAreUnique) {
    std::set<std::string> seen;
    for (const auto& family : families(reading())) {
        EXPECT_TRUE(std::regex_match(family.name, std::regex("penstock_[a-z0-9_]+"))) << family.name;
        EXPECT_EQ(family.name.ends_with("_total"), family.type == prometheus::MetricType::Counter)
            << family.name;
        EXPECT_FALSE(family.help.empty()) << family.name;
        EXPECT_TRUE(seen.insert(family.name).second) << family.name;
    }
}

// Sends one HTTP request to loopback and returns the whole answer.
std::string scrape(uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::string answer;
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0) {
        const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
        EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
        char chunk[4096];
        for (ssize_t got = 0; (got = read(fd, chunk, sizeof(chunk))) > 0;) {
            answer.append(chunk, static_cast<size_t>(got));
        }
    }
    close(fd);
    return answer;
}

TEST(Metrics, AScrapeGetsThemAndASecondServerIsRefusedByName) {
    const uint16_t port = test::free_port();
    const std::string address = "127.0.0.1:" + std::to_string(port);
    auto exporter = Exporter::start(address, [] { return reading(); });
    ASSERT_TRUE(exporter) << exporter.error().what;
    EXPECT_NE(scrape(port).find("penstock_rx_packets_total{worker=\"1\"} 20"), std::string::npos);
    const auto second = Exporter::start(address, [] { return reading(); });
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().what.find(address), std::string::npos);
}

}  // namespace prometheus_test
}  // namespace penstock::metrics
