// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/apply/last_good.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "control/base/whole_file.hpp"
#include "control/log/log.hpp"
#include "control/rpc/convert.hpp"
#include "dataplane/base/bytes.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::gateway {
namespace {

constexpr std::string_view kMagic = "PENSTKLG";
constexpr uint32_t kVersion = 2;
constexpr size_t kDigestAt = kMagic.size() + sizeof(uint32_t) + sizeof(uint64_t);
constexpr size_t kDigestBytes = 32;
constexpr size_t kHeaderBytes = kDigestAt + kDigestBytes;
// A million endpoints take about 50 MB. A larger file than this limit is not a last-good file, and reading it
// must not exhaust memory.
constexpr size_t kFileBytesMax = 1 << 30;

using Digest = std::array<uint8_t, kDigestBytes>;

// Covers everything except the digest itself, so that a damaged header is detected too.
Digest digest_of(std::string_view head, std::string_view payload) {
    Digest digest{};
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    unsigned length = 0;
    const bool done = context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1 &&
                      EVP_DigestUpdate(context, head.data(), head.size()) == 1 &&
                      EVP_DigestUpdate(context, payload.data(), payload.size()) == 1 &&
                      EVP_DigestFinal_ex(context, digest.data(), &length) == 1;
    EVP_MD_CTX_free(context);
    PENSTOCK_CHECK(done && length == kDigestBytes);
    return digest;
}

// Fills in the header, for which `file` has space at its beginning.
void frame(std::string& file) {
    const std::string_view payload = std::string_view(file).substr(kHeaderBytes);
    std::memcpy(file.data(), kMagic.data(), kMagic.size());
    store(file.data() + kMagic.size(), kVersion);
    store(file.data() + kMagic.size() + sizeof(kVersion), static_cast<uint64_t>(payload.size()));
    store(file.data() + kDigestAt, digest_of(std::string_view(file).substr(0, kDigestAt), payload));
}

Result<std::string_view> unframed(std::string_view file) {
    if (file.size() < kHeaderBytes || !file.starts_with(kMagic)) {
        return fail(Errc::Corrupt, "not a last-good file");
    }
    const auto version = load<uint32_t>(file.data() + kMagic.size());
    const auto length = load<uint64_t>(file.data() + kMagic.size() + sizeof(version));
    const std::string_view payload = file.substr(kHeaderBytes);
    if (load<Digest>(file.data() + kDigestAt) != digest_of(file.substr(0, kDigestAt), payload)) {
        return fail(Errc::Corrupt, "checksum does not match the contents");
    }
    if (version != kVersion || length != payload.size()) {
        return fail(Errc::Corrupt, "format version is " + std::to_string(version) +
                                       ", but this program reads version " + std::to_string(kVersion));
    }
    return payload;
}

}  // namespace

Status write_last_good(const std::string& path, const DesiredState& state) {
    std::string file(kHeaderBytes, '\0');
    v1::FullState message;
    message.mutable_version()->set_source(state.version.source);
    message.mutable_version()->set_version(state.version.number);
    *message.mutable_environment() = rpc::to_proto(state.environment);
    message.AppendToString(&file);
    // Concatenated messages are one message (protobuf encoding). A single message with everything would take
    // four times the memory.
    for (const auto& [key, service] : state.services) {
        message.Clear();
        *message.add_services() = rpc::to_proto(*service);
        message.AppendToString(&file);
    }
    if (file.size() > kFileBytesMax) {
        return fail(Errc::Exhausted,
                    path + ": the configuration exceeds " + std::to_string(kFileBytesMax) + " bytes");
    }
    frame(file);
    return replace_file(path, file);
}

Result<std::optional<LastGood>> read_last_good(const std::string& path) {
    PENSTOCK_TRY(const auto bytes, read_whole_file(path, kFileBytesMax));
    if (!bytes) {
        return std::nullopt;
    }
    PENSTOCK_TRY_IN(path, const auto payload, unframed(*bytes));
    v1::FullState message;
    if (!message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
        return fail(Errc::Corrupt, path + ": content is not a penstock.v1.FullState");
    }
    LastGood out;
    out.state.version = {message.version().source(), message.version().version()};
    auto environment = rpc::from_proto(message.environment());
    if (!environment) {
        return fail(Errc::Corrupt, path + ": " + environment.error().what);
    }
    out.state.environment = std::move(*environment);
    for (const auto& in : message.services()) {
        auto service = rpc::from_proto(in);
        if (!service) {
            out.refused.push_back(service.error().what);
            continue;
        }
        const model::ServiceKey key = service->key;
        out.state.services.insert_or_assign(key, std::make_shared<const model::Service>(std::move(*service)));
    }
    return out;
}

std::optional<LastGood> load_last_good(const std::string& path) {
    auto& logger = log::get("control");
    auto read = read_last_good(path);
    if (!read) {
        logger.error("the last good configuration is not usable, starting without one: {}",
                     read.error().what);
        return std::nullopt;
    }
    if (*read) {
        const LastGood& last_good = **read;
        logger.info("last good configuration from {}: {} service ports, version {} of {}", path,
                    last_good.state.services.size(), last_good.state.version.number,
                    last_good.state.version.source);
        for (const std::string& why : last_good.refused) {
            logger.warn("last good configuration: {}", why);
        }
    }
    return std::move(*read);
}

}  // namespace penstock::gateway
