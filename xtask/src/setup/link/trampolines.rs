//! The generated parts: one trampoline a function, and the tables of names and slots.
use std::env::consts::ARCH;

/// Assembly for this machine's architecture; nothing where NVIDIA has no driver.
pub(super) fn assembly(functions: &[&str]) -> Option<String> {
    assembly_for(ARCH, functions)
}

fn assembly_for(arch: &str, functions: &[&str]) -> Option<String> {
    let (trampoline, bind): (fn(usize) -> String, &str) = match arch {
        "x86_64" => (x86_64, X86_64_BIND),
        "aarch64" => (aarch64, AARCH64_BIND),
        _ => return None,
    };
    let mut text = String::from(".section .note.GNU-stack,\"\",%progbits\n.text\n");
    for (number, name) in functions.iter().enumerate() {
        text += &format!(".globl {name}\n.hidden {name}\n.type {name}, %function\n.balign 16\n{name}:\n");
        text += &trampoline(number);
    }
    text += ".type lacuna_cuda_bind, %function\n.balign 16\nlacuna_cuda_bind:\n";
    text += bind;
    Some(text)
}

/// C definitions that the resolver is compiled after.
pub(super) fn table(functions: &[&str]) -> String {
    let names = functions.iter().map(|name| format!("    \"{name}\",\n")).collect::<String>();
    format!(
        "static const char *const lacuna_cuda_names[] = {{\n{names}}};\nvoid *lacuna_cuda_slots[{}];\n",
        functions.len()
    )
}

/// Jumps to the slot's function, or to the binding with the number in r11, which holds no argument.
fn x86_64(number: usize) -> String {
    let slot = 8 * number;
    format!(
        "    endbr64
    movq lacuna_cuda_slots+{slot}(%rip), %r11
    testq %r11, %r11
    je 1f
    jmp *%r11
1:  movl ${number}, %r11d
    jmp lacuna_cuda_bind
"
    )
}

/// Saves every register that may hold an argument, resolves, and goes on as the caller meant. The stack pointer is a
/// multiple of 16 at the call: 8 bytes of return address, 6 registers, 136 bytes.
const X86_64_BIND: &str = "\
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    subq $136, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movl %r11d, %edi
    call lacuna_cuda_resolve
    movq %rax, %r11
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq $136, %rsp
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    jmp *%r11
";

/// As on x86-64, with x16 and x17, which hold no argument. `hint #34` is `bti c`.
fn aarch64(number: usize) -> String {
    let slot = 8 * number;
    format!(
        "    hint #34
    adrp x16, lacuna_cuda_slots+{slot}
    ldr x16, [x16, #:lo12:lacuna_cuda_slots+{slot}]
    cbz x16, 1f
    br x16
1:  mov w17, #{number}
    b lacuna_cuda_bind
"
    )
}

/// Frame record, x0 to x7, q0 to q7.
const AARCH64_BIND: &str = "\
    stp x29, x30, [sp, #-208]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    stp q0, q1, [sp, #80]
    stp q2, q3, [sp, #112]
    stp q4, q5, [sp, #144]
    stp q6, q7, [sp, #176]
    mov w0, w17
    bl lacuna_cuda_resolve
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp q0, q1, [sp, #80]
    ldp q2, q3, [sp, #112]
    ldp q4, q5, [sp, #144]
    ldp q6, q7, [sp, #176]
    ldp x29, x30, [sp], #208
    br x16
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_its_own_slot() {
        let functions = ["cuInit", "cuLaunchKernel"];
        for (arch, second) in
            [("x86_64", "lacuna_cuda_slots+8(%rip)"), ("aarch64", ":lo12:lacuna_cuda_slots+8]")]
        {
            let text = assembly_for(arch, &functions).unwrap();
            let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{arch}: no {what}"));
            assert!(at("\ncuInit:") < at("\ncuLaunchKernel:") && at("\ncuLaunchKernel:") < at(second));
        }
        assert_eq!(assembly_for("riscv64", &functions), None);
        assert!(table(&functions).contains("lacuna_cuda_slots[2]"));
    }
}
