// SPDX-License-Identifier: Apache-2.0
#include "control/kube/follow/collections.hpp"

#include <gtest/gtest.h>

namespace penstock::kube {
namespace collections_test {

TEST(Collections, TheWholeClusterByDefault_APISYNC001) {
    EXPECT_EQ(services_of({}).path, "/api/v1/services");
    EXPECT_EQ(all_nodes().path, "/api/v1/nodes");
    const auto endpoints = endpoints_of({});
    ASSERT_EQ(endpoints.size(), 3U);
    EXPECT_EQ(endpoints[0].path, "/apis/discovery.k8s.io/v1/endpointslices");
    EXPECT_EQ(endpoints[1].path, "/apis/discovery.k8s.io/v1beta1/endpointslices");
    EXPECT_EQ(endpoints[2].path, "/api/v1/endpoints");
    EXPECT_EQ(endpoints[1].api_version, "discovery.k8s.io/v1beta1");
    EXPECT_EQ(endpoints[2].kind, ObjectKind::Endpoints);
}

TEST(Collections, OneNamespace_APISYNC001) {
    const Scope scope{.namespace_name = "shop"};
    EXPECT_EQ(services_of(scope).path, "/api/v1/namespaces/shop/services");
    EXPECT_EQ(endpoints_of(scope)[0].path, "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices");
    EXPECT_EQ(endpoints_of(scope)[2].path, "/api/v1/namespaces/shop/endpoints");
}

TEST(Collections, EndpointsOnlyWhereConfigured_EP001) {
    const auto endpoints = endpoints_of({.endpoints_only = true});
    ASSERT_EQ(endpoints.size(), 1U);
    EXPECT_EQ(endpoints[0].path, "/api/v1/endpoints");
}

TEST(Collections, FiltersAsTheSheetAllowsThem_APISYNC016) {
    EXPECT_EQ(services_of({}).label_selector,
              "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name");
    EXPECT_EQ(services_of({}).field_selector, "spec.clusterIP!=None");
    for (const Collection& endpoints : endpoints_of({})) {
        EXPECT_EQ(endpoints.label_selector, "!service.kubernetes.io/headless") << endpoints.path;
        EXPECT_EQ(endpoints.field_selector, "") << endpoints.path;
    }
    EXPECT_EQ(all_nodes().label_selector + all_nodes().field_selector, "");
}

TEST(Collections, ServicesOfANamedProxyAreAskedForWhereTheyMayBeOurs_SVC004) {
    EXPECT_EQ(services_of({.with_proxy_services = true}).label_selector, "!service.kubernetes.io/headless");
}

TEST(Collections, AListGoesOnWithItsTokenAlone_APISYNC002) {
    const Collection nodes = all_nodes();
    EXPECT_EQ(list_target(nodes, {}), "/api/v1/nodes?limit=500");
    EXPECT_EQ(list_target(nodes, {.limited = false}), "/api/v1/nodes");
    EXPECT_EQ(list_target(nodes, {.not_older_than = "7"}),
              "/api/v1/nodes?limit=500&resourceVersion=7&resourceVersionMatch=NotOlderThan");
    EXPECT_EQ(list_target(nodes, {.continue_token = "a+b/c=", .not_older_than = "7"}),
              "/api/v1/nodes?limit=500&continue=a%2Bb%2Fc%3D");
}

TEST(Collections, AWatchAsksForBookmarksAndAnEnd_APISYNC004) {
    EXPECT_EQ(watch_target(all_nodes(), {.version = "7", .timeout_s = 345}),
              "/api/v1/nodes?watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=345");
    EXPECT_EQ(watch_target(all_nodes(), {.version = "", .initial_events = true, .timeout_s = 300}),
              "/api/v1/"
              "nodes?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch="
              "NotOlderThan&timeoutSeconds=300");
}

TEST(Collections, VersionsAndSelectorsAreEscaped_APISYNC009) {
    EXPECT_EQ(watch_target(services_of({}), {.version = "a b&c", .timeout_s = 300}),
              "/api/v1/"
              "services?labelSelector=%21service.kubernetes.io%2Fheadless%2C%21service.kubernetes.io%"
              "2Fservice-proxy-name"
              "&fieldSelector=spec.clusterIP%21%3DNone&watch=1&allowWatchBookmarks=true&resourceVersion=a%"
              "20b%26c&timeoutSeconds=300");
}

}  // namespace collections_test
}  // namespace penstock::kube
