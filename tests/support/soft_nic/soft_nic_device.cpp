// SPDX-License-Identifier: Apache-2.0
#include "tests/support/soft_nic/soft_nic_device.hpp"

#include <bus_vdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_errno.h>
#include <rte_flow_driver.h>
#include <rte_interrupts.h>
#include <rte_ip.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "tests/support/patience.hpp"

namespace penstock::test {
namespace {

// The default key of drivers: that of the RSS specification's verification suite, then zeros.
constexpr uint8_t kDefaultKey[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                     0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                     0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                     0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
constexpr uint64_t kRxChecksums =
    RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
constexpr uint64_t kTxChecksums =
    RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
constexpr uint32_t kLinkBytes = 18;  // Ethernet header and one VLAN tag
constexpr uint16_t kDescriptorsMin = 64, kDescriptorsMax = 4096;
constexpr size_t kKernelFramesMax = 1000;
// Number of frames, counted over the whole port, after which `wander` moves a flow to another queue.
constexpr uint64_t kWanderEvery = 7;

std::map<std::string, SoftNicDevice*>& devices() {
    static std::map<std::string, SoftNicDevice*> all;
    return all;
}
std::mutex& devices_mutex() {
    static std::mutex of_all;
    return of_all;
}

void drain_ring(rte_ring* ring) {
    void* packet = nullptr;
    while (ring != nullptr && rte_ring_dequeue(ring, &packet) == 0) {
        rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
    }
}

rte_ring* make_ring(const char* kind, uint16_t port, uint16_t queue, uint16_t descriptors) {
    const std::string ring_name = "soft" + std::to_string(port) + kind + std::to_string(queue);
    // Several threads may loop frames back into a receive queue, and any thread may take sent frames. The
    // other ends have one user each.
    return rte_ring_create(ring_name.c_str(), descriptors, SOCKET_ID_ANY, RING_F_EXACT_SZ);
}

std::vector<uint8_t> bytes_of(const rte_mbuf& packet) {
    std::vector<uint8_t> bytes;
    bytes.reserve(packet.pkt_len);
    for (const rte_mbuf* part = &packet; part != nullptr; part = part->next) {
        const auto* data = rte_pktmbuf_mtod(part, const uint8_t*);
        bytes.insert(bytes.end(), data, data + part->data_len);
    }
    return bytes;
}

uint8_t* at(rte_mbuf& packet, uint32_t offset) {
    return rte_pktmbuf_mtod_offset(&packet, uint8_t*, offset);
}

// Fills in checksums as hardware does: at the headers described by the mbuf, over the existing content. The
// pseudo header's sum must already be in the field; otherwise the resulting checksum is wrong.
void fill_in_checksums(rte_mbuf& packet) {
    if ((packet.ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0) {
        auto* ip = reinterpret_cast<rte_ipv4_hdr*>(at(packet, packet.l2_len));
        ip->hdr_checksum = 0;
        ip->hdr_checksum = static_cast<uint16_t>(~rte_raw_cksum(ip, packet.l3_len));
    }
    const uint64_t l4 = packet.ol_flags & RTE_MBUF_F_TX_L4_MASK;
    if (l4 != RTE_MBUF_F_TX_TCP_CKSUM && l4 != RTE_MBUF_F_TX_UDP_CKSUM) {
        return;
    }
    const uint32_t offset = packet.l2_len + packet.l3_len;
    const uint32_t field = offset + (l4 == RTE_MBUF_F_TX_TCP_CKSUM ? 16u : 6u);
    uint32_t end = packet.pkt_len;
    if ((packet.ol_flags & RTE_MBUF_F_TX_IPV4) != 0) {  // padding of the frame is not summed
        uint16_t length = 0;
        std::memcpy(&length, at(packet, packet.l2_len + 2u), sizeof length);
        end = packet.l2_len + rte_be_to_cpu_16(length);
    }
    uint16_t sum = 0;
    if (field + 2 > packet.data_len || end > packet.pkt_len ||
        rte_raw_cksum_mbuf(&packet, offset, end - offset, &sum) != 0) {
        return;
    }
    sum = static_cast<uint16_t>(~sum);
    if (sum == 0 && l4 == RTE_MBUF_F_TX_UDP_CKSUM) {
        sum = 0xffff;
    }
    std::memcpy(at(packet, field), &sum, sizeof sum);
}

uint64_t next_random(uint64_t& state) {  // splitmix64 (Steele, Lea, Flood 2014)
    uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// ethdev's operations, each forwarded to the device. Each device has its own table, so that unsupported
// operations are absent.
SoftNicDevice& device(const rte_eth_dev* dev) {
    return SoftNicDevice::of(dev);
}
int close_device(rte_eth_dev* dev) {
    delete &device(dev);
    // Owned by this driver; ethdev must not free it.
    dev->data->dev_private = nullptr;
    dev->data->mac_addrs = nullptr;
    return 0;
}

rte_flow_ops flow_ops() {
    rte_flow_ops ops{};
    ops.validate = [](rte_eth_dev* dev, const rte_flow_attr* attr, const rte_flow_item items[],
                      const rte_flow_action actions[], rte_flow_error* error) {
        const std::scoped_lock held(device(dev).mutex);
        return device(dev).flows.validate(dev->data->nb_rx_queues, attr, items, actions, error);
    };
    ops.create = [](rte_eth_dev* dev, const rte_flow_attr* attr, const rte_flow_item items[],
                    const rte_flow_action actions[], rte_flow_error* error) -> rte_flow* {
        if (dev->data->dev_started == 0) {  // as mlx5 and Intel's drivers do
            rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr,
                               "the port is not started");
            return nullptr;
        }
        const std::scoped_lock held(device(dev).mutex);
        return device(dev).flows.create(dev->data->nb_rx_queues, attr, items, actions, error);
    };
    ops.destroy = [](rte_eth_dev* dev, rte_flow* flow, rte_flow_error* error) {
        const std::scoped_lock held(device(dev).mutex);
        return device(dev).flows.destroy(flow, error);
    };
    ops.flush = [](rte_eth_dev* dev, rte_flow_error*) {
        const std::scoped_lock held(device(dev).mutex);
        device(dev).flows.flush();
        return 0;
    };
    ops.query = [](rte_eth_dev* dev, rte_flow* flow, const rte_flow_action* action, void* data,
                   rte_flow_error* error) {
        const std::scoped_lock held(device(dev).mutex);
        return device(dev).flows.query(flow, action, data, error);
    };
    ops.isolate = [](rte_eth_dev* dev, int set, rte_flow_error* error) {
        if (device(dev).arguments.isolate == Isolate::Never) {
            return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr,
                                      "isolated mode is not supported");
        }
        if (dev->data->dev_started != 0 && device(dev).arguments.isolate == Isolate::Stopped) {
            return rte_flow_error_set(error, EBUSY, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr,
                                      "the port must be stopped first");
        }
        const std::scoped_lock held(device(dev).mutex);
        device(dev).isolated = set != 0;
        return 0;
    };
    return ops;
}
const rte_flow_ops kFlowOps = flow_ops();

eth_dev_ops operations(const DeviceArguments& arguments) {
    eth_dev_ops ops{};
    ops.dev_configure = [](rte_eth_dev* dev) { return device(dev).configure(); };
    ops.dev_start = [](rte_eth_dev* dev) { return device(dev).start(); };
    ops.dev_stop = [](rte_eth_dev* dev) { return device(dev).stop(); };
    ops.dev_close = close_device;
    ops.dev_infos_get = [](rte_eth_dev* dev, rte_eth_dev_info* info) { return device(dev).info(*info); };
    ops.link_update = [](rte_eth_dev* dev, int) { return device(dev).update_link(); };
    ops.rx_queue_setup = [](rte_eth_dev* dev, uint16_t queue, uint16_t descriptors, unsigned,
                            const rte_eth_rxconf*, rte_mempool* pool) {
        return device(dev).set_up_rx_queue(queue, descriptors, pool);
    };
    ops.tx_queue_setup = [](rte_eth_dev* dev, uint16_t queue, uint16_t descriptors, unsigned,
                            const rte_eth_txconf*) {
        return device(dev).set_up_tx_queue(queue, descriptors);
    };
    ops.rx_queue_release = [](rte_eth_dev* dev, uint16_t queue) { device(dev).release_rx_queue(queue); };
    ops.tx_queue_release = [](rte_eth_dev* dev, uint16_t queue) { device(dev).release_tx_queue(queue); };
    ops.stats_get = [](rte_eth_dev* dev, rte_eth_stats* stats) { return device(dev).read_stats(*stats); };
    ops.stats_reset = [](rte_eth_dev* dev) {
        device(dev).reset_stats();
        return 0;
    };
    ops.mac_addr_set = [](rte_eth_dev* dev, rte_ether_addr* mac) { return device(dev).set_mac(*mac); };
    // ethdev stores the state switched by these four in dev->data, which is_for_us() reads.
    ops.promiscuous_enable = ops.promiscuous_disable = ops.allmulticast_enable =
        ops.allmulticast_disable = [](rte_eth_dev*) { return 0; };
    ops.mtu_set = [](rte_eth_dev* dev, uint16_t) {
        return dev->data->dev_started != 0 ? -EBUSY : 0;
    };  // as i40e does
    if (arguments.rss_types != 0) {
        if (arguments.key != Access::Hidden) {
            ops.rss_hash_update = [](rte_eth_dev* dev, rte_eth_rss_conf* conf) {
                return device(dev).update_rss(*conf);
            };
            ops.rss_hash_conf_get = [](rte_eth_dev* dev, rte_eth_rss_conf* conf) {
                return device(dev).read_rss(*conf);
            };
        }
        if (arguments.reta != 0 && arguments.reta_access != Access::Hidden) {
            ops.reta_update = [](rte_eth_dev* dev, rte_eth_rss_reta_entry64* groups, uint16_t size) {
                return device(dev).update_reta(groups, size);
            };
            ops.reta_query = [](rte_eth_dev* dev, rte_eth_rss_reta_entry64* groups, uint16_t size) {
                return device(dev).read_reta(groups, size);
            };
        }
    }
    if (arguments.flow_rules != 0) {
        ops.flow_ops_get = [](rte_eth_dev*, const rte_flow_ops** flow) {
            *flow = &kFlowOps;
            return 0;
        };
    }
    if (arguments.interrupts) {
        ops.rx_queue_intr_enable = [](rte_eth_dev* dev, uint16_t queue) {
            return device(dev).arm_interrupt(queue, true);
        };
        ops.rx_queue_intr_disable = [](rte_eth_dev* dev, uint16_t queue) {
            return device(dev).arm_interrupt(queue, false);
        };
    }
    ops.is_removed = [](rte_eth_dev* dev) { return dev->state == RTE_ETH_DEV_REMOVED ? 1 : 0; };
    return ops;
}

}  // namespace

SoftNicDevice::SoftNicDevice(rte_eth_dev& its_dev, const DeviceArguments& its_arguments,
                             const std::string& its_name)
    : dev(its_dev),
      arguments(its_arguments),
      name(its_name),
      handle(*this),
      flows(arguments),
      ops_(operations(its_arguments)),
      key_(its_arguments.key_bytes),
      random_state_(its_arguments.seed) {
    std::ranges::copy(kDefaultKey, key_.begin());
    hashed_by_ = key_;
    reta_.resize(arguments.reta);
    const auto number = static_cast<uint8_t>(std::atoi(name.c_str() + name.find_first_of("0123456789")));
    const std::array<uint8_t, 6> mac =
        arguments.mac.value_or(std::array<uint8_t, 6>{2, 's', 'o', 'f', 't', number});
    std::ranges::copy(mac, mac_.addr_bytes);
    dev.dev_ops = &ops_;
    dev.rx_pkt_burst = rx_burst;
    dev.tx_pkt_burst = tx_burst;
    dev.rx_queue_count = rx_pending;
    dev.data->mac_addrs = &mac_;
    dev.data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
    if (arguments.interrupts) {
        dev.data->dev_flags |= RTE_ETH_DEV_INTR_LSC | RTE_ETH_DEV_INTR_RMV;
    }
    dev.data->dev_private = this;
    const std::scoped_lock held(devices_mutex());
    devices()[name] = this;
}

SoftNicDevice::~SoftNicDevice() {
    {
        const std::scoped_lock held(devices_mutex());
        devices().erase(name);
    }
    end_interrupts();
    for (uint16_t queue = 0; queue < rx_.size(); ++queue) {
        release_rx_queue(queue);
        release_tx_queue(queue);
    }
}

int SoftNicDevice::info(rte_eth_dev_info& to) const {
    to.max_rx_queues = to.max_tx_queues = arguments.queues;
    to.min_rx_bufsize = 1024;
    to.min_mtu = RTE_ETHER_MIN_MTU;
    to.max_mtu = arguments.mtu_max;
    to.max_rx_pktlen = arguments.mtu_max + kLinkBytes;
    to.max_mac_addrs = 1;
    to.rx_desc_lim = to.tx_desc_lim = {.nb_max = kDescriptorsMax, .nb_min = kDescriptorsMin, .nb_align = 8};
    to.flow_type_rss_offloads = arguments.rss_types;
    to.hash_key_size =
        arguments.rss_types == 0 || arguments.key == Access::Hidden ? uint8_t{0} : arguments.key_bytes;
    to.reta_size = arguments.rss_types == 0 ? uint16_t{0} : arguments.reta;
    to.rx_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER | (arguments.checksum ? kRxChecksums : 0) |
                         (arguments.rss_hash && arguments.rss_types != 0 ? RTE_ETH_RX_OFFLOAD_RSS_HASH : 0);
    to.tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | (arguments.checksum ? kTxChecksums : 0);
    to.speed_capa = RTE_ETH_LINK_SPEED_10G;
    return 0;
}

int SoftNicDevice::configure() {
    const rte_eth_conf& conf = dev.data->dev_conf;
    if (conf.lpbk_mode > 1 || (conf.lpbk_mode == 1 && !arguments.loopback)) {
        return -ENOTSUP;
    }
    const std::scoped_lock held(mutex);
    looped_back_ = conf.lpbk_mode == 1;
    const bool with_rss = (conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) != 0;
    rss_types_ = 0;
    if (with_rss) {
        if (const int result = update_rss(conf.rx_adv_conf.rss_conf); result != 0) {
            return result;
        }
    }
    for (size_t i = 0; i < reta_.size(); ++i) {
        reta_[i] = static_cast<uint16_t>(i % std::max<size_t>(dev.data->nb_rx_queues, 1));
    }
    return 0;
}

int SoftNicDevice::start() {
    for (uint16_t queue = 0; queue < dev.data->nb_rx_queues; ++queue) {
        const uint32_t room = rte_pktmbuf_data_room_size(rx_[queue].pool) - RTE_PKTMBUF_HEADROOM;
        if (dev.data->mtu + kLinkBytes > room &&
            (dev.data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER) == 0) {
            return -EINVAL;
        }
        dev.data->rx_queue_state[queue] = RTE_ETH_QUEUE_STATE_STARTED;
    }
    std::fill_n(dev.data->tx_queue_state, dev.data->nb_tx_queues, uint8_t{RTE_ETH_QUEUE_STATE_STARTED});
    set_up_interrupts();
    running_ = true;
    update_link();
    return 0;
}

int SoftNicDevice::stop() {
    {
        const std::scoped_lock held(mutex);
        running_ = false;
        flows.flush();  // RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP is not offered
    }
    drain();
    end_interrupts();
    std::fill_n(dev.data->rx_queue_state, dev.data->nb_rx_queues, uint8_t{RTE_ETH_QUEUE_STATE_STOPPED});
    std::fill_n(dev.data->tx_queue_state, dev.data->nb_tx_queues, uint8_t{RTE_ETH_QUEUE_STATE_STOPPED});
    update_link();
    return 0;
}

void SoftNicDevice::drain() {
    for (uint16_t queue = 0; queue < rx_.size(); ++queue) {
        drain_ring(rx_[queue].ring);
        drain_ring(tx_[queue].ring);
    }
}

int SoftNicDevice::set_up_rx_queue(uint16_t queue, uint16_t descriptors, rte_mempool* pool) {
    RxQueue& made = rx_[queue];
    made.ring = make_ring("_rx", dev.data->port_id, queue, descriptors);
    if (made.ring == nullptr) {
        return -rte_errno;
    }
    made.device = this;
    made.pool = pool;
    dev.data->rx_queues[queue] = &made;
    return 0;
}

int SoftNicDevice::set_up_tx_queue(uint16_t queue, uint16_t descriptors) {
    TxQueue& made = tx_[queue];
    made.ring = make_ring("_tx", dev.data->port_id, queue, descriptors);
    if (made.ring == nullptr) {
        return -rte_errno;
    }
    made.device = this;
    dev.data->tx_queues[queue] = &made;
    return 0;
}

void SoftNicDevice::release_rx_queue(uint16_t queue) {
    drain_ring(rx_[queue].ring);
    rte_ring_free(rx_[queue].ring);
    rx_[queue].ring = nullptr;
}

void SoftNicDevice::release_tx_queue(uint16_t queue) {
    drain_ring(tx_[queue].ring);
    rte_ring_free(tx_[queue].ring);
    tx_[queue].ring = nullptr;
}

int SoftNicDevice::update_rss(const rte_eth_rss_conf& to) {
    if ((to.rss_hf & ~arguments.rss_types) != 0) {
        return -EINVAL;
    }
    if (to.rss_key != nullptr && to.rss_key_len != 0) {
        if (arguments.key == Access::Fixed || arguments.key == Access::Hidden) {
            return -ENOTSUP;
        }
        if (to.rss_key_len != arguments.key_bytes) {
            return -EINVAL;
        }
        if (arguments.key == Access::Set) {
            std::copy_n(to.rss_key, key_.size(), key_.begin());
            if (arguments.spread != Spread::Lies) {
                hashed_by_ = key_;
            }
        }
    }
    rss_types_ = to.rss_hf;
    return 0;
}

int SoftNicDevice::read_rss(rte_eth_rss_conf& to) const {
    if (to.rss_key != nullptr) {
        if (to.rss_key_len != 0 && to.rss_key_len < key_.size()) {
            return -EINVAL;
        }
        std::ranges::copy(key_, to.rss_key);
    }
    to.rss_key_len = static_cast<uint8_t>(key_.size());
    to.rss_hf = rss_types_;
    return 0;
}

int SoftNicDevice::update_reta(const rte_eth_rss_reta_entry64* groups, uint16_t size) {
    if (size != reta_.size()) {
        return -EINVAL;
    }
    if (arguments.reta_access == Access::Fixed) {
        return -ENOTSUP;
    }
    const std::scoped_lock held(mutex);
    for (uint16_t i = 0; i < size && arguments.reta_access != Access::Ignored; ++i) {
        const rte_eth_rss_reta_entry64& group = groups[i / RTE_ETH_RETA_GROUP_SIZE];
        if ((group.mask >> (i % RTE_ETH_RETA_GROUP_SIZE) & 1) != 0) {
            const bool is_another = arguments.reta_access == Access::Partly && i + 1 < size;
            const unsigned wanted = group.reta[i % RTE_ETH_RETA_GROUP_SIZE] + (is_another ? 1U : 0U);
            reta_[i] = static_cast<uint16_t>(wanted % dev.data->nb_rx_queues);
        }
    }
    return 0;
}

int SoftNicDevice::read_reta(rte_eth_rss_reta_entry64* groups, uint16_t size) const {
    if (size != reta_.size()) {
        return -EINVAL;
    }
    for (uint16_t i = 0; i < size; ++i) {
        rte_eth_rss_reta_entry64& group = groups[i / RTE_ETH_RETA_GROUP_SIZE];
        if ((group.mask >> (i % RTE_ETH_RETA_GROUP_SIZE) & 1) != 0) {
            const bool is_beyond = arguments.reta_access == Access::Beyond && i + 1 == size;
            group.reta[i % RTE_ETH_RETA_GROUP_SIZE] = is_beyond ? dev.data->nb_rx_queues : reta_[i];
        }
    }
    return 0;
}

int SoftNicDevice::update_link() {
    rte_eth_link link{};
    link.link_speed = RTE_ETH_SPEED_NUM_10G;
    link.link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
    link.link_autoneg = RTE_ETH_LINK_AUTONEG;
    link.link_status = running_ && link_ && !removed_ ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN;
    return rte_eth_linkstatus_set(&dev, &link);
}

int SoftNicDevice::read_stats(rte_eth_stats& stats) const {
    for (uint16_t queue = 0; queue < rx_.size(); ++queue) {
        const uint64_t in = rx_[queue].totals.packets, in_bytes = rx_[queue].totals.bytes;
        const uint64_t out = tx_[queue].totals.packets, out_bytes = tx_[queue].totals.bytes;
        stats.ipackets += in;
        stats.ibytes += in_bytes;
        stats.opackets += out;
        stats.obytes += out_bytes;
        if (queue < RTE_ETHDEV_QUEUE_STAT_CNTRS) {
            stats.q_ipackets[queue] = in;
            stats.q_ibytes[queue] = in_bytes;
            stats.q_opackets[queue] = out;
            stats.q_obytes[queue] = out_bytes;
        }
    }
    stats.imissed = missed_;
    stats.rx_nombuf = no_mbuf_;
    stats.ierrors = errors_;
    stats.oerrors = tx_errors_;
    return 0;
}

void SoftNicDevice::reset_stats() {
    for (size_t queue = 0; queue < rx_.size(); ++queue) {
        rx_[queue].totals.packets = rx_[queue].totals.bytes = 0;
        tx_[queue].totals.packets = tx_[queue].totals.bytes = 0;
    }
    missed_ = no_mbuf_ = errors_ = tx_errors_ = 0;
}

int SoftNicDevice::set_mac(const rte_ether_addr& mac) {
    const std::scoped_lock held(mutex);
    rte_ether_addr_copy(&mac, &mac_);
    return 0;
}

// One descriptor per queue, as MSI-X vectors are.
void SoftNicDevice::set_up_interrupts() {
    if (!arguments.interrupts || dev.data->dev_conf.intr_conf.rxq == 0 || dev.intr_handle != nullptr) {
        return;
    }
    rte_intr_handle* made = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
    const uint16_t queues = dev.data->nb_rx_queues;
    if (made == nullptr || rte_intr_vec_list_alloc(made, nullptr, queues) != 0) {
        rte_intr_instance_free(made);
        return;
    }
    rte_intr_type_set(made, RTE_INTR_HANDLE_VDEV);
    rte_intr_efd_counter_size_set(made, sizeof(uint64_t));
    for (uint16_t queue = 0; queue < queues; ++queue) {
        rx_[queue].event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        rte_intr_vec_list_index_set(made, queue, RTE_INTR_VEC_RXTX_OFFSET + queue);
        rte_intr_efds_index_set(made, queue, rx_[queue].event_fd);
    }
    rte_intr_nb_efd_set(made, queues);
    rte_intr_max_intr_set(made, queues + 1);
    dev.intr_handle = made;
}

void SoftNicDevice::end_interrupts() {
    if (dev.intr_handle == nullptr) {
        return;
    }
    rte_intr_free_epoll_fd(dev.intr_handle);
    rte_intr_vec_list_free(dev.intr_handle);
    rte_intr_instance_free(dev.intr_handle);
    dev.intr_handle = nullptr;
    for (RxQueue& queue : rx_) {
        if (queue.event_fd >= 0) {
            close(std::exchange(queue.event_fd, -1));
        }
        queue.armed = false;
    }
}

int SoftNicDevice::arm_interrupt(uint16_t queue, bool armed) {
    RxQueue& of = rx_[queue];
    if (of.event_fd < 0) {
        return -ENOTSUP;
    }
    of.armed = armed;
    // Frames that arrived before arming would otherwise wait for the next frame. deliver() stores first and
    // then reads the flag; this side does the reverse, so that at least one of the two sees the other's
    // write.
    if (armed && rte_ring_count(of.ring) != 0) {
        interrupt(of);
    }
    return 0;
}

void SoftNicDevice::interrupt(RxQueue& queue) {
    if (queue.armed.exchange(false)) {
        ++interrupts;
        eventfd_write(queue.event_fd, 1);
    }
}

bool SoftNicDevice::is_for_us(std::span<const uint8_t> frame) const {
    if (frame.size() < RTE_ETHER_HDR_LEN) {
        return false;
    }
    rte_ether_addr to{};
    std::copy_n(frame.begin(), RTE_ETHER_ADDR_LEN, to.addr_bytes);
    if (dev.data->promiscuous != 0 || rte_is_broadcast_ether_addr(&to) != 0 ||
        rte_is_same_ether_addr(&to, &mac_) != 0) {
        return true;
    }
    return rte_is_multicast_ether_addr(&to) != 0 && dev.data->all_multicast != 0;
}

SoftNicDevice::Choice SoftNicDevice::choose_queue(const FrameFields& fields) {
    const uint16_t queues = dev.data->nb_rx_queues;
    Choice choice;
    choice.hash = rss_types_ == 0 ? std::nullopt : rss_hash(fields, rss_types_, hashed_by_);
    switch (arguments.spread) {
        case Spread::Rss:
        case Spread::Lies:
            if (choice.hash) {
                choice.queue = reta_.empty() ? static_cast<uint16_t>(*choice.hash % queues)
                                             : reta_[*choice.hash % reta_.size()];
            }
            break;
        case Spread::Random:
            choice.queue = static_cast<uint16_t>((next_random(random_state_) >> 32) % queues);
            break;
        case Spread::Zero:
            break;
        case Spread::Wander:
            choice.queue =
                static_cast<uint16_t>((choice.hash.value_or(0) + received_ / kWanderEvery) % queues);
            break;
    }
    return choice;
}

SoftNicDevice::Choice SoftNicDevice::choose_by_rule(const FrameFields& fields, const FlowFate& fate) const {
    if (fate.kind == FlowFate::Kind::Queue) {
        return {fate.queues.front(), {}};
    }
    const auto hash = rss_hash(fields, fate.rss_types != 0 ? fate.rss_types : arguments.rss_types,
                               fate.rss_key.empty() ? hashed_by_ : fate.rss_key);
    return {fate.queues[hash.value_or(0) % fate.queues.size()], hash};
}

rte_mbuf* SoftNicDevice::make_mbuf(RxQueue& queue, std::span<const uint8_t> frame) {
    rte_mbuf* first = nullptr;
    rte_mbuf* last = nullptr;
    do {
        rte_mbuf* part = rte_pktmbuf_alloc(queue.pool);
        if (part == nullptr) {
            rte_pktmbuf_free(first);
            return nullptr;
        }
        const size_t bytes = std::min<size_t>(frame.size(), rte_pktmbuf_tailroom(part));
        std::memcpy(rte_pktmbuf_append(part, static_cast<uint16_t>(bytes)), frame.data(), bytes);
        frame = frame.subspan(bytes);
        if (first == nullptr) {
            first = part;
        } else {
            last->next = part;
            first->pkt_len += static_cast<uint32_t>(bytes);
            ++first->nb_segs;
        }
        last = part;
    } while (!frame.empty());
    first->port = dev.data->port_id;
    return first;
}

Received SoftNicDevice::deliver(const FrameFields& fields, const Choice& choice,
                                std::optional<uint32_t> mark) {
    RxQueue& queue = rx_[choice.queue];
    rte_mbuf* packet = nullptr;
    for (const Patience patience;
         rte_ring_full(queue.ring) != 0 || (packet = make_mbuf(queue, fields.frame)) == nullptr;) {
        if (!waits || !patience.wait()) {
            ++(rte_ring_full(queue.ring) != 0 ? missed_ : no_mbuf_);
            return {Received::Fate::Missed, choice.queue};
        }
    }
    const uint64_t offloads = dev.data->dev_conf.rxmode.offloads;
    if ((offloads & kRxChecksums) != 0) {
        packet->ol_flags |= checksum_flags(fields);
    }
    if (choice.hash && (offloads & RTE_ETH_RX_OFFLOAD_RSS_HASH) != 0) {
        packet->hash.rss = *choice.hash;
        packet->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
    }
    if (mark) {
        packet->hash.fdir.hi = *mark;
        packet->ol_flags |= RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
    }
    if (rte_ring_enqueue(queue.ring, packet) != 0) {
        rte_pktmbuf_free(packet);
        ++missed_;
        return {Received::Fate::Missed, choice.queue};
    }
    interrupt(queue);
    return {Received::Fate::Queued, choice.queue};
}

Received SoftNicDevice::receive(std::span<const uint8_t> frame) {
    const std::scoped_lock held(mutex);
    if (!running_ || removed_ || !link_) {
        return {};
    }
    const FrameFields fields = read_fields(frame);
    if (frame.size() > dev.data->mtu + (fields.vlan_tci ? kLinkBytes : uint32_t{RTE_ETHER_HDR_LEN})) {
        ++errors_;
        return {};
    }
    if (!is_for_us(frame)) {
        return {};
    }
    ++received_;
    std::optional<uint32_t> mark;
    const FlowFate* fate = flows.decide(fields, mark);
    if (fate != nullptr && fate->kind == FlowFate::Kind::Drop) {
        return {Received::Fate::Dropped, 0};
    }
    if (fate == nullptr && isolated) {
        kernel_.emplace_back(frame.begin(), frame.end());
        if (kernel_.size() > kKernelFramesMax) {
            kernel_.pop_front();
        }
        return {Received::Fate::ToKernel, 0};
    }
    return deliver(fields, fate != nullptr ? choose_by_rule(fields, *fate) : choose_queue(fields), mark);
}

uint16_t SoftNicDevice::rx_burst(void* queue, rte_mbuf** packets, uint16_t count) {
    auto& from = *static_cast<RxQueue*>(queue);
    if (from.device->removed_.load(std::memory_order_relaxed)) {
        return 0;
    }
    const auto taken = static_cast<uint16_t>(
        rte_ring_dequeue_burst(from.ring, reinterpret_cast<void**>(packets), count, nullptr));
    uint64_t bytes = 0;
    for (uint16_t i = 0; i < taken; ++i) {
        bytes += packets[i]->pkt_len;
    }
    if (taken != 0) {
        from.totals.packets.fetch_add(taken, std::memory_order_relaxed);
        from.totals.bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
    return taken;
}

uint32_t SoftNicDevice::rx_pending(void* queue) {
    return rte_ring_count(static_cast<RxQueue*>(queue)->ring);
}

uint16_t SoftNicDevice::tx_burst(void* queue, rte_mbuf** packets, uint16_t count) {
    auto& to = *static_cast<TxQueue*>(queue);
    return to.device->send(to, packets, count);
}

uint16_t SoftNicDevice::send(TxQueue& queue, rte_mbuf** packets, uint16_t count) {
    if (removed_.load(std::memory_order_relaxed)) {
        return 0;
    }
    const bool is_lost = !link_.load(std::memory_order_relaxed);
    // Only one worker sends on a queue, so the room seen here stays available.
    const auto room = looped_back_ || is_lost
                          ? count
                          : static_cast<uint16_t>(std::min<unsigned>(count, rte_ring_free_count(queue.ring)));
    uint64_t bytes = 0;
    for (uint16_t i = 0; i < room; ++i) {
        if (arguments.checksum) {
            fill_in_checksums(*packets[i]);
        }
        bytes += packets[i]->pkt_len;
    }
    if (is_lost) {
        rte_pktmbuf_free_bulk(packets, room);
        tx_errors_ += room;
        return room;
    }
    if (looped_back_) {
        for (uint16_t i = 0; i < room; ++i) {
            static_cast<void>(receive(bytes_of(*packets[i])));
        }
        rte_pktmbuf_free_bulk(packets, room);
    } else if (room != 0) {
        rte_ring_enqueue_burst(queue.ring, reinterpret_cast<void**>(packets), room, nullptr);
    }
    queue.totals.packets.fetch_add(room, std::memory_order_relaxed);
    queue.totals.bytes.fetch_add(bytes, std::memory_order_relaxed);
    return room;
}

size_t SoftNicDevice::take_sent(std::span<rte_mbuf*> out) {
    size_t taken = 0;
    const size_t queues = std::max<size_t>(dev.data->nb_tx_queues, 1);
    for (size_t i = 0; i < queues && taken < out.size(); ++i) {
        rte_ring* ring = tx_[(next_tx_ + i) % queues].ring;
        if (ring != nullptr) {
            taken += rte_ring_dequeue_burst(ring, reinterpret_cast<void**>(out.data() + taken),
                                            static_cast<unsigned>(out.size() - taken), nullptr);
        }
    }
    next_tx_ = (next_tx_ + 1) % queues;
    return taken;
}

std::vector<uint8_t> SoftNicDevice::take_kernel() {
    const std::scoped_lock held(mutex);
    if (kernel_.empty()) {
        return {};
    }
    std::vector<uint8_t> frame = std::move(kernel_.front());
    kernel_.pop_front();
    return frame;
}

void SoftNicDevice::set_link(bool up) {
    link_ = up;
    update_link();
    if (dev.data->dev_conf.intr_conf.lsc != 0) {
        rte_eth_dev_callback_process(&dev, RTE_ETH_EVENT_INTR_LSC, nullptr);
    }
}

void SoftNicDevice::remove() {
    removed_ = true;
    update_link();
    if (dev.data->dev_conf.intr_conf.rmv != 0) {
        rte_eth_dev_callback_process(&dev, RTE_ETH_EVENT_INTR_RMV, nullptr);
    }
}

SoftNic* SoftNic::find(const std::string& name) {
    const std::scoped_lock held(devices_mutex());
    const auto known = devices().find(name);
    return known == devices().end() ? nullptr : &known->second->handle;
}
uint16_t SoftNic::dpdk_port() const {
    return device_->dev.data->port_id;
}
void SoftNic::set_link(bool up) {
    device_->set_link(up);
}
void SoftNic::remove() {
    device_->remove();
}
size_t SoftNic::flow_rules() const {
    const std::scoped_lock held(device_->mutex);
    return device_->flows.size();
}
bool SoftNic::is_isolated() const {
    const std::scoped_lock held(device_->mutex);
    return device_->isolated;
}
uint64_t SoftNic::interrupts() const {
    return device_->interrupts;
}
bool SoftNic::is_looped_back() const {
    return device_->is_looped_back();
}
void SoftNic::set_patience(bool waits) {
    const std::scoped_lock held(device_->mutex);
    device_->waits = waits;
}

Received SoftWire::put(std::span<const uint8_t> frame) {
    return nic_->device_->is_looped_back() ? Received{} : nic_->device_->receive(frame);
}
rte_mbuf* SoftWire::try_take() {
    rte_mbuf* packet = nullptr;
    return take_burst({&packet, 1}) == 1 ? packet : nullptr;
}
size_t SoftWire::take_burst(std::span<rte_mbuf*> out) {
    return nic_->device_->take_sent(out);
}
std::vector<uint8_t> SoftWire::take() {
    rte_mbuf* packet = try_take();
    for (const Patience patience; packet == nullptr && patience.wait();) {
        packet = try_take();
    }
    if (packet == nullptr) {
        return {};
    }
    std::vector<uint8_t> frame = bytes_of(*packet);
    rte_pktmbuf_free(packet);
    return frame;
}
std::vector<uint8_t> SoftWire::kernel() {
    return nic_->device_->take_kernel();
}

}  // namespace penstock::test

namespace {

int probe_soft_nic(rte_vdev_device* vdev) {
    std::string error;
    const auto arguments = penstock::test::parse_device_arguments(rte_vdev_device_args(vdev), error);
    if (!arguments) {
        RTE_LOG(ERR, PMD, "%s: %s\n", rte_vdev_device_name(vdev), error.c_str());
        return -EINVAL;
    }
    rte_eth_dev* dev = rte_eth_vdev_allocate(vdev, 0);
    if (dev == nullptr) {
        return -ENOMEM;
    }
    new penstock::test::SoftNicDevice(*dev, *arguments,
                                      rte_vdev_device_name(vdev));  // close_device() deletes it
    rte_eth_dev_probing_finish(dev);
    return 0;
}

int remove_soft_nic(rte_vdev_device* vdev) {
    const rte_eth_dev* dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
    return dev == nullptr ? 0 : rte_eth_dev_close(dev->data->port_id);  // null: closed already
}

// constinit: the constructor that registers the driver may run before the dynamic initialisation of this
// file.
constinit rte_vdev_driver soft_nic_driver = {.probe = probe_soft_nic, .remove = remove_soft_nic};

}  // namespace

RTE_PMD_REGISTER_VDEV(net_soft, soft_nic_driver);
