// SPDX-License-Identifier: Apache-2.0
// Rights of callers.
#include "control/rpc/auth.hpp"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>

#include "control/rpc/errors.hpp"
#include "penstock/v1/config.grpc.pb.h"
#include "penstock/v1/debug.grpc.pb.h"
#include "penstock/v1/status.grpc.pb.h"

namespace penstock::rpc {
namespace auth_test {

TEST(Authorizer, RightsFollowTransportAndName) {
    const Authorizer authorizer({"ops"});
    EXPECT_TRUE(authorizer.may_configure({.by_unix_socket = true}));
    EXPECT_TRUE(authorizer.may_configure({.certificate_names = {"x", "ops"}}));
    EXPECT_TRUE(authorizer.may_read({.certificate_names = {"x"}}));
    EXPECT_EQ(authorizer.may_configure({.certificate_names = {"x", "y"}}).error().code,
              Errc::PermissionDenied);
    EXPECT_NE(authorizer.may_configure({.certificate_names = {"x", "y"}}).error().what.find("x, y"),
              std::string::npos);
    EXPECT_EQ(authorizer.may_read({}).error().code, Errc::PermissionDenied);
    EXPECT_EQ(Authorizer().may_configure({.certificate_names = {"ops"}}).error().code,
              Errc::PermissionDenied);
}

TEST(Authorizer, AGatewayFollowsWithACertificateOfItsOwn) {
    const Authorizer authorizer({"ops"});
    const std::vector<std::string> names{"edge-2", "192.0.2.2"};
    EXPECT_TRUE(authorizer.may_follow({.by_unix_socket = true}, names));
    EXPECT_TRUE(authorizer.may_follow({.certificate_names = {"x", "edge-2"}}, names));
    EXPECT_TRUE(authorizer.may_follow({.certificate_names = {"192.0.2.2"}}, names));
    EXPECT_FALSE(authorizer.may_follow({}, names));
    const auto refused = authorizer.may_follow({.certificate_names = {"ops", "edge-20"}}, names);
    ASSERT_FALSE(refused) << "the right to configure is not the identity of a gateway";
    EXPECT_EQ(refused.error().code, Errc::PermissionDenied);
    EXPECT_TRUE(refused.error().what.ends_with("(edge-2, 192.0.2.2); the names of this one are ops, edge-20"))
        << refused.error().what;
}

}  // namespace auth_test
}  // namespace penstock::rpc
