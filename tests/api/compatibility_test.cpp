// SPDX-License-Identifier: Apache-2.0
// The API of this release against former ones (tests/api/former): their .proto files, and messages that their
// programs have sent (tests/api/record_former.py). penstock-sync and penstockctl of the former release work
// with this penstockd, and the other way round:
//
// - A field, enum value or call of the former release has its number, name, type and label. One that is gone
//   is reserved.
// - Each release reads each message of the other one. What it does not know is left over, and no more.
// - Recorded states are accepted by this release, and its client prints recorded answers.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "control/cli/commands/views.hpp"
#include "control/cli/text.hpp"
#include "control/rpc/convert.hpp"
#include "control/rpc/state_message.hpp"
#include "penstock/v1/config.pb.h"
#include "penstock/v1/debug.pb.h"
#include "penstock/v1/status.pb.h"
#include "penstock/v1/sync.pb.h"
#include "penstock/v1/types.pb.h"
#include "tests/support/sanitizers.hpp"

namespace penstock::test {
namespace compatibility_test {

namespace pb = google::protobuf;

// Revisions in tests/api/former. Messages of the first one are not recorded.
constexpr const char* kSchemaOnly = "36d95886";
constexpr const char* kFormer = "76e87139";
std::string folder_of(const std::string& revision) {
    return std::string(PENSTOCK_FORMER_API) + "/" + revision;
}

// The files of a former release. Each test has a set of its own.
class Former {
 public:
    explicit Former(const std::string& revision = kFormer) {
        // protoc's output for its .proto files (meson.build).
        std::ifstream file(std::string(PENSTOCK_FORMER_DESCRIPTORS) + "/" + revision + ".pb",
                           std::ios::binary);
        pb::FileDescriptorSet set;
        EXPECT_TRUE(set.ParseFromIstream(&file)) << revision;
        for (const pb::FileDescriptorProto& each : set.file()) {
            files.push_back(pool_.BuildFile(each));
            EXPECT_NE(files.back(), nullptr) << each.name();
        }
        EXPECT_GE(files.size(), 5u);
    }
    [[nodiscard]] const pb::Descriptor* message(const std::string& name) const {
        return pool_.FindMessageTypeByName(name);
    }
    [[nodiscard]] std::unique_ptr<pb::Message> make(const pb::Descriptor& type) {
        return std::unique_ptr<pb::Message>(factory_.GetPrototype(&type)->New());
    }
    std::vector<const pb::FileDescriptor*> files;

 private:
    pb::DescriptorPool pool_;
    pb::DynamicMessageFactory factory_;
};

void skip_under_tsan() {
    if (kUnderThreadSanitizer) {
        GTEST_SKIP() << "protobuf's headers lay out map fields otherwise under TSan than its library, which "
                        "reads some here";
    }
}
class ApiCompatibility : public testing::TestWithParam<const char*> {
    void SetUp() override { skip_under_tsan(); }
};
class RecordedMessages : public testing::Test {
    void SetUp() override { skip_under_tsan(); }
};
INSTANTIATE_TEST_SUITE_P(Of, ApiCompatibility, testing::Values(kSchemaOnly, kFormer));

const pb::DescriptorPool& current_pool() {
    // Links all files: a message of each.
    v1::ServiceKey::descriptor(), v1::StateMessage::descriptor(), v1::Status::descriptor();
    v1::Explanation::descriptor(), v1::Sync::descriptor();
    return *pb::DescriptorPool::generated_pool();
}

std::unique_ptr<pb::Message> make_current(const std::string& name) {
    const pb::Descriptor* type = current_pool().FindMessageTypeByName(name);
    return type == nullptr ? nullptr
                           : std::unique_ptr<pb::Message>(
                                 pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

// "repeated string", "optional penstock.v1.Notice", ...
std::string kind_of(const pb::FieldDescriptor& field) {
    std::string kind = field.is_repeated() ? "repeated " : field.has_optional_keyword() ? "optional " : "";
    kind += field.type_name();
    if (field.message_type() != nullptr) {
        kind += " " + field.message_type()->full_name();
    } else if (field.enum_type() != nullptr) {
        kind += " " + field.enum_type()->full_name();
    }
    if (const pb::OneofDescriptor* oneof = field.real_containing_oneof()) {
        kind += " of " + oneof->name();
    }
    return kind;
}

void compare_enum(const pb::EnumDescriptor& former, std::vector<std::string>& found) {
    const pb::EnumDescriptor* now = current_pool().FindEnumTypeByName(former.full_name());
    if (now == nullptr) {
        found.push_back(former.full_name() + " is gone");
        return;
    }
    for (int i = 0; i < former.value_count(); ++i) {
        const pb::EnumValueDescriptor& value = *former.value(i);
        const pb::EnumValueDescriptor* same = now->FindValueByNumber(value.number());
        if (same == nullptr ? !now->IsReservedNumber(value.number()) : same->name() != value.name()) {
            found.push_back(value.full_name() + " was " + std::to_string(value.number()) + ", which is " +
                            (same == nullptr ? "not reserved" : same->name()));
        }
    }
}

void compare_message(const pb::Descriptor& former, std::vector<std::string>& found) {
    const pb::Descriptor* now = current_pool().FindMessageTypeByName(former.full_name());
    if (now == nullptr) {
        found.push_back(former.full_name() + " is gone");
        return;
    }
    for (int i = 0; i < former.field_count(); ++i) {
        const pb::FieldDescriptor& field = *former.field(i);
        const pb::FieldDescriptor* same = now->FindFieldByNumber(field.number());
        if (same == nullptr) {
            if (!now->IsReservedNumber(field.number())) {
                found.push_back(field.full_name() + " is gone, and its number is not reserved");
            }
        } else if (same->name() != field.name() || kind_of(*same) != kind_of(field)) {
            found.push_back(field.full_name() + " was " + kind_of(field) + ", number " +
                            std::to_string(field.number()) + " is " + same->name() + ", " + kind_of(*same));
        }
    }
    for (int i = 0; i < former.nested_type_count(); ++i) {
        compare_message(*former.nested_type(i), found);
    }
    for (int i = 0; i < former.enum_type_count(); ++i) {
        compare_enum(*former.enum_type(i), found);
    }
}

std::string call_text(const pb::MethodDescriptor& call) {
    return std::string(call.client_streaming() ? "stream " : "") + call.input_type()->full_name() + " -> " +
           (call.server_streaming() ? "stream " : "") + call.output_type()->full_name();
}

void for_each_call(const Former& former, const std::function<void(const pb::MethodDescriptor&)>& visit) {
    for (const pb::FileDescriptor* file : former.files) {
        for (int s = 0; s < file->service_count(); ++s) {
            for (int m = 0; m < file->service(s)->method_count(); ++m) {
                visit(*file->service(s)->method(m));
            }
        }
    }
}

void for_each_message(const Former& former, const std::function<void(const pb::Descriptor&)>& visit) {
    const std::function<void(const pb::Descriptor&)> visit_all = [&](const pb::Descriptor& type) {
        if (type.options().map_entry()) {
            return;
        }
        visit(type);
        for (int i = 0; i < type.nested_type_count(); ++i) {
            visit_all(*type.nested_type(i));
        }
    };
    for (const pb::FileDescriptor* file : former.files) {
        for (int i = 0; i < file->message_type_count(); ++i) {
            visit_all(*file->message_type(i));
        }
    }
}

TEST_P(ApiCompatibility, NothingOfTheFormerReleaseHasAnotherMeaning) {
    const Former former(GetParam());
    std::vector<std::string> found;
    for (const pb::FileDescriptor* file : former.files) {
        for (int i = 0; i < file->message_type_count(); ++i) {
            compare_message(*file->message_type(i), found);
        }
        for (int i = 0; i < file->enum_type_count(); ++i) {
            compare_enum(*file->enum_type(i), found);
        }
    }
    for_each_call(former, [&](const pb::MethodDescriptor& call) {
        const pb::MethodDescriptor* now = current_pool().FindMethodByName(call.full_name());
        if (now == nullptr || call_text(*now) != call_text(call)) {
            found.push_back(call.full_name() + " was " + call_text(call) + ", and is " +
                            (now == nullptr ? "gone" : call_text(*now)));
        }
    });
    EXPECT_EQ(found, std::vector<std::string>{});
}

// Every field, messages to some depth.
void fill(pb::Message& message, int depth, uint32_t& n) {
    const pb::Reflection& reflection = *message.GetReflection();
    const pb::Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
        const pb::FieldDescriptor& field = *type.field(i);
        const bool repeated = field.is_repeated();
        ++n;
        const auto put = [&](auto add, auto set, auto value) {
            repeated ? (reflection.*add)(&message, &field, value)
                     : (reflection.*set)(&message, &field, value);
        };
        switch (field.cpp_type()) {
            case pb::FieldDescriptor::CPPTYPE_INT32:
                put(&pb::Reflection::AddInt32, &pb::Reflection::SetInt32, static_cast<int32_t>(n));
                break;
            case pb::FieldDescriptor::CPPTYPE_INT64:
                put(&pb::Reflection::AddInt64, &pb::Reflection::SetInt64, static_cast<int64_t>(n));
                break;
            case pb::FieldDescriptor::CPPTYPE_UINT32:
                put(&pb::Reflection::AddUInt32, &pb::Reflection::SetUInt32, n);
                break;
            case pb::FieldDescriptor::CPPTYPE_UINT64:
                put(&pb::Reflection::AddUInt64, &pb::Reflection::SetUInt64, uint64_t{n} << 32);
                break;
            case pb::FieldDescriptor::CPPTYPE_DOUBLE:
                put(&pb::Reflection::AddDouble, &pb::Reflection::SetDouble, n / 2.0);
                break;
            case pb::FieldDescriptor::CPPTYPE_FLOAT:
                put(&pb::Reflection::AddFloat, &pb::Reflection::SetFloat, static_cast<float>(n));
                break;
            case pb::FieldDescriptor::CPPTYPE_BOOL:
                put(&pb::Reflection::AddBool, &pb::Reflection::SetBool, true);
                break;
            case pb::FieldDescriptor::CPPTYPE_ENUM: {
                const pb::EnumDescriptor& values = *field.enum_type();
                put(&pb::Reflection::AddEnumValue, &pb::Reflection::SetEnumValue,
                    values.value(static_cast<int>(n) % values.value_count())->number());
                break;
            }
            case pb::FieldDescriptor::CPPTYPE_STRING: {
                const std::string text = "text " + std::to_string(n);
                repeated ? reflection.AddString(&message, &field, text)
                         : reflection.SetString(&message, &field, text);
                break;
            }
            case pb::FieldDescriptor::CPPTYPE_MESSAGE:
                if (depth > 0) {
                    fill(repeated ? *reflection.AddMessage(&message, &field)
                                  : *reflection.MutableMessage(&message, &field),
                         depth - 1, n);
                }
                break;
        }
    }
}

// Fields that its type does not know, in all of its parts.
size_t unknown_fields(const pb::Message& message) {
    const pb::Reflection& reflection = *message.GetReflection();
    auto count = static_cast<size_t>(reflection.GetUnknownFields(message).field_count());
    std::vector<const pb::FieldDescriptor*> set;
    reflection.ListFields(message, &set);
    for (const pb::FieldDescriptor* field : set) {
        if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) {
            continue;
        }
        if (!field->is_repeated()) {
            count += unknown_fields(reflection.GetMessage(message, field));
            continue;
        }
        for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
            count += unknown_fields(reflection.GetRepeatedMessage(message, field, i));
        }
    }
    return count;
}

std::string text_of(const pb::Message& message) {
    std::string text;
    pb::TextFormat::PrintToString(message, &text);
    return text;
}

TEST_P(ApiCompatibility, ThisReleaseReadsEveryFieldOfTheFormerOne) {
    Former former(GetParam());
    for_each_message(former, [&](const pb::Descriptor& type) {
        const auto sent = former.make(type);
        uint32_t n = 0;
        fill(*sent, 6, n);
        const auto received = make_current(type.full_name());
        ASSERT_NE(received, nullptr) << type.full_name();
        ASSERT_TRUE(received->ParseFromString(sent->SerializeAsString())) << type.full_name();
        EXPECT_EQ(unknown_fields(*received), 0u) << type.full_name();
        EXPECT_EQ(text_of(*received), text_of(*sent)) << type.full_name();
    });
}

// The former release keeps what it knows, and nothing of the rest appears in it.
TEST_P(ApiCompatibility, TheFormerReleaseReadsWhatItKnowsOfThisOne) {
    Former former(GetParam());
    for_each_message(former, [&](const pb::Descriptor& type) {
        const auto sent = make_current(type.full_name());
        ASSERT_NE(sent, nullptr) << type.full_name();
        uint32_t n = 0;
        fill(*sent, 6, n);
        const auto received = former.make(type);
        ASSERT_TRUE(received->ParseFromString(sent->SerializeAsString())) << type.full_name();
        received->DiscardUnknownFields();
        const auto known = make_current(type.full_name());
        ASSERT_TRUE(known->ParseFromString(received->SerializeAsString())) << type.full_name();
        pb::util::MessageDifferencer compare;
        compare.set_scope(pb::util::MessageDifferencer::PARTIAL);  // all of `known` is in `sent`
        std::string difference;
        compare.ReportDifferencesToString(&difference);
        EXPECT_TRUE(compare.Compare(*known, *sent)) << type.full_name() << ": " << difference;
    });
}

struct Recorded {
    std::string call;  // "/penstock.v1.GatewayStatus/GetStatus"
    bool is_request = false;
    std::string bytes;
};

std::vector<Recorded> recorded() {
    std::ifstream file(folder_of(kFormer) + "/messages.txt");
    EXPECT_TRUE(file.is_open());
    std::vector<Recorded> all;
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string call, direction, hex;
        words >> call >> direction >> hex;
        if (call.empty() || call.starts_with("#")) {
            continue;
        }
        Recorded& one = all.emplace_back(Recorded{call, direction == "request", {}});
        for (size_t i = 0; i + 1 < hex.size(); i += 2) {
            one.bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
        }
    }
    return all;
}

std::string type_of(const Former& former, const Recorded& message) {
    std::string found;
    for_each_call(former, [&](const pb::MethodDescriptor& call) {
        if (message.call == "/" + call.service()->full_name() + "/" + call.name()) {
            found = (message.is_request ? call.input_type() : call.output_type())->full_name();
        }
    });
    return found;
}

TEST_F(RecordedMessages, ThisReleaseReadsRecordedMessagesAsTheyWereMeant) {
    Former former;
    for (const Recorded& message : recorded()) {
        const std::string type = type_of(former, message);
        ASSERT_FALSE(type.empty()) << message.call;
        const auto meant = former.make(*former.message(type));
        const auto read = make_current(type);
        ASSERT_TRUE(meant->ParseFromString(message.bytes)) << message.call;
        ASSERT_EQ(unknown_fields(*meant), 0u) << message.call << ": not of the recorded release";
        ASSERT_TRUE(read->ParseFromString(message.bytes)) << message.call;
        EXPECT_EQ(unknown_fields(*read), 0u) << message.call;
        EXPECT_EQ(text_of(*read), text_of(*meant)) << message.call;
    }
}

TEST_F(RecordedMessages, MessagesOfEveryCallAreRecorded) {
    const Former former;
    std::set<std::pair<std::string, bool>> seen;
    for (const Recorded& message : recorded()) {
        seen.emplace(message.call, message.is_request);
    }
    for_each_call(former, [&](const pb::MethodDescriptor& call) {
        const std::string name = "/" + call.service()->full_name() + "/" + call.name();
        EXPECT_TRUE(seen.contains({name, true})) << "no request of " << name;
        // A control plane that assigns no addresses answers with NOT_FOUND alone.
        if (call.name() != "ListPools" && call.name() != "ListAddresses") {
            EXPECT_TRUE(seen.contains({name, false})) << "no answer of " << name;
        }
    });
}

template <typename Message>
std::vector<Message> recorded_as(const std::string& call, bool is_request) {
    std::vector<Message> all;
    for (const Recorded& message : recorded()) {
        if (message.call == call && message.is_request == is_request) {
            EXPECT_TRUE(all.emplace_back().ParseFromString(message.bytes)) << call;
        }
    }
    return all;
}

// What penstock-sync of the former release has sent is a configuration for this penstockd, without a refusal.
TEST_F(RecordedMessages, RecordedStatesAreAccepted) {
    rpc::StateParts parts;
    size_t services = 0;
    const auto sent = recorded_as<v1::StateMessage>("/penstock.v1.GatewayConfig/SyncState", true);
    for (const v1::StateMessage& message : sent) {
        const auto checked = parts.add(message);
        ASSERT_TRUE(checked.has_value()) << checked.error().what;
        ASSERT_TRUE(checked->has_value());
        EXPECT_TRUE((*checked)->refused.empty()) << (*checked)->refused[0].ShortDebugString();
        services += static_cast<size_t>(message.has_full() ? message.full().services_size()
                                                           : message.delta().upsert_size());
    }
    EXPECT_GT(services, 3u);
}

// What the former penstockd has sent to penstock-sync.
TEST_F(RecordedMessages, RecordedIdentitiesAreAccepted) {
    size_t identities = 0, applied = 0;
    for (const auto& message :
         recorded_as<v1::GatewayMessage>("/penstock.v1.GatewayConfig/SyncState", false)) {
        if (message.has_identity()) {
            const auto identity = rpc::from_proto(message.identity());
            ASSERT_TRUE(identity.has_value()) << identity.error().what;
            EXPECT_FALSE(identity->node_name.empty());
            ++identities;
        }
        applied += message.has_applied() ? 1 : 0;
    }
    EXPECT_GT(identities, 0u);
    EXPECT_GT(applied, 0u);
}

TEST_F(RecordedMessages, TheClientPrintsRecordedAnswers) {
    const auto statuses = recorded_as<v1::Status>("/penstock.v1.GatewayStatus/GetStatus", false);
    ASSERT_FALSE(statuses.empty());
    for (const v1::Status& status : statuses) {
        EXPECT_NE(cli::status_text(status).find("Gateway:"), std::string::npos) << cli::status_text(status);
    }
}

}  // namespace compatibility_test
}  // namespace penstock::test
