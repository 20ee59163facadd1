// SPDX-License-Identifier: Apache-2.0
// Arguments of EAL, and CPUs that it refuses.
#include "drivers/eal/eal.hpp"

#include <gtest/gtest.h>

#include "drivers/eal/host_facts.hpp"

namespace penstock::drivers {
namespace eal_test {

std::string joined(const std::vector<std::string>& args) {
    std::string text;
    for (const std::string& arg : args) {
        text += arg + " ";
    }
    return text;
}

TEST(EalArguments, SeveralWorkersMayShareACpu) {
    const EalOptions options{.worker_cpus = {0, 1, 1}, .main_cpu = 0, .memory_mb = 256, .file_prefix = "t"};
    EXPECT_EQ(joined(eal_arguments(options, true)),
              "penstockd --lcores 0@0,1@0,2@1,3@1 --main-lcore 0 -m 256 --no-telemetry --log-level=warning "
              "--in-memory --file-prefix=t "
              "--no-pci ");
    EXPECT_EQ(joined(eal_arguments(options, false)),
              "penstockd --lcores 0@0,1@0,2@1,3@1 --main-lcore 0 -m 256 --no-telemetry --log-level=warning "
              "--no-huge --no-shconf "
              "--file-prefix=t --no-pci ");
}

TEST(EalArguments, PagesOf1GbRoundTheMemoryUp) {
    EalOptions options{.worker_cpus = {1}, .main_cpu = 0, .memory_mb = 1'100, .file_prefix = "t"};
    options.hugepage_size = HugepageSize::Large1G;
    EXPECT_NE(joined(eal_arguments(options, true)).find(" -m 2048 "), std::string::npos);
    EXPECT_NE(joined(eal_arguments(options, false)).find(" -m 1100 "), std::string::npos);
}

TEST(EalArguments, AFolderLimitsTheSizeOfPages) {
    const EalOptions options{.worker_cpus = {1}, .main_cpu = 0, .memory_mb = 256, .file_prefix = "t"};
    EXPECT_EQ(joined(eal_arguments(options, true, "/dev/hugepages")),
              "penstockd --lcores 0@0,1@1 --main-lcore 0 -m 256 --no-telemetry --log-level=warning "
              "--huge-dir /dev/hugepages --huge-unlink=always --no-shconf --file-prefix=t --no-pci ");
}

TEST(EalArguments, PciIsLookedAtOnlyWhenAskedFor) {
    const EalOptions options{.worker_cpus = {1},
                             .pci_allow = {"0000:03:00.0", "0000:03:00.1"},
                             .file_prefix = "t",
                             .extra_args = {"--iova-mode=va"}};
    const std::string text = joined(eal_arguments(options, true));
    EXPECT_NE(text.find("-a 0000:03:00.0 -a 0000:03:00.1 --iova-mode=va "), std::string::npos) << text;
    EXPECT_EQ(text.find("--no-pci"), std::string::npos) << text;
}

TEST(EalArguments, PciDevicesOfAnotherProcessAreNotProbed) {
    const EalOptions options{
        .worker_cpus = {1}, .pci_allow = {"0000:03:00.0"}, .probes_pci_later = true, .file_prefix = "t"};
    const std::string text = joined(eal_arguments(options, true));
    EXPECT_EQ(text.find("0000:03:00.0"), std::string::npos) << text;
    EXPECT_NE(text.find("-a ffff:ff:1f.7 "), std::string::npos) << text;
    EXPECT_EQ(text.find("--no-pci"), std::string::npos) << text;
}

TEST(Eal, RefusesCpusThatAreNotOurs) {
    const auto eal = Eal::start({.worker_cpus = {1'000}, .main_cpu = allowed_cpus().front()});
    ASSERT_FALSE(eal);
    EXPECT_EQ(eal.error().code, Errc::InvalidArgument);
    EXPECT_NE(eal.error().what.find("worker CPU 1000"), std::string::npos) << eal.error().what;
    EXPECT_FALSE(Eal::start({.worker_cpus = {}, .main_cpu = allowed_cpus().front()}));
}

}  // namespace eal_test
}  // namespace penstock::drivers
