// SPDX-License-Identifier: Apache-2.0
// generate-pages FOLDER: writes manual pages, INI files and completions into the folder. $SOURCE_DATE_EPOCH
// sets the date of the manual pages; otherwise it is that of today.
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "control/pages/pages.hpp"
#include "dataplane/base/text.hpp"

namespace {

std::string date_of(std::time_t time) {
    std::tm parts{};
    gmtime_r(&time, &parts);
    char text[16] = {};
    std::strftime(text, sizeof(text), "%Y-%m-%d", &parts);
    return text;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: generate-pages FOLDER\n";
        return 2;
    }
    const char* const given = std::getenv("SOURCE_DATE_EPOCH");
    const auto epoch = given == nullptr ? std::nullopt : penstock::whole_number<std::time_t>(given);
    const std::string date = date_of(epoch.value_or(std::time(nullptr)));
    for (const auto& page : penstock::pages::all_pages(PENSTOCK_VERSION, date)) {
        const std::filesystem::path path = std::filesystem::path(argv[1]) / page.file;
        std::ofstream file(path);
        file << page.text << std::flush;
        if (!file) {
            std::cerr << "generate-pages: " << path.string() << " cannot be written\n";
            return 1;
        }
    }
    return 0;
}
