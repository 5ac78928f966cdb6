#!/bin/sh
# Before the last version is removed, and not at an upgrade: the agent ends, and what is in force is put back, since no
# program that could do it is left afterwards. deb calls this with "remove", rpm with the number of versions that stay.
set -e
case "$1" in
  remove | 0) ;;
  *) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl disable --now unthrottle.service || true
fi
if [ -s /var/lib/unthrottle/journal.jsonl ] && ! unthrottle restore; then
  echo "unthrottle is not removed, since changes of containers could not be put back: 'unthrottle status' names them." >&2
  echo "To remove it all the same, move /var/lib/unthrottle/journal.jsonl away." >&2
  exit 1
fi
