# What the scripts that run campaigns share. Sourced by them, after `set -euo pipefail`.

# The comment at the top of a script is its help.
print_usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

usage_error() {  # usage_error MESSAGE
  echo "$0: $1; see $0 --help" >&2
  exit 2
}

# number_argument OPTION VALUE: the value, if it is a whole number
number_argument() {
  [[ ${2:-} =~ ^[0-9]+$ ]] || usage_error "$1: expected a number, found '${2:-}'"
  echo "$2"
}

# path_argument OPTION VALUE: the value as it is from any folder
path_argument() {
  [[ -n ${2:-} ]] || usage_error "$1: expected a path, found nothing"
  realpath -m -- "$2"
}

# build_preset PRESET [TARGET]: with the compiler of the caller's CXX, if it has one, and ccache where it is found
build_preset() {
  local launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake --preset "$1" "${launcher[@]}" >/dev/null
  cmake --build --preset "$1" --parallel "$(nproc)" ${2:+--target "$2"}
}

# seed_argument OPTION VALUE: the value, if it is what gatherfuzz fuzz takes as a seed
seed_argument() {
  [[ ${2:-} =~ ^([0-9]+|[0-9a-f]{40})$ ]] ||
    usage_error "$1: expected a number, or a commit of 40 hexadecimal digits, found '${2:-}'"
  echo "$2"
}

commit_seed() {  # the commit itself
  git rev-parse HEAD || { echo "$0: expected a git checkout, whose commit is the seed; give --seed" >&2; return 2; }
}

trim() {
  local text=$1
  text=${text#"${text%%[![:space:]]*}"}
  echo "${text%"${text##*[![:space:]]}"}"
}

tool_version() { "$1" --version | head -n 1; }  # tool_version TOOL

# read_canaries FILE: fills canary_names, canary_classes, canary_faults, canary_flags, and canary_budgets, which a table
# may leave out
read_canaries() {
  local line name class fault flags budget number=0
  canary_names=() canary_classes=() canary_faults=() canary_flags=() canary_budgets=()
  [[ -r $1 ]] || { echo "$0: expected a table of canaries, cannot read '$1'" >&2; return 2; }
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    [[ -n $line && $line != \#* ]] || continue
    if [[ $line != *\|*\|*\|* ]]; then
      echo "$1:$number: expected name | class | fault | flags, found: $line" >&2
      return 2
    fi
    IFS='|' read -r name class fault flags budget <<<"$line"
    canary_names+=("$(trim "$name")")
    canary_classes+=("$(trim "$class")")
    canary_faults+=("$(trim "$fault")")
    canary_flags+=("$(trim "$flags")")
    canary_budgets+=("$(trim "$budget")")
  done <"$1"
  [[ ${#canary_names[@]} -gt 0 ]] || { echo "$1: expected at least one canary, found none" >&2; return 2; }
}

# set_options "NAME=VALUE ...": fills set_arguments with a --set for each
set_options() {
  local word
  set_arguments=()
  for word in $1; do set_arguments+=(--set "$word"); done
}

# found_with_class CLASS LOG: "PROGRAM SECONDS" of the first failure of the class that a campaign told
found_with_class() {
  awk -v class="$1" '
    $1 == "FAILURE" { found = $2 == class }
    found && /^Found by / && match($0, /(program|execution) [0-9]+, [0-9.]+ s/) {
      split(substr($0, RSTART, RLENGTH), words, /[ ,]+/)
      print words[2], words[3]
      exit
    }' "$2"
}

# run_canary TOOL INDEX SEED RUNTIMES PROGRAMS OUT [OPTION...]: one campaign from nothing with the canary planted. Sets
# canary_found to "PROGRAM SECONDS", empty if no failure that it told had the class, and canary_exit. Returns 2 if the
# tool itself did not do its work.
run_canary() {
  local i=$2 log=$6/${canary_names[$2]}.log
  canary_exit=0
  set_options "${canary_flags[$i]}"
  "$1" fuzz --runs "$5" --seed "$3" --runtime "$4" --out "$6/${canary_names[$i]}" "${set_arguments[@]}" \
    --fault "${canary_faults[$i]}" "${@:7}" >"$log" 2>&1 || canary_exit=$?
  if [[ $canary_exit -gt 1 ]]; then
    echo "canary ${canary_names[$i]}: gatherfuzz fuzz exited with $canary_exit:" >&2
    tail -n 5 "$log" >&2
    return 2
  fi
  canary_found=$(found_with_class "${canary_classes[$i]}" "$log")
}

# look_for_canary TOOL INDEX SEED RUNTIMES PROGRAMS OUT [OPTION...]: a campaign that ends with its first failure; if
# that has another class, campaigns that go on after each failure, longer and longer, so that a find ends the search
# early.
look_for_canary() {
  local programs=64
  mkdir -p "$6"
  run_canary "$@" || return
  if [[ -n $canary_found || $canary_exit -eq 0 ]]; then return; fi
  while true; do
    if [[ $programs -gt $5 ]]; then programs=$5; fi
    run_canary "${@:1:4}" "$programs" "$6" --keep-going "${@:7}" || return
    if [[ -n $canary_found || $programs -ge $5 ]]; then return; fi
    programs=$((programs * 4))
  done
}

# say_canary INDEX RUNTIMES PROGRAMS OUT: one line for canary_found; returns 1 if it is empty
say_canary() {
  local name=${canary_names[$1]} class=${canary_classes[$1]} classes
  if [[ -n $canary_found ]]; then
    echo "canary $name: found as $class on $2 after ${canary_found% *} programs, ${canary_found#* } s"
    return
  fi
  classes=$(awk '$1 == "FAILURE" { print $2 }' "$4/$name.log" | sort -u | xargs)
  echo "canary $name: NOT FOUND on $2: expected a failure $class within $3 programs, found ${classes:-none};" \
    "planted: ${canary_faults[$1]}; see $4/$name.log"
  return 1
}
