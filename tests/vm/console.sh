# SPDX-License-Identifier: Apache-2.0
# console: runs what is typed at the guest's console, for running.py. Sourced by
# guests' scripts as the last thing that they do; returns when `off` is typed.
#
#   run NAME COMMAND   runs it beside what else runs; each line of what it says
#                      comes as "NAME: line", its status as "NAME= status"
#   tell NAME LINE     gives it a line of standard input
exec </dev/ttyS0
stty -echo
echo "console: ready"
while read -r verb name text; do
  case $verb in
    run)
      mkfifo "/run/input-$name"
      # The FIFO is open for both directions, so that a writer never waits, even
      # if the reader has ended.
      exec 9<>"/run/input-$name"
      # A full line at a time.
      { (eval "$text"); echo "= $?"; } <&9 9<&- 2>&1 |
        sed -u -e "s/^= /$name= /;t" -e "s/^/$name: /" &
      exec 9<&-
      ;;
    tell) echo "$text" 1<>"/run/input-$name" ;;
    off) break ;;
  esac
done
