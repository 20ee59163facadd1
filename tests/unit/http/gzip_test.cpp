// SPDX-License-Identifier: Apache-2.0
#include "control/http/gzip.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

namespace penstock::http {
namespace gzip_test {

std::string gunzip(const std::string& packed, size_t bytes_max) {
    std::string out(bytes_max, '\0');
    z_stream stream{};
    EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    inflateEnd(&stream);
    return out;
}

TEST(Gzip, GivesBackWhatWentIn) {
    std::string text;
    for (int i = 0; i < 10'000; ++i) {
        text += "penstock_rx_packets_total{worker=\"" + std::to_string(i) + "\"} 1\n";
    }
    for (const std::string& in : {std::string(), std::string("x"), text}) {
        const std::string packed = gzip(in);
        EXPECT_EQ(gunzip(packed, in.size() + 1), in);
    }
    EXPECT_LT(gzip(text).size(), text.size() / 5);
}

TEST(AcceptsGzip, NamedOrByStarAndNotWithWeightZero) {
    for (const char* yes : {"gzip", "deflate, gzip;q=0.5", "GZIP", "*", "gzip ; q=1", "br,gzip",
                            "*;q=0, gzip", "gzip;q=0.001"}) {
        EXPECT_TRUE(accepts_gzip(yes)) << yes;
    }
    for (const char* no :
         {"", "identity", "gzip;q=0", "gzip; q=0.000", "*, gzip;q=0", "xgzip", "gzip2", "*;q=0", ",,;"}) {
        EXPECT_FALSE(accepts_gzip(no)) << no;
    }
}

}  // namespace gzip_test
}  // namespace penstock::http
