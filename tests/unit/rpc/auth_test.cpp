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

}  // namespace auth_test
}  // namespace penstock::rpc
