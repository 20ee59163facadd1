// SPDX-License-Identifier: Apache-2.0
#include "control/sync/config_check.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "control/ipam/pool_rules.hpp"
#include "control/kube/client/kubeconfig.hpp"
#include "control/manifest/folder.hpp"
#include "control/sync/addresses/allocation_file.hpp"
#include "control/sync/addresses/assignment_settings.hpp"
#include "control/sync/external_ip_policy.hpp"
#include "control/tls/material.hpp"

namespace penstock::sync {
namespace {

using manifest::Folder;

class Checker {
 public:
    explicit Checker(const Options& options) : options_(options) {}

    std::vector<std::string> run() {
        check_source();
        check_pools();
        if (options_.allocate_addresses && !options_.manifests.empty()) {
            note("--allocation-file: ", read_allocations(options_.allocation_file));
        }
        if (!options_.external_ip_policy.empty()) {
            note("--external-ip-policy: ", read_external_ip_policy(options_.external_ip_policy));
        }
        if (std::ranges::any_of(options_.gateways,
                                [](const client::Target& target) { return !target.is_unix(); })) {
            note("", tls::read_material({options_.tls.certificate, options_.tls.key, options_.tls.authority},
                                        {}));
        }
        check_socket();
        return std::move(mistakes_);
    }

 private:
    template <typename T>
    void note(const char* option, const Result<T>& result) {
        if (!result) {
            mistakes_.push_back(option + result.error().what);
        }
    }

    // The objects under `path`, after their mistakes are noted. A folder may be empty. Null: not readable.
    std::shared_ptr<const kube::ObjectSet> read(const std::string& option, const std::filesystem::path& path,
                                                Folder::Kinds kinds) {
        if (std::error_code ignored; !std::filesystem::exists(path, ignored)) {
            mistakes_.push_back(option + ": no such file or folder: " + path.string());
            return nullptr;
        }
        Folder folder(path, Folder::WhenEmpty::Withdraw, kinds);
        const auto& contents = folder.load();
        for (const manifest::Problem& problem : contents.problems) {
            if (problem.severity == manifest::Problem::Severity::Error) {
                mistakes_.push_back(option + ": " + problem.to_string());
            }
        }
        return contents.objects;
    }

    void check_source() {
        if (!options_.kubeconfig.empty()) {
            note("--kubeconfig: ", kube::read_kubeconfig(options_.kubeconfig, options_.context));
        } else if (!options_.in_cluster) {
            read("--manifests", options_.manifests, Folder::Kinds::Cluster);
        }
    }

    void check_pools() {
        if (options_.address_pools.empty()) {
            return;
        }
        const auto objects = read("--address-pools", options_.address_pools, Folder::Kinds::AddressPools);
        std::vector<ipam::Pool> pools;
        if (objects != nullptr) {
            for (const auto& [name, pool] : objects->pools) {
                pools.push_back(pool.pool);
            }
        }
        for (const std::string& mistake :
             ipam::mistakes_in(std::move(pools), assignment_settings(options_, {}).protected_prefixes)) {
            mistakes_.push_back("--address-pools: " + mistake);
        }
    }

    void check_socket() {
        const std::filesystem::path socket = options_.monitor.socket;
        if (options_.monitor.socket_is_wanted && !socket.empty() &&
            !std::filesystem::is_directory(socket.parent_path())) {
            mistakes_.push_back("--listen: " + socket.string() +
                                ": no such folder: " + socket.parent_path().string());
        }
    }

    const Options& options_;
    std::vector<std::string> mistakes_;
};

}  // namespace

std::vector<std::string> mistakes_in(const Options& options) {
    return Checker(options).run();
}

}  // namespace penstock::sync
