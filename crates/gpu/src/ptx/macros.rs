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

macro_rules! warpgroup_products {
    ($($panels:ident, $cores:ident, $columns:ident, $registers:ident:
        $of_panels:ident, $of_cores:ident, $of_columns:ident, $of_registers:ident;)*) => {$(
        #[inline(always)]
        unsafe fn $panels<const L: usize, const PANEL: u32>(
            self,
            sums: &mut [f32; L],
            a: SharedPtr<u16>,
            b: SharedPtr<u16>,
        ) {
            let [a, b] = [a, b].map(|place| memory::shared_address(place.offset()));
            // SAFETY: passed on to the caller.
            unsafe { warpgroup::$of_panels::<L, PANEL>(sums, a, b) }
        }
        #[inline(always)]
        unsafe fn $cores<const L: usize>(self, sums: &mut [f32; L], a: CoreMatrices, b: CoreMatrices) {
            // SAFETY: passed on to the caller.
            unsafe { warpgroup::$of_cores(sums, a, b) }
        }
        #[inline(always)]
        unsafe fn $columns<const L: usize>(self, sums: &mut [f32; L], a: SharedPtr<u16>, b: SharedPtr<u16>) {
            let [a, b] = [a, b].map(|place| memory::shared_address(place.offset()));
            // SAFETY: passed on to the caller.
            unsafe { warpgroup::$of_columns(sums, a, b) }
        }
        #[inline(always)]
        unsafe fn $registers<const L: usize, const PANEL: u32>(
            self,
            sums: &mut [f32; L],
            a: [u32; 4],
            b: SharedPtr<u16>,
        ) {
            let b = memory::shared_address(b.offset());
            // SAFETY: passed on to the caller.
            unsafe { warpgroup::$of_registers::<L, PANEL>(sums, a, b) }
        }
    )*};
}
