/// Util: devices and versions. All methods from any thread.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "QAicApiLogger.hpp"

namespace qaic::rt {

class Util : public Logger {
 public:
  /// An object for lockDevice(), and for lines of its log: it opens no library and no device.
  Util() : Logger(nullptr, "Util") {}

  /// The numbers of the devices, from 0. Throws CoreExceptionInit where there is no library, as the
  /// others of this class.
  static QStatus getDeviceIds(std::vector<QID>& devices) {
    uint32_t count = 0;
    QStatus status = library().qaicGetDeviceIds(&count, nullptr);
    if (status != QS_SUCCESS) return status;
    devices.resize(count);
    status = library().qaicGetDeviceIds(&count, devices.data());
    devices.resize(std::min<size_t>(devices.size(), count));
    return status;
  }
  /// What a device is. QS_NODEV.
  static QStatus getDeviceInfo(QID device, QDevInfo& devInfo) {
    return library().qaicGetDeviceInfo(device, &devInfo);
  }
  /// What of a device is free; memory in KiB. QS_NODEV.
  static QStatus getResourceInfo(QID device, QResourceInfo& resourceInfo) {
    return library().qaicGetResourceInfo(device, &resourceInfo);
  }
  /// Clocks and rates; 0 where the device does not say. QS_NODEV.
  static QStatus getPerformanceInfo(QID device, QPerformanceInfo& performanceInfo) {
    return library().qaicGetPerformanceInfo(device, &performanceInfo);
  }
  /// The version of the library.
  static QStatus getAicVersion(uint16_t& major, uint16_t& minor, std::string& patch,
                               std::string& variant) {
    const char* patchText = "";
    const char* variantText = "";
    const QStatus status = library().qaicGetAicVersion(&major, &minor, &patchText, &variantText);
    if (status == QS_SUCCESS) {
      patch = patchText;
      variant = variantText;
    }
    return status;
  }
  /// QS_SUCCESS where the library fits these headers: the same major version, and no lower minor
  /// one. Throws CoreExceptionInit where it does not.
  static QStatus checkLibraryVersion() {
    static_cast<void>(library());
    return QS_SUCCESS;
  }
  /// Takes (`lock`), or gives back, an advisory lock of the device between processes; the kernel
  /// releases it when its holder ends. QS_UNSUPPORTED where CORELANE_QAIC_LOCK is not set. With
  /// `block` it is waited for as many seconds as that variable says; QS_BUSY, and
  /// qaicGetLastErrorText names the holder, when it is not free by then. QS_INVAL where it is not
  /// held, QS_NODEV.
  QStatus lockDevice(QID device, bool lock, bool block = true) {
    return library().qaicLockDevice(device, lock, block);
  }
};

/// Files and folders, for clients that use it.
class UtilFs {
 public:
  /// With the folders above it. QS_ERROR.
  static QStatus createDirectory(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!error) return QS_SUCCESS;
    return library().qaicSetLastErrorText(
        QS_ERROR, ("UtilFs: cannot make the folder '" + folder + "': " + error.message()).c_str());
  }
  /// Whether a file or folder is at `path`, links followed. False also where the system does not
  /// tell.
  static bool fileExists(const std::string& path) {
    std::error_code error;
    return std::filesystem::exists(path, error);
  }
};

}  // namespace qaic::rt
