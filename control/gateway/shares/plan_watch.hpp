// SPDX-License-Identifier: Apache-2.0
// The plan of shares in force, and the file of --shares that it follows. A file that is missing, has a
// mistake, or is not newer changes nothing: the plan in force stays, and each fault is logged once. The plan
// in force is saved beside the last good configuration, so that a restart with such a file, or without one,
// continues with it. Runs a thread of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "control/base/file_follower.hpp"
#include "control/gateway/shares/gateway_shares.hpp"
#include "control/shares/plan.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::gateway {

// Empty: `next` may replace `now`. Otherwise the rule that forbids it: gateways compare plans by version, so
// a version has one content, and an old file that returns must not undo a newer plan.
[[nodiscard]] std::string why_not_newer(const shares::Plan& now, const shares::Plan& next);

class PlanWatch {
 public:
    struct Options {
        std::filesystem::path file;
        std::string saved;  // path; "": the plan is not saved
        std::string gateway_name;
        // Why this gateway cannot apply a valid plan; "": it can. Null: it can apply each one.
        std::function<std::string(const shares::Plan&)> obstacle = {};
    };
    // Reads the file and the saved plan, and selects the newer valid one. Errors are those of the file, if no
    // plan is saved.
    static Result<std::unique_ptr<PlanWatch>> open(Options options);
    // Stops the thread.
    ~PlanWatch();
    PlanWatch(const PlanWatch&) = delete;
    PlanWatch& operator=(const PlanWatch&) = delete;

    // Called on the thread, and during start(), with each plan that is newer than the last one.
    using OnChange = std::function<void(std::shared_ptr<const GatewayShares>)>;
    // Follows the file from now on. Once.
    Status start(OnChange on_change);
    // Makes the thread read the file now, and log the result even if nothing changed. Any thread; does not
    // block.
    void reload();

    // The plan in force, never null; any thread.
    [[nodiscard]] std::shared_ptr<const GatewayShares> shares() const;
    // Why the file, or saving the plan, has failed; "": well. Any thread.
    [[nodiscard]] std::string fault() const;

 private:
    explicit PlanWatch(Options options) : options_(std::move(options)) {}
    // A valid plan that this gateway can apply.
    [[nodiscard]] Result<shares::Plan> parse(const std::string& text) const;
    void look(FileFollower::Report report);
    void put_in_force(shares::Plan plan);
    void save(const std::string& text);
    [[nodiscard]] bool is_unsaved() const;
    // Logs a fault that is new. "": the end of one.
    void note(const std::string& fault, FileFollower::Report report);

    const Options options_;
    OnChange on_change_;
    std::string seen_;  // the content of the file at the last look
    mutable std::mutex mutex_;
    std::shared_ptr<const GatewayShares> shares_;
    std::string fault_, save_fault_;
    std::unique_ptr<FileFollower> follower_;  // last: its thread uses all members above
};

}  // namespace penstock::gateway
