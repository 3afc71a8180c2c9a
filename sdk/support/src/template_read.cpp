// Operations of a template out of JSON of whatever origin.
#include <algorithm>

#include "template_checks.hpp"

namespace sandforge::templates {
namespace {

class OperationReader {
 public:
  explicit OperationReader(const Place& at) : at_(at) {}

  std::optional<TemplateOperation> read(const json::Value& value, std::optional<std::string>& base,
                                        TemplateResources& resources) {
    check_members(value, at_, {"args", "method"});
    const auto* method = value.find("method");
    const auto* args = value.find("args");
    if (method == nullptr || !method->is_string())
      (at_ / "method").refuse(TemplateFault::bad_value, "the method must be a text");
    if (args == nullptr || !args->is_array())
      (at_ / "args").refuse(TemplateFault::bad_value, "the args must be a list");
    args_ = &args->as_array();
    const std::string& name = method->as_string();
    if (name == "from") {
      base = one_text();
      return std::nullopt;
    }
    if (name == "cpuCount" || name == "memoryMB") {
      (name == "cpuCount" ? resources.cpu_count : resources.memory_mb) = one_number();
      return std::nullopt;
    }
    if (name == "runCmd") return RunCommands{only_texts()};
    if (name == "runWithSecrets") return with_secrets();
    if (name == "setWorkdir") return SetWorkdir{one_text()};
    if (name == "setEnvs") return SetEnvs{envs()};
    if (name == "aptInstall") return apt();
    if (name == "pipInstall") return pip();
    if (name == "npmInstall") return npm();
    (at_ / "method").refuse(TemplateFault::unknown, "there is no such method");
  }

 private:
  Place arg(std::size_t i) const { return at_ / "args" / i; }
  void count(std::size_t least, std::size_t most) const {
    if (args_->size() < least || args_->size() > most)
      (at_ / "args").refuse(TemplateFault::bad_value, "this is not the number of args it takes");
  }
  static std::string text(const json::Value& value, const Place& at) {
    if (!value.is_string()) at.refuse(TemplateFault::bad_value, "this must be a text");
    return value.as_string();
  }
  static std::vector<std::string> texts(const json::Value& value, const Place& at) {
    if (value.is_string()) return {value.as_string()};
    if (!value.is_array())
      at.refuse(TemplateFault::bad_value, "this must be a text or a list of texts");
    if (value.as_array().empty()) at.refuse(TemplateFault::empty, "the list is empty");
    std::vector<std::string> out;
    for (std::size_t i = 0; i < value.as_array().size(); ++i)
      out.push_back(text(value.as_array()[i], at / i));
    return out;
  }
  std::string one_text() const {
    count(1, 1);
    std::string out = text(args_->front(), arg(0));
    check_text(out, arg(0), "this text");
    return out;
  }
  std::int64_t one_number() const {
    count(1, 1);
    const json::Value& value = args_->front();
    if (!value.is_number()) arg(0).refuse(TemplateFault::bad_value, "this must be a number");
    // 2.0 is a whole number, too.
    const double number = value.as_number();
    const bool whole =
        value.is_integer() || (number >= 1 && number <= 9007199254740991.0 &&
                               static_cast<double>(static_cast<std::int64_t>(number)) == number);
    const std::int64_t out = value.is_integer() ? value.as_integer()
                             : whole            ? static_cast<std::int64_t>(number)
                                                : 0;
    check_number(out, arg(0), "this");
    return out;
  }
  std::vector<std::string> only_texts() const {
    count(1, 1);
    return texts(args_->front(), arg(0));
  }
  Template::Envs envs() const {
    count(1, 1);
    if (!args_->front().is_object())
      arg(0).refuse(TemplateFault::bad_value, "the environment must be an object");
    Template::Envs out;
    for (const auto& [name, value] : args_->front().as_object())
      out[name] = text(value, arg(0) / name);
    return out;
  }
  // Packages, absent or null where they may be left out.
  std::vector<std::string> packages(bool needed) const {
    count(needed ? 1 : 0, 2);
    if (args_->empty() || (!needed && args_->front().is_null())) return {};
    return texts(args_->front(), arg(0));
  }
  std::optional<bool> flag(const char* name) const {
    const auto* value = args_->size() < 2 ? nullptr : (*args_)[1].find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_bool())
      (arg(1) / name).refuse(TemplateFault::bad_value, "this must be true or false");
    return value->as_bool();
  }
  void options(const std::vector<std::string_view>& known) const {
    if (args_->size() > 1) check_members((*args_)[1], arg(1), known);
  }
  TemplateOperation apt() const {
    AptInstall out;
    out.packages = packages(true);
    options({"noInstallRecommends", "fixMissing"});
    out.no_install_recommends = flag("noInstallRecommends").value_or(false);
    out.fix_missing = flag("fixMissing").value_or(false);
    return out;
  }
  TemplateOperation pip() const {
    PipInstall out;
    out.packages = packages(false);
    options({"g"});
    out.user = !flag("g").value_or(true);
    return out;
  }
  TemplateOperation npm() const {
    NpmInstall out;
    out.packages = packages(false);
    options({"g", "dev"});
    out.global = flag("g").value_or(false);
    out.dev = flag("dev").value_or(false);
    return out;
  }
  TemplateOperation with_secrets() const {
    count(2, 2);
    RunWithSecrets out;
    out.commands = texts((*args_)[0], arg(0));
    options({"secrets", "output", "owner"});
    if (const auto* names = (*args_)[1].find("secrets")) {
      if (!names->is_array())
        (arg(1) / "secrets").refuse(TemplateFault::bad_value, "this must be a list of names");
      if (!names->as_array().empty()) out.secrets = texts(*names, arg(1) / "secrets");
    }
    if (const auto* output = (*args_)[1].find("output"))
      out.output = text(*output, arg(1) / "output");
    if (const auto* owner = (*args_)[1].find("owner")) {
      out.owner = text(*owner, arg(1) / "owner");
      check_text(out.owner, arg(1) / "owner", "the owner");
    }
    return out;
  }

  const Place at_;
  const json::Array* args_ = nullptr;
};

}  // namespace

void check_members(const json::Value& value, const Place& at,
                   const std::vector<std::string_view>& known) {
  if (!value.is_object()) at.refuse(TemplateFault::bad_value, "this must be an object");
  for (const auto& [key, unused] : value.as_object()) {
    static_cast<void>(unused);
    if (std::find(known.begin(), known.end(), key) == known.end())
      (at / key).refuse(TemplateFault::unknown, "there is no such member or option");
  }
}

std::optional<TemplateOperation> read_operation(const json::Value& value, const Place& at,
                                                std::optional<std::string>& base,
                                                TemplateResources& resources) {
  auto operation = OperationReader(at).read(value, base, resources);
  if (operation) check_operation(*operation, at);
  return operation;
}

}  // namespace sandforge::templates
