// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/views.hpp"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "control/cli/text.hpp"
#include "tests/support/sanitizers.hpp"

namespace penstock::cli {
namespace views_test {

// Messages are written as protobuf text, which is closest to the tables.
template <typename Message>
Message from_text(const std::string& text) {
    Message message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
    return message;
}

constexpr const char* kServices = R"(
services {
  desired {
    key { namespace: "default" name: "my-service" port_name: "http" protocol: PROTOCOL_TCP }
    service_port: 80 scheduler: SCHEDULER_RR
    sets { endpoints { address: "10.80.2.11" port: 9376 } endpoints { address: "10.80.2.12" port: 9376 } source: SOURCE_MODE_TRANSLATE }
    frontends { class: FRONTEND_CLASS_EXTERNAL_IP address: "80.11.12.10" port: 80 }
  }
  result { outcome: OUTCOME_APPLIED }
  listening { address: "80.11.12.10" port: 80 }
  traffic { new_flows: 300 forward_packets: 1500 forward_bytes: 90000 reverse_packets: 1200 reverse_bytes: 480000 rejected: 1 dropped: 2 }
  connections: 12
}
services {
  desired {
    key { namespace: "shop" name: "dns" protocol: PROTOCOL_UDP }
    service_port: 53 scheduler: SCHEDULER_MH
    sets { source: SOURCE_MODE_KEEP when_empty: EMPTY_ACTION_DROP_NO_LOCAL }
    frontends { class: FRONTEND_CLASS_NODE_PORT port: 30053 }
    frontends { class: FRONTEND_CLASS_LOAD_BALANCER_IP address: "2001:db8::1" port: 53 filtered: true }
    source_ranges: "10.0.0.0/8" source_ranges: "192.0.2.0/24"
    access_log { tags: "stage=prod,team=web" }
    notices { level: LEVEL_WARNING reason: "ExternalIPNotAllowed" message: "81.0.0.1 is outside the allowed ranges" }
  }
  result { outcome: OUTCOME_REFUSED why: "no room" }
  listening { address: "10.0.0.1" port: 30053 } listening { address: "10.0.0.2" port: 30053 } listening { address: "10.0.0.3" port: 30053 }
  listening { address: "10.0.0.4" port: 30053 } listening { address: "2001:db8::1" port: 53 }
}
)";

constexpr const char* kBackends = R"(
backends {
  service { namespace: "default" name: "my-service" port_name: "http" protocol: PROTOCOL_TCP }
  endpoint { address: "10.80.2.11" port: 9376 node_name: "edge-1" zone: "zone-a" }
  sets: 0 connections: 7 open_connections: 6 new_flows: 150 health: HEALTH_UP
}
backends {
  service { namespace: "default" name: "my-service" port_name: "http" protocol: PROTOCOL_TCP }
  endpoint { address: "10.80.2.9" port: 9376 weight: 5 }
  connections: 1 new_flows: 20
}
)";

TEST(Views, ServicesTable) {
    EXPECT_EQ(services_table(from_text<v1::ListServicesResponse>(kServices), false).text(),
              "NAMESPACE  NAME        PORT     PROTO  FRONTENDS                                        "
              "BACKENDS  CONNECTIONS  NEW-FLOWS  STATUS\n"
              "default    my-service  http:80  TCP    80.11.12.10:80                                         "
              " 2           12        300  ok\n"
              "shop       dns         53       UDP    10.0.0.1:30053,10.0.0.2:30053,10.0.0.3:30053,+2        "
              " 0            0          0  "
              "refused: "
              "no room, 1 warning\n");
}

TEST(Views, BackendsOfBothFamiliesAreCounted_DUAL005) {
    const std::string text = services_table(from_text<v1::ListServicesResponse>(R"(services { desired {
        key { namespace: "default" name: "web" protocol: PROTOCOL_TCP } service_port: 80
        sets { endpoints { address: "10.80.2.11" port: 80 } endpoints { address: "10.80.2.12" port: 80 } }
        sets { ipv6: true endpoints { address: "fd00::11" port: 80 } } }
        result { outcome: OUTCOME_APPLIED } listening { address: "2001:db8::1" port: 80 } })"),
                                            false)
                                 .text();
    EXPECT_NE(text.find("[2001:db8::1]:80         3            0"), std::string::npos) << text;
}

TEST(Views, ServicesTableWideShowsAllFrontendsAndTraffic) {
    const std::string text = services_table(from_text<v1::ListServicesResponse>(kServices), true).text();
    EXPECT_NE(text.find("10.0.0.4:30053,[2001:db8::1]:53"), std::string::npos) << text;
    EXPECT_NE(
        text.find(
            "rr                    1500          90000             1200         480000         1        2\n"),
        std::string::npos)
        << text;
}

TEST(Views, AServiceWithoutFrontendsIsNotServed) {
    EXPECT_EQ(standing_text(from_text<v1::ServiceStatus>(
                  "desired { notices { level: LEVEL_WARNING } notices { level: LEVEL_NORMAL } "
                  "notices {} } result { outcome: OUTCOME_APPLIED }")),
              "not served, 2 warnings");
}

TEST(Views, BackendsTable) {
    const auto backends = from_text<v1::ListBackendsResponse>(kBackends);
    EXPECT_EQ(backends_table(backends, false).text(),
              "NAMESPACE  SERVICE     PORT  PROTO  BACKEND          STATE     HEALTH  CONNECTIONS  OPEN  "
              "NEW-FLOWS\n"
              "default    my-service  http  TCP    10.80.2.11:9376  serving   up                7     6      "
              "  150\n"
              "default    my-service  http  TCP    10.80.2.9:9376   draining  -                 1     0      "
              "   20\n");
    EXPECT_EQ(backends_table(backends, true).text(),
              "NAMESPACE  SERVICE     PORT  PROTO  BACKEND          STATE     HEALTH  CONNECTIONS  OPEN  "
              "NEW-FLOWS  WEIGHT  NODE    ZONE\n"
              "default    my-service  http  TCP    10.80.2.11:9376  serving   up                7     6      "
              "  150       1  edge-1  zone-a\n"
              "default    my-service  http  TCP    10.80.2.9:9376   draining  -                 1     0      "
              "   20       5  -       -\n");
}

TEST(Views, ConnectionsTable) {
    const std::vector<v1::Connection> connections{
        from_text<v1::Connection>(
            R"(protocol: PROTOCOL_TCP client { address: "10.80.1.2" port: 40000 } frontend { address: "80.11.12.10" port: 80 }
            backend { address: "10.80.2.11" port: 9376 } snat { address: "10.80.2.1" port: 1024 } state: "established"
            service { namespace: "default" name: "web" port_name: "http" protocol: PROTOCOL_TCP } worker: 1
            age_ms: 3725000 idle_ms: 1500 expires_ms: 86398000)"),
        from_text<v1::Connection>(
            R"(protocol: PROTOCOL_UDP client { address: "2001:db8::2" port: 5 } frontend { address: "2001:db8::1" port: 53 }
            backend { address: "2001:db8::3" port: 53 } state: "one-way" age_ms: 250 idle_ms: 0 expires_ms: 30000)")};
    EXPECT_EQ(connections_table(connections, false).text(),
              "PROTO  CLIENT           FRONTEND          BACKEND           SNAT            STATE        AGE  "
              "  IDLE\n"
              "TCP    10.80.1.2:40000  80.11.12.10:80    10.80.2.11:9376   10.80.2.1:1024  established  1h2m "
              "  1.50s\n"
              "UDP    [2001:db8::2]:5  [2001:db8::1]:53  [2001:db8::3]:53  -               one-way      "
              "0.25s  0.00s\n");
    const std::string wide = connections_table(connections, true).text();
    EXPECT_NE(wide.find("23h59m        1  default/web:http/TCP\n"), std::string::npos) << wide;
}

TEST(Views, AffinityTable) {
    const std::vector<v1::AffinityEntry> entries{
        from_text<v1::AffinityEntry>(
            R"(service { namespace: "default" name: "web" port_name: "http" protocol: PROTOCOL_TCP }
            client: "10.80.1.2" backend { address: "10.80.2.11" port: 9376 } age_ms: 1500 remaining_ms: 10798500)"),
        from_text<v1::AffinityEntry>(R"(service { namespace: "shop" name: "dns" protocol: PROTOCOL_UDP }
            client: "2001:db8::2" backend { address: "2001:db8::3" port: 53 } age_ms: 12000 remaining_ms: 88000)"),
        from_text<v1::AffinityEntry>(
            R"(service { namespace: "shop" name: "game" port_name: "chat" protocol: PROTOCOL_UDP }
            client: "10.80.1.3" backend { address: "10.80.2.11" port: 9376 } age_ms: 12000 remaining_ms: 88000 all_ports: true)")};
    EXPECT_EQ(affinity_table(entries).text(),
              "NAMESPACE  SERVICE  PORT  PROTO  CLIENT       BACKEND           AGE    REMAINING\n"
              "default    web      http  TCP    10.80.1.2    10.80.2.11:9376   1.50s  2h59m\n"
              "shop       dns      -     UDP    2001:db8::2  [2001:db8::3]:53  12s    1m28s\n"
              "shop       game     *     *      10.80.1.3    10.80.2.11        12s    1m28s\n");
}

TEST(Views, PortsTable) {
    const auto ports = from_text<v1::ListPortsResponse>(
        R"(ports { id: 0 name: "net_af_packet0" driver: "net_af_packet" mac: "02:00:00:00:00:01"
        twin: "uplink0" addresses: "10.80.1.1/24" addresses: "fe80::1/64" addresses: "192.0.2.1/24" addresses: "192.0.2.2/24" mtu: 1500 link_up: true
        rx_queues: 1 tx_queues: 2 steering: "handoff" steering_reason: "one receive queue" rx_packets: 10 tx_packets: 9 rx_missed: 1
        rx_bytes: 1000 tx_bytes: 900 punted: 3 from_host: 4 from_host_dropped: 6 twin_dropped: 7 offloads: "a" offloads: "b" handed_off: 5 handoff_lost: 1 state: "running" }
        ports { id: 1 name: "net_bonding0" driver: "net_bonding" mac: "02:00:00:00:00:02" twin: "down0" mtu: 9000 rx_queues: 4 tx_queues: 4
        steering: "predictable-rss" steering_reason: "by RSS" replies_misplaced: 2 state: "removed" members: "0000:03:00.0" members: "0000:03:00.1"
        settings { name: "rss-key" asked: "random, 40 bytes" granted: "the device's own, 40 bytes" reason: "the driver does not accept a key" }
        settings { name: "rss-table" asked: "128 entries" granted: "128 entries" }
        settings { name: "rx-ipv4-cksum" asked: "on" reason: "not offered by the device; workers verify the checksum" } })");
    EXPECT_EQ(ports_table(ports, false).text(),
              "ID  TWIN     ADDRESSES                   DRIVER         LINK      MTU  QUEUES  STEERING       "
              "  RX-PACKETS  TX-PACKETS  "
              "RX-MISSED\n"
              " 0  uplink0  10.80.1.1/24,fe80::1/64,+2  net_af_packet  up       1500     1/2  handoff        "
              "          10           9      "
              "    1\n"
              " 1  down0    -                           net_bonding    removed  9000     4/4  "
              "predictable-rss           0           0      "
              "    0\n");
    EXPECT_EQ(ports_table(ports, true).text(),
              "ID  TWIN     ADDRESSES                                          DRIVER         LINK      MTU  "
              "QUEUES  STEERING         "
              "RX-PACKETS  TX-PACKETS  RX-MISSED  NAME            MAC                RX-BYTES  TX-BYTES  "
              "PUNTED  FROM-HOST  FROM-HOST-LOST  "
              "HANDED-OFF  "
              "HANDOFF-LOST  MISPLACED  STATE    MEMBERS                    OFFLOADS  NOT-AS-ASKED           "
              "STEERING-REASON\n"
              " 0  uplink0  10.80.1.1/24,fe80::1/64,192.0.2.1/24,192.0.2.2/24  net_af_packet  up       1500  "
              "   1/2  handoff                  "
              "10           9          1  net_af_packet0  02:00:00:00:00:01      1000       900       3      "
              "    4              13           5   "
              "          "
              "1          0  running  -                          a,b       -                      one "
              "receive queue\n"
              " 1  down0    -                                                  net_bonding    removed  9000  "
              "   4/4  predictable-rss          "
              " 0           0          0  net_bonding0    02:00:00:00:00:02         0         0       0      "
              "    0               0           0   "
              "          "
              "0          2  removed  0000:03:00.0,0000:03:00.1  -         rss-key,rx-ipv4-cksum  by RSS\n");
}

TEST(Views, WorkersTable) {
    const auto workers = from_text<v1::ListWorkersResponse>(
        "workers { id: 0 core: 1 connections: 5 open_connections: 4 connections_max: 262144 packets: 1000 "
        "handed_off: 10 handed_in: 11 "
        "polls: 77 empty_polls: "
        "70 "
        "busy_ratio: 0.0734 generation: 3 idle: \"sleep\" sleeps: 12 sleep_ratio: 0.916 }");
    EXPECT_EQ(workers_table(workers, false).text(),
              "ID  CORE  CONNECTIONS  OPEN  CAPACITY  PACKETS  HANDED-OFF  HANDED-IN  BUSY\n"
              " 0     1            5     4    262144     1000          10         11  7.3%\n");
    EXPECT_EQ(workers_table(workers, true).text(),
              "ID  CORE  CONNECTIONS  OPEN  CAPACITY  PACKETS  HANDED-OFF  HANDED-IN  BUSY  IDLE   ASLEEP  "
              "SLEEPS  POLLS  EMPTY-POLLS  "
              "GENERATION\n"
              " 0     1            5     4    262144     1000          10         11  7.3%  sleep   91.6%    "
              "  12     77           70      "
              "     3\n");
}

TEST(Views, Flows) {
    const auto flows = from_text<v1::ListFlowsResponse>(
        R"text(rules { kind: "source-drop" match: "from 198.51.100.0/24" action: "drop" state: STATE_INSTALLED counted: true packets: 7 bytes: 420 }
        rules { port: 1 kind: "snat-to-queue" match: "to 10.0.0.1 tcp port 64-127/128" action: "queue 1" state: STATE_REFUSED reason: "no room" }
        rules { port: 1 kind: "vip-mark" state: STATE_NOT_USED reason: "not asked for (--vip-mark)" })text");
    EXPECT_EQ(flows_table(flows, false).text(),
              "PORT  KIND           MATCH                            ACTION   STATE      PACKETS  REASON\n"
              "   0  source-drop    from 198.51.100.0/24             drop     installed        7  -\n"
              "   1  snat-to-queue  to 10.0.0.1 tcp port 64-127/128  queue 1  refused          -  no room\n"
              "   1  vip-mark       -                                -        not used         -  not asked "
              "for (--vip-mark)\n");
    EXPECT_EQ(
        flows_table(flows, true).text().substr(0, flows_table(flows, true).text().find('\n')),
        "PORT  KIND           MATCH                            ACTION   STATE      PACKETS  BYTES  REASON");
}

TEST(Views, RoutesAndNeighbours) {
    EXPECT_EQ(
        routes_table(
            from_text<v1::ListRoutesResponse>(
                R"(routes { destination: "0.0.0.0/0" gateway: "10.80.1.254" twin: "uplink0" metric: 100 }
        routes { destination: "10.80.2.0/24" twin: "down0" port: 1 })"),
            false)
            .text(),
        "DESTINATION   GATEWAY      TWIN     METRIC\n"
        "0.0.0.0/0     10.80.1.254  uplink0     100\n"
        "10.80.2.0/24  -            down0         0\n");
    EXPECT_EQ(
        neighbours_table(
            from_text<v1::ListNeighboursResponse>(
                R"(neighbours { address: "10.80.2.11" mac: "02:00:00:00:02:0b" state: "reachable" twin: "down0" port: 1 used_ms_ago: 75000 }
        neighbours { address: "10.80.2.12" state: "resolving" twin: "down0" port: 1 used_ms_ago: -1 })"),
            true)
            .text(),
        "ADDRESS     MAC                STATE      TWIN   USED       PORT\n"
        "10.80.2.11  02:00:00:00:02:0b  reachable  down0  1m15s ago     1\n"
        "10.80.2.12  -                  resolving  down0  never         1\n");
    EXPECT_EQ(
        vips_table(
            from_text<v1::ListVipsResponse>(
                R"(vips { address: "192.0.2.80" presence: "route" twin: "uplink0" metric: 100 foreign_route: true }
        vips { address: "192.0.2.81" presence: "address" twin: "uplink0" }
        vips { address: "192.0.2.82" presence: "none" reason: "no port is up" }
        vips { address: "192.0.2.90" presence: "route" twin: "uplink0" metric: 200 snat: true })"))
            .text(),
        "ADDRESS     USE   PRESENCE  TWIN     METRIC  REASON\n"
        "192.0.2.80  vip   route     uplink0     100  another program has a route for it\n"
        "192.0.2.81  vip   address   uplink0       -  -\n"
        "192.0.2.82  vip   none      -             -  no port is up\n"
        "192.0.2.90  snat  route     uplink0     200  -\n");
}

TEST(Views, BfdSessions) {
    const auto sessions = from_text<v1::ListBfdSessionsResponse>(
        R"(sessions { peer: "192.0.2.2" local: "192.0.2.1" twin: "up0" state: "up" state_age_ms: 75000
                      min_rx_us: 50000 detect_multiplier: 5 remote_min_tx_us: 60000 remote_detect_multiplier: 3
                      times_down: 2 received: 10 sent: 11 withheld: 12 unsendable: 13 }
           sessions { peer: "2001:db8::2" state: "down" min_rx_us: 2500 detect_multiplier: 4
                      reason: "detection time expired" })");
    EXPECT_EQ(bfd_table(sessions, false).text(),
              "PEER         TWIN      STATE  FOR    DETECTION   TIMES-DOWN  REASON\n"
              "192.0.2.2    up0       up     1m15s  60ms x 3             2  -\n"
              "2001:db8::2  multihop  down   0.00s  2500us x 4           0  detection time expired\n");
    EXPECT_EQ(
        bfd_table(sessions, true).text(),
        "PEER         TWIN      STATE  FOR    DETECTION   TIMES-DOWN  LOCAL      RECEIVED  SENT  WITHHELD  "
        "UNSENDABLE  REASON\n"
        "192.0.2.2    up0       up     1m15s  60ms x 3             2  192.0.2.1        10    11        12  "
        "        13  -\n"
        "2001:db8::2  multihop  down   0.00s  2500us x 4           0  -                 0     0         0  "
        "         0  detection time expired\n");
}

TEST(Views, SharesAndTheirGateways) {
    const auto shares = from_text<v1::ListSharesResponse>(
        R"(plan_version: 7 gateway_name: "edge-1"
           shares { number: 0 primary: "edge-1" heir: "edge-2" role: "primary" served: 12 announced: 11
                    snat: "198.51.100.1" snat: "2001:db8:1::1"
                    copies: 3456 channel: "complete" complete_age_ms: 250 strays: "here" }
           shares { number: 1 primary: "edge-2" heir: "edge-3" role: "none" vips: "203.0.113.0/28"
                    vips: "2001:db8::/64" served: 3 strays: "edge-2" }
           gateways { name: "edge-1" weight: 1 primary_of: 1 address: "10.0.0.1:7443" }
           gateways { name: "edge-2" weight: 2 primary_of: 1 heir_of: 1 address: "10.0.0.2:7443"
                      channel: "connecting" channel_fault: "connection refused" copies: 3456
                      complete_age_ms: 71000 records_received: 9000 records_refused_share: 1
                      records_refused_full: 2 records_refused_taken: 3 records_sent: 8000 copies_there: 12
                      streams: 4 link: "10.0.1.2" strays: "away" })");
    EXPECT_EQ(
        shares_table(shares, false).text(),
        "SHARE  PRIMARY  HEIR    ROLE     SERVED  ANNOUNCED  SNAT                        COPIES  CHANNEL   "
        "STRAYS\n"
        "    0  edge-1   edge-2  primary      12         11  198.51.100.1,2001:db8:1::1    3456  complete  "
        "here\n"
        "    1  edge-2   edge-3  none          3          0  -                                0  -         "
        "edge-2\n");
    EXPECT_EQ(
        shares_table(shares, true).text(),
        "SHARE  PRIMARY  HEIR    ROLE     SERVED  ANNOUNCED  SNAT                        COPIES  CHANNEL   "
        "STRAYS    AGE  VIPS\n"
        "    0  edge-1   edge-2  primary      12         11  198.51.100.1,2001:db8:1::1    3456  complete  "
        "here    0.25s  -\n"
        "    1  edge-2   edge-3  none          3          0  -                                0  -         "
        "edge-2      -  203.0.113.0/28,2001:db8::/64\n");
    EXPECT_EQ(
        gateways_table(shares, false).text(),
        "NAME    THIS  WEIGHT  PRIMARY-OF  HEIR-OF  ADDRESS        CHANNEL     COPIES  THERE    AGE  STRAYS  "
        "ERROR\n"
        "edge-1  yes        1           1        0  10.0.0.1:7443  -                0      0      -  -       "
        "-\n"
        "edge-2  -          2           1        1  10.0.0.2:7443  connecting    3456     12  1m11s  away    "
        "connection refused\n");
    EXPECT_EQ(gateways_table(shares, true).text(),
              "NAME    THIS  WEIGHT  PRIMARY-OF  HEIR-OF  ADDRESS        CHANNEL     COPIES  THERE    AGE  "
              "STRAYS  LINK      RECEIVED  REFUSED  SENT  STREAMS  ERROR\n"
              "edge-1  yes        1           1        0  10.0.0.1:7443  -                0      0      -  "
              "-       -                0        0     0        0  -\n"
              "edge-2  -          2           1        1  10.0.0.2:7443  connecting    3456     12  1m11s  "
              "away    10.0.1.2      9000        6  8000        4  connection refused\n");
    EXPECT_NE(status_text(from_text<v1::Status>(
                              R"(shares { plan_version: 7 primary_of: 9 heir_of: 5 channel: "connecting"
                                    channel_fault: "gateway edge-2: refused" copies: 12 })"))
                  .find("Shares:         plan version 7, primary of 9, heir of 5, copies connecting (12 "
                        "held): gateway "
                        "edge-2: refused\n"),
              std::string::npos);
    EXPECT_NE(
        status_text(from_text<v1::Status>(
                        R"(shares { plan_version: 7 primary_of: 9 heir_of: 5 fault: "x: no gateway" })"))
            .find("Shares:         plan version 7, primary of 9, heir of 5; x: no gateway\n"),
        std::string::npos);
}

TEST(Views, SharesOfAGatewayThatReturns) {
    const auto shares = from_text<v1::ListSharesResponse>(
        R"(plan_version: 7 gateway_name: "a"
           shares { number: 0 primary: "a" heir: "b" role: "primary" returns: true }
           shares { number: 1 primary: "a" heir: "b" role: "primary" returns: true held: true }
           gateways { name: "a" weight: 1 primary_of: 2 } gateways { name: "b" weight: 1 heir_of: 2 })");
    const std::string text = shares_table(shares, false).text();
    EXPECT_NE(text.find("    0  a        b     primary (returns) "), std::string::npos) << text;
    EXPECT_NE(text.find("    1  a        b     primary (awaits fail-back) "), std::string::npos) << text;
    EXPECT_NE(status_text(from_text<v1::Status>(
                              R"(shares { plan_version: 7 primary_of: 9 heir_of: 5 awaiting_fail_back: 2 })"))
                  .find("Shares:         plan version 7, primary of 9, heir of 5; 2 await penstockctl "
                        "fail-back\n"),
              std::string::npos);
}

TEST(Views, ServiceDescription) {
    auto services = from_text<v1::ListServicesResponse>(kServices);
    EXPECT_EQ(service_description(services, from_text<v1::ListBackendsResponse>(kBackends)),
              R"(Service default/my-service:http/TCP
  Port:            80
  Status:          ok
  Scheduler:       rr
  Set 0:           2 endpoints; client address translated: backends see the gateway; when empty: reject
  Listening on:    80.11.12.10:80
  Frontends:
    CLASS       ADDRESS      PORT  SET  SOURCE-RANGES
    ExternalIP  80.11.12.10    80    0  -
  Backends:
    BACKEND          STATE     HEALTH  SETS  NODE    ZONE    CONNECTIONS  OPEN  NEW-FLOWS
    10.80.2.11:9376  serving   up      0     edge-1  zone-a            7     6        150
    10.80.2.9:9376   draining  -       -     -       -                 1     0         20
  Connections:     12 including TIME-WAIT, 300 since start
  To backends:     1500 packets, 90000 bytes
  To clients:      1200 packets, 480000 bytes
  Refused:         1 rejected, 2 dropped silently

Service shop/dns/UDP
  Port:            53
  Status:          refused: no room, 1 warning
  Scheduler:       mh
  Set 0:           0 endpoints; client address kept: backends see the client; when empty: drop silently: usable endpoints are on other nodes only
  Tags:            stage=prod,team=web
  Source ranges:   10.0.0.0/8,192.0.2.0/24
  Listening on:    10.0.0.1:30053,10.0.0.2:30053,10.0.0.3:30053,10.0.0.4:30053,[2001:db8::1]:53
  Frontends:
    CLASS         ADDRESS               PORT  SET  SOURCE-RANGES
    NodePort      IPv4 node addresses  30053    0  -
    LoadBalancer  2001:db8::1             53    0  apply
  Backends:        none
  Connections:     0 including TIME-WAIT, 0 since start
  To backends:     0 packets, 0 bytes
  To clients:      0 packets, 0 bytes
  Refused:         0 rejected, 0 dropped silently
  Notices:
    LEVEL    REASON                MESSAGE
    Warning  ExternalIPNotAllowed  81.0.0.1 is outside the allowed ranges
)");
}

TEST(Views, SetsAcrossFamiliesSaySo_ANN32) {
    const std::string text = service_description(from_text<v1::ListServicesResponse>(R"(services { desired {
        key { namespace: "default" name: "web" protocol: PROTOCOL_TCP } service_port: 80
        sets { endpoints { address: "10.80.2.11" port: 80 } }
        sets { ipv6: true translates_family: true endpoints { address: "10.80.2.11" port: 80 } }
        sets { translates_family: true } } result { outcome: OUTCOME_APPLIED } })"),
                                                 {});
    EXPECT_NE(text.find("Set 0:           1 endpoints; client"), std::string::npos) << text;
    EXPECT_NE(text.find("Set 1:           1 IPv4 endpoints behind IPv6 frontends; client"), std::string::npos)
        << text;
    EXPECT_NE(text.find("Set 2:           0 IPv6 endpoints behind IPv4 frontends; client"), std::string::npos)
        << text;
}

TEST(Views, CountersTables) {
    const auto counters = from_text<v1::Counters>(
        R"(counters { name: "rx_packets" value: 30 per_worker: 10 per_worker: 20 meaning: "packets taken" }
        drops { reason: "no_route" packets: 5 per_worker: 5 per_worker: 0 meaning: "no route to the backend" })");
    EXPECT_EQ(counters_tables(counters, false),
              "COUNTER     VALUE  MEANING\n"
              "rx_packets     30  packets taken\n"
              "\n"
              "DROP-REASON  PACKETS  MEANING\n"
              "no_route           5  no route to the backend\n");
    EXPECT_EQ(counters_tables(counters, true),
              "COUNTER     VALUE  WORKER-0  WORKER-1  MEANING\n"
              "rx_packets     30        10        20  packets taken\n"
              "\n"
              "DROP-REASON  PACKETS  WORKER-0  WORKER-1  MEANING\n"
              "no_route           5         5         0  no route to the backend\n");
}

TEST(Views, ExplanationOfAForwardedAndOfADroppedPacket) {
    auto request = from_text<v1::ExplainRequest>(
        R"(protocol: PROTOCOL_TCP source { address: "10.80.1.2" port: 40000 } destination { address: "80.11.12.10" port: 80 })");
    EXPECT_EQ(explanation_text(request, from_text<v1::Explanation>(
                                            R"(steps { stage: "classify" finding: "a SYN to a frontend" }
        steps { stage: "schedule" finding: "rr picks 10.80.2.11:9376" } verdict: "transmit" source_after { address: "10.80.2.1" port: 1024 }
        destination_after { address: "10.80.2.11" port: 9376 } egress_twin: "down0" next_hop: "10.80.2.11" next_hop_mac: "02:00:00:00:02:0b")")),
              "TCP SYN 10.80.1.2:40000 -> 80.11.12.10:80, arriving on port 0, queue 0\n"
              "\n"
              "STAGE     FINDING\n"
              "classify  a SYN to a frontend\n"
              "schedule  rr picks 10.80.2.11:9376\n"
              "\n"
              "Verdict: transmit\n"
              "Leaves as: 10.80.2.1:1024 -> 10.80.2.11:9376\n"
              "Through: down0 to 10.80.2.11 (02:00:00:00:02:0b)\n");
    const auto undecided = explanation_text(
        request,
        from_text<v1::Explanation>(
            R"(source_after { address: "10.80.2.1" } destination_after { address: "10.80.2.11" port: 9376 })"));
    EXPECT_NE(undecided.find("Leaves as: 10.80.2.1:(free port) -> 10.80.2.11:9376\n"), std::string::npos)
        << undecided;
    const auto ipv6 = explanation_text(
        request,
        from_text<v1::Explanation>(
            R"(source_after { address: "fd00::1" } destination_after { address: "fd00::11" port: 9376 })"));
    EXPECT_NE(ipv6.find("Leaves as: [fd00::1]:(free port) -> [fd00::11]:9376\n"), std::string::npos) << ipv6;
    request.set_protocol(v1::PROTOCOL_UDP);
    request.set_queue(1);
    EXPECT_EQ(
        explanation_text(request, from_text<v1::Explanation>("verdict: \"drop\" drop_reason: \"no_route\"")),
        "UDP 10.80.1.2:40000 -> 80.11.12.10:80, arriving on port 0, queue 1\n"
        "\n"
        "STAGE  FINDING\n"
        "\n"
        "Verdict: drop (no_route)\n");
    request.set_protocol(v1::PROTOCOL_SCTP);
    EXPECT_TRUE(explanation_text(request, {}).starts_with("SCTP INIT 10.80.1.2:40000 -> 80.11.12.10:80, "));
}

TEST(Views, StatusPage) {
    if (penstock::test::kUnderThreadSanitizer) {
        GTEST_SKIP() << "protobuf's headers lay out map fields otherwise under TSan than its library, which "
                        "reads one here";
    }
    EXPECT_EQ(
        status_text(from_text<v1::Status>(
            R"(identity { gateway_name: "edge-1" mode: MODE_NODE node_name: "edge-1" software_version: "0.1.0"
        labels { key: "rack" value: "r1" } } applied { source: "sync-1" version: 7 } origin: CONFIGURATION_ORIGIN_LAST_GOOD applied_age_ms: 61000
        uptime_ms: 90061000 generation: 4 workers: 2 ports: 2 services: 5 backends: 15 connections: 100 connections_max: 524288 open_connections: 60
        memory: "hugepages 512 MB" log_level: "info")")),
        "Gateway:        edge-1, node mode on edge-1, rack=r1\n"
        "Software:       penstockd 0.1.0\n"
        "Up for:         1d1h\n"
        "Configuration:  version 7 of sync-1, from the last good file, 1m1s ago\n"
        "Health:         ready\n"
        "Control plane:  not connected; forwarding continues unchanged\n"
        "Generation:     4\n"
        "Serving:        5 service ports, 15 backends\n"
        "Connections:    100 of 524288, 60 open\n"
        "Running:        2 workers, 2 NIC ports\n"
        "Memory:         hugepages 512 MB\n"
        "Log level:      info\n");
    EXPECT_NE(status_text(from_text<v1::Status>("drained: true"))
                  .find("Drained:        health checks answer 503 until undrain\n"),
              std::string::npos);
    EXPECT_NE(
        status_text(from_text<v1::Status>(
                        R"(drained: true vip_presence: "routes" drain_step: "depreferred"
        depreferred_left_ms: 7000 stop_left_ms: 25000
        open_flows { service: "default/web:http/TCP" flows: 3 } open_flows { service: "default/b:x/UDP" flows: 1 })"))
            .find("Drained:        health checks answer 503 until undrain; VIP routes have metric 900, and "
                  "are deleted in 7.00s at the latest; open: default/web:http/TCP 3, default/b:x/UDP 1; "
                  "penstockd stops in 25s at the latest\n"),
        std::string::npos);
    EXPECT_EQ(drain_progress(from_text<v1::Status>(R"(drain_step: "done")")), "no connection is open");
    EXPECT_NE(status_text(from_text<v1::Status>(R"(vips_withheld: "Node edge-1 has the label x")"))
                  .find("VIPs withheld:  Node edge-1 has the label x\n"),
              std::string::npos);
    EXPECT_NE(status_text(
                  from_text<v1::Status>(
                      R"(save_error: "/s/last-good.pb.new: cannot be written: full" save_failing_ms: 61000)"))
                  .find("Not saved:      for 1m1s: /s/last-good.pb.new: cannot be written: full\n"),
              std::string::npos);
}

TEST(Status, FlowRecordsHaveCountsLossesAndTheFault) {
    const auto text = [](const std::string& records) {
        const std::string all = status_text(from_text<v1::Status>("flow_records {" + records + "}"));
        const size_t begin = all.find("Flow records:");
        return all.substr(begin, all.find('\n', begin) - begin);
    };
    EXPECT_EQ(text("queued: 9 logged: 8 sent: 7"),
              "Flow records:   9 records; 8 written to files, 7 sent to the collector");
    EXPECT_EQ(
        text(R"(queued: 9 lost { reason: "queue" records: 5 } lost { reason: "disk" records: 1 }
                      fault: "cannot write /x: No space left on device")"),
        "Flow records:   9 records; 0 written to files, 0 sent to the collector; lost: queue 5, disk 1; now: "
        "cannot write /x: No space left on device");
    EXPECT_EQ(status_text(v1::Status()).find("Flow records"), std::string::npos);
}

TEST(Views, StatusShowsTheCertificateWithTheTimeThatIsLeft) {
    const auto line = [](const std::string& certificate) {
        const std::string all = status_text(from_text<v1::Status>("certificate {" + certificate + "}"));
        const size_t begin = all.find("Certificate:");
        return all.substr(begin, all.find('\n', begin) - begin);
    };
    const std::string own = R"(subject: "CN=edge-1" own { expires_s: 1801396800 left_s: 5184000 })";
    EXPECT_EQ(line(own), "Certificate:    CN=edge-1 expires 2027-01-31 12:00 UTC, in 60d");
    EXPECT_EQ(
        line(R"(subject: "CN=edge-1" own { expires_s: 1801396800 left_s: 7200 renewal_is_late: true })"),
        "Certificate:    CN=edge-1 expires 2027-01-31 12:00 UTC, in 2h; warning: renew it");
    EXPECT_EQ(line(R"(subject: "CN=edge-1" own { expires_s: 1801396800 left_s: -60 renewal_is_late: true })"),
              "Certificate:    CN=edge-1 expired 2027-01-31 12:00 UTC, 1m ago; warning: renew it");
    EXPECT_EQ(
        line(own + R"(authority { expires_s: 1801396800 left_s: 86400 renewal_is_late: true }
                            error: "--tls-cert: c.pem: no certificate")"),
        "Certificate:    CN=edge-1 expires 2027-01-31 12:00 UTC, in 60d; warning: the client CA expires "
        "2027-01-31 12:00 UTC, in 1d; warning: newer files are not in use: --tls-cert: c.pem: no "
        "certificate");
    EXPECT_EQ(status_text(v1::Status()).find("Certificate"), std::string::npos) << "unix sockets only";
}

TEST(Views, StatusSaysWhetherConnectionsSurviveTheProcess) {
    const auto tables_line = [](const std::string& tables) {
        const std::string text = status_text(from_text<v1::Status>("tables {" + tables + "}"));
        const size_t at = text.find("Tables:");
        return text.substr(at, text.find('\n', at) - at);
    };
    EXPECT_EQ(tables_line(R"(why_not: "--table-dir off")"),
              "Tables:         end with penstockd: --table-dir off");
    EXPECT_EQ(
        tables_line(R"(file: "/dev/shm/penstock/tables.4" adopted: 90 adoption_us: 12000
                             lost { reason: "no_endpoint" count: 3 } lost { reason: "expired" count: 7 })"),
        "Tables:         /dev/shm/penstock/tables.4, in ordinary memory; 90 connections adopted in 12 ms; "
        "lost: no_endpoint 3, expired 7");
    EXPECT_EQ(
        tables_line(R"(file: "/s/tables.5" adopted: 3 adoption_us: 900 converted_from: 6)"),
        "Tables:         /s/tables.5, in ordinary memory; 3 connections adopted in 1 ms, converted from "
        "table layout 6");
    EXPECT_EQ(
        tables_line(
            R"(file: "/h/tables.2" in_hugepages: true nothing_adopted: "there is no file" name_error: "full"
                             refused_files: "tables.1 is of another boot" remark: "slow")"),
        "Tables:         /h/tables.2, in hugepages; nothing was adopted: there is no file; tables.1 is of "
        "another "
        "boot; slow; full");
}

TEST(Views, WhatTheGatewayObservedIsANoticeLikeAnyOther_HC005_NAT002) {
    auto services = from_text<v1::ListServicesResponse>(kServices);
    auto& observed = *services.mutable_services(0)->add_observed();
    observed.set_reason("SNATPortExhausted");
    observed.set_message("more SNAT addresses make room");
    EXPECT_NE(service_description(services, {})
                  .find("    Warning  SNATPortExhausted  more SNAT addresses make room\n"),
              std::string::npos);
}

TEST(Views, HealthIsAWord_HC009) {
    EXPECT_EQ(health_text(v1::BackendStatus::HEALTH_UNPROBED), "unprobed");
    EXPECT_EQ(health_text(v1::BackendStatus::HEALTH_UP), "up");
    EXPECT_EQ(health_text(v1::BackendStatus::HEALTH_DOWN), "down");
    EXPECT_EQ(health_text(v1::BackendStatus::HEALTH_UNSPECIFIED), "-");
}

}  // namespace views_test
}  // namespace penstock::cli
