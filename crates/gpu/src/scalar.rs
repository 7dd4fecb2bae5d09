//! The plain values that device memory and registers hold.

/// A plain value of 1, 2, 4 or 8 bytes without padding, for which every bit pattern is valid.
///
/// # Safety
/// Implementors have no padding, no invalid bit pattern, and an alignment equal to their size.
pub unsafe trait Scalar:
    Copy + Default + PartialEq + Send + Sync + core::fmt::Debug + 'static
{
}

// SAFETY: the primitive numbers have no padding, accept every bit pattern, and align to their size.
unsafe impl Scalar for u8 {}
// SAFETY: as above.
unsafe impl Scalar for u16 {}
// SAFETY: as above.
unsafe impl Scalar for u32 {}
// SAFETY: as above.
unsafe impl Scalar for i32 {}
// SAFETY: as above.
unsafe impl Scalar for u64 {}
// SAFETY: as above.
unsafe impl Scalar for f32 {}

/// A 32-bit register value: what a warp shuffle moves.
pub trait Word: Scalar {
    /// The value's bits.
    fn to_bits(self) -> u32;
    /// The value with these bits.
    fn from_bits(bits: u32) -> Self;
}

macro_rules! words {
    ($($t:ty: $to:expr, $from:expr;)*) => {$(
        impl Word for $t {
            #[inline(always)]
            fn to_bits(self) -> u32 {
                ($to)(self)
            }
            #[inline(always)]
            fn from_bits(bits: u32) -> Self {
                ($from)(bits)
            }
        }
    )*};
}
words! {
    u32: |x| x, |x| x;
    i32: |x: i32| x as u32, |x: u32| x as i32;
    f32: f32::to_bits, f32::from_bits;
}

/// Which read-modify-write an atomic performs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// `old + operand` (integers wrap).
    Add,
    /// `max(old, operand)`.
    Max,
    /// `old | operand`, of the bits of both.
    Or,
}

/// The types that atomics of the hardware work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicKind {
    /// `u32`
    U32,
    /// `i32`
    I32,
    /// `u64`
    U64,
    /// `f32`
    F32,
}

/// A value that atomics of the hardware can work on.
///
/// # Safety
/// `KIND` names the type itself: the device's instructions go by it.
pub unsafe trait AtomicBits: Scalar {
    /// Which type this is.
    const KIND: AtomicKind;
    /// What an atomic leaves in memory that held `old`: the meaning of `op` on this type.
    fn apply(op: AtomicOp, old: Self, operand: Self) -> Self;
}

macro_rules! atomics {
    ($($t:ty: $kind:ident, |$a:ident, $b:ident| $add:expr, $or:expr;)*) => {$(
        // SAFETY: each line below names its own type.
        unsafe impl AtomicBits for $t {
            const KIND: AtomicKind = AtomicKind::$kind;
            #[inline(always)]
            fn apply(op: AtomicOp, $a: Self, $b: Self) -> Self {
                match op {
                    AtomicOp::Add => $add,
                    AtomicOp::Max => $a.max($b),
                    AtomicOp::Or => $or,
                }
            }
        }
    )*};
}
atomics! {
    u32: U32, |a, b| a.wrapping_add(b), a | b;
    i32: I32, |a, b| a.wrapping_add(b), a | b;
    u64: U64, |a, b| a.wrapping_add(b), a | b;
    f32: F32, |a, b| a + b, f32::from_bits(a.to_bits() | b.to_bits());
}

/// Types with an atomic addition on every supported target.
pub trait AtomicAdd: AtomicBits {}
impl AtomicAdd for u32 {}
impl AtomicAdd for i32 {}
impl AtomicAdd for u64 {}
impl AtomicAdd for f32 {}

/// Types with an atomic maximum on every supported target.
pub trait AtomicMax: AtomicBits {}
impl AtomicMax for u32 {}
impl AtomicMax for i32 {}
impl AtomicMax for u64 {}
