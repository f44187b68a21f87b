# SPDX-License-Identifier: MIT
# Tangled from the chapter "leak": edit that, not this file.
# usage: within.sh MB PROGRAM...; kills it when it holds more than that.
limit=$(($1 * 1000000 / $(getconf PAGESIZE))); shift
"$@" & exec 2> /dev/null
while sleep 0.02
  read -r _ pages _ < /proc/$!/statm && [ "$pages" -gt 0 ]; do
  [ "$pages" -lt $limit ] || kill -KILL $!
done
wait $!
code=$?
[ $code = 137 ] && echo Killed
exit $code
