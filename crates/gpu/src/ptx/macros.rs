//! Methods of [`Ptx`](super::Ptx) that differ by a name and an instruction.

macro_rules! indices {
    ($($name:ident = $intrinsic:ident;)*) => {$(
        #[inline(always)]
        fn $name(self) -> u32 {
            // SAFETY: reads a special register.
            unsafe { nvptx::$intrinsic() as u32 }
        }
    )*};
}

macro_rules! shuffles {
    ($($name:ident = $intrinsic:ident, $last:literal;)*) => {$(
        #[inline(always)]
        fn $name<T: Word>(self, mask: u32, value: T, lane: u32, width: u32) -> T {
            // SAFETY: touches no memory; the trait's contract puts every lane of the mask here.
            T::from_bits(unsafe { llvm::$intrinsic(mask, value.to_bits(), lane, clamp(width, $last)) })
        }
    )*};
}

macro_rules! atomics {
    ($($name:ident<$bound:ident> = $function:ident, $op:ident, |$to:ident: $pointer:ident| $address:expr;)*) => {$(
        #[inline(always)]
        unsafe fn $name<T: $bound>(self, $to: $pointer<T>, value: T) -> T {
            // SAFETY: passed on to the caller.
            unsafe { memory::$function(AtomicOp::$op, $address, value) }
        }
    )*};
}

macro_rules! approximations {
    ($($name:ident = $instruction:literal;)*) => {$(
        #[inline(always)]
        fn $name(self, x: f32) -> f32 {
            let y;
            // SAFETY: arithmetic.
            unsafe {
                asm!(concat!($instruction, " {0}, {1};"), out(reg32) y, in(reg32) x,
                    options(pure, nomem, nostack));
            }
            y
        }
    )*};
}
