# shellcheck shell=bash
wrong=0
while IFS='|' read -r target version body sentence; do
    cat >text.ptx <<PTX
.version $version
.target $target
.address_size 64
.visible .entry k(.param .u64 par)
{
	.reg .pred p; .reg .b16 h<4>; .reg .b32 r<8>; .reg .f32 f<2>; .reg .b64 d<2>;
	$body
	ret;
}
PTX
    said=$(run_ptx text.ptx k cpu:sm_90 1 1 2>&1)
    if [ -n "$sentence" ] && { [[ $said != *"line 7, column"* ]] || [[ $said != *"$sentence"* ]]; }; then
        echo "$body: $said"
        wrong=1
    elif [ -z "$sentence" ] && [[ $said == *line* ]]; then
        echo "$body: $said"
        wrong=1
    fi
done <"$CASE/texts"
exit "$wrong"
