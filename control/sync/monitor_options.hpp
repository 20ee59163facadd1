// SPDX-License-Identifier: Apache-2.0
// Options of the status pages and the status socket of penstock-sync.
#pragma once

#include <string>

namespace penstock::sync {

inline constexpr const char* kDefaultSocket = "/run/penstock/penstock-sync.sock";

struct MonitorOptions {
    std::string http;                     // ADDRESS:PORT; "": no pages
    std::string socket = kDefaultSocket;  // absolute path; "": none
    // The operator configured this socket, so the program must not start without it. For the default socket a
    // warning is enough: a second penstock-sync on a machine, or one without write access to /run, works
    // without it.
    bool socket_is_wanted = false;
    std::string socket_group;  // additional group with access; "": none
};

}  // namespace penstock::sync
