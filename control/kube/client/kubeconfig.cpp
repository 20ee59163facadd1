// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/kubeconfig.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>

#include "control/kube/client/base64.hpp"
#include "control/kube/client/file_text.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::kube {
namespace {

namespace fs = std::filesystem;

// A named entry of one of the three lists, not parsed yet.
struct Entry {
    YAML::Node body;
    fs::path file;
};
using Entries = std::map<std::string, Entry, std::less<>>;

struct Merged {
    Entries clusters;
    Entries users;
    Entries contexts;
    std::string current_context;
    std::string files;  // for messages
};

// Reads the fields of one entry. The first mistake is kept, and later fields read as unset.
class Fields {
 public:
    Fields(const Entry& entry, std::string where)
        : body_(entry.body), file_(entry.file), where_(std::move(where)) {
        if (body_.IsDefined() && !body_.IsMap() && !body_.IsNull()) {
            note("must be a map");
        }
    }

    bool has(const char* name) const {
        const YAML::Node value = get(body_, name);
        return value.IsDefined() && !value.IsNull();
    }

    std::string text(const char* name) {
        const YAML::Node value = get(body_, name);
        if (!value.IsDefined() || value.IsNull()) {
            return {};
        }
        if (!value.IsScalar()) {
            note(std::string(name) + " must be a string");
            return {};
        }
        return value.Scalar();
    }

    bool flag(const char* name) {
        const std::string value = text(name);
        if (value.empty() || value == "false") {
            return false;
        }
        if (value != "true") {
            note(std::string(name) + " must be true or false");
        }
        return value == "true";
    }

    fs::path path(const char* name) {
        const std::string value = text(name);
        return value.empty() ? fs::path() : resolved(value);
    }

    // NAME-data, in base64, takes precedence over NAME.
    PemSource pem(const char* name) {
        const std::string data_name = std::string(name) + "-data";
        const std::string data = text(data_name.c_str());
        if (data.empty()) {
            return {.file = path(name)};
        }
        auto decoded = base64_decoded(data);
        if (!decoded || decoded->empty()) {
            note(data_name + " is not base64");
            return {};
        }
        return {.data = Secret(std::move(*decoded))};
    }

    std::vector<std::string> texts(const char* name) { return texts_of(get(body_, name), name); }

    std::vector<std::string> texts_of(const YAML::Node& list, const std::string& name) {
        std::vector<std::string> found;
        if (!list.IsDefined() || list.IsNull()) {
            return found;
        }
        if (!list.IsSequence()) {
            note(name + " must be a list of strings");
            return found;
        }
        for (const YAML::Node& item : list) {
            if (!item.IsScalar()) {
                note(name + " must be a list of strings");
                return {};
            }
            found.push_back(item.Scalar());
        }
        return found;
    }

    // Relative to the folder of the kubeconfig, not to the working directory (AUTH-001).
    fs::path resolved(const fs::path& path) const {
        return path.is_absolute() ? path : (file_.parent_path() / path).lexically_normal();
    }

    YAML::Node node(const char* name) const { return get(body_, name); }
    const fs::path& file() const { return file_; }
    const std::string& where() const { return where_; }

    void note(const std::string& rule) {
        if (!mistake_) {
            mistake_ = Error{Errc::InvalidArgument, where_ + ": " + rule};
        }
    }
    const std::optional<Error>& mistake() const { return mistake_; }

    // An undefined node if the parent is not a map: yaml-cpp throws on some of those.
    static YAML::Node get(const YAML::Node& parent, const char* name) {
        return parent.IsDefined() && parent.IsMap() ? parent[name] : YAML::Node(YAML::NodeType::Undefined);
    }

 private:
    YAML::Node body_;
    fs::path file_;
    std::string where_;
    std::optional<Error> mistake_;
};

// Adds the entries of list `list_name` whose names are not defined yet; each has its content under
// `body_name`.
Status add_entries(const YAML::Node& root, const char* list_name, const char* body_name, const fs::path& file,
                   Entries& entries) {
    const YAML::Node list = Fields::get(root, list_name);
    if (!list.IsDefined() || list.IsNull()) {
        return {};
    }
    if (!list.IsSequence()) {
        return fail(Errc::InvalidArgument, file.string() + ": " + list_name + " must be a list");
    }
    for (const YAML::Node& item : list) {
        const YAML::Node name = Fields::get(item, "name");
        if (name.IsDefined() && name.IsScalar()) {
            entries.emplace(name.Scalar(), Entry{Fields::get(item, body_name), file});
        }
    }
    return {};
}

Status add_file(const KubeconfigText& file, Merged& merged) {
    merged.files += (merged.files.empty() ? "" : ", ") + file.file.string();
    const YAML::Node root = YAML::Load(file.text);
    if (!root.IsDefined() || root.IsNull()) {
        return {};  // an empty file is ignored
    }
    if (!root.IsMap()) {
        return fail(Errc::InvalidArgument, file.file.string() + ": not a kubeconfig: must be a map");
    }
    const YAML::Node kind = root["kind"];
    if (kind.IsDefined() && kind.IsScalar() && kind.Scalar() != "Config") {
        return fail(Errc::InvalidArgument, file.file.string() + ": not a kubeconfig: kind must be Config");
    }
    const YAML::Node current = root["current-context"];
    if (merged.current_context.empty() && current.IsDefined() && current.IsScalar()) {
        merged.current_context = current.Scalar();
    }
    for (const auto& [list, body, entries] :
         {std::tuple{"clusters", "cluster", &merged.clusters}, std::tuple{"users", "user", &merged.users},
          std::tuple{"contexts", "context", &merged.contexts}}) {
        PENSTOCK_TRY_STATUS(add_entries(root, list, body, file.file, *entries));
    }
    return {};
}

std::string names_of(const Entries& entries) {
    std::string names;
    for (const auto& [name, entry] : entries) {
        names += (names.empty() ? "" : ", ") + name;
    }
    return names.empty() ? "none" : names;
}

void read_cluster(Fields& fields, ClientConfig& config) {
    config.server = fields.text("server");
    while (config.server.ends_with('/')) {
        config.server.pop_back();
    }
    if (config.server.empty()) {
        fields.note("has no server");
    } else if (!config.server.starts_with("https://") && !config.server.starts_with("http://")) {
        fields.note("server must start with https:// or http://");
    } else if (config.server.find_first_of("@?# \t\r\n") != std::string::npos) {
        fields.note("server must be a URL without user, query or white space");
    }
    config.ca = fields.pem("certificate-authority");
    config.tls_server_name = fields.text("tls-server-name");
    config.insecure_skip_tls_verify = fields.flag("insecure-skip-tls-verify");
    config.proxy_url = Secret(fields.text("proxy-url"));
    config.disable_compression = fields.flag("disable-compression");
    if (config.insecure_skip_tls_verify && config.ca.is_set()) {
        fields.note("certificate-authority and insecure-skip-tls-verify are mutually exclusive");
    }
    if (config.tls_server_name.find_first_of("/:@?# \t\r\n") != std::string::npos) {
        fields.note("tls-server-name must be a host name");
    }
}

ExecConfig read_exec(Fields& user) {
    Fields fields({.body = user.node("exec"), .file = user.file()}, user.where() + ": exec");
    ExecConfig exec;
    exec.api_version = fields.text("apiVersion");
    if (exec.api_version != "client.authentication.k8s.io/v1" &&
        exec.api_version != "client.authentication.k8s.io/v1beta1") {
        fields.note(
            "apiVersion must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1");
    }
    exec.command = fields.text("command");
    if (exec.command.empty()) {
        fields.note("has no command");
    } else if (exec.command.find('/') != std::string::npos) {
        exec.command = fields.resolved(exec.command).string();
    }
    exec.args = fields.texts("args");
    const YAML::Node env = fields.node("env");
    if (env.IsDefined() && !env.IsNull()) {
        if (!env.IsSequence()) {
            fields.note("env must be a list");
        } else {
            for (const YAML::Node& item : env) {
                Fields variable({.body = item, .file = user.file()}, fields.where() + ": env");
                std::string name = variable.text("name");
                std::string value = variable.text("value");
                if (name.empty() || name.find('=') != std::string::npos) {
                    variable.note("an entry needs a name without '='");
                }
                if (variable.mistake()) {
                    fields.note(variable.mistake()->what.substr(fields.where().size() + 2));
                }
                exec.env.emplace_back(std::move(name), Secret(std::move(value)));
            }
        }
    }
    exec.install_hint = fields.text("installHint");
    exec.provide_cluster_info = fields.flag("provideClusterInfo");
    const std::string mode = fields.text("interactiveMode");
    if (mode == "Always") {
        fields.note(
            "interactiveMode Always is not supported, because this program has no terminal; use IfAvailable "
            "or Never");
    } else if (!mode.empty() && mode != "IfAvailable" && mode != "Never") {
        fields.note("interactiveMode must be Never, IfAvailable or Always");
    }
    if (fields.mistake()) {
        user.note(fields.mistake()->what.substr(user.where().size() + 2));
    }
    return exec;
}

// The replacement for an auth provider that was removed from Kubernetes.
std::string replacement_of(const std::string& auth_provider) {
    if (auth_provider == "gcp") {
        return "the exec plugin gke-gcloud-auth-plugin";
    }
    if (auth_provider == "azure") {
        return "the exec plugin kubelogin (Azure/kubelogin)";
    }
    if (auth_provider == "oidc") {
        return "the exec plugin kubelogin (int128/kubelogin)";
    }
    if (auth_provider == "openstack") {
        return "the exec plugin client-keystone-auth";
    }
    return "an exec plugin of the same vendor";
}

Impersonation read_impersonation(Fields& fields) {
    Impersonation as{
        .user = fields.text("as"), .uid = fields.text("as-uid"), .groups = fields.texts("as-groups")};
    const YAML::Node extra = fields.node("as-user-extra");
    if (extra.IsDefined() && extra.IsMap()) {
        for (const auto& pair : extra) {
            if (pair.first.IsScalar()) {
                as.extra.emplace(pair.first.Scalar(), fields.texts_of(pair.second, "as-user-extra"));
            }
        }
    } else if (extra.IsDefined() && !extra.IsNull()) {
        fields.note("as-user-extra must be a map of lists");
    }
    if (as.user.empty() && (!as.uid.empty() || !as.groups.empty() || !as.extra.empty())) {
        fields.note("as-uid, as-groups and as-user-extra need as");
    }
    return as;
}

void read_user(Fields& fields, ClientConfig& config) {
    if (fields.has("username") || fields.has("password")) {
        fields.note(
            "username and password were removed in Kubernetes 1.19: use token, tokenFile, a client "
            "certificate or an exec plugin");
    }
    if (fields.has("auth-provider")) {
        Fields provider({.body = fields.node("auth-provider"), .file = fields.file()}, fields.where());
        const std::string name = provider.text("name");
        fields.note("auth-provider " + name + " was removed in Kubernetes 1.26: use " + replacement_of(name));
    }
    config.client_certificate = fields.pem("client-certificate");
    config.client_key = fields.pem("client-key");
    if (config.client_certificate.is_set() != config.client_key.is_set()) {
        fields.note(config.client_key.is_set() ? "client-key without client-certificate"
                                               : "client-certificate without client-key");
    }
    config.token = Secret(std::string(trimmed(fields.text("token"))));
    config.token_file = fields.path("tokenFile");
    if (fields.has("exec")) {
        config.exec = read_exec(fields);
    }
    config.impersonate = read_impersonation(fields);
}

Result<ClientConfig> resolve(const Merged& merged, std::string_view wanted) {
    const std::string context_name(wanted.empty() ? std::string_view(merged.current_context) : wanted);
    if (context_name.empty()) {
        return fail(Errc::InvalidArgument, merged.files +
                                               ": no current-context, and no --context; existing contexts: " +
                                               names_of(merged.contexts));
    }
    const auto context = merged.contexts.find(context_name);
    if (context == merged.contexts.end()) {
        return fail(Errc::NotFound, merged.files + ": context " + context_name +
                                        " does not exist; existing: " + names_of(merged.contexts));
    }
    ClientConfig config;
    config.origin = "context " + context_name + " of " + context->second.file.string();
    Fields fields(context->second, config.origin);
    const std::string cluster_name = fields.text("cluster");
    const std::string user_name = fields.text("user");
    config.namespace_name = fields.text("namespace");
    if (cluster_name.empty()) {
        fields.note("has no cluster");
    }
    if (fields.mistake()) {
        return std::unexpected(*fields.mistake());
    }
    const auto cluster = merged.clusters.find(cluster_name);
    if (cluster == merged.clusters.end()) {
        return fail(Errc::NotFound, config.origin + ": its cluster " + cluster_name +
                                        " does not exist; existing: " + names_of(merged.clusters));
    }
    Fields cluster_fields(cluster->second, cluster->second.file.string() + ": cluster " + cluster_name);
    read_cluster(cluster_fields, config);
    if (cluster_fields.mistake()) {
        return std::unexpected(*cluster_fields.mistake());
    }
    if (user_name.empty()) {
        return config;  // anonymous, for a port-forward or kubectl proxy
    }
    const auto user = merged.users.find(user_name);
    if (user == merged.users.end()) {
        return fail(Errc::NotFound, config.origin + ": its user " + user_name +
                                        " does not exist; existing: " + names_of(merged.users));
    }
    Fields user_fields(user->second, user->second.file.string() + ": user " + user_name);
    read_user(user_fields, config);
    if (user_fields.mistake()) {
        return std::unexpected(*user_fields.mistake());
    }
    return config;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<ClientConfig> resolve_kubeconfig(std::span<const KubeconfigText> files, std::string_view context) {
    if (files.empty()) {
        return fail(Errc::NotFound,
                    "no kubeconfig found: pass --kubeconfig, set $KUBECONFIG, or create ~/.kube/config");
    }
    Merged merged;
    const KubeconfigText* current = nullptr;
    try {
        for (const KubeconfigText& file : files) {
            current = &file;
            PENSTOCK_TRY_STATUS(add_file(file, merged));
        }
        return resolve(merged, context);
    } catch (const YAML::Exception& error) {
        // The library's texts name the rule and never quote the document.
        const std::string line = error.mark.is_null() ? "" : ": line " + std::to_string(error.mark.line + 1);
        return fail(Errc::InvalidArgument, current->file.string() + line + ": not YAML: " + error.msg);
    }
}

Result<ClientConfig> read_kubeconfig(const std::vector<fs::path>& files, std::string_view context) {
    std::vector<KubeconfigText> texts;
    for (const fs::path& file : files) {
        PENSTOCK_TRY_IN("kubeconfig", auto text, read_file_text(file));
        std::error_code failed;
        const fs::path absolute = fs::absolute(file, failed);
        texts.push_back({.file = failed ? file : absolute, .text = std::move(text)});
    }
    return resolve_kubeconfig(texts, context);
}

}  // namespace penstock::kube
