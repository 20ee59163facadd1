// SPDX-License-Identifier: Apache-2.0
#include "control/kube/follow/store.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace penstock::kube {
namespace {

template <typename T>
using Ptr = std::shared_ptr<const T>;

// The name of the object for readers.
template <typename T>
const ObjectName& reader_name(const ObjectName& name, const std::map<ObjectName, Ptr<T>>&) {
    return name;
}
template <typename T>
const std::string& reader_name(const ObjectName& name, const std::map<std::string, Ptr<T>>&) {
    return name.name;
}
ObjectName source_name(const ObjectName& name) {
    return name;
}
ObjectName source_name(const std::string& name) {
    return {"", name};
}

template <typename T>
bool are_equal(const Ptr<T>& a, const Ptr<T>& b) {
    return a == b || (a != nullptr && b != nullptr && *a == *b);
}

}  // namespace

template <typename T>
class Store::Table final : public ObjectTable {
 public:
    static constexpr bool kIsNamespaced = std::is_same_v<T, Service> || std::is_same_v<T, EndpointSlice>;
    using Held = std::map<ObjectName, std::vector<IpAddr>>;
    using Pending = std::map<std::conditional_t<kIsNamespaced, ObjectName, std::string>, Ptr<T>>;

    // `first_list` is set with the first list; null: the store does not report it.
    // `held`: Changes::held_addresses; null: of another kind than Services.
    Table(Pending& pending, LogLines& log, bool* first_list = nullptr, Held* held = nullptr)
        : pending_(pending), log_(log), first_list_(first_list), held_(held) {}

    void upsert(DecodedObject object) override {
        if (!object.object) {
            Quarantine quarantine = quarantine_of(object);
            Quarantine& known = now_.quarantined[object.id.name];
            const bool is_logged = known.reads_as(quarantine);
            known = std::move(quarantine);
            if (!is_logged) {
                log_quarantined(object.id.name, known);
            }
            announce_held(object.id.name);
            return;
        }
        if (const auto known = now_.quarantined.extract(object.id.name)) {
            log_valid(known.mapped());
            announce_held(object.id.name);
        }
        const std::vector<Piece> pieces = pieces_of(object);
        for (const ObjectName& old : now_.names_of(object.id.name)) {
            if (std::ranges::find(pieces, old, &Piece::name) == pieces.end()) {
                remove(old);
            }
        }
        for (const Piece& piece : pieces) {
            Known& known = now_.objects[piece.name];
            known.version = object.resource_version;
            if (!are_equal<T>(known.object, piece.object)) {
                known.object = piece.object;
                announce(piece.name, known.object);
            }
        }
        now_.note_parts(object, pieces);
    }

    void erase(const ObjectName& name) override {
        for (const ObjectName& piece : now_.names_of(name)) {
            remove(piece);
        }
        now_.forget(name);
        announce_held(name);
    }

    void begin_list() override { list_.emplace(); }

    void upsert_in_list(DecodedObject object) override {
        const ObjectName& name = object.id.name;
        if (!object.object) {
            list_->quarantined[name] = quarantine_of(object);
            if (!list_->knows(name)) {
                list_->copy(name, now_);
            }
            return;
        }
        list_->erase(name);
        const std::vector<Piece> pieces = pieces_of(object);
        for (const Piece& piece : pieces) {
            const Ptr<T>& known = now_.find(piece.name);
            list_->objects[piece.name] = {are_equal<T>(known, piece.object) ? known : piece.object,
                                          object.resource_version};
        }
        list_->note_parts(object, pieces);
    }

    void erase_in_list(const ObjectName& name) override { list_->erase(name); }

    void commit_list(Missing missing) override {
        if (missing == Missing::Keep) {
            list_->add_missing(now_);
        }
        for (const auto& [name, listed] : list_->objects) {
            if (now_.find(name) != listed.object) {
                announce(name, listed.object);
            }
        }
        for (const auto& [name, known] : now_.objects) {
            if (!list_->objects.contains(name)) {
                announce(name, nullptr);
            }
        }
        const auto quarantined_before = std::exchange(now_, std::move(*list_)).quarantined;
        list_.reset();
        if (!std::exchange(is_listed_, true) && first_list_ != nullptr) {
            *first_list_ = true;
        }
        for (const auto& [name, quarantine] : now_.quarantined) {
            const auto before = quarantined_before.find(name);
            if (before == quarantined_before.end() || !before->second.reads_as(quarantine)) {
                log_quarantined(name, quarantine);
            }
            announce_held(name);
        }
        for (const auto& [name, quarantine] : quarantined_before) {
            if (!now_.quarantined.contains(name) && now_.knows(name)) {
                log_valid(quarantine);
            }
            announce_held(name);
        }
    }

    void drop_list() override { list_.reset(); }

    void replace(const auto& objects) {
        Contents next;
        for (const auto& [key, object] : objects) {
            const ObjectName name = source_name(key);
            const Ptr<T>& known = now_.find(name);
            next.objects.emplace(
                name,
                Known{known != nullptr && *known == object ? known : std::make_shared<const T>(object), ""});
        }
        list_ = std::move(next);
        commit_list(Missing::Erase);
    }

    [[nodiscard]] std::optional<ObjectLife> life_of(const ObjectName& name) const override {
        const auto found = now_.objects.find(name);
        if (found == now_.objects.end()) {
            return std::nullopt;
        }
        return ObjectLife{.uid = found->second.object->meta.uid, .resource_version = found->second.version};
    }
    // The object with its version; null if it is unknown.
    [[nodiscard]] std::pair<Ptr<T>, std::string> current(const ObjectName& name) const {
        const auto found = now_.objects.find(name);
        return found == now_.objects.end() ? std::pair<Ptr<T>, std::string>{}
                                           : std::pair{found->second.object, found->second.version};
    }
    [[nodiscard]] bool is_listed() const override { return is_listed_; }
    [[nodiscard]] size_t size() const override { return now_.objects.size(); }
    [[nodiscard]] size_t quarantined() const override { return now_.quarantined.size(); }

 private:
    struct Piece {
        ObjectName name;
        Ptr<T> object;
    };
    struct Known {
        Ptr<T> object;
        std::string version;  // from the object itself; read only for writes about it
    };
    struct Quarantine {
        std::string object;  // "Service default/web"
        std::string why;
        std::vector<IpAddr> held_addresses;  // see DecodedObject
        [[nodiscard]] bool reads_as(const Quarantine& other) const {
            return object == other.object && why == other.why;
        }
    };

    // An object of the source is one object for readers, except Endpoints, which become any number of slices.
    struct Contents {
        std::map<ObjectName, Known> objects;
        std::map<ObjectName, std::vector<ObjectName>> parts;  // the slices of an Endpoints object
        std::map<ObjectName, Quarantine> quarantined;

        // Null if it is unknown.
        [[nodiscard]] const Ptr<T>& find(const ObjectName& name) const {
            static const Ptr<T> kNone;
            const auto found = objects.find(name);
            return found != objects.end() ? found->second.object : kNone;
        }
        [[nodiscard]] std::vector<ObjectName> names_of(const ObjectName& name) const {
            const auto found = parts.find(name);
            return found != parts.end() ? found->second : std::vector{name};
        }
        [[nodiscard]] bool knows(const ObjectName& name) const {
            return parts.contains(name) || objects.contains(name);
        }
        void note_parts(const DecodedObject& object, const std::vector<Piece>& pieces) {
            if (!std::holds_alternative<std::vector<EndpointSlicePtr>>(*object.object)) {
                return;
            }
            std::vector<ObjectName>& names = parts[object.id.name];
            names.clear();
            std::ranges::transform(pieces, std::back_inserter(names), &Piece::name);
        }
        void erase(const ObjectName& name) {
            for (const ObjectName& piece : names_of(name)) {
                objects.erase(piece);
            }
            forget(name);
        }
        void forget(const ObjectName& name) {
            parts.erase(name);
            quarantined.erase(name);
        }
        void copy(const ObjectName& name, const Contents& from) {
            for (const ObjectName& piece : from.names_of(name)) {
                if (const auto found = from.objects.find(piece); found != from.objects.end()) {
                    objects.insert(*found);
                }
            }
            if (const auto found = from.parts.find(name); found != from.parts.end()) {
                parts.insert(*found);
            }
        }
        void add_missing(const Contents& from) {
            for (const auto& entry : from.quarantined) {
                if (!knows(entry.first)) {
                    quarantined.insert(entry);
                }
            }
            if (from.parts.empty()) {
                objects.insert(from.objects.begin(), from.objects.end());
            }
            for (const auto& [name, names] : from.parts) {
                if (!knows(name)) {
                    copy(name, from);
                }
            }
        }
    };

    static std::string first_of(const std::vector<std::string>& faults) {
        return faults.empty()       ? ""
               : faults.size() == 1 ? faults[0]
                                    : faults[0] + " (and " + std::to_string(faults.size() - 1) + " more)";
    }

    static Quarantine quarantine_of(const DecodedObject& object) {
        return {object.id.to_string(), first_of(object.faults), object.held_addresses};
    }

    // `object` is not quarantined. An object of another kind than this table's yields nothing.
    static std::vector<Piece> pieces_of(const DecodedObject& object) {
        std::vector<Piece> pieces;
        if (const auto* one = std::get_if<Ptr<T>>(&*object.object)) {
            pieces.push_back({object.id.name, *one});
        }
        if constexpr (std::is_same_v<T, EndpointSlice>) {
            if (const auto* parts = std::get_if<std::vector<EndpointSlicePtr>>(&*object.object)) {
                for (const EndpointSlicePtr& part : *parts) {
                    pieces.push_back({{part->meta.namespace_name, part->meta.name}, part});
                }
            }
        }
        return pieces;
    }

    void announce(const ObjectName& name, Ptr<T> object) {
        pending_.insert_or_assign(reader_name(name, pending_), std::move(object));
    }
    // Also if the last good version of the object is known: it may have been written before the addresses.
    void announce_held(const ObjectName& name) {
        const auto found = now_.quarantined.find(name);
        std::vector<IpAddr> addresses =
            found == now_.quarantined.end() ? std::vector<IpAddr>() : found->second.held_addresses;
        const auto told = told_held_.find(name);
        if (held_ == nullptr || (told == told_held_.end() ? addresses.empty() : told->second == addresses)) {
            return;
        }
        if (addresses.empty()) {
            told_held_.erase(name);
        } else {
            told_held_.insert_or_assign(name, addresses);
        }
        held_->insert_or_assign(name, std::move(addresses));
    }
    void remove(const ObjectName& name) {
        if (now_.objects.erase(name) != 0) {
            announce(name, nullptr);
        }
    }

    void log_quarantined(const ObjectName& name, const Quarantine& quarantine) {
        log_.warn(
            quarantine.object +
            (now_.knows(name) ? " is invalid, and its last good version stays in use: " : " is invalid: ") +
            quarantine.why);
    }
    void log_valid(const Quarantine& quarantine) { log_.info(quarantine.object + " is valid again"); }

    Pending& pending_;
    LogLines& log_;
    bool* first_list_;
    Held* held_;
    Held told_held_;  // as announced
    Contents now_;
    std::optional<Contents> list_;  // objects named by the list so far
    bool is_listed_ = false;
};

Store::Store(bool with_nodes, LogLines& log)
    : with_nodes_(with_nodes),
      services_(std::make_unique<Table<Service>>(pending_.services, log, nullptr, &pending_.held_addresses)),
      slices_(std::make_unique<Table<EndpointSlice>>(pending_.slices, log)),
      nodes_(std::make_unique<Table<Node>>(pending_.nodes, log)),
      pools_(std::make_unique<Table<AddressPool>>(pending_.pools, log, &pending_.pools_listed)),
      namespaces_(std::make_unique<Table<Namespace>>(pending_.namespaces, log, &pending_.namespaces_listed)) {
}

Store::~Store() = default;

ObjectTable& Store::services() {
    return *services_;
}
ObjectTable& Store::slices() {
    return *slices_;
}
ObjectTable& Store::nodes() {
    return *nodes_;
}
ObjectTable& Store::pools() {
    return *pools_;
}
ObjectTable& Store::namespaces() {
    return *namespaces_;
}

std::optional<ServiceVersion> Store::service(const ObjectName& name) const {
    auto [object, version] = services_->current(name);
    if (object == nullptr) {
        return std::nullopt;
    }
    return ServiceVersion{std::move(object), std::move(version)};
}

std::optional<PoolVersion> Store::pool(const std::string& name) const {
    auto [object, version] = pools_->current({"", name});
    if (object == nullptr) {
        return std::nullopt;
    }
    return PoolVersion{std::move(object), std::move(version)};
}

void Store::replace(const ObjectSet& objects) {
    services_->replace(objects.services);
    slices_->replace(objects.slices);
    nodes_->replace(objects.nodes);
    namespaces_->replace(objects.namespaces);
}

bool Store::is_listed() const {
    return services_->is_listed() && slices_->is_listed() && (nodes_->is_listed() || !with_nodes_);
}

Changes Store::take_changes() {
    return is_listed() ? std::exchange(pending_, {}) : Changes{};
}

}  // namespace penstock::kube
