# The text is made here; the limit is one of address space.
set -e
{
    printf '.version 8.0\n.target sm_80\n.address_size 64\n'
    seq -f '.visible .entry k%.0f() { ret; }' 0 39999
} >kernels.ptx
run_ptx kernels.ptx none cpu:sm_80 1 1 >/dev/null || true # builds the program
ulimit -v 1000000
gives eeeeeeee run_ptx kernels.ptx k39999 cpu:sm_80 1 1
