// Which of the collections that may hold endpoints is followed (EP-001): the best one that the server serves, and never two at once. What
// answers 404 is not served, and the next one is tried; while a lesser one is followed, the better ones are asked for again now and then,
// because servers are upgraded under us (APISYNC-001). What was read stays until the other collection has been listed.
//
// Once something has been listed, a 404 is believed only when it lasts: a proxy or a server that is just starting says it as well, and a
// lesser collection knows less (Endpoints end at a thousand addresses, and nobody writes them for slices that were made by hand).
//
// The collections themselves are asked, rather than the server's /apis: that needs no right beyond those that following needs (RBAC-001).
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "control/kube/collections.hpp"
#include "control/kube/reflector.hpp"
#include "control/kube/transport.hpp"

namespace penstock::kube {

class EndpointDiscovery final : private ResponseHandler {
 public:
    using Time = Reflector::Time;

    static constexpr std::chrono::minutes kLookAgain{10};
    static constexpr std::chrono::seconds kLookTimeout{30};
    static constexpr std::chrono::seconds kGoneAfter{60};

    // `candidates`, best first, at least one; `reflector` follows the first of them. Both outlive this.
    EndpointDiscovery(std::vector<Collection> candidates, Reflector& reflector, ServerAccess& server);
    ~EndpointDiscovery() override;
    EndpointDiscovery(const EndpointDiscovery&) = delete;
    EndpointDiscovery& operator=(const EndpointDiscovery&) = delete;

    [[nodiscard]] Time next_deadline() const;
    // Before the reflector's own on_time(), which would ask again where nothing is served.
    void on_time(Time now);

 private:
    struct Look {
        Transport::RequestId id;
        size_t candidate = 0;
        bool has_ended = false;
        bool is_served = false;
    };

    void on_head(const ResponseHead& head) override { look_->is_served = head.status == 200; }
    void on_body(std::string_view) override {}
    void on_end(const std::optional<TransportError>& error) override;

    [[nodiscard]] bool is_last() const { return followed_ + 1 == candidates_.size(); }
    // When the next candidate is followed instead; max: what is followed is served, as far as we know.
    [[nodiscard]] Time give_up_at() const;
    void follow(size_t candidate, Time now);
    void look_at(size_t candidate);
    void stop_looking();

    std::vector<Collection> candidates_;
    Reflector& reflector_;
    ServerAccess& server_;
    size_t followed_ = 0;
    std::optional<Time> not_served_since_;
    std::optional<Look> look_;
    Time look_again_ = Time::max();  // max: the best one is followed
};

}  // namespace penstock::kube
