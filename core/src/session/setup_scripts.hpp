// The shell programs of set-up. What they work on comes as arguments, never inside the text.
#pragma once

namespace sandforge::setup {

// $1 URL, $2 directory, $3 ref or empty. Copies what there is to fetch to .mastra-sandbox/copy/$2,
// a bare repository that is made for it. The only script that sees the credential: it must read
// nothing that a command of this machine, or of the template, could have written. Its ref
// refs/sandforge/wanted is what $3 names where that is no branch and no tag.
//   error no_git|old_git|occupied|no_ref
inline constexpr const char* kCopy = R"sh(
set -eu
url=$1 dir=$2 ref=$3
command -v git >/dev/null 2>&1 || { echo 'error no_git'; exit 1; }
version=$(git version); version=${version#git version }
major=${version%%.*}; minor=${version#*.}; minor=${minor%%.*}
# Older ones cannot be kept from the user's configuration.
[ "$major" -gt 2 ] || [ "$minor" -ge 32 ] || { echo 'error old_git'; exit 1; }
[ ! -e "$dir" ] || [ -e "$dir/.git" ] || rmdir -- "$dir" 2>/dev/null ||
  { echo 'error occupied'; exit 1; }
rm -rf -- .mastra-sandbox/copy
mkdir -p .mastra-sandbox/copy
trap '[ $? -eq 0 ] || rm -rf -- .mastra-sandbox/copy' EXIT
copy=$PWD/.mastra-sandbox/copy/$dir
git clone --quiet --bare --template= -- "$url" "$copy" >&2
[ -n "$ref" ] || exit 0
GIT_DIR=$copy; export GIT_DIR
for known in "refs/heads/$ref" "refs/tags/$ref"; do
  ! git rev-parse --quiet --verify "$known^{commit}" >/dev/null || exit 0
done
if commit=$(git rev-parse --quiet --verify "$ref^{commit}"); then
  git update-ref refs/sandforge/wanted "$commit"
else
  git fetch --quiet -- origin "+$ref:refs/sandforge/wanted" >&2 ||
    { echo 'error no_ref'; exit 1; }
fi
)sh";

// $1 URL, $2 directory, $3 ref or empty, $4 "copy" when kCopy has it, else empty: from the URL.
// Answers on stdout: lines "key value".
//   cloned | present          how the repository came to be here
//   kind default|branch|commit
//   commit SHA                for kind commit and default
//   error no_git|occupied|no_ref
inline constexpr const char* kFetch = R"sh(
set -eu
url=$1 dir=$2 ref=$3
command -v git >/dev/null 2>&1 || { echo 'error no_git'; exit 1; }
if [ -n "$4" ]; then
  folder=$PWD/.mastra-sandbox/copy
  trap 'rm -rf -- "$folder"' EXIT
  from=$folder/$dir source=$from wanted=refs/sandforge/wanted
else
  from=$url source=origin wanted=$ref
fi
if [ -e "$dir/.git" ]; then
  echo present
  git -C "$dir" remote set-url -- origin "$url" 2>/dev/null ||
    git -C "$dir" remote add -- origin "$url"
  git -C "$dir" fetch --quiet --tags --force -- "$source" \
    '+refs/heads/*:refs/remotes/origin/*' >&2
else
  rmdir -- "$dir" 2>/dev/null || :
  [ ! -e "$dir" ] || { echo 'error occupied'; exit 1; }
  # Beside its place first: what is interrupted is never taken for a checkout.
  mkdir -p .mastra-sandbox/clone
  rm -rf -- ".mastra-sandbox/clone/$dir"
  git clone --quiet --no-checkout -- "$from" ".mastra-sandbox/clone/$dir" >&2
  git -C ".mastra-sandbox/clone/$dir" remote set-url -- origin "$url"
  mv -- ".mastra-sandbox/clone/$dir" "$dir"
  rmdir .mastra-sandbox/clone 2>/dev/null || :
  echo cloned
fi
cd -- "$dir"
if [ -z "$ref" ]; then
  echo 'kind default'
  # An empty repository has no HEAD to fetch.
  if git fetch --quiet -- "$source" HEAD >&2; then
    echo "commit $(git rev-parse --verify 'FETCH_HEAD^{commit}')"
  elif [ -n "$(git ls-remote -- "$source")" ]; then
    exit 1
  fi
elif git rev-parse --quiet --verify "refs/remotes/origin/$ref^{commit}" >/dev/null; then
  echo 'kind branch'
elif commit=$(git rev-parse --quiet --verify "refs/tags/$ref^{commit}"); then
  printf 'kind commit\ncommit %s\n' "$commit"
elif commit=$(git rev-parse --quiet --verify "$ref^{commit}"); then
  printf 'kind commit\ncommit %s\n' "$commit"
else
  git fetch --quiet -- "$source" "$wanted" >&2 || { echo 'error no_ref'; exit 1; }
  printf 'kind commit\ncommit %s\n' "$(git rev-parse --verify 'FETCH_HEAD^{commit}')"
fi
)sh";

// $1 directory, $2 kind, $3 ref, $4 commit, $5 "force" or empty, $6 marker, $7 its wanted content.
// Brings the working tree there, and takes the marker away where the commands must run again.
//   head SHA          nothing when the repository is empty
//   kept REASON       the checkout was left as it is, to lose no work
//   marked            the commands ran on this very commit already
inline constexpr const char* kCheckout = R"sh(
set -eu
dir=$1 kind=$2 ref=$3 commit=$4 force=$5 marker=$6 wanted=$7
root=$PWD
cd -- "$dir"
# Whether anything was checked out here before.
if [ -e .git/index ]; then before=$(git rev-parse --quiet --verify HEAD || :); else before=; fi
forward() {
  git merge --quiet --ff-only "$1" >&2 || echo 'kept local changes or commits of its own'
}
case $kind in
branch)
  target=refs/remotes/origin/$ref
  if [ -n "$force" ] || ! git rev-parse --quiet --verify "refs/heads/$ref" >/dev/null; then
    git checkout --quiet ${force:+--force} -B "$ref" --track "origin/$ref" -- >&2
  else
    git checkout --quiet "$ref" -- >&2
    forward "$target"
  fi ;;
commit)
  git checkout --quiet ${force:+--force} --detach "$commit" -- >&2 ;;
default)
  branch=$(git symbolic-ref --quiet --short HEAD || :)
  if [ -z "$commit" ]; then
    :
  elif [ -z "$before" ]; then
    git reset --quiet --hard >&2
  elif [ -n "$force" ]; then
    if [ -n "$branch" ]; then git reset --quiet --hard "$commit" >&2
    else git checkout --quiet --force --detach "$commit" -- >&2; fi
  elif [ -n "$branch" ]; then
    forward "$commit"
  else
    git checkout --quiet --detach "$commit" -- >&2 || echo 'kept local changes'
  fi ;;
esac
head=$(git rev-parse --quiet --verify HEAD || :)
[ -z "$head" ] || echo "head $head"
cd -- "$root"
if [ "$head" = "$before" ] && [ -f "$marker" ] && [ "$(cat -- "$marker")" = "$wanted" ] &&
  ! grep -qxF -e "$dir" .mastra-sandbox/setup-failed 2>/dev/null; then
  echo marked
else
  rm -f -- "$marker" .mastra-bootstrapped
fi
)sh";

// $1 wanted content of .mastra-bootstrapped, the rest: directories of the checkouts. Exit 0: all
// there.
inline constexpr const char* kProbe = R"sh(
[ -f .mastra-bootstrapped ] && [ "$(cat .mastra-bootstrapped)" = "$1" ] || exit 1
shift
for dir; do [ -e "$dir/.git" ] || exit 1; done
)sh";

// $1 marker, $2 content. A reader never sees half of it.
inline constexpr const char* kMark = R"sh(
set -eu
case $1 in */*) mkdir -p -- "${1%/*}" ;; esac
printf '%s' "$2" >"$1.tmp"
mv -f -- "$1.tmp" "$1"
)sh";

// $1 marker, $2 wanted content. Exit 0: it has that content; else the marker is taken away.
inline constexpr const char* kCheckMark = R"sh(
[ -f "$1" ] && [ "$(cat -- "$1")" = "$2" ] || { rm -f -- "$1"; exit 1; }
)sh";

// $1 directory, $2 "add" or "remove": its line in the list of failed repositories.
inline constexpr const char* kFailed = R"sh(
set -eu
list=.mastra-sandbox/setup-failed
mkdir -p .mastra-sandbox
if [ "$2" = add ]; then
  grep -qxF -e "$1" "$list" 2>/dev/null || printf '%s\n' "$1" >>"$list"
elif [ -f "$list" ]; then
  grep -vxF -e "$1" "$list" >"$list.tmp" || :
  if [ -s "$list.tmp" ]; then mv -f "$list.tmp" "$list"; else rm -f "$list.tmp" "$list"; fi
fi
)sh";

}  // namespace sandforge::setup
