/// Opening the RKNN device over a variant of the stub vendor library, and looking into the stub.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "stub_vendor.h"

namespace corelane::stub {

inline std::string library_of(const std::string& variant) {
  return std::string(STUB_FOLDER) + "/libstub_" + variant + ".so";
}

inline std::string device_text(const std::string& variant, const std::string& profile = "rk3588") {
  return "rknn:" + profile + "?library=" + library_of(variant);
}

inline Result<std::shared_ptr<device::Device>> open(const std::string& variant,
                                                    const std::string& profile = "rk3588",
                                                    device::OpenOptions options = {}) {
  options.own_instance = true;
  return device::open_device(device_text(variant, profile), options);
}

/// An image of the stub: its magic, then the lines.
inline std::string image_text(const std::string& lines) { return "STUB0001\n" + lines; }
/// The same after the first bytes of a vendor's file.
inline std::string vendor_text(const std::string& lines) {
  return std::string("RKNN\0\0\0\0", 8) + image_text(lines);
}

inline device::Image image_of(const std::string& text) {
  auto keep = std::make_shared<const std::string>(text);
  device::Image image;
  image.kind = "rknn";
  image.bytes = as_byte_span(*keep);
  image.keep_alive = keep;
  return image;
}

/// The counters of a variant that is loaded.
class Counters {
 public:
  explicit Counters(const std::string& variant) {
    void* handle = ::dlopen(library_of(variant).c_str(), RTLD_NOW | RTLD_NOLOAD);
    EXPECT_NE(handle, nullptr) << ::dlerror();
    if (handle == nullptr) return;
    look_ = reinterpret_cast<decltype(&stub_look)>(::dlsym(handle, "stub_look"));
    forget_ = reinterpret_cast<decltype(&stub_forget)>(::dlsym(handle, "stub_forget"));
    ::dlclose(handle);
    forget_();
  }
  stub_counts now() const {
    stub_counts counts{};
    look_(&counts);
    return counts;
  }

 private:
  decltype(&stub_look) look_ = nullptr;
  decltype(&stub_forget) forget_ = nullptr;
};

/// A device with one image and one queue, and a job of it.
class StubTest : public testing::Test {
 protected:
  void open_stub(const std::string& variant, const std::string& profile = "rk3588") {
    auto opened = open(variant, profile);
    ASSERT_TRUE(opened) << opened.error().to_string();
    device_ = *opened;
    queue_ = *device_->make_queue({});
    counters_ = std::make_unique<Counters>(variant);
  }
  void prepare(const std::string& text, const device::PrepareOptions& options = {}) {
    auto made = device_->prepare(image_of(text), options);
    ASSERT_TRUE(made) << made.error().to_string();
    executable_ = *made;
    bindings_ = *executable_->new_bindings();
  }
  device::Submission job(device::CoreSet cores = {}) const {
    device::Submission made;
    made.executable = executable_;
    made.bindings = bindings_;
    made.cores = cores;
    return made;
  }
  Status run(device::CoreSet cores = {}) { return queue_->run(job(cores)); }
  template <class T>
  T* input(std::size_t index = 0) {
    return static_cast<T*>(bindings_->input(index)->data);
  }
  template <class T>
  T* output(std::size_t index = 0) {
    return static_cast<T*>(bindings_->output(index)->data);
  }

  std::shared_ptr<device::Device> device_;
  std::shared_ptr<device::Queue> queue_;
  std::shared_ptr<device::Executable> executable_;
  std::shared_ptr<device::Bindings> bindings_;
  std::unique_ptr<Counters> counters_;
};

}  // namespace corelane::stub
