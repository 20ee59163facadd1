// Where penstock-sync can be asked what it does.
#pragma once

#include <string>

namespace penstock::sync {

inline constexpr const char* kDefaultSocket = "/run/penstock/penstock-sync.sock";

struct MonitorOptions {
    std::string http;                     // ADDRESS:PORT; "": no pages
    std::string socket = kDefaultSocket;  // absolute path; "": none
    // Somebody asked for this socket: without it the program must not start. The default one is worth a warning only, because a second
    // penstock-sync on a machine, or one without a right to /run, does its work without it.
    bool socket_is_wanted = false;
    std::string socket_group;  // who else may ask; "": nobody
};

}  // namespace penstock::sync
