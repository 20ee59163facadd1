// SPDX-License-Identifier: Apache-2.0
// Accepts the TCP connections of a gRPC server and passes those that ConnectionLimit admits to gRPC. gRPC
// 1.51 has no connection limit of its own.
//
// gRPC owns a connection's descriptor and does not report its end. The acceptor keeps a duplicate, which is
// never read or written: gRPC shuts a connection down before it closes its descriptor, and that raises
// EPOLLHUP on the duplicate. A connection therefore takes two descriptors, and packets on it do not wake the
// acceptor's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "control/base/descriptor.hpp"
#include "control/log/line_budget.hpp"
#include "control/rpc/connection_limit.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::rpc {

// Current values.
struct ConnectionCounts {
    uint64_t open = 0;
    uint64_t refused_per_source = 0, refused_all = 0;  // since start, by ConnectionLimit::Rule
};

class TcpAcceptor {
 public:
    // Takes ownership of `connection`. Called on the acceptor's thread.
    using Take = std::function<void(int listener, int connection)>;

    // Listens on each HOST:PORT; connections wait until start(). 0.0.0.0 and [::] stand for both families, a
    // name for all of its addresses, and port 0 for any free port. Unavailable names the address and the
    // reason.
    static Result<std::unique_ptr<TcpAcceptor>> listen(std::span<const std::string> addresses,
                                                       ConnectionLimits limits = {});
    ~TcpAcceptor();  // calls stop()
    TcpAcceptor(const TcpAcceptor&) = delete;
    TcpAcceptor& operator=(const TcpAcceptor&) = delete;

    void start(Take take);
    // Closes the listeners. Open connections stay with gRPC. Idempotent.
    void stop();

    // Any thread.
    [[nodiscard]] ConnectionCounts counts() const noexcept;
    // Port of the first address.
    [[nodiscard]] uint16_t port() const;

 private:
    struct Open {
        Descriptor duplicate;
        IpAddr source;
    };
    TcpAcceptor(ConnectionLimits limits, Descriptor poll, Descriptor wake);
    Status add(const std::string& address);
    void run();
    // False: accepting failed, for example for lack of descriptors.
    bool accept_all(int listener);
    void take_connection(int listener, Descriptor connection, const IpAddr& source);
    void refuse(Descriptor connection, const IpAddr& source, ConnectionLimit::Rule rule);
    void watch_listeners(bool on);

    Descriptor poll_;
    Descriptor wake_;
    std::vector<Descriptor> listeners_;
    Take take_;
    ConnectionLimit limit_;
    const ConnectionLimits limits_;
    std::map<int, Open> open_;  // key: the duplicate descriptor
    log::LineBudget lines_;
    std::atomic<uint64_t> open_count_{0}, refused_per_source_{0}, refused_all_{0};
    std::atomic<bool> is_stopping_{false};
    std::thread thread_;
};

}  // namespace penstock::rpc
