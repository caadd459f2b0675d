/* The context switch on aarch64 (AAPCS64). See base/switch.h. */
#if defined(__aarch64__)

    .text

    /* void hf_switch_raw(void **save_sp, void *load_sp) */
    .p2align 5
    .globl hf_switch_raw
    .hidden hf_switch_raw
    .type hf_switch_raw, %function
hf_switch_raw:
    .cfi_startproc
    hint #34 /* bti c */
    sub sp, sp, #160
    stp d8, d9, [sp, #0]
    stp d10, d11, [sp, #16]
    stp d12, d13, [sp, #32]
    stp d14, d15, [sp, #48]
    stp x19, x20, [sp, #64]
    stp x21, x22, [sp, #80]
    stp x23, x24, [sp, #96]
    stp x25, x26, [sp, #112]
    stp x27, x28, [sp, #128]
    stp x29, x30, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp d8, d9, [sp, #0]
    ldp d10, d11, [sp, #16]
    ldp d12, d13, [sp, #32]
    ldp d14, d15, [sp, #48]
    ldp x19, x20, [sp, #64]
    ldp x21, x22, [sp, #80]
    ldp x23, x24, [sp, #96]
    ldp x25, x26, [sp, #112]
    ldp x27, x28, [sp, #128]
    ldp x29, x16, [sp, #144]
    mov x30, x16
    add sp, sp, #160
    br x16
    .cfi_endproc
    .size hf_switch_raw, .-hf_switch_raw

    /* A new context starts here: x19 = main, x20 = its argument. The frame has no caller. */
    .p2align 4
    .globl hf_switch_entry
    .hidden hf_switch_entry
    .type hf_switch_entry, %function
hf_switch_entry:
    .cfi_startproc
    .cfi_undefined x30
    hint #36 /* bti j */
    mov x0, x20
    mov x29, xzr
    mov x30, xzr /* no caller; and no call, which would unbalance the return predictor */
    br x19
    .cfi_endproc
    .size hf_switch_entry, .-hf_switch_entry

    /* void hf_unwind_from(void *sp, void (*fn)(void *), void *arg): CFA = *(x29 + 24) + 160 */
    .p2align 4
    .globl hf_unwind_from
    .hidden hf_unwind_from
    .type hf_unwind_from, %function
hf_unwind_from:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    mov x29, sp
    .cfi_def_cfa_register x29
    str x0, [sp, #24]
    mov x0, x2
    .cfi_remember_state
    /* DW_CFA_def_cfa_expression: breg29 24, deref, plus_uconst 160 */
    .cfi_escape 0x0f, 6, 0x8d, 24, 0x06, 0x23, 0xa0, 0x01
    .cfi_offset x30, -8
    .cfi_offset x29, -16
    .cfi_offset x28, -24
    .cfi_offset x27, -32
    .cfi_offset x26, -40
    .cfi_offset x25, -48
    .cfi_offset x24, -56
    .cfi_offset x23, -64
    .cfi_offset x22, -72
    .cfi_offset x21, -80
    .cfi_offset x20, -88
    .cfi_offset x19, -96
    blr x1
    nop
    .cfi_restore_state
    ldp x29, x30, [sp], #32
    .cfi_def_cfa sp, 0
    .cfi_same_value x29
    .cfi_same_value x30
    ret
    .cfi_endproc
    .size hf_unwind_from, .-hf_unwind_from

    /* int hf_call_guarded(int (*body)(void *), void *arg) */
    .p2align 4
    .globl hf_call_guarded
    .hidden hf_call_guarded
    .type hf_call_guarded, %function
hf_call_guarded:
    .cfi_startproc
    .cfi_personality 0x1b, hf_body_personality
    hint #34
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    mov x29, sp
    mov x9, x0
    mov x0, x1
    blr x9
    ldp x29, x30, [sp], #16
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size hf_call_guarded, .-hf_call_guarded


#endif

    .section .note.GNU-stack, "", %progbits
