/* The context switch on x86-64 (System V). See base/switch.h. */
#if defined(__x86_64__)

#ifndef HF_SWITCH_FPU
#define HF_SWITCH_FPU 0
#endif

    .text

    /* void hf_switch_raw(void **save_sp, void *load_sp) */
    .p2align 5
    .globl hf_switch_raw
    .hidden hf_switch_raw
    .type hf_switch_raw, @function
hf_switch_raw:
    .cfi_startproc
    endbr64
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
#if HF_SWITCH_FPU
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
#endif
    movq %rsp, (%rdi)
    movq %rsi, %rsp
#if HF_SWITCH_FPU
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    addq $8, %rsp
#endif
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmp *%rcx
    .cfi_endproc
    .size hf_switch_raw, .-hf_switch_raw

    /* A new context starts here: r12 = main, r13 = its argument. The frame has no caller. */
    .p2align 4
    .globl hf_switch_entry
    .hidden hf_switch_entry
    .type hf_switch_entry, @function
hf_switch_entry:
    .cfi_startproc
    .cfi_undefined rip
    endbr64
    movq %r13, %rdi
    pushq $0 /* no caller; and no call, which would unbalance the return stack */
    jmp *%r12
    .cfi_endproc
    .size hf_switch_entry, .-hf_switch_entry

    /* void hf_unwind_from(void *sp, void (*fn)(void *), void *arg)
     * CFA = *(rbp - 8) + saved frame: the unwinder goes on in the suspended context. */
    .p2align 4
    .globl hf_unwind_from
    .hidden hf_unwind_from
    .type hf_unwind_from, @function
hf_unwind_from:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    movq %rsp, %rbp
    .cfi_def_cfa_register rbp
    subq $16, %rsp
#if HF_SWITCH_FPU
    addq $8, %rdi
#endif
    movq %rdi, -8(%rbp)
    movq %rdx, %rdi
    .cfi_remember_state
    /* DW_CFA_def_cfa_expression: breg6 -8, deref, plus_uconst 56 */
    .cfi_escape 0x0f, 5, 0x76, 0x78, 0x06, 0x23, 56
    .cfi_offset rip, -8
    .cfi_offset rbp, -16
    .cfi_offset rbx, -24
    .cfi_offset r12, -32
    .cfi_offset r13, -40
    .cfi_offset r14, -48
    .cfi_offset r15, -56
    callq *%rsi
    nop
    .cfi_restore_state
    leave
    .cfi_def_cfa rsp, 8
    .cfi_same_value rbp
    ret
    .cfi_endproc
    .size hf_unwind_from, .-hf_unwind_from

    /* int hf_call_guarded(int (*body)(void *), void *arg) */
    .p2align 4
    .globl hf_call_guarded
    .hidden hf_call_guarded
    .type hf_call_guarded, @function
hf_call_guarded:
    .cfi_startproc
    .cfi_personality 0x1b, hf_body_personality
    endbr64
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq %rdi, %rax
    movq %rsi, %rdi
    callq *%rax
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size hf_call_guarded, .-hf_call_guarded


    /* Announce endbr64 (IBT). Shadow stacks are not announced: the jump above does not keep one. */
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4
    .long 16
    .long 5
    .asciz "GNU"
    .long 0xc0000002
    .long 4
    .long 1
    .long 0

#endif

    .section .note.GNU-stack, "", %progbits
