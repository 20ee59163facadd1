// SPDX-License-Identifier: Apache-2.0
// Cost of a cluster's endpoints in penstock-sync before any evaluation: memory of the stored objects, time to
// decode them from lists and from watch events, time to detect that a relist contains no change.
//
//   objects_memory [SLICES [ENDPOINTS]]     (default: 5000 slices of 50)
//
// The text is equal to an API server 1.2x's for a Deployment's slice, managed fields included, in chunks of
// curl's size.
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/decode.hpp"
#include "control/kube/json/json_stream.hpp"
#include "control/kube/list_reader.hpp"
#include "dataplane/base/check.hpp"
#include "perf/harness/report.hpp"

namespace penstock::perf {
namespace {

constexpr size_t kChunkBytes = 16 * 1024;  // CURL_MAX_WRITE_SIZE
constexpr size_t kPage = 500;              // items, as the reflector requests (APISYNC-002)
constexpr int kRuns = 5;

struct Size {
    size_t slices = 5000;
    size_t endpoints = 50;  // of each slice
};

std::string endpoint_json(size_t slice, size_t endpoint) {
    const size_t serial = slice * 1000 + endpoint;
    const std::string node = std::to_string(serial * 7919 % 1000);
    return R"({"addresses":["10.)" + std::to_string(64 + slice % 64) + "." +
           std::to_string(slice / 64 % 256) + "." + std::to_string(endpoint % 256) +
           R"("],"conditions":{"ready":true,"serving":true,"terminating":false},)" +
           R"("targetRef":{"kind":"Pod","namespace":"team-)" + std::to_string(slice % 50) +
           R"(","name":"web-)" + std::to_string(slice) + "-7d9f8b6c5d-" + std::to_string(10000 + endpoint) +
           R"(","uid":"0b6f7a52-5b0a-4d6e-9a55-)" + std::to_string(100'000'000'000 + serial) +
           R"("},"nodeName":"ip-10-0-)" + node + R"(.eu-central-1.compute.internal",)" +
           R"("zone":"eu-central-1)" + static_cast<char>('a' + serial % 3) + R"("})";
}

std::string slice_json(size_t slice, const Size& size) {
    const std::string number = std::to_string(slice);
    std::string text =
        R"({"metadata":{"name":"web-)" + number + R"(-x7k2p","generateName":"web-)" + number +
        R"(-","namespace":"team-)" + std::to_string(slice % 50) + R"(","uid":"7f1c1f64-53d4-4d8e-8d53-)" +
        std::to_string(100'000'000'000 + slice) + R"(","resourceVersion":")" +
        std::to_string(900'000 + slice) +
        R"(","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web-)" + number +
        R"(","endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io","kubernetes.io/service-name":"web-)" +
        number +
        R"("},"annotations":{"endpoints.kubernetes.io/last-change-trigger-time":"2026-01-02T03:04:05Z"},"ownerReferences":[{"apiVersion":"v1",)"
        R"("kind":"Service","name":"web","uid":"b5a0ff5a-8a3f-4d0f-8d70-2c61a5d6cf1a","controller":true,"blockOwnerDeletion":true}],)"
        R"("managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"discovery.k8s.io/v1","fieldsType":)"
        R"("FieldsV1","fieldsV1":{"f:addressType":{},"f:endpoints":{},"f:metadata":{"f:annotations":{".":{},"f:x":{}},"f:labels":{".":{}}}}}]},)"
        R"("addressType":"IPv4","endpoints":[)";
    for (size_t i = 0; i < size.endpoints; ++i) {
        text += (i == 0 ? "" : ",") + endpoint_json(slice, i);
    }
    return text + R"(],"ports":[{"name":"http","port":8080,"protocol":"TCP"}]})";
}

std::vector<std::string> pages_of(const Size& size) {
    std::vector<std::string> pages;
    for (size_t first = 0; first < size.slices; first += kPage) {
        std::string page =
            R"({"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"950000"},"items":[)";
        for (size_t slice = first; slice < std::min(first + kPage, size.slices); ++slice) {
            page += (slice == first ? "" : ",") + slice_json(slice, size);
        }
        pages.push_back(page + "]}");
    }
    return pages;
}

template <typename Function>
void in_chunks(std::string_view text, const Function& function) {
    for (size_t at = 0; at < text.size(); at += kChunkBytes) {
        PENSTOCK_CHECK(function(text.substr(at, kChunkBytes)).has_value());
    }
}

void keep(kube::DecodedObject object, kube::Objects& kept) {
    PENSTOCK_CHECK(object.object.has_value());
    kept.slices.insert_or_assign(std::move(object.id.name),
                                 std::get<kube::EndpointSlicePtr>(std::move(*object.object)));
}

kube::Objects from_lists(const std::vector<std::string>& pages) {
    kube::Objects kept;
    kube::Decoder decoder;
    for (const std::string& page : pages) {
        kube::ListReader reader(decoder, kube::ObjectKind::EndpointSlice);
        in_chunks(page, [&](std::string_view chunk) { return reader.push(chunk); });
        kube::ListPage read = reader.finish().value();
        for (kube::DecodedObject& item : read.items) {
            keep(std::move(item), kept);
        }
    }
    return kept;
}

kube::Objects from_events(const std::string& stream_text) {
    kube::Objects kept;
    kube::Decoder decoder;
    kube::JsonStream stream;
    in_chunks(stream_text, [&](std::string_view chunk) {
        return stream.push(chunk, [&](std::string_view json) -> Status {
            auto event = kube::decode_watch_event(decoder, kube::ObjectKind::EndpointSlice, json);
            keep(std::move(event.value().object.value()), kept);
            return {};
        });
    });
    return kept;
}

// Of this thread, so that other processes on the machine affect it as little as possible.
double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// CPU seconds of the fastest of kRuns.
template <typename Function>
double fastest(const Function& function) {
    double best = 1e9;
    for (int run = 0; run < kRuns; ++run) {
        const double begin = cpu_seconds();
        function();
        best = std::min(best, cpu_seconds() - begin);
    }
    return best;
}

void measure(const Size& size) {
    const auto total = static_cast<double>(size.slices * size.endpoints);
    const std::vector<std::string> pages = pages_of(size);
    size_t list_bytes = 0;
    for (const std::string& page : pages) {
        list_bytes += page.size();
    }
    std::string stream;
    for (size_t slice = 0; slice < size.slices; ++slice) {
        stream += R"({"type":"ADDED","object":)" + slice_json(slice, size) + "}\n";
    }

    const size_t heap_before = mallinfo2().uordblks + mallinfo2().hblkhd;
    const kube::Objects kept = from_lists(pages);
    const size_t heap_after = mallinfo2().uordblks + mallinfo2().hblkhd;
    PENSTOCK_CHECK(kept.slices.size() == size.slices);
    const double list_s = fastest([&] { PENSTOCK_CHECK(from_lists(pages).slices.size() == size.slices); });
    const double watch_s = fastest([&] { PENSTOCK_CHECK(from_events(stream).slices.size() == size.slices); });
    const kube::Objects again = from_lists(pages);
    const double compare_s = fastest([&] {
        PENSTOCK_CHECK(std::ranges::equal(kept.slices, again.slices, [](const auto& one, const auto& other) {
            return one.first == other.first && *one.second == *other.second;
        }));
    });

    print_remark(std::to_string(size.slices) + " slices of " + std::to_string(size.endpoints) +
                 " endpoints, " + std::to_string(list_bytes / 1'000'000) +
                 " MB of JSON; sizeof(Endpoint) is " + std::to_string(sizeof(kube::Endpoint)));
    print_value("objects.bytes_per_endpoint", static_cast<double>(heap_after - heap_before) / total, "B");
    print_value("objects.decode_ns_per_endpoint", list_s * 1e9 / total, "ns");
    print_value("objects.decode_list", static_cast<double>(list_bytes) / list_s / 1e6, "MB/s");
    print_value("objects.decode_watch", static_cast<double>(stream.size()) / watch_s / 1e6, "MB/s");
    print_value("objects.decode_all", list_s, "s");
    print_value("objects.compare_ns_per_endpoint", compare_s * 1e9 / total, "ns");
}

size_t number(std::string_view text) {
    size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? value : 0;
}

}  // namespace
}  // namespace penstock::perf

int main(int argc, char** argv) {
    penstock::perf::Size size;
    size.slices = argc > 1 ? penstock::perf::number(argv[1]) : size.slices;
    size.endpoints = argc > 2 ? penstock::perf::number(argv[2]) : size.endpoints;
    if (argc > 3 || size.slices == 0 || size.endpoints == 0) {
        penstock::perf::print_remark("usage: objects_memory [SLICES [ENDPOINTS]]");
        return 2;
    }
    penstock::perf::measure(size);
    return 0;
}
