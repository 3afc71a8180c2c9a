// The context that a test gives to a plugin.
#include <sandforge/testing/context.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/consumer.hpp>

using namespace sandforge::testing;

TEST_CASE("a context has what the test put in, and no repository unless it was given one") {
  Loop loop;
  Lane* lane = Lane::create(loop);
  Context context;
  context.session_id = "s1";
  const sf_context_fields* fields = context.vtbl->fields(&context);
  CHECK(text(fields->session_id) == "s1");
  CHECK(fields->sandbox_id.ptr == nullptr);
  CHECK(fields->flags == SF_CONTEXT_SESSION);

  std::string token;
  const sf_access_completion access{
      &token, [](void* ctx, const sf_error*, const sf_repository_access* a) noexcept {
        *static_cast<std::string*>(ctx) = text(a->token);
      }};
  CHECK(context.vtbl->repository_access(&context, lane, 0, access, nullptr, nullptr) ==
        SF_NOT_FOUND);
  context.clone_url = "https://host/repo.git";
  context.token = "t";
  CHECK((context.vtbl->fields(&context)->flags & SF_CONTEXT_HAS_REPOSITORY) != 0);
  CHECK(context.vtbl->repository_access(&context, lane, 0, access, nullptr, nullptr) == SF_OK);
  CHECK(token.empty());
  loop.drain();
  CHECK(token == "t");

  Result head;
  context.head = "abc";
  CHECK(context.vtbl->resolve_head(&context, lane, str(""), str(""), text_completion(head), nullptr,
                                   nullptr) == SF_OK);
  loop.drain();
  CHECK(head.text == "abc");
  lane->release();
}
