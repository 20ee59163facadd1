// SPDX-License-Identifier: Apache-2.0
#include "control/cli/all_gateways.hpp"

#include <algorithm>
#include <functional>
#include <future>
#include <optional>
#include <utility>

#include "control/cli/exit_code.hpp"
#include "control/cli/json.hpp"
#include "control/cli/output.hpp"
#include "control/cli/table.hpp"

namespace penstock::cli {
namespace {

struct Answer {
    std::string text;           // JSON, or text
    std::optional<Table> rows;  // in place of `text`
    Status outcome;             // of the command, or if it succeeded of its judge
    bool is_answered = false;
};

Status fill(Answer& answer, const Command& command, const Member& member) {
    if (!member.gateway) {
        return std::unexpected(member.gateway.error());
    }
    Gateway* const gateway = member.gateway->get();
    Request request = member.request;
    if (request.is_structured()) {
        request.format = Format::Json;  // the report as a whole is converted
    }
    if (command.rows != nullptr && !request.is_structured()) {
        PENSTOCK_TRY(answer.rows, command.rows(gateway, request));
    } else {
        PENSTOCK_TRY(answer.text, command.run(gateway, request));
    }
    answer.is_answered = true;
    return command.judge == nullptr ? Status() : command.judge(gateway, request);
}

Answer answer_at(const Command& command, const Member& member) {
    Answer answer;
    answer.outcome = fill(answer, command, member);
    return answer;
}

// {"gateway": NAME, KEY: VALUE}. `value` is JSON and ends with a newline.
std::string json_entry(const std::string& name, const char* key, const std::string& value) {
    std::string entry = json_object({{"gateway", json_quoted(name) + "\n"}, {key, value}});
    entry.pop_back();
    return entry;
}

std::string json_of(const std::vector<Member>& members, const std::vector<Answer>& answers) {
    std::string list;
    for (size_t i = 0; i < members.size(); ++i) {
        const Answer& answer = answers[i];
        list += (i == 0 ? "" : ",\n") +
                (answer.is_answered
                     ? json_entry(members[i].name, "answer", answer.text)
                     : json_entry(members[i].name, "error", json_quoted(answer.outcome.error().what) + "\n"));
    }
    return "[" + list + "]\n";
}

std::string table_of(const std::vector<Member>& members, std::vector<Answer>& answers) {
    std::optional<Table> all;
    for (size_t i = 0; i < members.size(); ++i) {
        if (!answers[i].rows) {
            continue;
        }
        answers[i].rows->prepend({"GATEWAY"}, members[i].name);
        if (all) {
            all->append(*answers[i].rows);
        } else {
            all = std::move(answers[i].rows);
        }
    }
    return all ? all->text() : std::string();
}

std::string texts_of(const std::vector<Member>& members, const std::vector<Answer>& answers) {
    std::string text;
    for (size_t i = 0; i < members.size(); ++i) {
        if (answers[i].is_answered) {
            text += (text.empty() ? "" : "\n") + ("== " + members[i].name + " ==\n") + answers[i].text;
        }
    }
    return text;
}

}  // namespace

Report report_of_all(const Command& command, const Request& request, const std::vector<Member>& members) {
    std::vector<std::future<Answer>> calls;
    calls.reserve(members.size());
    for (const Member& member : members) {
        calls.push_back(std::async(std::launch::async, answer_at, std::cref(command), std::cref(member)));
    }
    Report report;
    std::vector<Answer> answers;
    for (size_t i = 0; i < members.size(); ++i) {
        const Answer& answer = answers.emplace_back(calls[i].get());
        if (!answer.outcome) {
            report.errors.push_back(members[i].name + ": " + answer.outcome.error().what);
            report.exit_code = std::max(report.exit_code, exit_code(answer.outcome.error()));
        }
    }
    if (request.is_structured()) {
        report.text = structured(json_of(members, answers), request.format);
    } else if (command.rows != nullptr) {
        report.text = without_header(table_of(members, answers), request);
    } else {
        report.text = texts_of(members, answers);
    }
    return report;
}

}  // namespace penstock::cli
