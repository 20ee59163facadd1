// SPDX-License-Identifier: Apache-2.0
#include "control/process/grpc_lines.hpp"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <atomic>

namespace penstock::process {
namespace {

std::atomic<GrpcLineSink> current{nullptr};

}  // namespace

void take_grpc_lines(GrpcLineSink sink) {
    current = sink;
    keep_grpc_initialized();
}

void keep_grpc_initialized() {
    static const bool initialized = [] {
        gpr_set_log_function([](gpr_log_func_args* line) {
            if (const GrpcLineSink to = current; to != nullptr) {
                to(line->severity == GPR_LOG_SEVERITY_ERROR, line->message);
            }
        });
        grpc_init();
        return true;
    }();
    static_cast<void>(initialized);
}

}  // namespace penstock::process
