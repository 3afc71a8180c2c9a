// What runs in a container besides the commands themselves: text for any POSIX shell, in which
// values are arguments and never a part of the text.
#pragma once

#include <string_view>

namespace sandforge::docker {

// The variable that marks every process of a command; its value is the command's nonce.
inline constexpr std::string_view kMark = "SANDFORGE_COMMAND";
// The variable that carries those of a command that are no text, each written for printf %b.
inline constexpr std::string_view kEncoded = "SANDFORGE_ENCODED";

/*
 * Becomes a command: NONCE MODE DIRECTORY, then words. MODE has a letter for each: s (the word is
 * shell text), b (all of them from the directory on are written for printf %b), e (kEncoded has
 * variables), c (stderr goes where stdout goes), p (no PATH: a shell makes one where there is
 * none).
 * Before that one line on stderr: the nonce, and the process's own id, which is also that of its
 * session, with the pipes of its output; or why there is no command.
 */
inline constexpr std::string_view kStartScript = R"sh(
_sf_n=$1 _sf_m=$2 _sf_f=
shift 2
_sf_no() { printf '%s %s\n' "$_sf_n" "$1" >&2; exit 126; }
case $_sf_m in *b*)
  for _sf_w do _sf_w=$(printf '%bx' "$_sf_w"); set -- "$@" "${_sf_w%x}"; shift; done ;;
esac
cd -- "$1" 2>/dev/null || _sf_no directory
unset OLDPWD
shift
case $_sf_m in *e*)
  _sf_e=$SANDFORGE_ENCODED
  unset SANDFORGE_ENCODED
  set -f
  for _sf_w in $_sf_e; do _sf_w=$(printf '%bx' "$_sf_w"); export "${_sf_w%x}"; done
  set +f ;;
esac
case $_sf_m in *s*) set -- /bin/sh -c "$1" ;; *)
  case $1 in
    */*) [ ! -e "$1" ] || _sf_f=$1 ;;
    *) set -f; IFS=:
      for _sf_d in ${PATH-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}; do
        [ -f "$_sf_d/$1" ] || continue
        _sf_f=$_sf_d/$1
        [ ! -x "$_sf_f" ] || break
      done
      unset IFS; set +f ;;
  esac
  [ -n "$_sf_f" ] || _sf_no missing
  { [ -f "$_sf_f" ] && [ -x "$_sf_f" ]; } || _sf_no denied ;;
esac
printf '%s %s %s %s\n' "$_sf_n" "$$" "$(readlink "/proc/$$/fd/1")" "$(readlink "/proc/$$/fd/2")" >&2
case $_sf_m in *c*) exec 2>&1 ;; esac
case $_sf_m in *p*)
  [ -z "$_sf_f" ] || { shift; set -- "$_sf_f" "$@"; }
  unset PATH ;;
esac
exec "$@"
)sh";

/*
 * Signals every process of a command: SESSION MARK SIGNAL ROUNDS. Those of its session, and those
 * that carry its mark wherever they went; its leader first, which else would go on when what it
 * waits for has ended. With more than one round it goes on until none is left.
 * Exit 1: some still are, or may not be signaled. It makes no process, so it works where none can
 * be made.
 */
inline constexpr std::string_view kSignalScript = R"sh(
exec 2>/dev/null
session=$1 mark=$2 signal=$3 rounds=$4
name=${mark%%=*}=
while :; do
  found= refused= led=
  for folder in "/proc/$session" /proc/[0-9]*; do
    process=${folder#/proc/}
    [ "$process" != $$ ] || continue
    case $process in "$session") [ -z "$led" ] || continue; led=1 ;; esac
    text=
    while IFS= read -r line || [ -n "$line" ]; do text=$text$line; done < "$folder/stat"
    set -- ${text##*) }
    case $1 in '' | Z | X) continue ;; esac
    mine= other=
    while IFS= read -r line || [ -n "$line" ]; do
      case $line in *"$mark"*) mine=1; break ;; *"$name"*) other=1 ;; esac
    done < "$folder/environ"
    if [ -z "$mine" ]; then
      [ "$4" = "$session" ] && [ -z "$other" ] || continue
    fi
    if kill "-$signal" "$process"; then
      found=1
    elif [ -e "$folder/stat" ]; then
      refused=1
    fi
  done
  rounds=$((rounds - 1))
  [ -n "$found" ] || break
  [ "$rounds" -gt 0 ] || break
done
[ -z "$refused" ] || exit 1
[ "$signal" != 9 ] || [ -z "$found" ] || exit 1
exit 0
)sh";

// One process: PROCESS MARK SIGNAL. Exit 1: it has ended.
inline constexpr std::string_view kSignalLeaderScript = R"sh(
exec 2>/dev/null
while IFS= read -r line || [ -n "$line" ]; do
  case $line in *"$2"*) kill "-$3" "$1"; exit ;; esac
done < "/proc/$1/environ"
exit 1
)sh";

/*
 * Keeps the output of a command open that its children still hold: OUT ERR, pipes as in the first
 * line. The engine closes them two seconds after the command's end, and then they would end who
 * writes. It reads them once the engine does not any more, and ends with the last writer.
 */
inline constexpr std::string_view kKeepScript = R"sh(
exec 2>/dev/null
out= err=
for link in /proc/[0-9]*/fd/[0-9]*; do
  target=$(readlink "$link")
  case $target in
    '') ;;
    "$1") [ -n "$out" ] || { (: <"$link") && exec 3<"$link" && out=1; } ;;
    "$2") [ -n "$err" ] || { (: <"$link") && exec 4<"$link" && err=1; } ;;
  esac
done
[ -n "$out$err" ] || exit 0
sleep 3
[ -z "$out" ] || cat <&3 >/dev/null &
[ -z "$err" ] || cat <&4 >/dev/null &
wait
)sh";

// Makes the working directory the user's own, and says when it cannot: DIRECTORY USER.
inline constexpr std::string_view kOwnScript = R"sh(
mkdir -p -- "$1" && chown -- "$2" "$1"
)sh";

}  // namespace sandforge::docker
