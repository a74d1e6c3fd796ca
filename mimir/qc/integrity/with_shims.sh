# Runs a command so that `shim.sh` starts every Python program of it: those found by the PATH, and, through a module that each Python
# imports first (`sitecustomize_shim.py`), those named by their path. For `eval` in a POSIX shell, whose words are `watched` or `plain`
# (no supervision), the paths of programs that are the work, one a line, and the command.
mimir_place=$(mktemp -d) || exit 97
printf '%s\n' "$MIMIR_WATCHER" >"$mimir_place/supervisor.py"
mkdir "$mimir_place/site"
printf '%s\n' "$MIMIR_REROUTING" >"$mimir_place/site/sitecustomize.py"
{
    printf "#!/bin/sh\nmimir_place='%s'\nmimir_home='%s'\n" "$mimir_place" "$(pwd -P)"
    printf "mimir_way=%s\nmimir_readers='%s'\n" "$1" "$MIMIR_READERS"
    printf '%s\n' "$MIMIR_SHIM"
} >"$mimir_place/shim"
chmod +x "$mimir_place/shim"
printf '%s\n' "$2" | while IFS= read -r mimir_path; do
    printf '%s\n' "$(pwd -P)/$mimir_path"
done >"$mimir_place/work"
shift 2
mimir_rest=$PATH:
while [ -n "$mimir_rest" ]; do
    mimir_folder=${mimir_rest%%:*}
    mimir_rest=${mimir_rest#*:}
    for mimir_path in "$mimir_folder"/python "$mimir_folder"/python[0-9]* \
        "$mimir_folder"/pytest "$mimir_folder"/py.test "$mimir_folder"/coverage; do
        mimir_name=${mimir_path##*/}
        case ${mimir_name#python} in *[!0-9.]*) case $mimir_name in python*) continue ;; esac ;; esac
        if [ -f "$mimir_path" ] && [ -x "$mimir_path" ] && [ ! -e "$mimir_place/$mimir_name" ]; then
            ln -s shim "$mimir_place/$mimir_name"
            printf '%s\n' "$mimir_path" >"$mimir_place/$mimir_name.real"
        fi
    done
done
unset MIMIR_SHIMS MIMIR_SHIM MIMIR_READERS MIMIR_REROUTING MIMIR_WATCHER
PATH=$mimir_place:$PATH
PYTHONPATH=$mimir_place/site${PYTHONPATH:+:$PYTHONPATH}
export PATH PYTHONPATH
case $1 in */python*) set -- "$mimir_place/shim" "$@" ;; esac # it may be isolated from the environment
"$@"
mimir_code=$?
[ $mimir_code -eq 0 ] || [ -e "$mimir_place/ended" ] || mimir_code=93 # red, and no program was ended early
rm -rf "$mimir_place"
exit $mimir_code
