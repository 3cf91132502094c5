/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences with which the emulator refuses a text, each with a text that it is said of: the error
 * log holds the sentence, behind the line and column.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    BODY,   /* of a kernel with the registers and the variables below */
    MODULE, /* behind the header */
    WHOLE
};

#define HEADER ".version 8.6\n.target sm_90a\n.address_size 64\n"
#define TEN(x) x x x x x x x x x x
#define NESTED ".global .u32 g = " TEN(TEN("(")) TEN(TEN("(")) TEN(TEN("(")) "1;\n"

#define MANY "mov.b32 %r1, {" TEN(TEN(TEN("%h1,"))) "%h1};"

static const struct refusal {
    enum kind kind;
    const char *text, *says;
} refusals[] = {
    /* decode */
    {BODY, "foo.b32 %r1, %r2;", "no instruction of that name is emulated"},
    {BODY, "redux.sync.add %r1, %r2, -1;", "a type is missing; it is one of: "},
    {BODY, "add %r1, %r2, %r3;", "there is no form for type .none with these modifiers"},
    {BODY, "bar.sync 0, 64, 3;", "3 operands; between 1 and 2 are due"},
    {BODY, "cvt.rn.f32.b32 %f1, %r1;", "type .b32 is not among: "},
    {BODY, "and.b32 %r1, %p1, %r2;",
     "operand '%p1' is a predicate, one bit wide, which does not suit type .b32"},
    {BODY, "add.u32 %r1, %h1, %r2;",
     "operand '%h1' is 16 bits wide, which does not suit type .u32"},
    {BODY, "add.u64 %d1, %q1, %d2;",
     "operand '%q1' is 128 bits wide, which does not suit type .u64"},
    {BODY, "add.u32 %r1, %r2+4, %r3;", "a register cannot carry an offset here"},
    {BODY, "@%laneid bra OUT;\nOUT:", "a special register is no predicate"},
    {BODY, "selp.u32 %r1, %r2, %r3, %laneid;", "a special register is no predicate"},
    {BODY, "add.u32 %r1, %r2, nothing;",
     "'nothing' is not declared, or is nothing that can be read here"},
    {BODY, "add.u32 %r1, %r2, [%r3];", "a register or an immediate is due where a bracket stands"},
    {BODY, "add.u32 5, %r2, %r3;", "'5' is no register that could be written"},
    {BODY, "lop3.b32 %r1, %r2, %r3, %r4, %r5;", "an integer constant is due, not '%r5'"},
    {BODY, "ld.global.v2.u32 {}, [%d1];", "an empty vector operand"},
    {BODY, "ld.global.u32 %r1, [buf];",
     "'buf' is a .shared variable, and the access is to .global memory"},
    {BODY, "ld.global.u32 %r1, %d1;", "an address in brackets is due"},
    {BODY, "ld.global.u32 %r1, [%h1];", "an address register has 32 or 64 bits"},
    {BODY, "ld.global.u32 %r1, [nothing];", "'nothing' is not declared, or is no address"},
    {BODY, "bra nowhere;", "'nowhere' is no label of this function"},
    {BODY, ".global .u32 g;",
     "'g': .global and .const variables inside functions are not emulated"},
    {BODY, ".local .b8 huge[4000000000];\n", "variables of more than 2 GiB in one state space"},
    /* arithmetic */
    {BODY, "fma.f32 %f1, %f2, %f3, %f4;", "a rounding mode (.rn .rz .rm .rp) is missing"},
    {BODY, "min.xorsign.f32 %f1, %f2, %f3;", ".xorsign goes with .abs"},
    {BODY, "lop3.b32 %r1, %r2, %r3, %r4, 256;", "immLut is 256; it has 8 bits"},
    {BODY, "lop3.or.b32 %r1, %r2, %r3, %r4, 2, %p1;", "the predicate destination d|p is missing"},
    {BODY, "setp.u32 %p1, %r1, %r2;", "a comparison such as .eq or .lt is missing"},
    {BODY, "setp.eq.e4m3 %p1, %r1, %r2;", "cannot be compared"},
    {BODY, "setp.eq.ftz.u32 %p1, %r1, %r2;", ".ftz is of .f32, .f16 and .f16x2"},
    {BODY, "cvt.rn.f16x2.f16 %r1, %h1;", "no conversion from .f16 to .f16x2"},
    {BODY, "cvt.f32.f16x2 %f1, %r1;", "no conversion from .f16x2 to .f32"},
    {BODY, "cvt.pack.u8.s32 %r1, %r2, %r3;", ".sat is missing"},
    {BODY, "mov.b32 %r1, {%h1, %h2, %h3};", "the elements of the vector do not fill the register"},
    {BODY, "cvta.u64 %d1, %d2;", "a state space is missing"},
    {BODY, "isspacep %p1, %d1;", "a state space is missing"},
    /* control */
    {BODY, "LIST: .branchtargets OUT;\nbrx %r1, LIST;\nOUT:", ".idx is missing"},
    {BODY, "brx.idx %r1, pa;", "'pa' is no list of branch targets"},
    {BODY, "call %d1;", "only calls of a named function are emulated"},
    {MODULE,
     ".func f(.param .u32 n);\n.visible .entry k()\n{\n.param .u32 a;\nst.param.u32 [a], 1;\ncall "
     "f, (a);\nret;\n}\n",
     "function 'f' has no body in this module"},
    {MODULE, ".func f(.param .u32 n)\n{\nret;\n}\n.visible .entry k()\n{\ncall f;\nret;\n}\n",
     "arguments are"},
    {MODULE, ".func (.param .u32 m) f()\n{\nret;\n}\n.visible .entry k()\n{\ncall f;\nret;\n}\n",
     "results are"},
    {MODULE,
     ".func f(.param .u32 n)\n{\nret;\n}\n.visible .entry k()\n{\n.param .u64 a;\nst.param.u64 "
     "[a], 1;\ncall f, (a);\nret;\n}\n",
     "'a' has 8 bytes, the function's parameter 4"},
    {MODULE,
     ".func f(.param .align 8 .b8 n[16])\n{\nret;\n}\n.visible .entry k()\n{\n.reg .b32 "
     "%r1;\nmov.u32 %r1, 1;\ncall f, (%r1);\nret;\n}\n",
     "a parameter of 16 bytes is not passed in a register"},
    {BODY, "pmevent 16;", "event 16; there are 16"},
    {BODY, "griddepcontrol;", ".launch_dependents or .wait is missing"},
    {BODY, "setmaxnreg.inc.u32 64;", ".sync.aligned is missing"},
    {BODY, "setmaxnreg.inc.sync.aligned.u32 20;",
     "20 registers; a multiple of 8 from 24 to 256 is due"},
    /* barriers and warps */
    {BODY, "bar 0;", ".sync, .arrive or .red is missing"},
    {BODY, "bar.red.u32 %r1, 0, %p1;", "an operation (.popc .and .or) is missing"},
    {BODY, "bar.warp -1;", ".sync is missing"},
    {BODY, "barrier.cluster;", ".arrive or .wait is missing"},
    {BODY, "membar;", "a scope or a proxy is missing"},
    {BODY, "fence.async;", ".proxy is missing"},
    {BODY, "shfl.idx.b32 %r1, %r2, 0, 31;",
     ".sync is missing; the form without it is gone since sm_70"},
    {BODY, "shfl.sync.b32 %r1, %r2, 0, 31, -1;", "a mode (.up .down .bfly .idx) is missing"},
    {BODY, "vote.sync.pred %p1, %p2, -1;", "a mode (.all .any .uni .ballot) is missing"},
    {BODY, "match.sync.b32 %r1, %r2, -1;", "a mode (.any .all) is missing"},
    {BODY, "redux.sync.u32 %r1, %r2, -1;", "an operation is missing"},
    {BODY, "elect.sync %r1, -1;", "the predicate destination d|p is missing"},
    {BODY, "mbarrier.arrive.shared.b64 [%r1];", "its result is missing; it may be '_'"},
    {BODY, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 _, [%r1], 16;", "it has no result"},
    {BODY, "mbarrier.arrive.expect_tx.shared.b64 _, [%r1];", "the transaction count is missing"},
    {BODY, "mbarrier.shared.b64 [%r1], 1;", "an operation such as .init or .arrive is missing"},
    /* memory */
    {BODY, "ld.global.v4.u32 {%r1, %r2}, [%d1];", "2 elements stand in the vector, 4 are due"},
    {BODY, "ld.global.v2.u32 {%r1, %d2}, [%d1];", "the registers of a vector have one width"},
    {BODY, "prefetch.global [%d1];", "a level such as .L2 is missing"},
    {BODY, "discard.global.L2 [%d1], 64;", "the size is 128 bytes"},
    {BODY, "createpolicy.L2::evict_last.L2.b64 %d1, 0.5;",
     "one of .fractional, .range and .cvt is due"},
    {BODY, "createpolicy.cvt.b64 %d1, %r1;", ".cvt needs .L2"},
    {BODY, "atom.global.u32 %r1, [%d1], %r2;", "an operation such as .add is missing"},
    {BODY, "atom.global.and.u32 %r1, [%d1], %r2;", "operation .and has no form for type .u32"},
    {BODY, "atom.global.add.s64 %d2, [%d1], %d3;", ".add has no form for type .s64"},
    {BODY, "atom.global.v2.add.u32 {%r1, %r2}, [%d1], {%r3, %r4};", "vectors are of floats"},
    {BODY, "atom.global.v2.add.f32 {%f1, %f2}, [%d1], {%f3};",
     "elements stand in the vector, 2 are due"},
    {BODY, "atom.global.v2.add.f32 {%f1}, [%d1], {%f3, %f4};",
     "elements stand in the vector, 2 are due"},
    {BODY, "atom.global.add.f16 %h1, [%d1], %h2;",
     ".noftz stands with 16-bit floats, and only with them"},
    {BODY, "cp.async.bulk.commit;",
     "the state spaces of destination and source are missing or unsuited"},
    {BODY, "cp.shared.global [%r1], [%d1], 16;", ".async is missing"},
    {BODY, "cp.async.mbarrier.shared.b64 [%r1];", ".arrive is missing"},
    {BODY, "cp.async.shared.global [%r1], [%d1], 16;", ".ca or .cg is missing"},
    {BODY, "cp.async.ca [%r1], [%d1], 16;", ".shared.global is missing"},
    {BODY, "cp.async.cg.shared.global [%r1], [%d1], 8;", "16 with .cg"},
    {BODY, "cp.async.ca.shared.global [%r1], [%d1], 12;", "4, 8 or 16"},
    {BODY, "cp.async.ca.shared.global [%r1], [%d1+9000000000], 4;",
     "the offset 9000000000 does not fit 32 bits"},
    {BODY,
     "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, "
     "[%r3];",
     "an operation such as .add is missing"},
    {BODY,
     "red.async.relaxed.cluster.add.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, "
     "[%r3];",
     "operation .add has no form for type .b32"},
    {BODY, "st.async.global.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
     ".shared::cluster is missing"},
    {BODY, "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%r1], {%r2, %r3}, [%r3];",
     "2 elements stand in the vector, 4 are due"},
    {BODY,
     "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, "
     "{%r2}], [%r3];",
     "[map, {coordinates}] with 2 coordinates is due"},
    {BODY, "cp.reduce.async.bulk.global.shared::cta.bulk_group.u32 [%d1], [%r1], 16;",
     "an operation such as .add is missing"},
    {BODY, "cp.reduce.async.bulk.global.shared::cta.bulk_group.and.u32 [%d1], [%r1], 16;",
     "operation .and has no form for type .u32"},
    {BODY, "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16x2 [%d1], [%r1], 16;",
     "elements of type .f16x2 are not reduced"},
    {BODY, "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%d1], [%r1], 16;",
     ".noftz stands with .add of 16-bit floats, and only with it"},
    {BODY, "cp.reduce.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [%r1], 16;",
     ".async.bulk is missing"},
    {BODY,
     "cp.async.bulk.tensor.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, "
     "{%r2}], [%r3];",
     "the number of dimensions (.1d to .5d) is missing"},
    {BODY, "cp.async.bulk.shared::cluster.global.bulk_group [%r1], [%d1], 16;",
     "the completion mechanism is missing or does not suit the direction"},
    {BODY, "cp.async.bulk.prefetch.global [%d1], 16;", ".L2.global is missing"},
    /* tensor cores */
    {BODY,
     "mma.sync.aligned.m16n8k16.row.col.f32.f15.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
     "{%r5,%r6}, {%f5,%f6,%f7,%f8};",
     "a matrix element type is missing or unknown"},
    {BODY,
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3}, "
     "{%r5,%r6}, {%f5,%f6,%f7,%f8};",
     "3 registers stand in a matrix operand, 4 are due"},
    {BODY,
     "mma.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
     "{%f5,%f6,%f7,%f8};",
     ".sync.aligned is missing"},
    {BODY,
     "mma.sync.aligned.m16n8k16.row.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
     "{%r5,%r6}, {%f5,%f6,%f7,%f8};",
     "the layouts (.row.col) are missing"},
    {BODY,
     "mma.sync.aligned.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
     "{%f5,%f6,%f7,%f8};",
     "a shape such as .m16n8k16 is missing"},
    {BODY,
     "mma.sync.aligned.m16n8k16.row.col.rn.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
     "{%r5,%r6}, {%f5,%f6,%f7,%f8};",
     "a rounding is of .f64"},
    {BODY, "ldmatrix.sync.aligned.x1.shared.b16 {%r1}, [%r2];", "a shape such as .m8n8 is missing"},
    {BODY, "ldmatrix.sync.aligned.m8n9.x1.shared.b16 {%r1}, [%r2];",
     "no matrix of that shape and type is moved"},
    {BODY, "ldmatrix.sync.aligned.m8n8.shared.b16 {%r1}, [%r2];",
     "the number of matrices (.x1 .x2 .x4) is missing"},
    {BODY, "movmatrix.sync.aligned.m8n8.b16 %r1, %r2;", ".m8n8.trans is missing"},
    {BODY, "wgmma.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d1, %d2, %p1, 1, 1, 0, 0;",
     ".mma_async, .fence, .commit_group or .wait_group is missing"},
    {BODY, "wgmma.mma_async.sync.aligned.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d1, %d2, %p1, 1, 1, 0, 0;",
     "a shape such as .m64n128k16 is missing"},
    {BODY,
     "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d1, %d2, %p1, 2, 1, 0, "
     "0;",
     "a scale of 2; it is 1 or -1"},
    {BODY,
     "mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r5}, "
     "{%f5,%f6,%f7,%f8};",
     "does not exist with these element types"},
    {BODY,
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
     "{%r5,%r6}, {%r7,%r8};",
     ".dtype must equal .ctype"},
    {BODY,
     "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, "
     "{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f5,%f6,%f7,%f8};",
     "mma: .satfinite needs 8- or 4-bit integer elements"},
    {BODY,
     "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
     "{%r5,%r6}, {%f5,%f6,%f7,%f8};",
     "the layouts must be .row.col"},
    {BODY,
     "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {%f1,%f2,%f3,%f4}, %d1, %d2, %p1, 1, 1, "
     "0, 0;",
     "wgmma does not exist with these element types"},
    {BODY,
     "wgmma.mma_async.sync.aligned.m64n8k32.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d1, %d2, %p1, 1, 1, 0, "
     "0;",
     "wgmma.m64n8k32: K must be 16 for 16-bit elements"},
    {BODY,
     "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d1, %d2, %p1, 1, 1, "
     "0, 0;",
     "wgmma: N is 12: it must be a multiple of 8"},
    {BODY,
     "wgmma.mma_async.sync.aligned.m64n8k16.satfinite.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d1, %d2, "
     "%p1, 1, 1, 0, 0;",
     "wgmma: .satfinite needs integer elements"},
    {BODY, "cvt.sat.u64.u32 %d1, %r1;", "is no instruction: these types have not these modifiers"},
    /* the grammar */
    {MODULE, ".visible .entry k()\n{\n\"open\nret;\n}\n",
     "begins nothing that PTX knows (or a comment or string is cut, or a number cut or too large)"},
    {MODULE, ".visible .entry k()", "the text ends where "},
    {MODULE, ".visible .entry k[]\n{\nret;\n}\n", "is due, not '['"},
    {MODULE, ".visible .entry k()\n.pragma \"x\"\n", "';'"},
    {MODULE, ".visible .entry k()\n.maxntid x\n{\nret;\n}\n", "an extent is due, not 'x'"},
    {MODULE, ".visible .entry k()\n.maxntid 0\n{\nret;\n}\n", "an extent of 0 is out of range"},
    {MODULE, ".visible .entry k()\n.maxnreg x\n{\nret;\n}\n", "a register count is due"},
    {MODULE, ".visible .entry k()\n.minnctapersm x\n{\nret;\n}\n", "a CTA count is due"},
    {MODULE, ".visible .entry k()\n.maxspeed 3\n{\nret;\n}\n",
     "a performance directive, ';' or '{' is due, not '.maxspeed'"},
    {MODULE, ".func f()\n{\nret;\n}\n.func f()\n{\nret;\n}\n", "function 'f' has two bodies"},
    {MODULE, ".visible .entry 3()\n{\nret;\n}\n", "the function's name is due"},
    {MODULE, ".visible .entry k()\n{\nret;\n", "the text ends inside a function body"},
    {MODULE, ".visible .entry k()\n{\n.section\nret;\n}\n", "'section' begins no statement"},
    {MODULE, ".section .debug { .b32 1\n", "'}'"},
    {WHOLE, ".version x\n", "a version such as 7.8 is due"},
    {WHOLE, ".version 8.6\n.target 80\n", "a target such as sm_80 is due"},
    {WHOLE, ".version 8.6\n.target sm_80, 3\n", "a target option is due"},
    {WHOLE, ".version 8.6\n.target sm_80\n.address_size x\n", "32 or 64 is due"},
    {WHOLE, ".version 8.6\n.target sm_80\n.address_size 32\n", "only .address_size 64 is emulated"},
    {MODULE, ".wrong\n", "a module directive is due"},
    {WHOLE, ".target sm_80\n", "'.version' first is due"},
    {WHOLE, ".version 8.6\n", "the module has no .target"},
    {BODY, MANY, "items in one operand"},
    {BODY, "ld.global.u32 %r1, [];", "an address is due between the brackets"},
    {BODY, "@5 bra OUT;\nOUT:", "a guard is a predicate register"},
    {BODY, "@%p1 5;", "an instruction is due"},
    {MODULE, ".global .u32 g = 1 / 0;\n", "a constant expression divides by zero"},
    {MODULE, ".global .u32 g = 1 % 0;\n", "a constant expression divides by zero"},
    {MODULE, NESTED, "a constant expression nests deeper than"},
    {BODY, ".reg .what %x;", "a type such as .b32 is due here"},
    {BODY, ".reg .v2 .b32 %x;", "vector registers are not emulated"},
    {WHOLE,
     ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b128 "
     "%q;\nret;\n}\n",
     "registers of type .b128 need .version 8.3 or later"},
    {BODY, ".reg .b32 5;", "a register's name is due"},
    {BODY, ".reg .b32 %x<n>;", "a number of registers is due"},
    {BODY, ".reg .b32 %x<4000000000>;", "4000000000 registers in one range; the limit is 1048576"},
    {BODY, ".reg .b32 %x<1048576>;\n.reg .b32 %y<1048576>;",
     "more than 1048576 registers in one function"},
    {MODULE, ".global .align x .u32 g;\n", "an alignment is due"},
    {MODULE, ".global .align 3 .u32 g;\n", "alignment 3 is not a power of two up to 1024"},
    {MODULE, ".global .u32 g[x];\n", "an array extent is due"},
    {MODULE, ".global .u32 g[4000000000][4000000000];\n", "the array is larger than 4 GiB"},
    {MODULE, ".global .u32 g[2] = {1, 2, 3};\n", "more initial values than 'g' has room for"},
    {MODULE, ".global .u64 g = generic(5);\n", "a symbol is due"},
    {MODULE, ".global .u32 h;\n.global .u32 g = h;\n", "an address needs a 64-bit element"},
    {MODULE, ".global .u32 g = 1.5;\n", "a floating-point value for type .u32"},
    {MODULE, ".global .u32 g = };\n", "'}' without '{' in an initialiser"},
    {MODULE, ".global .u32 g = ];\n", "a constant, a symbol or a brace is due here"},
    {MODULE, ".global .u32 5;\n", "the variable's name is due"},
    {MODULE, ".global .u32 g<4>;\n", "parameterised variable names are not emulated"},
    {MODULE, ".global .pred g;\n", "a variable cannot have type .pred"},
    {MODULE, ".global .u64 g[600000000];\n", "the variable is larger than 4 GiB"},
    {MODULE, ".shared .u32 g = 1;\n", "only .global and .const variables have initial values"},
    {MODULE, ".global .u32 g[20000000] = {1};\n", "initialised variables of more than 64 MiB"},
    {MODULE, ".tex .u64 t;\n", "textures are not emulated"},
    {MODULE, ".global .attribute(.managed .u32 g;\n", "the attribute list has no end"},
    {MODULE, ".visible .entry k(.reg .u32 n)\n{\nret;\n}\n", "a parameter begins with .param"},
};

static char *whole(const struct refusal *refusal)
{
    size_t size = strlen(refusal->text) + 700;
    char *text = malloc(size);
    if (refusal->kind == BODY)
        snprintf(text, size,
                 HEADER ".visible .entry k(.param .u64 pa)\n{\n"
                        ".reg .pred %%p<4>; .reg .b16 %%h<9>; .reg .b32 %%r<20>; .reg .b64 "
                        "%%d<9>; .reg .f32 %%f<40>; .reg .b128 %%q<2>;\n"
                        ".shared .align 16 .b8 buf[64];\n%s\nret;\n}\n",
                 refusal->text);
    else
        snprintf(text, size, "%s%s", refusal->kind == MODULE ? HEADER : "", refusal->text);
    return text;
}

static void each_refusal_says_why(void **state)
{
    (void)state;
    struct bench bench;
    int wrong = 0;
    bench_open(&bench, "cpu:sm_90");
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        char *text = whole(&refusals[i]);
        bench.log[0] = '\0';
        ptxgen_cu_result result = bench_try_load(&bench, text);
        if (result == PTXGEN_CUDA_SUCCESS || strncmp(bench.log, "line ", 5) != 0 ||
            !strstr(bench.log, refusals[i].says)) {
            print_error("'%s' gives %d, '%s', not '%s'\n", refusals[i].text, (int)result, bench.log,
                        refusals[i].says);
            wrong++;
        }
        free(text);
    }
    assert_int_equal(wrong, 0);
    bench_close(&bench);
}

static void assert_refused(const char *text, const char *says)
{
    struct bench bench;
    bench_open(&bench, "cpu:sm_90");
    assert_int_not_equal(bench_try_load(&bench, text), PTXGEN_CUDA_SUCCESS);
    if (!strstr(bench.log, says))
        fail_msg("'%s', not '%s'", bench.log, says);
    bench_close(&bench);
}

static void more_registers_than_the_emulator_holds_are_refused(void **state)
{
    (void)state;
    enum { COUNT = 132000, LINE = 40 };
    static char text[COUNT * LINE / 2 + 1000];
    size_t used = 0;
    used += (size_t)snprintf(text + used, sizeof text - used,
                             HEADER ".visible .entry k()\n{\n.reg .b128 %%q<%d>;\n", COUNT);
    for (int i = 0; i < COUNT; i += 2)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "mov.b128 %%q%d, %%q%d;\n", i, i + 1);
    snprintf(text + used, sizeof text - used, "ret;\n}\n");
    assert_refused(text, "the kernel uses more registers than 64 MiB a warp hold");
}

static void more_results_of_a_call_than_an_instruction_has_are_refused(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    static char text[COUNT * 40 + 1000];
    size_t used = 0;
    used += (size_t)snprintf(text + used, sizeof text - used, HEADER ".func (.param .u32 p0");
    for (int i = 1; i < COUNT; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ", .param .u32 p%d", i);
    used += (size_t)snprintf(
        text + used, sizeof text - used,
        ") f()\n{\nret;\n}\n.visible .entry k()\n{\n.reg .b32 %%r<400>;\ncall (%%r0");
    for (int i = 1; i < COUNT; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ", %%r%d", i);
    snprintf(text + used, sizeof text - used, "), f;\nret;\n}\n");
    assert_refused(text, "too many registers in one instruction");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_refusal_says_why),
        cmocka_unit_test(more_registers_than_the_emulator_holds_are_refused),
        cmocka_unit_test(more_results_of_a_call_than_an_instruction_has_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
