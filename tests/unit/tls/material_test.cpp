// SPDX-License-Identifier: Apache-2.0
#include "control/tls/material.hpp"

#include <gtest/gtest.h>

#include "tls_files.hpp"

namespace penstock::tls {
namespace material_test {

TEST(Material, IsReadWithSubjectAndTimes) {
    const TlsFolder tls;
    tls.issue({.common_name = "gateway"});
    const auto material = read_material(tls.files, {});
    ASSERT_TRUE(material) << material.error().what;
    EXPECT_EQ(material->subject, "CN=gateway");
    const auto left = material->expires - std::chrono::system_clock::now();
    EXPECT_GT(left, std::chrono::hours(23));
    EXPECT_LE(left, std::chrono::hours(24));
    EXPECT_GT(material->authority_expires, std::chrono::system_clock::now());
}

TEST(Material, EachBrokenFile_HasItsOwnMessage) {
    const TlsFolder tls;
    tls.issue({.common_name = "gateway"});
    const test::Issued other = tls.authority.issue({.common_name = "other"});
    const auto& [certificate, key, ca] = tls.files;
    struct Row {
        const char* name;
        std::string file;
        std::string content;  // "": the file is missing
        std::string what;
    };
    const Row rows[] = {
        {"missing certificate", certificate, "",
         "--tls-cert: " + certificate + " cannot be read: No such file or directory"},
        {"missing key", key, "", "--tls-key: " + key + " cannot be read: No such file or directory"},
        {"missing authority", ca, "",
         "--tls-client-ca: " + ca + " cannot be read: No such file or directory"},
        {"no PEM", certificate, "hello\n",
         "--tls-cert: " + certificate + " is not a PEM file: it contains no certificate"},
        {"swapped", certificate, other.key,
         "--tls-cert: " + certificate + " holds a private key and no certificate"},
        {"key is a certificate", key, other.certificate,
         "--tls-key: " + key + " holds a certificate and no private key"},
        {"key is no PEM", key, "hello\n", "--tls-key: " + key + " holds no private key in PEM"},
        {"encrypted", key, test::encrypted_key(other.key, "secret"),
         "--tls-key: " + key + " is encrypted; store the key without a password"},
        {"mismatch", key, other.key,
         "--tls-key: " + key + " does not belong to the certificate in " + certificate + " (CN=gateway)"},
        {"authority is a key", ca, other.key,
         "--tls-client-ca: " + ca + " holds a private key and no certificate"},
        {"authority is no PEM", ca, "hello\n",
         "--tls-client-ca: " + ca + " is not a PEM file: it contains no certificate"},
        {"damaged", ca,
         tls.authority.pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
         "--tls-client-ca: " + ca + " certificate 2 in it is damaged"},
    };
    for (const Row& row : rows) {
        tls.issue({.common_name = "gateway"});
        if (row.content.empty()) {
            std::filesystem::remove(row.file);
        } else {
            TlsFolder::put(row.file, row.content);
        }
        const auto material = read_material(tls.files, {.authority = "--tls-client-ca"});
        ASSERT_FALSE(material) << row.name;
        EXPECT_EQ(material.error().what, row.what) << row.name;
    }
    tls.issue({});
    std::filesystem::remove(key);
    std::filesystem::create_directory(key);
    EXPECT_EQ(read_material(tls.files, {}).error().what, "--tls-key: " + key + " is a folder");
}

TEST(VerifyClient, RefusesWithSubjectAndReason) {
    const TlsFolder tls;
    tls.issue({.common_name = "gateway"});
    const auto material = read_material(tls.files, {});
    ASSERT_TRUE(material);
    EXPECT_TRUE(verify_client(*material, tls.authority.issue({.common_name = "admin"}).certificate, ""));
    const test::CertificateAuthority stranger("somebody-else");
    const auto unknown = verify_client(*material, stranger.issue({.common_name = "admin"}).certificate, "");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().what,
              "CN=admin (issuer CN=somebody-else): unable to get local issuer certificate");
    const auto impostor =
        verify_client(*material, test::CertificateAuthority().issue({.common_name = "admin"}).certificate,
                      tls.authority.pem());
    ASSERT_FALSE(impostor) << "an authority of the same name with another key";
    const auto expired = verify_client(
        *material, tls.authority.issue({.common_name = "late", .is_expired = true}).certificate, "");
    ASSERT_FALSE(expired);
    EXPECT_EQ(expired.error().what, "CN=late (issuer CN=penstock-test-ca): certificate has expired");
    EXPECT_FALSE(verify_client(*material, "", tls.authority.pem()));
    EXPECT_FALSE(verify_client(*material, "no certificate", ""));
}

}  // namespace material_test
}  // namespace penstock::tls
