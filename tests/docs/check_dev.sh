#!/bin/sh
# ./dev refuses what it does not understand, with exit code 2 and a sentence that names it.
#
#     check_dev.sh DEV
dev=$1 failed=0

refused() { # SAYS COMMAND...
  says=$1
  shift
  said=$("$@" 2>&1)
  code=$?
  case "$code $said" in
    "2 "*"$says"*) ;;
    *) echo "$*: wanted 2 and \"$says\": $code $said" && failed=1 ;;
  esac
}

refused "no command 'nonsense'" "$dev" nonsense
refused "test takes no argument, not 'x'" "$dev" test x
refused "no preset 'x'" "$dev" build x
refused "fuzz takes a number of seconds or --runs N, not 'x'" "$dev" fuzz x
refused "fuzz takes a number of seconds or --runs N, not '--runs'" "$dev" fuzz --runs
refused "fuzz takes a number of seconds or --runs N, not '--runs 0'" "$dev" fuzz --runs 0
for jobs in abc 0 -1 1.5 '2 3' 99999; do
  refused "OCTET_JOBS=$jobs: must be a number" env OCTET_JOBS="$jobs" "$dev" help
done
for jobs in 1 16; do
  env OCTET_JOBS=$jobs "$dev" help >/dev/null || { echo "OCTET_JOBS=$jobs is refused" && failed=1; }
done
exit $failed
