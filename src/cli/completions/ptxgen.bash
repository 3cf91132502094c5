# SPDX-License-Identifier: Apache-2.0
# Completion of ptxgen's arguments for bash. The command itself knows them: its --help lists commands
# and options, and "ptxgen list" the families.
_ptxgen()
{
    local program=$1 current=$2 command=${COMP_WORDS[1]-} candidates=()
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        candidates=($("$program" --help 2>/dev/null | sed -n '/^Commands/,/^$/s/^  \([a-z0-9_]*\) .*/\1/p'))
    elif [[ $current == -* ]]; then
        local words=("$command")
        [[ ${COMP_WORDS[2]-} != -* && $COMP_CWORD -gt 2 ]] && words+=("${COMP_WORDS[2]}")
        candidates=($("$program" "${words[@]}" --help 2>/dev/null | grep -o -e '^ \{2,6\}\(-., \)\?--[a-z0-9-]*' |
                      grep -o -e '--[a-z0-9-]*'))
    elif ((COMP_CWORD == 2)) && "$program" "$command" --help 2>/dev/null | grep -q '^Usage:.* FAMILY'; then
        candidates=($("$program" list 2>/dev/null | cut -d' ' -f1))
    else
        return # a value or a file, which bash completes by itself
    fi
    COMPREPLY=($(compgen -W "${candidates[*]-}" -- "$current"))
}
complete -o default -F _ptxgen ptxgen
