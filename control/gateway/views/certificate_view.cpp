// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/views/certificate_view.hpp"

#include "control/tls/expiry.hpp"

namespace penstock::gateway {
namespace {

v1::Certificate::Validity validity(tls::Material::Time valid_from, tls::Material::Time expires,
                                   tls::Material::Time now) {
    using std::chrono::floor;
    using std::chrono::seconds;
    v1::Certificate::Validity out;
    out.set_expires_s(floor<seconds>(expires.time_since_epoch()).count());
    out.set_left_s(floor<seconds>(expires - now).count());
    out.set_renewal_is_late(tls::ExpiryNotice::state_at(now, valid_from, expires).has_value());
    return out;
}

}  // namespace

v1::Certificate certificate_message(const tls::Material& material, const std::string& error,
                                    tls::Material::Time now) {
    v1::Certificate out;
    out.set_subject(material.subject);
    *out.mutable_own() = validity(material.valid_from, material.expires, now);
    *out.mutable_authority() = validity(material.authority_valid_from, material.authority_expires, now);
    out.set_error(error);
    return out;
}

}  // namespace penstock::gateway
