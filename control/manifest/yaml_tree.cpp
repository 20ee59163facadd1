// SPDX-License-Identifier: Apache-2.0
#include "control/manifest/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <unordered_set>

#include "control/manifest/scalar.hpp"

namespace penstock::manifest {

const Value* Value::find(std::string_view key) const noexcept {
    const auto field =
        std::find_if(fields.begin(), fields.end(), [key](const auto& each) { return each.first == key; });
    return field == fields.end() ? nullptr : field->second.get();
}

namespace {

// Thrown through yaml-cpp's parser, which holds nothing that would leak, and caught in parse_tree.
struct Stop {
    Fault fault;
};

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

// Builds the tree from yaml-cpp's events. A frame is a list or mapping that is still open.
class Builder final : public YAML::EventHandler {
 public:
    Builder(uint32_t first_line, const TreeLimits& limits) : first_line_(first_line), limits_(limits) {}

    [[nodiscard]] Tree take() { return Tree{std::move(root_), std::nullopt}; }

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        add(make(mark, Value::Kind::Null), anchor);
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& text) override {
        auto value = make(mark, Value::Kind::String);
        value->text = text;
        if (tag == "?" || tag.starts_with(kCoreTag)) {
            const Scalar scalar = resolve_plain(text);
            if (tag != "?") {
                check_tag(tag, scalar.kind, value->line);
            }
            if (tag != std::string(kCoreTag) + "str") {
                value->kind = scalar.kind;
                value->boolean = scalar.boolean;
                value->integer = scalar.integer;
            }
        } else if (tag != "!") {
            throw Stop{{value->line, "tag " + tag + " is not supported in Kubernetes manifests"}};
        }
        add(std::move(value), anchor);
    }

    // An alias represents its whole target; it counts as if it were written out, although it takes no memory
    // here.
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto target = anchors_.find(anchor);
        if (target == anchors_.end()) {
            throw Stop{{line_of(mark), "an alias refers to the value that contains it"}};
        }
        if (frames_.size() + target->second->height > limits_.depth_max) {
            throw Stop{{line_of(mark), too_deep()}};
        }
        count(target->second->values, line_of(mark));
        place(target->second);
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(mark, Value::Kind::List, anchor);
    }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open(mark, Value::Kind::Mapping, anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override {
        merge(frames_.back());
        close();
    }

 private:
    struct Frame {
        std::shared_ptr<Value> value;
        YAML::anchor_t anchor = 0;
        std::optional<std::string> key;  // mapping: key read, value pending
        uint32_t key_line = 0;
        std::unordered_set<std::string> keys;
        std::vector<ValuePtr> merged;  // values named by `<<`
    };

    [[nodiscard]] uint32_t line_of(const YAML::Mark& mark) const noexcept {
        return first_line_ + static_cast<uint32_t>(std::max(mark.line, 0));
    }
    [[nodiscard]] std::string too_deep() const {
        return "nested deeper than " + std::to_string(limits_.depth_max) + " levels";
    }

    void count(uint64_t values, uint32_t line) {
        values_ += values;
        if (values_ > limits_.values_max) {
            throw Stop{{line, "more than " + std::to_string(limits_.values_max) +
                                  " values, counting expanded aliases"}};
        }
    }

    std::shared_ptr<Value> make(const YAML::Mark& mark, Value::Kind kind) {
        auto value = std::make_shared<Value>();
        value->kind = kind;
        value->line = line_of(mark);
        count(1, value->line);
        return value;
    }

    static void check_tag(const std::string& tag, Value::Kind kind, uint32_t line) {
        const std::string_view name = std::string_view(tag).substr(kCoreTag.size());
        const bool fits = name == "str" || (name == "int" && kind == Value::Kind::Integer) ||
                          (name == "null" && kind == Value::Kind::Null) ||
                          (name == "bool" && kind == Value::Kind::Boolean) ||
                          (name == "float" && (kind == Value::Kind::Float || kind == Value::Kind::Integer)) ||
                          (name == "timestamp" && kind == Value::Kind::String);
        if (!fits) {
            throw Stop{{line, "tag !!" + std::string(name) +
                                  " does not fit its value, or is not supported in Kubernetes manifests"}};
        }
    }

    void open(const YAML::Mark& mark, Value::Kind kind, YAML::anchor_t anchor) {
        if (frames_.size() >= limits_.depth_max) {
            throw Stop{{line_of(mark), too_deep()}};
        }
        frames_.push_back(Frame{.value = make(mark, kind), .anchor = anchor});
    }

    void close() {
        Frame done = std::move(frames_.back());
        frames_.pop_back();
        add(std::move(done.value), done.anchor);
    }

    void add(std::shared_ptr<Value> value, YAML::anchor_t anchor) {
        if (anchor != YAML::NullAnchor) {
            anchors_[anchor] = value;
        }
        place(std::move(value));
    }

    void place(ValuePtr value) {
        if (frames_.empty()) {
            root_ = std::move(value);
            return;
        }
        Frame& frame = frames_.back();
        if (frame.value->kind == Value::Kind::List) {
            adopt(*frame.value, *value);
            frame.value->items.push_back(std::move(value));
        } else if (!frame.key) {
            if (value->kind == Value::Kind::List || value->kind == Value::Kind::Mapping) {
                throw Stop{
                    {value->line, "a key must be a scalar, not " + std::string(to_string(value->kind))}};
            }
            frame.key = value->text;
            frame.key_line = value->line;
        } else {
            add_field(frame, std::move(value));
        }
    }

    void add_field(Frame& frame, ValuePtr value) {
        const std::string key = std::move(*frame.key);
        frame.key.reset();
        if (key == "<<") {
            frame.merged.push_back(std::move(value));
            return;
        }
        if (!frame.keys.insert(key).second) {
            frame.value->faults.push_back(
                {frame.key_line, "key \"" + key + "\" is duplicated in one mapping"});
            frame.value->has_faults = true;
            return;
        }
        adopt(*frame.value, *value);
        frame.value->fields.emplace_back(key, std::move(value));
    }

    // `<<: *base` and `<<: [*a, *b]` add the fields that the mapping does not define itself; earlier ones
    // win.
    void merge(Frame& frame) {
        for (const ValuePtr& source : frame.merged) {
            if (source->kind == Value::Kind::Mapping) {
                merge_from(frame, *source);
                continue;
            }
            if (source->kind != Value::Kind::List) {
                throw Stop{{source->line, "<< requires a mapping or a list of mappings"}};
            }
            for (const ValuePtr& item : source->items) {
                if (item->kind != Value::Kind::Mapping) {
                    throw Stop{{item->line, "<< requires a mapping or a list of mappings"}};
                }
                merge_from(frame, *item);
            }
        }
    }

    static void merge_from(Frame& frame, const Value& source) {
        for (const auto& [key, value] : source.fields) {
            if (frame.keys.insert(key).second) {
                adopt(*frame.value, *value);
                frame.value->fields.emplace_back(key, value);
            }
        }
    }

    static void adopt(Value& parent, const Value& child) noexcept {
        parent.values += child.values;
        parent.has_faults |= child.has_faults;
        parent.height = std::max(parent.height, child.height + 1);
    }

    uint32_t first_line_;
    TreeLimits limits_;
    uint64_t values_ = 0;
    std::vector<Frame> frames_;
    std::map<YAML::anchor_t, ValuePtr> anchors_;
    ValuePtr root_;
};

void collect_faults(const Value& value, std::vector<Fault>& into) {
    if (!value.has_faults) {
        return;
    }
    into.insert(into.end(), value.faults.begin(), value.faults.end());
    for (const ValuePtr& item : value.items) {
        collect_faults(*item, into);
    }
    for (const auto& [key, field] : value.fields) {
        collect_faults(*field, into);
    }
}

}  // namespace

Tree parse_tree(std::string_view text, uint32_t first_line, const TreeLimits& limits) {
    Builder builder(first_line, limits);
    try {
        // yaml-cpp accepts the end of the text as the closing quote of an unterminated scalar, and so half a
        // document as a whole one. It does reject an end-of-document mark inside quotes.
        std::istringstream stream{std::string(text) + (text.ends_with('\n') ? "...\n" : "\n...\n")};
        YAML::Parser parser(stream);
        parser.HandleNextDocument(builder);
        return builder.take();
    } catch (const Stop& stop) {
        return Tree{nullptr, stop.fault};
    } catch (const YAML::Exception& error) {
        const uint32_t line = first_line + static_cast<uint32_t>(std::max(error.mark.line, 0));
        return Tree{nullptr, Fault{line, "YAML syntax: " + error.msg}};
    }
}

std::vector<Fault> faults_in(const Value& value) {
    std::vector<Fault> faults;
    collect_faults(value, faults);
    return faults;
}

}  // namespace penstock::manifest
