#!/bin/sh
# Adds the image's modules to the server's arguments, then runs the entrypoint of the server's image.
#
# Modules that the arguments or the configuration file load already are left out. CONFIG REWRITE writes a line for
# each module into that file, and a server that has to load a module twice does not start.

# Prints the lines that load modules in the configuration file $1, and in files that it includes up to $2 levels deep.
loaded() {
    grep -i '^[[:space:]]*loadmodule[[:space:]]' "$1"
    [ "$2" = 0 ] || grep -i '^[[:space:]]*include[[:space:]]' "$1" | while unset IFS && read -r _ pattern; do
        pattern=${pattern#[\"\']}
        # The path may contain spaces, and may be a pattern that matches several files.
        IFS=
        for file in ${pattern%[\"\']}; do unset IFS && loaded "$file" $(($2 - 1)); done
    done
}

case "${1:-}" in
    '' | -* | *.conf | redis-server | valkey-server)
        case "$1" in *-server) configuration=${2:-} ;; *) configuration=${1:-} ;; esac
        lines=$(case "$configuration" in '' | -*) ;; *) loaded "$configuration" 8 2>/dev/null ;; esac)
        for module in /usr/lib/redis/modules/*.so; do
            case "$* $lines" in
                *"${module##*/}"*) ;;
                *) set -- "$@" --loadmodule "$module" ;;
            esac
        done
        ;;
esac
exec docker-entrypoint.sh "$@"
