// What may leave the gateway, and what may not, whatever came in. The judge keeps no model of the flows: it knows who is who (world.hpp),
// sees the frame that came and the frame that leaves (sight.hpp), and holds the gateway's books against each other.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/fuzz/pipeline/sight.hpp"
#include "tests/fuzz/pipeline/world.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::fuzz {

// How a frame came in.
struct Arrived {
    Frame frame;
    NicPortId port;
    bool from_host = false;
};

// By the addresses and id of fragments, and whether Linux sent them: the addresses that first ones have left with.
using FirstFragments = std::map<std::tuple<IpAddr, IpAddr, uint32_t, bool>, std::set<std::pair<IpAddr, IpAddr>>>;

class Judge {
 public:
    // Stops the program, with both frames as scapy lines, where `outcome` is none that may follow from `arrived`.
    void judge(const Arrived& arrived, const test::Outcome& outcome, const Rules& rules);
    // The same of the books: each entry of the tables is counted once with its Service and its backend, fragments that wait are there, and
    // all bounds hold.
    static void audit(test::VirtualGateway& gateway, uint32_t workers);

 private:
    void judge_untagged(const Arrived& arrived, const test::Outcome& outcome, const Rules& rules);
    [[nodiscard]] bool has_spoken(const IpAddr& address) const { return std::ranges::find(spoke_, address) != spoke_.end(); }

    std::vector<IpAddr> spoke_;  // sources of what came from the wire or from the host
    FirstFragments first_fragments_;
};

}  // namespace penstock::fuzz
