#include "dataplane/pipeline/translate.hpp"

namespace penstock::pipeline {

void translate(WorkerContext& ctx, Burst& burst) noexcept {
    for (uint32_t at = 0; at < burst.hits.count; ++at) {
        translate_one(ctx, burst, burst.hits.at[at]);
    }
}

}  // namespace penstock::pipeline
