// What the program writes itself: to people and to scripts. Not the output of commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "patient_output.hpp"
#include "sandforge/error.hpp"

namespace sandforge::cli {

class Terminal {
 public:
  // json: answers are JSON on standard output, errors too.
  explicit Terminal(bool json);

  bool json() const noexcept { return json_; }
  bool stderr_is_terminal() const noexcept { return err_tty_; }

  // Standard output. False: it cannot be written, errno says why.
  bool print(std::string_view text) const;
  bool print_text(std::string_view text) const;  // of others: without what a terminal obeys
  bool print_json(const json::Value& value) const;
  // What to exit with right after one of these: 0 if it was written, else 141, or 125 and a word;
  // without one where the end was wanted and nobody read.
  int exit_code_after(bool written) const;
  // Rows under a header, columns as wide as they need to be; cells may be foreign text.
  bool print_table(const std::vector<std::string>& header,
                   const std::vector<std::vector<std::string>>& rows) const;

  // Standard error, after "sandforge: ". Nobody can be told when that fails.
  void note(std::string_view text) const;
  void warn(std::string_view text) const;
  void progress(std::string_view text) const;
  // JSON: {"error": …} on standard output.
  void error(const Error& error) const;

  std::string bold(std::string_view text) const;  // on standard output

  // What others wrote, to standard output or error (1 or 2), as it is. False: errno says why.
  bool pass_on(int descriptor, std::string_view data) const {
    return output_.write_all(descriptor, data);
  }
  // Readers are waited for no longer than PatientOutput says; the rest is dropped: errno is
  // ECANCELED. From any thread.
  void hurry() const noexcept { output_.hurry(); }

 private:
  void say(std::string_view colour, std::string_view text) const;

  const bool json_;
  const bool err_tty_;
  const bool colour_out_;
  const bool colour_err_;
  mutable PatientOutput output_;
};

// What an error says to a person: its message, then the details that help.
std::string describe_error(const Error& error);

// Of a write to our own output that failed.
Error output_error(int error_number);

// "3m ago" for a point in Unix time, nanoseconds.
std::string age(std::int64_t then_ns, std::int64_t now_ns);

}  // namespace sandforge::cli
