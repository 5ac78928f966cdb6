#!/bin/sh
# deb calls this with "purge" when the configuration is to go too, and with "remove" before.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
  rm -rf /var/lib/unthrottle
fi
