// SPDX-License-Identifier: Apache-2.0
// A temporary folder for one test, removed with the object.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "dataplane/base/check.hpp"

namespace penstock::test {

class ScratchFolder {
 public:
    ScratchFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-test-XXXXXX").string();
        PENSTOCK_CHECK(::mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    // Replaces the file atomically by a rename, as credentials should be rotated.
    std::filesystem::path write(const std::string& name, std::string_view text) const {
        const std::filesystem::path file = path_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::filesystem::path fresh = file;
        fresh += ".new";
        std::ofstream(fresh, std::ios::binary) << text;
        std::filesystem::rename(fresh, file);
        return file;
    }

 private:
    std::filesystem::path path_;
};

}  // namespace penstock::test
