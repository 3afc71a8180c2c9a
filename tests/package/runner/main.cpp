// A test runner of an author's own: the cases that its arguments name, over one plugin.
#include <iostream>

#include "sandforge/conformance.hpp"
#include "sandforge/error.hpp"

int main(int argc, char** argv) {
  namespace conformance = sandforge::conformance;
  if (const auto code = conformance::case_process(argc, argv)) return *code;
  try {
    conformance::Request request;
    request.subject.plugin = argv[1];
    request.include.assign(argv + 2, argv + argc);
    const auto report = conformance::run(request);
    std::cout << conformance::to_text(report);
    return conformance::exit_code(report);
  } catch (const sandforge::Exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
}
