// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/base/descriptor.hpp"
#include "control/gateway/program/gateway_process.hpp"
#include "control/gateway/upgrade/binary_check.hpp"
#include "control/gateway/upgrade/messages.hpp"
#include "control/gateway/upgrade/step_names.hpp"
#include "control/gateway/upgrade/test_stop.hpp"
#include "control/gateway/upgrade/upgrade_record.hpp"
#include "control/gateway/upgrade/upgrade_steps.hpp"
#include "control/log/log.hpp"
#include "control/process/service_manager.hpp"
#include "control/process/service_reports.hpp"
#include "control/process/signals.hpp"
#include "drivers/host/ingress_guard.hpp"

namespace penstock::gateway {
namespace {

using Clock = UpgradeSteps::Clock;

class Supervisor {
 public:
    Supervisor(char** arguments, std::vector<std::string> guarded)
        : arguments_(arguments),
          service_manager_(
              process::ServiceManager::from_environment(process::ServiceManager::Variables::Keep)),
          guarded_(std::move(guarded)) {}
    int run();

 private:
    // `binary`: as in v1::UpgradeRequest. Returns the number of the upgrade, or why it is refused.
    Result<uint64_t> request_upgrade(const std::string& binary, const std::string& requested_by);
    void answer_request(const v1::UpgradeNote& request);
    void take(UpgradeSteps::Event event);
    void take(UpgradeSteps::Result result);
    void obey(UpgradeSteps::Order order);
    void end_upgrade();
    void send_record();
    void handle_signals(process::Signals& signals);
    void hear(GatewayProcess& gateway);
    void note_ends();
    void guard_ports();
    void begin_current(Descriptor binary, GatewayProcess::Role role);
    void restore_former();
    void end_restoring();
    void order_take_over(const GatewayProcess& gateway);
    void wait(const process::Signals& signals);
    void report_steps();
    [[nodiscard]] bool must_keep_alive() const;
    void keep_alive();
    [[nodiscard]] int wait_ms() const;

    char** arguments_;
    // The gateway reports to the service manager itself, except during an upgrade.
    process::ServiceManager service_manager_;
    pid_t reloading_ = 0;  // the gateway process when the upgrade began; 0: none is under way
    std::optional<Clock::time_point> restores_until_;  // the former binary starts again
    std::vector<std::string> guarded_;
    std::vector<std::unique_ptr<drivers::IngressGuard>> guards_;  // until a gateway process has its own
    std::string path_;  // of the program; a newer one may be there at the next upgrade
    UpgradeSteps steps_;
    UpgradeRecord record_;
    Descriptor next_binary_;  // of the upgrade that begins
    GatewayProcess current_, successor_;
    std::vector<GatewayProcess> retired_;  // handed over, and release their memory
    std::vector<Descriptor> twins_;
    v1::UpgradeMemory memory_;     // of the current process
    ReceivedMessage handed_over_;  // of the former process
    bool has_succeeded_ = false;   // the upgrade that ends
    bool is_over_ = false;
};

void Supervisor::begin_current(Descriptor binary, GatewayProcess::Role role) {
    auto started = GatewayProcess::start(arguments_, std::move(binary), role);
    if (started) {
        current_ = std::move(*started);
        return;
    }
    log::get("control").error("penstockd cannot be started: {}", started.error().what);
    current_ = GatewayProcess();
    is_over_ = true;
}

// The successor's part without a former process: the twins, with their addresses, routes and sessions, and
// the settings of interfaces wait for it. Its order to take over is in its socket before it starts to read.
void Supervisor::restore_former() {
    current_.kill_and_wait();  // its ports are closed, but it may still be busy with its memory
    restores_until_ = Clock::now() + UpgradeSteps::kPrepareMax;
    begin_current(current_.take_binary(), GatewayProcess::Role::Successor);
    if (current_.runs()) {
        order_take_over(current_);
    }
}

void Supervisor::end_restoring() {
    restores_until_.reset();
    guards_.clear();
}

// The processes may end at any time, so failures to send are ignored here and below.
void Supervisor::order_take_over(const GatewayProcess& gateway) {
    std::vector<int> descriptors;
    for (const auto* kept : {&twins_, &handed_over_.descriptors}) {
        std::ranges::transform(*kept, std::back_inserter(descriptors), &Descriptor::get);
    }
    const v1::UpgradeNote& note = handed_over_.note;
    static_cast<void>(send_message(gateway.socket_fd(), UpgradeMessage::TakeOver, note, descriptors));
}

// The twins stay, and with them the addresses that Linux answers for. Without a guard it would reset
// connections while no gateway process has the interface.
void Supervisor::guard_ports() {
    for (const std::string& interface : guarded_) {
        if (auto guard = drivers::IngressGuard::install(interface)) {
            guards_.push_back(std::move(*guard));
        } else {
            log::get("control").warn("{}", guard.error().what);
        }
    }
}

Result<uint64_t> Supervisor::request_upgrade(const std::string& binary, const std::string& requested_by) {
    const std::string& path = binary.empty() ? path_ : binary;
    const auto refused = [&](Error error) -> Result<uint64_t> {
        error.what = "the upgrade is refused: " + error.what;
        log::get("control").error("{} (requested by {})", error.what, requested_by);
        return std::unexpected(std::move(error));
    };
    if (steps_.step() != UpgradeSteps::Step::Idle) {
        return refused({Errc::AlreadyExists, "another upgrade is under way"});
    }
    if (twins_.empty() || restores_until_) {
        return refused({Errc::Outdated, "the gateway does not forward yet"});
    }
    auto opened = open_trusted_binary(path);
    if (!opened) {
        return refused(std::move(opened.error()));
    }
    next_binary_ = std::move(*opened);
    record_.begin(path, requested_by, Clock::now());
    const uint64_t number = record_.note().record().number();
    log::get("control").info("upgrade {} to {}, requested by {}", number, path, requested_by);
    take(UpgradeSteps::Event::Requested);
    return number;
}

void Supervisor::answer_request(const v1::UpgradeNote& request) {
    v1::UpgradeNote out;
    if (const auto number = request_upgrade(request.request().binary(), request.requested_by()); number) {
        out.set_number(*number);
    } else {
        out.set_refusal_code(static_cast<uint32_t>(number.error().code));
        out.set_refusal(number.error().what);
    }
    static_cast<void>(send_message(current_.socket_fd(), UpgradeMessage::Answer, out));
}

void Supervisor::send_record() {
    for (const GatewayProcess* gateway : {&current_, &successor_}) {
        if (gateway->runs()) {
            static_cast<void>(send_message(gateway->socket_fd(), UpgradeMessage::Record, record_.note()));
        }
    }
}

void Supervisor::take(UpgradeSteps::Event event) {
    take(steps_.take(event, Clock::now()));
}

void Supervisor::take(UpgradeSteps::Result result) {
    if (!result.remark.empty()) {
        result.is_error ? log::get("control").error("{}", result.remark)
                        : log::get("control").info("{}", result.remark);
        if (result.is_error) {
            record_.note_trouble(result.remark);
        }
    }
    for (const UpgradeSteps::Order order : result.orders) {
        obey(order);
    }
    report_steps();
    end_upgrade();
}

// If the upgrade has come to its end.
void Supervisor::end_upgrade() {
    const bool is_idle = steps_.step() == UpgradeSteps::Step::Idle;
    if (is_idle && !restores_until_) {
        guards_.clear();  // the current process has its own
    }
    if (!record_.is_running() || (!is_idle && steps_.step() != UpgradeSteps::Step::Restoring)) {
        return;
    }
    if (std::exchange(has_succeeded_, false)) {
        record_.succeed(Clock::now());
    } else {
        record_.fail(successor_.last_lines(), Clock::now());
    }
    log::get("control").info("{}", record_.summary());
    send_record();
}

void Supervisor::obey(UpgradeSteps::Order order) {
    using Order = UpgradeSteps::Order;
    switch (order) {
        case Order::StartSuccessor: {
            stop_for_test("supervisor starts the successor");
            guard_ports();
            handed_over_ = {};
            auto started = GatewayProcess::start(arguments_, std::exchange(next_binary_, Descriptor()),
                                                 GatewayProcess::Role::Successor, memory_);
            if (!started) {
                log::get("control").error("{}", started.error().what);
                record_.note_trouble(started.error().what);
                successor_ = GatewayProcess();
                take(UpgradeSteps::Event::SuccessorEnded);
                break;
            }
            successor_ = std::move(*started);
            record_.add_step(step::kSuccessorStarted, Clock::now());
            send_record();
            break;
        }
        case Order::SendHandOver:
            stop_for_test("supervisor orders the hand-over");
            send_record();
            static_cast<void>(send_message(current_.socket_fd(), UpgradeMessage::HandOver));
            break;
        case Order::SendTakeOver:
            stop_for_test("supervisor orders the take-over");
            order_take_over(successor_);
            break;
        case Order::KillFormer:
            current_.send_signal(SIGKILL);
            break;
        case Order::KillSuccessor:
            successor_.send_signal(SIGKILL);
            break;
        case Order::SuccessorIsCurrent:
            stop_for_test("supervisor retires the former process");
            if (current_.runs()) {
                retired_.push_back(std::exchange(current_, GatewayProcess()));
            }
            current_ = std::exchange(successor_, GatewayProcess());
            handed_over_ = {};
            has_succeeded_ = true;
            break;
        case Order::StartFormerBinary:
            restore_former();
            break;
        case Order::End:
            is_over_ = true;
            break;
    }
}

// A reload of the unit ends when a gateway is ready: the successor and a gateway that starts again report it
// themselves, one that simply continues has reported it before.
void Supervisor::report_steps() {
    const bool is_idle = steps_.step() == UpgradeSteps::Step::Idle;
    if (!is_idle && reloading_ == 0) {
        reloading_ = current_.pid();
        const auto now =
            std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch());
        service_manager_.send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(now.count()) +
                              "\nSTATUS=upgrade: the successor starts");
    } else if (is_idle && reloading_ != 0) {
        if (current_.pid() == reloading_) {
            service_manager_.send("READY=1\nSTATUS=the upgrade has failed, the gateway continues");
        }
        reloading_ = 0;
    }
}

// Whether no gateway process is sure to report now. Each of these steps has a limit, so a gateway that hangs
// is not hidden.
bool Supervisor::must_keep_alive() const {
    using Step = UpgradeSteps::Step;
    return service_manager_.watchdog().count() > 0 &&
           (restores_until_ || (steps_.step() != Step::Idle && steps_.step() != Step::Preparing));
}

void Supervisor::keep_alive() {
    if (restores_until_ && Clock::now() >= *restores_until_) {
        end_restoring();
    }
    if (must_keep_alive()) {
        service_manager_.send("WATCHDOG=1");
    }
}

// The time until a deadline or the next keep-alive; -1: there is none.
int Supervisor::wait_ms() const {
    using std::chrono::milliseconds;
    std::optional<milliseconds> wait;
    const auto no_later = [&wait](milliseconds time) { wait = std::min(wait.value_or(time), time); };
    if (const auto deadline = steps_.deadline()) {
        no_later(std::chrono::ceil<milliseconds>(*deadline - Clock::now()));
    }
    if (must_keep_alive()) {
        no_later(std::chrono::ceil<milliseconds>(service_manager_.watchdog() /
                                                 process::ServiceReports::kKeepAlives));
    }
    return wait ? static_cast<int>(std::max<int64_t>(wait->count(), 0)) : -1;
}

void Supervisor::handle_signals(process::Signals& signals) {
    for (auto signal = signals.take(); signal.number != 0; signal = signals.take()) {
        if (signal.number == SIGUSR2) {
            static_cast<void>(request_upgrade("", "SIGUSR2"));
            continue;
        }
        current_.send_signal(signal.number);
        // A successor that is not needed yet would hear the signal only when it takes over.
        const bool is_spare = signal.meaning == process::Signal::Meaning::Stop &&
                              steps_.step() == UpgradeSteps::Step::Preparing;
        successor_.send_signal(is_spare ? SIGKILL : signal.number);
    }
}

void Supervisor::hear(GatewayProcess& gateway) {
    while (auto received = receive_message(gateway.socket_fd())) {
        record_.add(received->note);
        switch (received->message) {
            case UpgradeMessage::Twins:
                twins_ = std::move(received->descriptors);
                memory_.Swap(received->note.mutable_memory());
                break;
            case UpgradeMessage::Request:
                if (&gateway == &current_) {
                    answer_request(received->note);
                }
                break;
            case UpgradeMessage::Prepared:
                take(UpgradeSteps::Event::Prepared);
                break;
            case UpgradeMessage::Steps:
                take(progress_of(received->note));  // without effect outside an upgrade
                break;
            case UpgradeMessage::Forwards:
                if (&gateway == &successor_) {
                    take(UpgradeSteps::Event::Forwards);
                    return;  // it is the current process now
                }
                end_restoring();
                send_record();  // a process that has started anew
                break;
            case UpgradeMessage::HandedOver:
                received->note.clear_steps();
                handed_over_ = std::move(*received);
                take(UpgradeSteps::Event::HandedOver);
                break;
            default:
                break;  // from the supervisor only, or of another release
        }
    }
}

void Supervisor::note_ends() {
    if (successor_.has_ended()) {
        record_.note_trouble("the successor has ended with " + successor_.end_text());
        take(UpgradeSteps::Event::SuccessorEnded);
    }
    if (current_.has_ended()) {
        if (steps_.step() == UpgradeSteps::Step::Preparing ||
            steps_.step() == UpgradeSteps::Step::HandingOver) {
            record_.add_step(step::kFormerEnded, Clock::now());
        }
        take(UpgradeSteps::Event::FormerEnded);
    }
    std::erase_if(retired_, [](GatewayProcess& gateway) { return gateway.has_ended(); });
}

void Supervisor::wait(const process::Signals& signals) {
    std::vector<pollfd> waited{{.fd = signals.fd(), .events = POLLIN, .revents = 0}};
    const auto wait_for = [&](int fd) {
        if (fd >= 0) {
            waited.push_back({.fd = fd, .events = POLLIN, .revents = 0});
        }
    };
    for (const GatewayProcess* gateway : {&current_, &successor_}) {
        if (gateway->runs()) {
            wait_for(gateway->process_fd());
            wait_for(gateway->socket_fd());
            wait_for(gateway->log_fd());
        }
    }
    for (const GatewayProcess& gateway : retired_) {
        wait_for(gateway.process_fd());
    }
    poll(waited.data(), waited.size(), wait_ms());
}

int Supervisor::run() {
    auto signals = process::Signals::block();
    if (!signals) {
        log::get("control").error("cannot start: {}", signals.error().what);
        return EXIT_FAILURE;
    }
    path_ = own_path();
    Descriptor binary(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!binary.is_open()) {
        log::get("control").error("cannot start: binary {}: {}", path_, std::strerror(errno));
        return EXIT_FAILURE;
    }
    begin_current(std::move(binary), GatewayProcess::Role::Current);
    while (!is_over_) {
        wait(*signals);
        keep_alive();
        handle_signals(*signals);
        // Messages first: a process may have ended after it has sent them.
        for (GatewayProcess* gateway : {&current_, &successor_}) {
            gateway->copy_log();
            hear(*gateway);  // nothing, if there is no process
        }
        note_ends();
        take(steps_.take_time(Clock::now()));
    }
    const int status = current_.status();
    return WIFEXITED(status) && !current_.runs() && current_.process_fd() >= 0 ? WEXITSTATUS(status)
                                                                               : EXIT_FAILURE;
}

}  // namespace

int supervise(char** arguments, std::vector<std::string> guarded) {
    return Supervisor(arguments, std::move(guarded)).run();
}

}  // namespace penstock::gateway
