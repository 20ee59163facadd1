// SPDX-License-Identifier: Apache-2.0
// Guarantees of a NicPort about the queue on which packets arrive.
#pragma once

namespace penstock::pipeline {

struct PortPromises {
    // All packets of one 5-tuple arrive on the queues of one worker: true with RSS over as many queues as
    // workers, or with a single worker. The worker that receives the first packet of a full-NAT flow then
    // owns the flow. False, for example, with one af_xdp queue for several workers. In that case only
    // ReplyOwner::of_tuple() and of_client() keep a flow together.
    bool flow_stays_on_queue = false;
    // rte_flow rules steer each block of SNAT ports to its owner's queue; packets that arrive elsewhere are
    // counted.
    bool snat_blocks_on_queue = false;
};

}  // namespace penstock::pipeline
