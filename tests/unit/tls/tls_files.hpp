// SPDX-License-Identifier: Apache-2.0
// The three files of mutual TLS in a scratch folder, replaced in the way of renewal tools.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "control/tls/material.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::tls {

struct TlsFolder {
    test::ScratchFolder folder;
    test::CertificateAuthority authority;
    Files files{(folder.path() / "gw.pem").string(), (folder.path() / "gw.key").string(),
                (folder.path() / "ca.pem").string()};

    static void put(const std::string& path, const std::string& text) {
        std::ofstream(path + ".new") << text;
        std::filesystem::rename(path + ".new", path);
    }
    void issue(const test::CertificateRequest& request) const {
        const test::Issued issued = authority.issue(request);
        put(files.certificate, issued.certificate);
        put(files.key, issued.key);
        put(files.authority, authority.pem());
    }
};

}  // namespace penstock::tls
