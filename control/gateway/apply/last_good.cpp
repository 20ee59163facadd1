// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/apply/last_good.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

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
constexpr off_t kFileBytesMax = 1 << 30;

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

// A descriptor that closes itself. Errors of close() are checked only where they matter.
class File {
 public:
    explicit File(int fd) noexcept : fd_(fd) {}
    ~File() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    [[nodiscard]] int fd() const noexcept { return fd_; }
    int close() noexcept { return ::close(std::exchange(fd_, -1)); }

 private:
    int fd_;
};

std::unexpected<Error> unavailable(const std::string& path, const char* step) {
    return fail(Errc::Unavailable, path + ": " + step + ": " + std::strerror(errno));
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<size_t>(written));
    }
    return true;
}

Status write_atomically(const std::string& path, std::string_view bytes) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
        return fail(Errc::Unavailable, folder.string() + ": cannot be created: " + error.message());
    }
    const std::string beside = path + ".new";
    ::unlink(beside.c_str());  // left by a crash, possibly with another mode
    File file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.fd() < 0) {
        return unavailable(beside, "cannot be created");
    }
    const bool written = ::fchmod(file.fd(), 0600) == 0 && write_all(file.fd(), bytes) &&
                         ::fsync(file.fd()) == 0 && file.close() == 0 &&
                         ::rename(beside.c_str(), path.c_str()) == 0;
    if (!written) {
        auto failure = unavailable(beside, "cannot be written");
        ::unlink(beside.c_str());
        return failure;
    }
    // The rename is durable only when the folder is synced.
    const File parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent.fd() < 0 || ::fsync(parent.fd()) != 0) {
        return unavailable(folder.string(), "cannot be synced");
    }
    return {};
}

Result<std::optional<std::string>> read_whole(const std::string& path) {
    const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.fd() < 0) {
        if (errno == ENOENT) {
            return std::nullopt;
        }
        return unavailable(path, "cannot be read");
    }
    struct stat facts{};
    if (::fstat(file.fd(), &facts) != 0) {
        return unavailable(path, "cannot be read");
    }
    if (!S_ISREG(facts.st_mode) || facts.st_size > kFileBytesMax) {
        return fail(Errc::Corrupt, path + ": not a last-good file");
    }
    std::string bytes(static_cast<size_t>(facts.st_size), '\0');
    size_t have = 0;
    while (have < bytes.size()) {
        const ssize_t got = ::read(file.fd(), bytes.data() + have, bytes.size() - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return unavailable(path, "cannot be read");
        }
        if (got == 0) {
            break;  // truncated since fstat(): the checksum will fail
        }
        have += static_cast<size_t>(got);
    }
    bytes.resize(have);
    return bytes;
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
    if (file.size() > static_cast<size_t>(kFileBytesMax)) {
        return fail(Errc::Exhausted,
                    path + ": the configuration exceeds " + std::to_string(kFileBytesMax) + " bytes");
    }
    frame(file);
    return write_atomically(path, file);
}

Result<std::optional<LastGood>> read_last_good(const std::string& path) {
    PENSTOCK_TRY(const auto bytes, read_whole(path));
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
