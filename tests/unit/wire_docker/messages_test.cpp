#include "sandforge/wire/docker/messages.hpp"

#include <catch2/catch.hpp>

using namespace sandforge;
using namespace sandforge::wire::docker;

TEST_CASE("an engine's refusal is read from its body, or shown as it is") {
  CHECK(error_message(R"({"message":"no such container: x"})") == "no such container: x");
  CHECK(error_message(R"({"cause":"c","message":"m","response":404})") == "m");
  CHECK(error_message("404 page not found\n") == "404 page not found");
  CHECK(error_message("{}").empty());
  CHECK(error_message("\x1b[31mred") == "\\x1b[31mred");
  CHECK(error_message(std::string(100'000, 'x')).size() == 2048);
}

TEST_CASE("answers are read, and what they lack is empty") {
  const auto container = read_container(
      R"({"Id":"c1","Name":"/n","Created":"2026-01-02T03:04:05.6Z","State":{"Status":"running",
          "Running":true,"Paused":true,"OOMKilled":true,"ExitCode":137,"Error":"e"},
          "Config":{"Image":"i","WorkingDir":"/w","User":"u","Env":["A=1"],
          "Labels":{"mastra.sandbox.id":"s"}},"HostConfig":{"Memory":5,"NanoCpus":6}})");
  REQUIRE(container);
  CHECK(container->name == "n");
  CHECK(container->status == "running");
  CHECK(container->running);
  CHECK(container->paused);
  CHECK(container->oom_killed);
  CHECK(container->exit_code == 137);
  CHECK(container->label(kSandboxIdLabel) == "s");
  CHECK(container->label("none").empty());
  CHECK(container->working_directory == "/w");
  CHECK(container->env == Texts{"A=1"});
  CHECK(container->memory == 5);
  CHECK(container->nano_cpus == 6);
  CHECK_FALSE(container->is_going());

  const auto bare = read_container(R"({"Id":"c1","State":{"Status":"removing"},"Config":null})");
  REQUIRE(bare);
  CHECK(bare->is_going());
  CHECK(bare->env.empty());
  for (const char* none : {"", "[]", "{}", R"({"Id":5})", "null"}) {
    CHECK_FALSE(read_container(none));
    CHECK_FALSE(read_created_container(none));
    CHECK_FALSE(read_exec_id(none));
  }
}

TEST_CASE("lists of containers") {
  const auto list = read_containers(R"([{"Id":"a","Created":7,"State":"exited"},{"Id":"b"}])");
  REQUIRE(list);
  CHECK(list->size() == 2);
  CHECK(list->at(0).created == 7);
  CHECK(list->at(0).state == "exited");
  CHECK(read_containers("[]")->empty());
  CHECK_FALSE(read_containers("{}"));
  CHECK_FALSE(read_containers(R"([{"Id":""}])"));
}

TEST_CASE("a created container has warnings or null") {
  CHECK(read_created_container(R"({"Id":"a","Warnings":null})")->warnings.empty());
  CHECK(read_created_container(R"({"Id":"a","Warnings":["w"]})")->warnings == Texts{"w"});
}

TEST_CASE("an exec that was not started, runs, or ended") {
  const auto created = read_exec(R"({"Running":false,"ExitCode":null,"Pid":0})");
  CHECK_FALSE(created->ended());
  CHECK_FALSE(read_exec(R"({"Running":true,"ExitCode":null})")->ended());
  const auto ended = read_exec(R"({"Running":false,"ExitCode":3})");
  CHECK(ended->ended());
  CHECK(*ended->exit_code == 3);
  CHECK_FALSE(read_exec("{}"));
}

TEST_CASE("progress, and the error that hides in it") {
  const auto read = [](const char* text) { return Progress(json::parse(text).value.as_object()); };
  const Progress step =
      read(R"({"status":"Downloading","id":"l1","progressDetail":{"current":5,"total":9}})");
  CHECK(step.status == "Downloading");
  CHECK(step.id == "l1");
  CHECK(*step.current == 5);
  CHECK(*step.total == 9);
  CHECK(step.error.empty());
  CHECK(read(R"({"errorDetail":{"message":"denied"},"error":"old"})").error == "denied");
  CHECK(read(R"({"error":"old"})").error == "old");
  CHECK(read(R"({"errorDetail":{}})").error == "the engine gives no reason");
}

TEST_CASE("requests") {
  ExecRequest request;
  request.command = {"sh", "-c", "x"};
  CHECK(
      write_exec(request) ==
      R"({"AttachStdin":false,"AttachStdout":true,"AttachStderr":true,"Tty":false,"Cmd":["sh","-c","x"]})");
  request.env = {"A=1", "B"};
  request.user = "u";
  request.directory = "/";
  request.pipe_stdin = true;
  CHECK(
      write_exec(request) ==
      R"({"AttachStdin":true,"AttachStdout":true,"AttachStderr":true,"Tty":false,"Cmd":["sh","-c","x"],"Env":["A=1","B"],"User":"u","WorkingDir":"/"})");
  request.attach = false;
  CHECK(write_exec(request).find(R"("AttachStdout":false,"AttachStderr":false)") !=
        std::string::npos);
  CHECK(write_exec_start(true) == R"({"Detach":true,"Tty":false})");
  CHECK(write_exec_start(false) == R"({"Detach":false,"Tty":false})");
  CHECK(label_filter("a.b", "c=\"d\"") == R"({"label":["a.b=c=\"d\""]})");
}

TEST_CASE("images, and the instructions that make one") {
  CHECK(label_filter("a.b") == R"({"label":["a.b"]})");
  CHECK(write_env("A", R"(a "b" $c \)") == R"(ENV A="a \"b\" \$c \\")");
  CHECK(write_label("l", "v") == R"(LABEL l="v")");
  CHECK(write_entrypoint({"a b", "$c\n"}) == R"(ENTRYPOINT ["a b","$c\n"])");
  const auto image = read_image(
      R"({"Id":"i","RepoTags":["a:1"],"Size":7,"Config":{"Env":["A=1"],"User":"u","Entrypoint":["e"],"Labels":{"l":"v"}}})");
  CHECK(image->id == "i");
  CHECK(image->tags == Texts{"a:1"});
  CHECK(image->bytes == 7);
  CHECK(image->env == Texts{"A=1"});
  CHECK(image->user == "u");
  CHECK(image->entrypoint == Texts{"e"});
  CHECK(image->label("l") == "v");
  CHECK_FALSE(read_image(R"({"Id":"i"})")->entrypoint);
  CHECK_FALSE(read_image("[]"));
  const auto images =
      read_images(R"([{"Id":"i","RepoTags":null,"Size":9,"Labels":{"l":"v"}},{"Id":"j"}])");
  CHECK(images->size() == 2);
  CHECK(images->at(0).tags.empty());
  CHECK(images->at(0).bytes == 9);
  CHECK(images->at(0).label("l") == "v");
  CHECK_FALSE(read_images(R"([{"Size":1}])"));
  const auto container = read_container(
      R"({"Id":"c","Image":"sha256:i","Config":{"Entrypoint":["e"]},"HostConfig":{"Tmpfs":{"/t":""}},"Mounts":[{"Destination":"/v"}]})");
  CHECK(container->image_id == "sha256:i");
  CHECK(container->entrypoint == Texts{"e"});
  CHECK((container->mounted == Texts{"/v", "/t"}));
}
