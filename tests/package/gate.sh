#!/usr/bin/env bash
# What the check after each link refuses, and that it says why: plugins with one fault each.
#
#   tests/package/gate.sh SANDFORGE-CHECK-MANIFEST
set -euo pipefail

sdk=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../sdk" && pwd)
checker=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mistakes=0

good='{"manifest":1,"name":"x","version":"1","abi":{"major":1,"minor":0},
"providers":[{"name":"x","optionsSchema":{"type":"object","additionalProperties":false}}]}'

# build NAME MANIFEST SOURCE [FLAG …]: NAME.so, linked as sandforge_add_plugin() does it.
build() {
  local name=$1 source=$3
  printf '%s' "$2" >"$name.json"
  printf '#include <sandforge/abi.h>\n%s\n' "$source" >"$name.c"
  shift 3
  local manifest=()
  if [[ -s $name.json ]]; then
    cmake -D "MANIFEST=$PWD/$name.json" -D "OUTPUT=$PWD/$name-manifest.c" \
      -P "$sdk/cmake/SandforgeEmbedManifest.cmake"
    manifest=("$name-manifest.c")
  fi
  cc -shared -fPIC -I"$sdk/include" -o "$name.so" "$name.c" ${manifest[@]+"${manifest[@]}"} \
    -Wl,-z,nodelete "$@"
}
# A plugin is no manifest; the check asks about the manifest in it.
"$checker" "$checker" 2>elf.log && { echo "FAILED: a program is taken for a manifest"; exit 1; }
grep -q "not the text of a manifest" elf.log || { cat elf.log; exit 1; }

entry='SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY(void) { return 0; }'
map=-Wl,--version-script=$sdk/cmake/sandforge_plugin.map

# refuses NAME MESSAGE [ARGUMENT …]
refuses() {
  local name=$1 message=$2
  shift 2
  if cmake -D "PLUGIN=$PWD/$name.so" -D "MANIFEST=$PWD/$name.json" "$@" \
    -P "$sdk/cmake/SandforgeCheckPlugin.cmake" >log 2>&1; then
    echo "FAILED: $name was not refused"
  elif ! grep -qF -- "$message" log; then
    echo "FAILED: $name was refused, but not because it $message:"
    cat log
  elif [[ -e $name.so ]]; then
    echo "FAILED: $name was refused and left behind"
  else
    return 0
  fi
  mistakes=$((mistakes + 1))
}

build good "$good" "$entry" "$map"
cmake -D "PLUGIN=$PWD/good.so" -D "MANIFEST=$PWD/good.json" -D STATIC_RUNTIME=ON \
  -D "CHECKER=$checker" -P "$sdk/cmake/SandforgeCheckPlugin.cmake" || { echo "FAILED: a good plugin is refused"; exit 1; }
[[ -e good.so ]] || { echo "FAILED: a good plugin is deleted"; exit 1; }

build two "$good" "$entry SF_EXPORT int second(void) { return 1; }"
refuses two "must export sandforge_plugin_entry_v1 and nothing else, but exports: sandforge_plugin_entry_v1, second"
build none "$good" 'int nothing(void) { return 0; }' "$map"
refuses none "must export sandforge_plugin_entry_v1 and nothing else"
build unloaded "$good" "$entry" "$map"  # for its sources; linked again without the flag
cc -shared -fPIC -I"$sdk/include" -o unloaded.so unloaded.c unloaded-manifest.c "$map"
refuses unloaded "must be linked with -z nodelete"
build stack "$good" "$entry" "$map" -Wl,-z,execstack
refuses stack "wants an executable stack"
build runtime "$good" "$entry" "$map" -Wl,--no-as-needed -lgcc_s
refuses runtime "needs libgcc_s.so.1, but was to have the runtime in it" -D STATIC_RUNTIME=ON
build bare "" "$entry" "$map"
refuses bare "has no section .sandforge.manifest"
build other "$good" "$entry" "$map"
printf '{}' >other.json
refuses other "does not hold the bytes of"
build unversioned '{"name":"x"}' "$entry" "$map"
refuses unversioned 'is no JSON object with "manifest": 1'
build major "${good/\"major\":1/\"major\":2}" "$entry" "$map"
refuses major "must have the abi.major that sandforge_plugin_entry_v1 names"
build empty "${good/\[*\]/[]}" "$entry" "$map"
refuses empty "names no provider"
# The loader's own words.
build upper "${good/\"name\":\"x\"/\"name\":\"X\"}" "$entry" "$map"
refuses upper "the manifest is not valid: /name must be a name: a-z, 0-9" -D "CHECKER=$checker"
build key "${good/\"version\"/\"versoin\"}" "$entry" "$map"
refuses key "versoin" -D "CHECKER=$checker"
build schema "${good/\"object\"/\"objekt\"}" "$entry" "$map"
refuses schema "the options schema of provider x is not valid: " -D "CHECKER=$checker"
build service "${good/\"providers\"/\"services\":[\"log\",\"proces\",\"gpu\"],\"providers\"}" "$entry" "$map"
refuses service "the manifest names what is no service of a host: proces (did you mean process?), gpu" \
  -D "CHECKER=$checker"
build unchecked "$good" "$entry" "$map"
cmake -D "PLUGIN=$PWD/unchecked.so" -D CHECKER=no-such-program \
  -P "$sdk/cmake/SandforgeCheckPlugin.cmake" 2>&1 |
  grep -qF "the values of its manifest were not checked: no-such-program failed" ||
  { echo "FAILED: nobody says that the manifest was not checked"; exit 1; }
printf 'no library' >text.so
cp good.json text.json
refuses text "failed"
if [[ $(uname -m) == x86_64 ]]; then
  build reloc "$good" "$entry int i = 1; int* p(void) { return &i; }" "$map"
  printf '%s' '.text
.quad sandforge_text_relocation
.data
sandforge_text_relocation: .quad 0
.section .note.GNU-stack,"",@progbits
' >reloc.s
  cc -shared -fPIC -I"$sdk/include" -o reloc.so reloc.c reloc-manifest.c reloc.s "$map" \
    -Wl,-z,nodelete -Wl,-z,notext 2>/dev/null
  refuses reloc "has relocations in its code"
fi
((mistakes == 0))
