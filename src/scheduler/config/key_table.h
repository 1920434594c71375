/// Every key of a node in one table: what it takes, its default, and where it may stand.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace corelane::scheduler {

/// How the text of a key is read.
enum class KeyKind : std::uint8_t {
  kBackend,       ///< An expression (backend_text.h).
  kCount,         ///< A whole number from `low` to `high`.
  kMilliseconds,  ///< A number from 0 to `high`, fractions allowed.
  kShare,         ///< A number above 0, at most `high`.
  kFlag,          ///< "true" or "1", "false" or "0".
  kChoice,        ///< One of `choices`.
};

struct Key {
  std::string_view name;
  KeyKind kind;
  std::string_view default_text;  ///< Empty: the backend's own.
  std::string_view meaning;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::string_view choices = {};  ///< With '|' between them.
  bool parts = false;             ///< `&` divides it among the groups.
  bool live = false;              ///< Pipeline::reconfigure() may change it.
  bool global_only = false;       ///< In TOML it stands above the table.
};

/// In the order of the page of keys.
std::span<const Key> key_table() noexcept;

/// Null for a name that is not a key of a node.
const Key* find_key(std::string_view name) noexcept;

/// "a whole number from 1 to 1024": for messages and for the page of keys.
std::string allowed_text(const Key& key);

/// Whether `text`, one part where `&` divides it, is what the key takes. An expression is only
/// looked at for being there.
bool takes(const Key& key, std::string_view text) noexcept;

/// The backends of the default chain, the outermost first.
std::span<const std::string_view> default_chain() noexcept;

/// Names that a node may not have.
std::span<const std::string_view> reserved_names() noexcept;

/// Whether only pipelines of several nodes have such a key.
bool is_key_of_several_nodes(std::string_view name) noexcept;

}  // namespace corelane::scheduler
