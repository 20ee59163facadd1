// SPDX-License-Identifier: Apache-2.0
// All generated gRPC services as one file: each would take longer for gRPC's headers than for its own code.
#include "penstock/v1/config.grpc.pb.cc"
#include "penstock/v1/debug.grpc.pb.cc"
#include "penstock/v1/peers.grpc.pb.cc"
#include "penstock/v1/status.grpc.pb.cc"
#include "penstock/v1/sync.grpc.pb.cc"
