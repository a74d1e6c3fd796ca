# Shim of a Python, or of one of its programs: runs the program in `supervisor.py`.
# A command that it cannot parse runs unchanged. All names begin with `mimir_`, because others may belong to the program's environment.
set -f
mimir_as_it_is() {
    exec "$mimir_real" $mimir_options "$@"
}
mimir_name=${0##*/}
mimir_options=
if [ "$mimir_name" = shim ]; then # started by `sitecustomize_shim.py`
    mimir_real=$1
    shift
else
    IFS= read -r mimir_real <"$mimir_place/$mimir_name.real"
fi
# The Python may be a version manager, which searches the PATH for another one: it must not find the shim again.
mimir_rest=:$PATH:
while :; do
    case $mimir_rest in
    *":$mimir_place:"*) mimir_rest=${mimir_rest%%":$mimir_place:"*}:${mimir_rest#*":$mimir_place:"} ;;
    *) break ;;
    esac
done
mimir_rest=${mimir_rest#:}
mimir_rest=${mimir_rest%:}
case $mimir_name in
shim | python*) ;;
*)
    IFS= read -r mimir_line <"$mimir_real"
    case $mimir_line in
    '#!'*/env\ *python*) exec "$mimir_real" "$@" ;; # `env` finds a shim
    '#!'*python*) set -- "$mimir_real" "$@" ;;
    *)
        PATH=$mimir_rest
        exec "$mimir_real" "$@"
        ;;
    esac
    mimir_real=${mimir_line#'#!'}
    case $mimir_real in *' -'*)
        mimir_options=" -${mimir_real#* -}"
        mimir_real=${mimir_real%% -*}
        ;;
    esac
    ;;
esac
PATH=$mimir_rest
case :${PYTHONPATH-}: in
*":$mimir_place/site:"*) ;;
*) PYTHONPATH=$mimir_place/site${PYTHONPATH:+:$PYTHONPATH} ;;
esac
MIMIR_SHIMMED=1 # the next Python does not start the shim again
export PYTHONPATH MIMIR_SHIMMED
[ "$mimir_way" = plain ] && mimir_as_it_is "$@"
while :; do
    case ${1--} in
    -c | -m)
        [ $# -ge 2 ] || mimir_as_it_is "$@"
        break
        ;;
    -W | -X)
        case ${2-} in '' | *[!A-Za-z0-9_.,:=-]*) mimir_as_it_is "$@" ;; esac
        mimir_options="$mimir_options $1 $2"
        shift 2
        ;;
    -) # or nothing: a program from standard input
        [ ! -t 0 ] || mimir_as_it_is "$@"
        [ $# -ge 1 ] || set -- ''
        break
        ;;
    '' | --* | -*[!bBdEIOPqRsSuvx]*) mimir_as_it_is "$@" ;;
    -*)
        mimir_options="$mimir_options $1"
        shift
        ;;
    *) break ;;
    esac
done
case $mimir_name:$1 in
shim: | shim:- | shim:-c | shim:-m | shim:*/pytest | shim:*/py.test | shim:*/coverage) ;;
shim:*) # a program of the project, or a tool of the machine or an environment, whose end is not examined
    mimir_folder=$(cd "$(dirname "$1")" && pwd -P)
    case $mimir_folder/ in "$mimir_home"/*) ;; *) mimir_as_it_is "$@" ;; esac
    [ ! -e "$mimir_folder/python" ] || mimir_as_it_is "$@"
    ;;
esac
case $1 in -m) case " $mimir_readers " in *" $2 "*) mimir_as_it_is "$@" ;; esac ;; esac
case $mimir_options in *[!A-Za-z0-9_.,:=\ -]*) mimir_as_it_is "$@" ;; esac
exec "$mimir_real" $mimir_options -c "import os, sys
if sys.version_info < (3, 6):
    os.environ['MIMIR_SHIMMED'] = '1'
    os.execv(sys.executable, [sys.executable] + '$mimir_options'.split() + (sys.argv[1:] if sys.argv[1] else []))
exec(compile(open('$mimir_place/supervisor.py', 'rb').read(), '<mimir>', 'exec'), {'__name__': '__main__', 'OPTIONS': '$mimir_options', 'PLACE': '$mimir_place'})" "$@"
