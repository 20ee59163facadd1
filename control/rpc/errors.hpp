// SPDX-License-Identifier: Apache-2.0
// Mapping of the project's error codes to gRPC status codes. This is the only place that does it.
#pragma once

#include <grpcpp/support/status.h>

#include "dataplane/base/result.hpp"

namespace penstock::rpc {

[[nodiscard]] inline grpc::StatusCode status_code(Errc code) noexcept {
    switch (code) {
        case Errc::InvalidArgument:
            return grpc::StatusCode::INVALID_ARGUMENT;
        case Errc::NotFound:
            return grpc::StatusCode::NOT_FOUND;
        case Errc::AlreadyExists:
            return grpc::StatusCode::ALREADY_EXISTS;
        case Errc::Exhausted:
            return grpc::StatusCode::RESOURCE_EXHAUSTED;
        case Errc::Unavailable:
            return grpc::StatusCode::UNAVAILABLE;
        case Errc::PermissionDenied:
            return grpc::StatusCode::PERMISSION_DENIED;
        case Errc::Unsupported:
            return grpc::StatusCode::UNIMPLEMENTED;
        case Errc::Outdated:
            return grpc::StatusCode::FAILED_PRECONDITION;
        case Errc::Corrupt:
            return grpc::StatusCode::DATA_LOSS;
        case Errc::Internal:
            return grpc::StatusCode::INTERNAL;
    }
    return grpc::StatusCode::INTERNAL;
}

[[nodiscard]] inline grpc::Status to_status(const Error& error) {
    return {status_code(error.code), error.what};
}
[[nodiscard]] inline grpc::Status to_status(const Status& status) {
    return status ? grpc::Status::OK : to_status(status.error());
}

}  // namespace penstock::rpc
