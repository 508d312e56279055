#!/bin/sh
# Adds the module to the server's arguments, then does what the image of the server does. Arguments that name the module
# already, and other commands than the server, stay as they are.
case "$*" in
    *librollcall.so*) ;;
    *)
        case "${1:-}" in
            '' | -* | *.conf | redis-server | valkey-server) set -- "$@" --loadmodule /usr/lib/redis/modules/librollcall.so ;;
        esac
        ;;
esac
exec docker-entrypoint.sh "$@"
