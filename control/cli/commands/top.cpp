// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "control/cli/commands/list.hpp"
#include "control/cli/output.hpp"
#include "control/cli/service_name.hpp"
#include "control/cli/top/screen.hpp"
#include "control/cli/top/terminal.hpp"

namespace penstock::cli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

Result<top::Selection> selection_from(const Request& request) {
    top::Selection selection;
    const auto view = std::ranges::find(top::all_views(), request.view, &top::ViewSpec::name);
    if (view == top::all_views().end()) {
        return fail(
            Errc::InvalidArgument,
            "--view: \"" + request.view + "\" must be services, backends, workers, ports, drops or clients");
    }
    selection.view = view->view;
    if (!request.sort.empty()) {
        const auto column = top::find_column(*view, request.sort);
        if (!column) {
            std::string names;
            for (const top::Column& one : view->columns) {
                names += (names.empty() ? "" : ", ") + std::string(one.name);
            }
            return fail(Errc::InvalidArgument, "--sort: \"" + request.sort +
                                                   "\" must be a column of the view " +
                                                   std::string(view->name) + ": " + names);
        }
        selection.column = *column;
    }
    return selection;
}

// For files, pipes and programs: one table or object for each interval.
Result<int> print_rates(Gateway& gateway, const Request& request, const top::Selection& selection,
                        const ServiceName& which) {
    PENSTOCK_TRY(auto before, top::take_sample(gateway, selection.view, which));
    for (bool is_first = true;; is_first = false) {
        std::this_thread::sleep_until(before.taken + request.interval);
        PENSTOCK_TRY(auto after, top::take_sample(gateway, selection.view, which));
        const top::Rates rates = top::rates_between(before, after);
        constexpr size_t kWidth = 120;
        std::cout << (is_first ? "" : "\n")
                  << (request.is_structured()
                          ? structured(top::rates_json(after, rates, selection), request.format)
                          : top::frame_text(after, rates, selection, {.width = kWidth, .height = 0}))
                  << std::flush;
        if (request.once || !std::cout) {
            return EXIT_SUCCESS;
        }
        before = std::move(after);
    }
}

// Full screen, until q or a signal. An error of the gateway is shown, and the next reading tried.
int show_rates(Gateway& gateway, const Request& request, top::Selection selection, const ServiceName& which) {
    const top::Terminal terminal;
    const char* no_colour = std::getenv("NO_COLOR");  // no-color.org
    const bool is_coloured = no_colour == nullptr || *no_colour == '\0';
    std::optional<top::Sample> before, after;
    std::string message;
    auto next_reading = Clock::now();
    while (!selection.quits && !terminal.is_over()) {
        if (Clock::now() >= next_reading) {
            auto sample = top::take_sample(gateway, selection.view, which);
            // The first rates of a view come soon.
            constexpr milliseconds kFirst{250};
            next_reading = Clock::now() + (after ? request.interval : std::min(kFirst, request.interval));
            message = sample ? "" : sample.error().what;
            if (sample) {
                before = after ? std::move(after) : *sample;
                after = std::move(*sample);
            }
        }
        const auto size = terminal.size();
        if (after) {
            terminal.show(top::frame_text(*after, top::rates_between(*before, *after), selection,
                                          {size.width, size.height, is_coloured}, message));
        } else {
            terminal.show(message + "\n");
        }
        const auto left = std::chrono::duration_cast<milliseconds>(next_reading - Clock::now());
        const std::string keys = terminal.keys(std::max(left + milliseconds(1), milliseconds(0)));
        const top::View former = selection.view;
        top::press(selection, keys);
        if (selection.view != former) {
            before.reset();
            after.reset();
            next_reading = Clock::now();
        }
    }
    return EXIT_SUCCESS;
}

Result<int> perform_top(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto selection, selection_from(request));
    PENSTOCK_TRY(const auto which, service_filter_from(request));
    if (request.once || request.is_structured() || !top::Terminal::is_available()) {
        return print_rates(*gateway, request, selection, which);
    }
    // An unreachable gateway is an error of the command, not of the screen.
    PENSTOCK_TRY_STATUS(gateway->status());
    return show_rates(*gateway, request, selection, which);
}

}  // namespace

Command top_command() {
    return {
        .words = {"top"},
        .arguments = "[NAME|NS/NAME]",
        .arguments_max = 1,
        .options = {"view", "sort", "once", "interval", "namespace", "all-namespaces", "output"},
        .summary =
            "Show live rates of services, backends, workers, ports, drops or clients; a Service selects rows "
            "of services, backends and clients. Keys: s b w p d c "
            "view, < > sort, r reverse, arrows scroll, q quit. Without a terminal, print them each interval",
        .run = nullptr,
        .perform = perform_top};
}

}  // namespace penstock::cli
