#include "control/http/server.hpp"

#include <civetweb.h>

#include <array>
#include <charconv>
#include <mutex>
#include <string_view>
#include <utility>

#include "control/http/knocking.hpp"
#include "dataplane/base/ip.hpp"

namespace penstock::http {
namespace {

struct Address {
    IpAddr host;
    uint16_t port = 0;
};

Result<Address> parse_address(const std::string& text) {
    const auto refuse = [&text] {
        return fail(Errc::InvalidArgument, "\"" + text + "\" must be ADDRESS:PORT, with an IPv6 address in brackets");
    };
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) {
        return refuse();
    }
    std::string host = text.substr(0, colon);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    const auto parsed = IpAddr::parse(bracketed ? host.substr(1, host.size() - 2) : host);
    if (!parsed || bracketed != (parsed->family() == IpFamily::V6)) {
        return refuse();
    }
    Address address{.host = *parsed};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (error != std::errc{} || stop != end) {
        return refuse();
    }
    return address;
}

const char* phrase(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 503:
            return "Service Unavailable";
        default:
            return status < 400 ? "OK" : "Error";
    }
}

Response answer_to(const Routes& routes, std::string_view method, std::string_view path) {
    if (method != "GET" && method != "HEAD") {
        return {.status = 405, .body = "only GET and HEAD\n"};
    }
    for (const std::string_view known : {path, std::string_view(kAnyPath)}) {
        if (const auto route = routes.find(known); route != routes.end()) {
            return route->second();
        }
    }
    Response missing{.status = 404, .body = "there are:\n"};
    for (const auto& [known, ignored] : routes) {
        missing.body += known + "\n";
    }
    return missing;
}

int handle(mg_connection* connection) {
    const mg_request_info* const request = mg_get_request_info(connection);
    const auto& routes = *static_cast<const Routes*>(request->user_data);
    const Response response =
        answer_to(routes, request->request_method, request->local_uri == nullptr ? std::string_view() : request->local_uri);
    std::string headers;
    for (const auto& [name, value] : response.headers) {
        headers += name + ": " + value + "\r\n";
    }
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
              "%sConnection: close\r\n\r\n",
              response.status, phrase(response.status), response.content_type.c_str(), response.body.size(), headers.c_str());
    if (std::string_view(request->request_method) != "HEAD") {
        mg_write(connection, response.body.data(), response.body.size());
    }
    return response.status;  // not 0: answered
}

}  // namespace

struct Server::Impl {
    Routes routes;
    mg_context* context = nullptr;
    std::string host;
    uint16_t port = 0;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
    const Knocking awake(impl_->host, impl_->port);
    mg_stop(impl_->context);
}

uint16_t Server::port() const {
    return impl_->port;
}

bool serves_ipv6() noexcept {
    return mg_check_feature(MG_FEATURES_IPV6) != 0;
}

Status check_address(const std::string& address) {
    const auto parsed = parse_address(address);
    return parsed ? Status() : std::unexpected(parsed.error());
}

Result<std::unique_ptr<Server>> Server::start(const std::vector<std::string>& addresses, Routes routes, int thread_count) {
    static std::once_flag once;
    std::call_once(once, [] { mg_init_library(0); });
    auto impl = std::make_unique<Impl>();
    impl->routes = std::move(routes);
    std::string listen;  // as civetweb reads it
    for (const std::string& address : addresses) {
        const auto parsed = parse_address(address);
        if (!parsed) {
            return std::unexpected(parsed.error());
        }
        if (parsed->host.family() == IpFamily::V6 && !serves_ipv6()) {
            return fail(Errc::Unavailable, "HTTP cannot listen on " + address + ": this system's civetweb was built without IPv6");
        }
        if (listen.empty()) {
            impl->host = parsed->host.to_string();
        }
        listen += (listen.empty() ? "" : ",") + address;
    }
    const std::string threads = std::to_string(thread_count);
    const std::string request_bytes = std::to_string(kRequestBytesMax);
    const std::string timeout = std::to_string(kRequestTimeoutMs);
    const std::array<const char*, 15> options{"listening_ports",
                                              listen.c_str(),
                                              "num_threads",
                                              threads.c_str(),
                                              "max_request_size",
                                              request_bytes.c_str(),
                                              "request_timeout_ms",
                                              timeout.c_str(),
                                              "enable_keep_alive",
                                              "no",
                                              "enable_directory_listing",
                                              "no",
                                              "tcp_nodelay",
                                              "1",
                                              nullptr};
    mg_callbacks callbacks{};
    callbacks.begin_request = handle;
    callbacks.log_message = [](const mg_connection*, const char*) { return 1; };  // broken requests are their senders' matter
    mg_init_data init{
        .callbacks = &callbacks, .user_data = &impl->routes, .configuration_options = const_cast<const char**>(options.data())};
    std::array<char, 256> text{};
    unsigned code = 0;
    mg_error_data error{.code = &code, .text = text.data(), .text_buffer_size = text.size()};
    impl->context = mg_start2(&init, &error);
    if (impl->context == nullptr) {
        return fail(Errc::Unavailable,
                    "HTTP cannot listen on " + listen + " (is it in use?)" + (text[0] == '\0' ? "" : ": " + std::string(text.data())));
    }
    mg_server_port bound{};
    mg_get_server_ports(impl->context, 1, &bound);
    impl->port = static_cast<uint16_t>(bound.port);
    return std::unique_ptr<Server>(new Server(std::move(impl)));
}

}  // namespace penstock::http
