/// What the C++ classes throw. `what()` says what failed, why, and what to do; `status()` is the
/// code of the C function.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "QAicTypes.h"

namespace qaic {

/// The base of all of them.
class Exception : public std::exception {
 public:
  const char* what() const noexcept override { return msg_.c_str(); }
  /// The text of what(). The reference is valid as long as the exception.
  const std::string& msg() const noexcept { return msg_; }
  /// The code of the failure; never QS_SUCCESS where the classes throw.
  QStatus status() const noexcept { return status_; }

 protected:
  explicit Exception(std::string msg, QStatus status = QS_ERROR)
      : msg_(std::move(msg)), status_(status) {}
  /// "<name>: <msg>".
  Exception(const std::string& name, const std::string& msg, QStatus status)
      : Exception(msg.empty() ? name : name + ": " + msg, status) {}

 private:
  std::string msg_;
  QStatus status_;
};

/// An object could not be made.
class ExceptionInit : public Exception {
 public:
  /// `msg` is the whole text of what(). `status` is the code, QS_ERROR where none is given.
  explicit ExceptionInit(std::string msg, QStatus status = QS_ERROR)
      : Exception(std::move(msg), status) {}

 protected:
  ExceptionInit(const std::string& name, const std::string& msg, QStatus status)
      : Exception(name, msg, status) {}
};

/// An object could not do what was asked of it.
class ExceptionRuntime : public Exception {
 public:
  /// `msg` is the whole text of what(). `status` is the code, QS_ERROR where none is given.
  explicit ExceptionRuntime(std::string msg, QStatus status = QS_ERROR)
      : Exception(std::move(msg), status) {}
};

/// For catch clauses of clients: the classes report a null pointer as the factory's or the method's
/// failure.
class ExceptionNullPtr : public Exception {
 public:
  /// `msg` is the whole text of what(). `status` is the code, QS_INVAL where none is given.
  explicit ExceptionNullPtr(std::string msg, QStatus status = QS_INVAL)
      : Exception(std::move(msg), status) {}

 protected:
  ExceptionNullPtr(const std::string& name, const std::string& msg, QStatus status)
      : Exception(name, msg, status) {}
};

namespace rt {

/// A factory failed; the text begins with the class.
class CoreExceptionInit : public ExceptionInit {
 public:
  /// what() becomes "<name>: <msg>", or `name` where `msg` is empty; `name` is the class that could
  /// not be made. `status` is the code, QS_ERROR where none is given.
  explicit CoreExceptionInit(const std::string& name, const std::string& msg = "",
                             QStatus status = QS_ERROR)
      : ExceptionInit(name, msg, status) {}
};

/// A method failed that returns no code.
class CoreExceptionRuntime : public ExceptionRuntime {
 public:
  /// `msg` is the whole text of what(). `status` is the code, QS_ERROR where none is given.
  explicit CoreExceptionRuntime(const std::string& msg, QStatus status = QS_ERROR)
      : ExceptionRuntime(msg, status) {}
};

/// For catch clauses of clients, as ExceptionNullPtr.
class CoreExceptionNullPtr : public ExceptionNullPtr {
 public:
  /// what() becomes "<name>: <msg>", or `name` where `msg` is empty. `status` is the code, QS_INVAL
  /// where none is given.
  explicit CoreExceptionNullPtr(const std::string& name, const std::string& msg = "",
                                QStatus status = QS_INVAL)
      : ExceptionNullPtr(name, msg, status) {}
};

}  // namespace rt
}  // namespace qaic
