// Two processes stand between the suite and a case. The outer one is what the suite starts: a
// subreaper, so that whatever the case leaves behind becomes its child. The inner one, its fork,
// runs the case; plugins are loaded nowhere else.
#include "case_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "sandforge/posix/spawn.hpp"
#include "sandforge/posix/tree.hpp"

namespace sandforge::conformance {
namespace {

using posix::Fd;
using Clock = std::chrono::steady_clock;

constexpr const char* kRequestFile = "request.json";
constexpr milliseconds kBoundOfCleaning{15'000};

std::string read_start(const fs::path& path, std::size_t limit) {
  std::ifstream in(path, std::ios::binary);
  std::string out(limit, '\0');
  in.read(out.data(), static_cast<std::streamsize>(limit));
  out.resize(static_cast<std::size_t>(in.gcount()));
  return out;
}

// A file of our own, however long.
std::string read_all(const fs::path& path) {
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  return failed ? std::string() : read_start(path, static_cast<std::size_t>(size));
}

json::Value to_json(const Judgement& judgement) {
  json::Object out;
  out.set("verdict", std::string(to_string(judgement.verdict)));
  out.set("reason", judgement.reason);
  out.set("unopened", judgement.unopened);
  return out;
}

std::optional<Judgement> read_judgement(const std::string& text) {
  const auto parsed = json::parse(text);
  if (!parsed || parsed.value.find("verdict") == nullptr) return std::nullopt;
  for (const auto verdict :
       {Verdict::pass, Verdict::fail, Verdict::not_applicable, Verdict::unverified})
    if (to_string(verdict) == parsed.value.find("verdict")->as_string())
      return Judgement{verdict, parsed.value.find("reason")->as_string(),
                       parsed.value.find("unopened")->as_bool()};
  return std::nullopt;
}

// ---- What the processes of cases read

json::Array to_array(const std::vector<fs::path>& paths) {
  json::Array out;
  for (const auto& path : paths)
    out.emplace_back(fs::absolute(path).string());
  return out;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  if (!(file << text).flush())
    throw_error(Error(Status::unavailable, path.string() + ": cannot be written"));
}

struct Order {
  Request request;
  std::uint64_t seed = 0;
};

Order read_order(const fs::path& folder) {
  const auto parsed = json::parse(read_all(folder / kRequestFile));
  if (!parsed) throw_error(Error(Status::internal, "the request cannot be read"));
  const auto text = [&](const char* key) { return parsed.value.find(key)->as_string(); };
  Order order;
  order.request.subject.plugin = text("plugin");
  order.request.subject.provider = text("provider");
  order.request.subject.options = parsed.value.find("options")->as_object();
  order.request.subject.options_directory = text("optionsDirectory");
  order.request.guest_program = text("guest");
  for (const auto& path : parsed.value.find("caseFiles")->as_array())
    order.request.case_files.emplace_back(path.as_string());
  if (const auto* bound = parsed.value.find("boundMs"))
    order.request.bound = milliseconds(bound->as_integer());
  order.seed = std::stoull(text("seed"));
  return order;
}

// ---- The inner process

struct Place {
  fs::path folder;  // of the case
  std::string token;
  fs::path work() const { return folder / "w"; }
  fs::path opening() const { return folder / "opening"; }
  fs::path printed() const { return folder / "printed"; }
  fs::path result() const { return folder / "result.json"; }
};

// 12 in /tmp/sfc-a1b2c3 gives the folder /tmp/sfc-a1b2c3/0012 and the token sfc-a1b2c3-0012. The
// width is the same for all, so that no name is the beginning of another.
Place place_of(const fs::path& suite, std::size_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, 4 - std::min<std::size_t>(4, digits.size()), '0');
  return {suite / digits, suite.filename().string() + "-" + digits};
}

[[noreturn]] void run_inner(const Case& one, const Order& order, const Place& place) {
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd printed(
      ::open(place.printed().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ::dup2(null.get(), 0);
  ::dup2(printed.get(), 1);
  ::dup2(printed.get(), 2);
  ::setenv("HOME", (place.work() / "home").c_str(), 1);
  ::setenv("TMPDIR", (place.work() / "tmp").c_str(), 1);
  Setting setting;
  setting.subject = order.request.subject;
  setting.guest_program = order.request.guest_program;
  setting.opening = place.opening();
  setting.folder = place.work();
  setting.token = place.token;
  setting.seed = order.seed;
  setting.cases = all_cases(order.request);
  const auto judgement = judge(one, std::move(setting));
  write_file(place.result(), json::write(to_json(judgement)));
  std::exit(0);  // with the destructors of the plugin: they must not crash either
}

// ---- The outer process

class Outer {
 public:
  Outer(const Case& one, const Order& order, Place place)
      : one_(one), order_(order), place_(std::move(place)) {}

  Judgement run() {
    posix::become_subreaper();
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP})
      sigaddset(&signals, number);
    ::sigprocmask(SIG_BLOCK, &signals, &before_);
    fs::create_directories(place_.work());
    inner_ = ::fork();
    if (inner_ == 0) {
      ::sigprocmask(SIG_SETMASK, &before_, nullptr);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      run_inner(one_, order_, place_);
    }
    if (inner_ < 0) return {Verdict::unverified, "no process could be made"};
    const bool ended = wait_inner(signals);
    return ended ? after_end() : after_bound();
  }

 private:
  milliseconds bound() const {
    return order_.request.bound.value_or(std::chrono::duration_cast<milliseconds>(one_.bound));
  }

  bool wait_inner(const sigset_t& signals) {
    const auto end = Clock::now() + bound();
    while (!reaped_) {
      const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
      if (left <= 0) return false;
      const timespec pause{static_cast<time_t>(left / 1000),
                           static_cast<long>(left % 1000) * 1'000'000};
      const int signal = ::sigtimedwait(&signals, nullptr, &pause);
      if (signal > 0 && signal != SIGCHLD) {  // the suite has gone, or wants us to
        end_all();
        std::_Exit(1);
      }
      reap();
    }
    return true;
  }

  void reap() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (pid == inner_) {
        reaped_ = true;
        status_ = status;
      }
  }

  Judgement after_bound() {
    const auto running = describe(left());
    end_all();
    return failed("took longer than " + std::to_string(bound().count()) +
                      " ms and was ended; what ran:\n" + running,
                  fs::exists(place_.opening()));
  }

  Judgement after_end() {
    // Who is told to end needs a moment.
    const bool quiet = eventually([this] {
      reap();
      return left().empty();
    });
    std::string problems;
    if (!quiet) problems = "left running:\n" + describe(left());
    end_all();
    if (const auto printed = read_start(place_.printed(), 2000); !printed.empty())
      problems += std::string(problems.empty() ? "" : "\n") + "printed " + show_text(printed);
    auto judgement = read_judgement(read_all(place_.result()));
    if (!WIFEXITED(status_) || WEXITSTATUS(status_) != 0 || !judgement) {
      const auto how = WIFSIGNALED(status_)
                           ? "was ended by signal " + std::to_string(WTERMSIG(status_))
                           : "exited with " + std::to_string(WEXITSTATUS(status_));
      problems = "the process of the case " + how + (problems.empty() ? "" : "\n") + problems;
    }
    if (problems.empty()) return *judgement;
    if (judgement && judgement->verdict == Verdict::fail)
      problems = judgement->reason + "\n" + problems;
    if (judgement) return {Verdict::fail, problems, judgement->unopened};
    return failed(std::move(problems), fs::exists(place_.opening()));
  }

  static Judgement failed(std::string why, bool while_opening) {
    if (!while_opening) return {Verdict::fail, std::move(why)};
    return {Verdict::fail, "the provider cannot be opened: " + why, true};
  }

  // Descendants, and those on this machine that others started on the case's behalf.
  std::vector<pid_t> left() const {
    std::vector<pid_t> out;
    for (const auto& member : posix::find_descendants(procfs_.processes(), ::getpid()))
      if (alive(member.pid)) out.push_back(member.pid);
    for (const pid_t pid : processes_with(place_.work().string()))
      if (std::find(out.begin(), out.end(), pid) == out.end()) out.push_back(pid);
    return out;
  }

  void end_all() {
    eventually(
        [this] {
          reap();
          const auto all = procfs_.processes();
          const auto mine = left();
          for (const auto& process : all)
            if (std::find(mine.begin(), mine.end(), process.pid) != mine.end())
              posix::signal_member(
                  procfs_, posix::Member{process.pid, process.start_time, process.parent}, SIGKILL);
          return mine.empty();
        },
        kBoundOfCleaning);
    reap();
  }

  const Case& one_;
  const Order& order_;
  const Place place_;
  const posix::Procfs procfs_;
  sigset_t before_{};
  pid_t inner_ = -1;
  bool reaped_ = false;
  int status_ = 0;
};

Judgement run_outer(const std::string& id, const fs::path& folder, std::size_t number) {
  const auto order = read_order(folder);
  for (const auto& one : select_cases(order.request))
    if (one.id == id) return Outer(one, order, place_of(folder, number)).run();
  return {Verdict::unverified, "there is no such case"};
}

// ---- The suite's side

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry)
    out.emplace_back(*entry);
  return out;
}

std::string read_to_end(int descriptor) {
  std::string out;
  std::array<char, 4096> piece{};
  for (;;) {
    const auto count = ::read(descriptor, piece.data(), piece.size());
    if (count > 0) {
      out.append(piece.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      return out;
    }
  }
}

fs::path program_of(const Request& request) {
  return request.program.empty() ? fs::read_symlink("/proc/self/exe")
                                 : fs::absolute(request.program);
}

Judgement start_and_read(const Request& request, const Case& one, std::size_t number,
                         const fs::path& folder) {
  const auto& stop = request.stop;
  if (stop.stop_requested()) return {Verdict::unverified, "was not run: interrupted"};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {Verdict::unverified, "no pipe could be made"};
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  posix::SpawnSpec spec;
  spec.argv = {
      program_of(request).string(), "--case", one.id, "--suite", folder.string(), "--number",
      std::to_string(number)};
  spec.environment = own_environment();
  spec.stdin_fd = null.get();
  spec.stdout_fd = to.get();
  spec.stderr_fd = 2;
  spec.death_signal = SIGTERM;
  const auto spawned = posix::spawn(spec);
  if (spawned.stage != posix::SpawnStage::none)
    return {Verdict::unverified, "this program could not be started again: " + spawned.path + ": " +
                                     std::strerror(spawned.error_number)};
  to.reset();
  std::string text;
  {
    const std::stop_callback end(stop, [&] { ::kill(spawned.pid, SIGTERM); });
    text = read_to_end(from.get());
  }
  int status = 0;
  while (::waitpid(spawned.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (auto judgement = read_judgement(text)) return *judgement;
  if (stop.stop_requested()) return {Verdict::unverified, "was interrupted"};
  return {Verdict::fail, "the process that watches over the case has ended without an answer"};
}

}  // namespace

SuiteFolder::SuiteFolder() {
  std::string name = (fs::temp_directory_path() / "sfc-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw_error(Error(Status::unavailable, name + ": cannot be made", "conformance.folder"));
  path_ = fs::canonical(name);
}

SuiteFolder::~SuiteFolder() {
  std::error_code ignored;  // what was left in it is told by the cases
  fs::remove_all(path_, ignored);
}

void write_request(const Request& request, std::uint64_t seed, const fs::path& folder) {
  json::Object out;
  out.set("plugin", fs::absolute(request.subject.plugin).string());
  out.set("provider", request.subject.provider);
  out.set("options", request.subject.options);
  out.set("optionsDirectory", request.subject.options_directory.string());
  out.set("guest", request.guest_program.string());
  out.set("caseFiles", to_array(request.case_files));
  if (request.bound) out.set("boundMs", static_cast<long long>(request.bound->count()));
  out.set("seed", std::to_string(seed));
  write_file(folder / kRequestFile, json::write(out));
}

RanCase run_case(const Request& request, const Case& one, std::size_t number,
                 const fs::path& folder) {
  const auto begin = Clock::now();
  auto judgement = start_and_read(request, one, number, folder);
  CaseResult out;
  out.id = one.id;
  out.about = one.about;
  out.verdict = judgement.verdict;
  out.reason = std::move(judgement.reason);
  out.took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  std::error_code ignored;
  fs::remove_all(place_of(folder, number).folder, ignored);
  return {std::move(out), judgement.unopened};
}

std::optional<int> case_process(int argc, const char* const* argv) {
  if (argc != 7 || std::string_view(argv[1]) != "--case" ||
      std::string_view(argv[3]) != "--suite" || std::string_view(argv[5]) != "--number")
    return std::nullopt;
  Judgement judgement;
  try {
    judgement = run_outer(argv[2], argv[4], std::stoul(argv[6]));
  } catch (const std::exception& error) {
    judgement = {Verdict::unverified, error.what()};
  }
  const auto text = json::write(to_json(judgement));
  return ::write(1, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
}

}  // namespace sandforge::conformance
