#include "runner/greeting.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "plugin/abi_text.hpp"
#include "sandforge/wire/runner/codec.hpp"

namespace sandforge::runner {
namespace {

constexpr std::uint64_t kFingerprint = wire::table_fingerprint();

std::string encode(const json::Object& document) {
  const std::string text = json::write(document);
  wire::Writer out;
  out.value(wire::kMagic);
  out.value(wire::kVersion);
  out.value(kFingerprint);
  out.value(plugin::to_str(text));
  return std::move(out.out);
}

Result<json::Object> decode(std::string_view payload) {
  wire::Arena arena;
  wire::Reader in(payload, arena);
  const auto magic = in.read<std::uint32_t>();
  const auto version = in.read<std::uint32_t>();
  const auto fingerprint = in.read<std::uint64_t>();
  if (!in.ok() || magic != wire::kMagic)
    return Error(Status::invalid, "what answers is no plugin runner", "runner.invalid");
  if (version != wire::kVersion || fingerprint != kFingerprint) {
    Error error(Status::unsupported,
                fmt::format("the plugin runner is of another version (protocol {} and {}, "
                            "interface {:016x} and {:016x})",
                            version, wire::kVersion, fingerprint, kFingerprint),
                kOtherVersion);
    error.details.set("hint", "install sandforge-runner of the same build as this program");
    return error;
  }
  const auto text = in.read<sf_str>();
  auto parsed = json::parse(plugin::view(text));
  if (!in.whole() || !parsed || !parsed.value.is_object())
    return Error(Status::invalid, "the first frame of the plugin runner is damaged",
                 "runner.invalid");
  return std::move(parsed.value.as_object());
}

std::string text_of(const json::Object& from, std::string_view name) {
  const json::Value* value = from.find(name);
  return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

std::uint64_t number_of(const json::Object& from, std::string_view name) {
  const json::Value* value = from.find(name);
  return value != nullptr && value->is_integer() && value->as_integer() > 0
             ? static_cast<std::uint64_t>(value->as_integer())
             : 0;
}

std::vector<std::string> texts_of(const json::Object& from, std::string_view name) {
  std::vector<std::string> out;
  const json::Value* value = from.find(name);
  if (value == nullptr || !value->is_array()) return out;
  for (const json::Value& each : value->as_array())
    if (each.is_string()) out.push_back(each.as_string());
  return out;
}

bool is_set(const json::Object& from, std::string_view name) {
  return number_of(from, name) != 0;
}

}  // namespace

std::string encode(const Hello& hello) {
  json::Object out, env;
  for (const auto& [name, value] : hello.env)
    env.set(name, json::Value(value));
  out.set("path", hello.path);
  out.set("origin", hello.origin);
  out.set("sha256", hello.sha256);
  out.set("env", std::move(env));
  out.set("grantedEnv", json::Array(hello.granted_env.begin(), hello.granted_env.end()));
  out.set("hosts", json::Array(hello.hosts.begin(), hello.hosts.end()));
  out.set("unixSockets", json::Array(hello.unix_sockets.begin(), hello.unix_sockets.end()));
  out.set("writable", json::Array(hello.writable.begin(), hello.writable.end()));
  out.set("data", hello.folders.data.string());
  out.set("cache", hello.folders.cache.string());
  out.set("runtime", hello.folders.runtime.string());
  out.set("guest", hello.guest_program);
  out.set("programs", hello.may_run_programs ? 1 : 0);
  out.set("logLevel", static_cast<std::int64_t>(hello.log_level));
  out.set("state", hello.has_state ? 1 : 0);
  out.set("secrets", hello.has_secrets ? 1 : 0);
  out.set("memoryMb", static_cast<std::int64_t>(hello.memory_mb));
  out.set("openFiles", static_cast<std::int64_t>(hello.open_files));
  out.set("callLimitMs", static_cast<std::int64_t>(hello.call_limit_ms));
  return encode(out);
}

Result<Hello> decode_hello(std::string_view payload) {
  auto read = decode(payload);
  if (!read) return std::move(read).error();
  const json::Object& from = *read;
  Hello out;
  out.path = text_of(from, "path");
  out.origin = text_of(from, "origin");
  out.sha256 = text_of(from, "sha256");
  if (const json::Value* env = from.find("env"); env != nullptr && env->is_object())
    for (const auto& [name, value] : env->as_object())
      if (value.is_string()) out.env[name] = value.as_string();
  out.granted_env = texts_of(from, "grantedEnv");
  out.hosts = texts_of(from, "hosts");
  out.unix_sockets = texts_of(from, "unixSockets");
  out.writable = texts_of(from, "writable");
  out.folders = {text_of(from, "data"), text_of(from, "cache"), text_of(from, "runtime")};
  out.guest_program = text_of(from, "guest");
  out.may_run_programs = is_set(from, "programs");
  out.log_level = static_cast<LogLevel>(std::min<std::uint64_t>(number_of(from, "logLevel"), 5));
  out.has_state = is_set(from, "state");
  out.has_secrets = is_set(from, "secrets");
  out.memory_mb = number_of(from, "memoryMb");
  out.open_files = number_of(from, "openFiles");
  out.call_limit_ms = number_of(from, "callLimitMs");
  return out;
}

std::string encode(const Ready& ready) {
  json::Object out;
  const LoadAttempt& attempt = ready.attempt;
  out.set("stage", static_cast<std::int64_t>(attempt.stage));
  out.set("message", attempt.message);
  out.set("loader", attempt.loader_text);
  out.set("hint", attempt.hint);
  out.set("details", attempt.details);
  out.set("hardening", ready.hardening);
  out.set("lacksThread", ready.lacks_thread ? 1 : 0);
  return encode(out);
}

Result<Ready> decode_ready(std::string_view payload) {
  auto read = decode(payload);
  if (!read) return std::move(read).error();
  const json::Object& from = *read;
  Ready out;
  const auto stage = number_of(from, "stage");
  if (stage == 0 || stage >= kLoadStages)
    return Error(Status::invalid, "the plugin runner does not say how far it came",
                 "runner.invalid");
  out.attempt.stage = static_cast<LoadStage>(stage);
  out.attempt.message = text_of(from, "message");
  out.attempt.loader_text = text_of(from, "loader");
  out.attempt.hint = text_of(from, "hint");
  if (const json::Value* details = from.find("details"); details != nullptr && details->is_object())
    out.attempt.details = details->as_object();
  out.hardening = text_of(from, "hardening");
  out.lacks_thread = is_set(from, "lacksThread");
  return out;
}

}  // namespace sandforge::runner
