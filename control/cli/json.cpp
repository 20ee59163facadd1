// SPDX-License-Identifier: Apache-2.0
#include "control/cli/json.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <array>
#include <charconv>
#include <concepts>

#include "dataplane/base/check.hpp"

namespace penstock::cli {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The largest integer N for which every integer up to N has an exact double, the number type of JSON parsers
// (RFC 8259, 6).
constexpr uint64_t kExactMax = uint64_t{1} << 53;

// Base64 (RFC 4648, section 4), as in protobuf's JSON mapping.
std::string base64(std::string_view bytes) {
    constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (size_t at = 0; at < bytes.size(); at += 3) {
        const size_t left = std::min<size_t>(3, bytes.size() - at);
        uint32_t group = 0;
        for (size_t i = 0; i < 3; ++i) {
            group = group << 8 | (i < left ? static_cast<unsigned char>(bytes[at + i]) : 0U);
        }
        for (size_t i = 0; i < 4; ++i) {
            text += i <= left ? kDigits[group >> (18 - 6 * i) & 63] : '=';
        }
    }
    return text;
}

template <std::integral Number>
std::string number_text(Number number) {
    const uint64_t magnitude =
        number < 0 ? uint64_t{0} - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    const std::string digits = std::to_string(number);
    return magnitude <= kExactMax ? digits : json_quoted(digits);
}

std::string number_text(double number) {
    std::array<char, 32> digits{};
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    PENSTOCK_CHECK(error == std::errc{});
    return {digits.data(), end};
}

// The prefix of an enum's values: "CONFIGURATION_ORIGIN_" for ConfigurationOrigin.
std::string prefix_of(const EnumDescriptor& type) {
    std::string prefix;
    for (const char c : type.name()) {
        const bool is_upper = c >= 'A' && c <= 'Z';
        prefix += (is_upper && !prefix.empty() ? "_" : "");
        prefix += static_cast<char>(is_upper ? c : c - 'a' + 'A');
    }
    return prefix + "_";
}

std::string enum_text(const EnumDescriptor& type, int number) {
    const auto* value = type.FindValueByNumber(number);
    if (value == nullptr) {
        return std::to_string(number);  // from a newer penstockd
    }
    const std::string prefix = prefix_of(type);
    const std::string& name = value->name();
    return json_quoted(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
}

void write_message(const Message& message, size_t indent, std::string& out);

// The value of the field, or element `index` of a repeated field.
void write_value(const Message& message, const FieldDescriptor& field, int index, size_t indent,
                 std::string& out) {
    const Reflection& reflection = *message.GetReflection();
    const auto get = [&](auto singular, auto repeated) {
        return index < 0 ? (reflection.*singular)(message, &field)
                         : (reflection.*repeated)(message, &field, index);
    };
    switch (field.cpp_type()) {
        case FieldDescriptor::CPPTYPE_INT32:
            out += number_text(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
            break;
        case FieldDescriptor::CPPTYPE_INT64:
            out += number_text(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64));
            break;
        case FieldDescriptor::CPPTYPE_UINT32:
            out += number_text(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
            break;
        case FieldDescriptor::CPPTYPE_UINT64:
            out += number_text(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64));
            break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
            out += number_text(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble));
            break;
        case FieldDescriptor::CPPTYPE_FLOAT:
            out +=
                number_text(static_cast<double>(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat)));
            break;
        case FieldDescriptor::CPPTYPE_BOOL:
            out += get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false";
            break;
        case FieldDescriptor::CPPTYPE_ENUM:
            out += enum_text(*field.enum_type(),
                             get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue));
            break;
        case FieldDescriptor::CPPTYPE_STRING: {
            const std::string text = get(&Reflection::GetString, &Reflection::GetRepeatedString);
            out += json_quoted(field.type() == FieldDescriptor::TYPE_BYTES ? base64(text) : text);
            break;
        }
        case FieldDescriptor::CPPTYPE_MESSAGE:
            write_message(index < 0 ? reflection.GetMessage(message, &field)
                                    : reflection.GetRepeatedMessage(message, &field, index),
                          indent, out);
            break;
    }
}

// The entries of a list or map, one per line. Map keys are strings regardless of their type (as in protobuf's
// JSON mapping).
void write_repeated(const Message& message, const FieldDescriptor& field, size_t indent, std::string& out) {
    const Reflection& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    const bool is_map = field.is_map();
    out += is_map ? '{' : '[';
    for (int i = 0; i < size; ++i) {
        out += (i == 0 ? "\n" : ",\n") + std::string(indent + 1, ' ');
        if (is_map) {
            const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
            std::string key;
            write_value(entry, *field.message_type()->map_key(), -1, indent + 1, key);
            out += (key.starts_with('"') ? key : json_quoted(key)) + ": ";
            write_value(entry, *field.message_type()->map_value(), -1, indent + 1, out);
        } else {
            write_value(message, field, i, indent + 1, out);
        }
    }
    out += size == 0 ? "" : "\n" + std::string(indent, ' ');
    out += is_map ? '}' : ']';
}

void write_message(const Message& message, size_t indent, std::string& out) {
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    bool is_first = true;
    out += '{';
    for (int i = 0; i < type.field_count(); ++i) {
        const FieldDescriptor& field = *type.field(i);
        if (field.has_presence() && !message.GetReflection()->HasField(message, &field)) {
            continue;
        }
        out += (is_first ? "\n" : ",\n") + std::string(indent + 1, ' ') + json_quoted(field.name()) + ": ";
        is_first = false;
        if (field.is_repeated()) {
            write_repeated(message, field, indent + 1, out);
        } else {
            write_value(message, field, -1, indent + 1, out);
        }
    }
    out += is_first ? "}" : "\n" + std::string(indent, ' ') + "}";
}

}  // namespace

std::string json_quoted(std::string_view text) {
    constexpr const char* kHex = "0123456789abcdef";
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += {'\\', c};
        } else if (c == '\n') {
            result += "\\n";
        } else if (byte < 0x20 || byte == 0x7f) {
            result += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
        } else {
            result += c;
        }
    }
    return result + "\"";
}

std::string json_text(const Message& message) {
    std::string text;
    if (message.GetDescriptor() == google::protobuf::Struct::descriptor()) {
        google::protobuf::util::JsonPrintOptions options;
        options.add_whitespace = true;
        const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
        PENSTOCK_CHECK(status.ok());  // fails only for a Value without a kind
        return text;
    }
    write_message(message, 0, text);
    return text + "\n";
}

}  // namespace penstock::cli
