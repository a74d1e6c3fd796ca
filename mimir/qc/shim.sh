# Stands in the place of a Python, or of one of its programs, and has `watcher.py` run it.
# What cannot be read is run as it is. Its names begin with `mimir_`: others may be what the program finds in its environment.
set -f
mimir_name=${0##*/}
IFS= read -r mimir_real <"$mimir_place/$mimir_name.real"
[ "$mimir_way" = plain ] && exec "$mimir_real" "$@"
mimir_options=
case $mimir_name in
python*) ;;
*) # a script; if its first line leads here by `env`, nothing needs to be done for it
    IFS= read -r mimir_line <"$mimir_real"
    case $mimir_line in
    '#!'*/env\ *) exec "$mimir_real" "$@" ;;
    '#!'*python*) set -- "$mimir_real" "$@" ;;
    *) exec "$mimir_real" "$@" ;;
    esac
    mimir_real=${mimir_line#'#!'}
    case $mimir_real in *' -'*)
        mimir_options=" -${mimir_real#* -}"
        mimir_real=${mimir_real%% -*}
        ;;
    esac
    ;;
esac
while :; do # the options that `watched.py` knows, too
    case ${1-} in
    -c | -m)
        [ $# -ge 2 ] || exec "$mimir_real" $mimir_options "$@"
        break
        ;;
    -W | -X)
        case ${2-} in '' | *[!A-Za-z0-9_.,:=-]*) exec "$mimir_real" $mimir_options "$@" ;; esac
        mimir_options="$mimir_options $1 $2"
        shift 2
        ;;
    '' | - | --* | -*[!bBdEIOPqRsSuvx]*) exec "$mimir_real" $mimir_options "$@" ;;
    -*)
        mimir_options="$mimir_options $1"
        shift
        ;;
    *) break ;;
    esac
done
case $1 in -m) case " $mimir_readers " in *" $2 "*) exec "$mimir_real" $mimir_options "$@" ;; esac ;; esac
case $mimir_options in *[!A-Za-z0-9_.,:=\ -]*) exec "$mimir_real" $mimir_options "$@" ;; esac
exec "$mimir_real" $mimir_options -c "import os, sys
if sys.version_info < (3, 6): os.execv(sys.executable, [sys.executable] + '$mimir_options'.split() + sys.argv[1:])
exec(compile(open('$mimir_place/watcher.py', 'rb').read(), '<mimir>', 'exec'), {'__name__': '__main__', 'BELOW': '$mimir_options'})" "$@"
