/// FileWriter: writes the outputs of an execution object to files. All methods from any thread.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "QAicApiExecObj.hpp"

namespace qaic::rt {

class FileWriter : public Logger {
 public:
  /// Files go to the folder `outputBasePath`; ".": the working folder. It is not looked at before a
  /// file is written; setOutputPath() checks its own.
  explicit FileWriter(std::string outputBasePath = ".")
      : Logger(nullptr, "FileWriter"), folder_(std::move(outputBasePath)) {}

  /// Where files go from now on. QS_ERROR where the folder is not there or cannot be written to.
  QStatus setOutputPath(const std::string& outputBasePath) {
    std::error_code error;
    if (!std::filesystem::is_directory(outputBasePath, error) ||
        access(outputBasePath.c_str(), W_OK) != 0)
      return refuse(QS_ERROR, "cannot write to '" + outputBasePath + "'; make the folder first");
    const std::lock_guard<std::mutex> lock(mutex_);
    folder_ = outputBasePath;
    return QS_SUCCESS;
  }

  /// Writes each output of memory of the process to
  /// <folder>/<its name, with _ for each /><fileNameAppendString>-inf-<infNumber>.bin. `mappings`
  /// are those of the program. QS_INVAL (null, buffers that are not set), QS_UNSUPPORTED (a
  /// descriptor), QS_ERROR (a file cannot be written, or not whole under RLIMIT_FSIZE, whose signal
  /// is held back).
  QStatus writeExecObjData(const shExecObj& execObj, const BufferMappings& mappings,
                           uint32_t infNumber, bool verbose = true,
                           const std::string& fileNameAppendString = "") {
    if (execObj == nullptr) return refuse(QS_INVAL, "the ExecObj is null");
    std::vector<QBuffer> buffers;
    const QStatus status = execObj->getData(buffers);
    if (status != QS_SUCCESS) return status;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const BufferMapping& mapping : mappings) {
      if (mapping.ioType != BUFFER_IO_TYPE_OUTPUT) continue;
      if (mapping.index >= buffers.size())
        return refuse(QS_INVAL, "output '" + mapping.bufferName + "' has no buffer; call setData");
      std::string name = mapping.bufferName;
      std::replace(name.begin(), name.end(), '/', '_');
      const QStatus written =
          write(name + fileNameAppendString + "-inf-" + std::to_string(infNumber) + ".bin",
                buffers[mapping.index], verbose);
      if (written != QS_SUCCESS) return written;
    }
    return QS_SUCCESS;
  }

 private:
  /// Without the signal of RLIMIT_FSIZE, which ends a process that does not handle it: writes of
  /// this thread fail instead.
  class NoFileSizeSignal {
   public:
    /// Holds SIGXFSZ back in this thread, until the destructor.
    NoFileSizeSignal() {
      sigemptyset(&signal_);
      sigaddset(&signal_, SIGXFSZ);
      // One that is pending was held back by the program, and stays its own.
      ours_ = pthread_sigmask(SIG_BLOCK, &signal_, &before_) == 0 && !isPending();
    }
    ~NoFileSizeSignal() {
      const timespec none{};
      if (ours_ && isPending()) sigtimedwait(&signal_, nullptr, &none);
      if (ours_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoFileSizeSignal(const NoFileSizeSignal&) = delete;
    NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

   private:
    static bool isPending() {
      sigset_t pending;
      return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    }
    sigset_t signal_{};
    sigset_t before_{};
    bool ours_ = false;
  };

  QStatus write(const std::string& name, const QBuffer& buffer, bool verbose) const {
    if (buffer.buf == nullptr && buffer.size > 0)
      return refuse(QS_UNSUPPORTED,
                    "'" + name + "': the buffer is a descriptor; map it and write it");
    const std::string path = folder_ + "/" + name;
    const NoFileSizeSignal guard;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    if (verbose) std::cout << "writing " << path << std::endl;
    file.write(reinterpret_cast<const char*>(buffer.buf),
               static_cast<std::streamsize>(buffer.size));
    file.close();
    return file ? QS_SUCCESS : refuse(QS_ERROR, "cannot write '" + path + "'");
  }

  std::mutex mutex_;
  std::string folder_;
};

}  // namespace qaic::rt
