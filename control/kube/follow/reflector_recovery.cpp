// SPDX-License-Identifier: Apache-2.0
// How a reflector continues after a trouble: what it requests next, and when.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "control/kube/follow/reflector.hpp"

namespace penstock::kube {
namespace {

// `field label not supported: spec.clusterIP`, or `"spec.clusterIP" is not a known field selector` (1.20).
// The refusal of a streamed list has another text.
bool is_about_field(const Trouble& trouble) {
    return trouble.what.find("field label") != std::string::npos ||
           trouble.what.find("field selector") != std::string::npos;
}

// Also if a stream broke off: a middlebox may not let streams pass.
bool is_refusal_to_stream(const Trouble& trouble) {
    switch (trouble.kind) {
        case Trouble::Kind::Refused:
            return !is_about_field(trouble);
        case Trouble::Kind::Forbidden:
        case Trouble::Kind::NoEnd:
        case Trouble::Kind::Broken:
            return true;
        default:
            return false;
    }
}

}  // namespace

void Reflector::on_trouble(Exchange& answer, Time now) {
    const Trouble& trouble = *answer.trouble;
    ++errors_[trouble.name];
    is_not_served_ = trouble.kind == Trouble::Kind::NotServed;
    if (answer.doing == Doing::Streaming && is_refusal_to_stream(trouble)) {
        server_.log.info(described("no streamed lists (" + trouble.what + "), so lists are read in pages"));
        streamed_lists_again_ = now + kStreamedListRetry;
        plan_list();
        due_ = trouble.kind == Trouble::Kind::Broken ? backoff_.after_failure(now) : now;
        return;
    }
    if (is_refusal_of_field_selector(trouble)) {
        server_.log.info(described("the server does not support the field selector (" + trouble.what +
                                   "), so it is left out"));
        is_field_selector_refused_ = true;
        plan_list();
        due_ = now;
        return;
    }
    report(trouble);
    switch (trouble.kind) {
        case Trouble::Kind::Expired: {
            const bool first = expiry_backoff_.is_rested(now);
            const Time later = expiry_backoff_.after_failure(now);
            plan_list_after_expiry(answer);
            due_ = first ? now : later;
            break;
        }
        case Trouble::Kind::Behind:
            server_.log.warn(described("the server is behind version " + version_ +
                                       "; a list of its current version is used"));
            plan_list();
            list_.any_version = true;
            due_ =
                expiry_backoff_.after_failure(now, std::max(trouble.retry_after, std::optional{kBehindWait}));
            break;
        case Trouble::Kind::Unauthorized:
            server_.transport.credentials_rejected();
            due_ = std::exchange(retried_credentials_, true) ? backoff_.after_failure(now) : now;
            break;
        case Trouble::Kind::Forbidden:
            due_ = now + kForbiddenWait;
            break;
        case Trouble::Kind::Busy:  // no information about the version
        case Trouble::Kind::NotServed:
            due_ = backoff_.after_failure(now, trouble.retry_after);
            break;
        case Trouble::Kind::Refused:
        case Trouble::Kind::Unreachable:
        case Trouble::Kind::Broken:
        case Trouble::Kind::NoEnd:
            due_ = backoff_.after_failure(now, trouble.retry_after);
            // Not only after broken streams: a server that was away for so long may have been restored, with
            // another history (APISYNC-010).
            if (++failures_ == kFailuresMax) {
                plan_list();
            }
            break;
    }
}

bool Reflector::is_refusal_of_field_selector(const Trouble& trouble) const {
    return trouble.name == "http_400" && !asked().field_selector.empty();
}

void Reflector::plan_list_after_expiry(const Exchange& answer) {
    const bool was_continued = answer.doing == Doing::Listing && !list_.continue_token.empty();
    const bool had_begun = answer.doing != Doing::Watching && list_.continue_token.empty();
    const bool limited = list_.limited && !was_continued;
    plan_list();
    list_.limited = limited;
    // Servers before 1.19 interpret `limit` with a version as exactly that version, which they may no longer
    // have.
    list_.any_version = list_.any_version || had_begun;
}

// Restarts the list at its first page.
void Reflector::plan_list() {
    table_.drop_list();
    list_ = {.any_version = list_.any_version};
    next_ = Next::List;
    failures_ = 0;
}

}  // namespace penstock::kube
