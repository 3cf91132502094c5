# SPDX-License-Identifier: Apache-2.0
# Completion of ptxgen's arguments for fish. The command itself knows them: its --help lists commands
# and options, and "ptxgen list" the families.
function __ptxgen_candidates
    set -l words (commandline -opc)
    set -l program $words[1]
    if test (count $words) -eq 1
        $program --help 2>/dev/null | sed -n '/^Commands/,/^$/s/^  \([a-z0-9_]*\) .*/\1/p'
        return
    end
    if test (count $words) -eq 2
        $program $words[2] --help 2>/dev/null | grep -q '^Usage:.* FAMILY'
        and $program list 2>/dev/null | cut -d' ' -f1
    end
    set -l asked $words[2]
    if test (count $words) -gt 2; and not string match -q -- '-*' $words[3]
        set asked $words[2..3]
    end
    $program $asked --help 2>/dev/null | grep -o -e '^ \{2,6\}\(-., \)\?--[a-z0-9-]*' | grep -o -e '--[a-z0-9-]*'
end
complete -c ptxgen -a '(__ptxgen_candidates)'
