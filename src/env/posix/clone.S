/* hf_posix_clone: see clone.h. The new process starts after the system call with an empty stack, so the function and
 * its argument are put there beforehand. */

#if defined(__x86_64__)
        .text
        .globl hf_posix_clone
        .hidden hf_posix_clone
        .type hf_posix_clone, @function
        .balign 16
hf_posix_clone:
        .cfi_startproc
        and $-16, %rsi
        sub $16, %rsi
        mov %rdi, (%rsi)
        mov %rcx, 8(%rsi)
        mov %rdx, %rdi
        mov %r8, %rdx
        xor %r10d, %r10d
        xor %r8d, %r8d
        mov $56, %eax
        syscall
        test %rax, %rax
        jz 1f
        ret
1:
        .cfi_undefined rip
        xor %ebp, %ebp
        pop %rax
        pop %rdi
        call *%rax
        mov %eax, %edi
        mov $60, %eax
        syscall
        hlt
        .cfi_endproc
        .size hf_posix_clone, . - hf_posix_clone

#elif defined(__aarch64__)
        .text
        .globl hf_posix_clone
        .hidden hf_posix_clone
        .type hf_posix_clone, %function
        .balign 16
hf_posix_clone:
        .cfi_startproc
        and x1, x1, #-16
        stp x0, x3, [x1, #-16]!
        mov x0, x2
        mov x2, x4
        mov x3, xzr
        mov x4, xzr
        mov x8, #220
        svc #0
        cbz x0, 1f
        ret
1:
        .cfi_undefined x30
        mov x29, xzr
        mov x30, xzr
        ldp x9, x0, [sp], #16
        blr x9
        mov x8, #93
        svc #0
        brk #0
        .cfi_endproc
        .size hf_posix_clone, . - hf_posix_clone
#endif

        .section .note.GNU-stack,"",%progbits
