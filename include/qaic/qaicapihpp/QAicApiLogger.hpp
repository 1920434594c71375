/// Logger: writes lines to a context's log, and is the base of the classes that have a name. All
/// methods from any thread, setContext() excepted.
#pragma once

#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "QAicApiContext.hpp"

namespace qaic::rt {

class Logger {
 public:
  /// Collects one line; written where it ends.
  class Line {
   public:
    /// Begins an empty line, which `logger` writes when this object ends; it must live until then.
    /// An empty line is not written. One thread at a time.
    Line(const Logger& logger, QLogLevel level) : logger_(logger), level_(level) {}
    ~Line() {
      try {
        if (!text_.str().empty()) logger_.write(level_, text_.str());
      } catch (...) {  // A line that has no memory is not worth the process.
      }
    }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;
    /// Adds `data` to the line, as a std::ostream prints it.
    template <class T>
    Line& operator<<(const T& data) {
      text_ << data;
      return *this;
    }
    /// Applies a manipulator of std::ostream: std::endl adds a line end, and writes nothing yet.
    Line& operator<<(std::ostream& (*manipulator)(std::ostream&)) {
      manipulator(text_);
      return *this;
    }

   private:
    const Logger& logger_;
    QLogLevel level_;
    std::ostringstream text_;
  };

  /// Without a context: lines of QL_WARN and above go to the error stream.
  Logger() = default;
  /// Lines go to the log of `context`, which is not kept alive. Where it is null or has gone, lines
  /// of QL_WARN and above go to the error stream.
  explicit Logger(const shContext& context) : context_(context) {}
  virtual ~Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  /// `logger.log(QL_INFO) << "read " << count << " files";`
  Line log(QLogLevel level) const { return Line(*this, level); }
  /// Writes `msg` as a line of QL_ERROR. Without a context it goes to the error stream.
  virtual void logError(std::string msg) { write(QL_ERROR, msg); }
  /// Writes `msg` as a line of QL_WARN. Without a context it goes to the error stream.
  virtual void logWarn(std::string msg) { write(QL_WARN, msg); }
  /// Writes `msg` as a line of QL_INFO. Without a context it is dropped.
  virtual void logInfo(std::string msg) { write(QL_INFO, msg); }
  /// Writes `msg` as a line of QL_DEBUG. Without a context it is dropped.
  virtual void logDebug(std::string msg) { write(QL_DEBUG, msg); }

  /// The context is not kept alive by it.
  void setContext(const shContext& context) { context_ = context; }
  /// What it is called in messages: its class, or the name that its maker gave.
  const std::string& objName() const noexcept { return name_; }
  /// The text of objName(), with a 0 byte behind it. It is valid as long as the object.
  const char* objNameCstr() const noexcept { return name_.c_str(); }

 protected:
  Logger(const shContext& context, std::string name) : name_(std::move(name)), context_(context) {}
  /// Keeps why a call is refused as the reason of this thread's last failure, and gives its code.
  QStatus refuse(QStatus status, const std::string& why) const {
    return library().qaicSetLastErrorText(status, (name_ + ": " + why).c_str());
  }

 private:
  void write(QLogLevel level, const std::string& text) const {
    if (const shContext context = context_.lock())
      static_cast<void>(context->log(level, text));
    else if (level >= QL_WARN)
      std::cerr << text + '\n';
  }

  std::string name_ = "Logger";
  std::weak_ptr<Context> context_;
};

}  // namespace qaic::rt
