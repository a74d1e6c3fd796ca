# Runs a command so that every Python program that it starts is started by `shim.sh`: those that it finds by its PATH, and, by a module that each
# Python imports first (`rerouting.py`), those that it names by their path. For `eval` in a POSIX shell, whose words are `watched`, or `plain` (then nothing
# is watched), and the command.
mimir_place=$(mktemp -d) || exit 97
printf '%s\n' "$MIMIR_WATCHER" >"$mimir_place/watcher.py"
mkdir "$mimir_place/site"
printf '%s\n' "$MIMIR_REROUTING" >"$mimir_place/site/sitecustomize.py"
{
    printf "#!/bin/sh\nmimir_place='%s'\nmimir_home='%s'\n" "$mimir_place" "$(pwd -P)"
    printf "mimir_way=%s\nmimir_readers='%s'\n" "$1" "$MIMIR_READERS"
    printf '%s\n' "$MIMIR_SHIM"
} >"$mimir_place/shim"
chmod +x "$mimir_place/shim"
shift
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
"$@"
mimir_code=$?
rm -rf "$mimir_place"
exit $mimir_code
