# Words sent through the async proxy: fenced and waited for, not fenced, not waited for.
set -e
says() {
    local wanted=$1 output
    shift
    output=$(run_ptx "$CASE/proxy.ptx" "$@" cpu:sm_90 4 4 || true)
    case $output in
    *"$wanted"*) ;;
    *) printf '%s says\n  %s\n' "$*" "$output" && return 1 ;;
    esac
}
gives "00000000 00000001 00000002 00000003" run_ptx "$CASE/proxy.ptx" right cpu:sm_90 4 4
says "line 38 '@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 16;', CTA (0,0,0), \
thread (0,0,0), address 0x0: this read through the async proxy follows a write through the generic \
proxy, at line 36 by thread (0,0,0), without a fence.proxy.async of shared memory between them" no_fence
says "line 60 'ret;', CTA (0,0,0), thread (0,0,0), address 0x0: the thread exits while its \
asynchronous copy out of shared memory, at line 58, may still read it" no_wait
