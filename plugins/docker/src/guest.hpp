// The guest of a container: its program, the volume that brings it there, and the connection to it.
#pragma once

#include <sandforge/guest_link/guest_link.hpp>

#include <mutex>

#include <sandforge/wire/docker/tar.hpp>

#include "engine.hpp"

namespace sandforge::docker {

using guest_link::Failure;
using guest_link::GuestLink;

// Where it lies in every container that has one.
inline constexpr const char* kGuestFolder = "/.sandforge";
inline constexpr const char* kGuestPath = "/.sandforge/sandforge-guest";
inline constexpr const char* kGuestRun = "/.sandforge/run";  // its own tmpfs
inline constexpr const char* kGuestSocket = "/.sandforge/run/guest/socket";

// Of a container that is never started, through which the program gets into its volume: what its
// name begins with, and its label.
inline constexpr std::string_view kFillsName = "sandforge-fill-";
inline constexpr std::string_view kFillsLabel = "sandforge.guest.fills";

// The program beside the plugin, shared by all sessions. Threads: any.
class GuestProgram {
 public:
  explicit GuestProgram(std::string path) : path_(std::move(path)) {}
  // Blocking. Empty, and the reason in *why: it cannot be read, or would not run in every image.
  std::string read(std::string* why) const;
  // The same, kept once it is known: SHA-256 in hexadecimal digits.
  std::string hash(std::string* why);

 private:
  const std::string path_;
  std::mutex mutex_;
  std::string hash_;
};

// On the lane of the engine. The program is null where no guest is wanted.
class GuestVolumes {
 public:
  GuestVolumes(Engine& engine, std::shared_ptr<GuestProgram> program)
      : engine_(engine), program_(std::move(program)) {}

  bool wanted() const noexcept { return program_ != nullptr; }
  // The hash of the program that new containers get; empty, and the reason in `why`: none.
  Task<std::string> hash();
  const std::string& why() const noexcept { return why_; }
  static std::string name(const std::string& hash) { return "sandforge-guest-" + hash; }
  /*
   * Makes sure that the volume of a container that does not run holds the whole program: a file
   * beside it says so, which is written when what was uploaded was read back. Answers what was in
   * the way; empty: nothing. image: for the container that is made and never started.
   */
  Task<std::string> fill(std::string container, std::string hash, std::string image);

 private:
  Task<bool> is_filled(std::string container);
  Task<void> fill_by(std::string helper, std::string bytes);
  Task<std::string> make_helper(std::string hash, std::string image);
  Task<void> put(std::string helper, wire::TarEntry entry, std::string bytes);

  Engine& engine_;
  const std::shared_ptr<GuestProgram> program_;
  std::string why_;
};

// Reaches the guest of a container that runs, by one exec that carries all there is to say. Throws
// Code::gone and Code::conflict as refuse_by_state, else Code::unavailable.
// silence: after which a guest that is asked something is silent.
Task<std::shared_ptr<GuestLink>> connect_guest(Engine& engine, std::string container,
                                               milliseconds silence);

}  // namespace sandforge::docker
