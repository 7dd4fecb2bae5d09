//! Typed addresses of the two memories that kernels use.
//!
//! They are numbers, not Rust pointers to host memory: arithmetic wraps and never faults, and only a method of
//! [`Gpu`](crate::Gpu) can follow one. On a GPU they cost what a raw pointer costs.
use core::marker::PhantomData;

/// `a · b + c` with the product in 64 bits. Left to itself, LLVM widens a loop's constant factor first, and then
/// needs a second instruction for each product.
#[inline(always)]
fn multiply_add_wide(a: u32, b: u32, c: u64) -> u64 {
    #[cfg(target_arch = "nvptx64")]
    {
        let sum: u64;
        // SAFETY: arithmetic.
        unsafe {
            core::arch::asm!("mad.wide.u32 {0}, {1}, {2}, {3};", out(reg64) sum, in(reg32) a, in(reg32) b,
                in(reg64) c, options(pure, nomem, nostack));
        }
        sum
    }
    #[cfg(not(target_arch = "nvptx64"))]
    c.wrapping_add(u64::from(a) * u64::from(b))
}

macro_rules! global_pointer {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name<T>(u64, PhantomData<*mut T>);

        impl<T> Clone for $name<T> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}

        // SAFETY: an address is a number; following it is the unsafe step, and belongs to `Gpu`.
        unsafe impl<T> Send for $name<T> {}
        // SAFETY: as above.
        unsafe impl<T> Sync for $name<T> {}

        impl<T> core::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}({:#x})", stringify!($name), self.0)
            }
        }

        impl<T> $name<T> {
            /// The pointer to a device address.
            #[inline(always)]
            pub const fn from_address(address: u64) -> Self {
                Self(address, PhantomData)
            }
            /// The device address.
            #[inline(always)]
            pub const fn address(self) -> u64 {
                self.0
            }
            /// `elements` further on.
            #[inline(always)]
            #[must_use]
            pub const fn add(self, elements: usize) -> Self {
                self.add_bytes((elements as u64).wrapping_mul(size_of::<T>() as u64))
            }
            /// `bytes` further on.
            #[inline(always)]
            #[must_use]
            pub const fn add_bytes(self, bytes: u64) -> Self {
                Self(self.0.wrapping_add(bytes), PhantomData)
            }
            /// `count` rows of `row_bytes` further on: one instruction of PTX, and exact for any product.
            #[inline(always)]
            #[must_use]
            pub fn add_rows(self, count: u32, row_bytes: u32) -> Self {
                Self(multiply_add_wide(count, row_bytes, self.0), PhantomData)
            }
        }
    };
}

global_pointer! {
    /// Global memory that nobody writes while the kernel runs: it may be read through the read-only path.
    GlobalPtr
}
global_pointer! {
    /// Global memory that the kernel may read and write.
    GlobalMut
}

/// A place in the block's shared memory: a byte offset from its start.
pub struct SharedPtr<T>(u32, PhantomData<*mut T>);

impl<T> Clone for SharedPtr<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SharedPtr<T> {}

impl<T> SharedPtr<T> {
    /// The place `offset` bytes after the start of the block's shared memory.
    #[inline(always)]
    pub const fn from_offset(offset: u32) -> Self {
        Self(offset, PhantomData)
    }
    /// Bytes from the start of the block's shared memory.
    #[inline(always)]
    pub const fn offset(self) -> u32 {
        self.0
    }
    /// `elements` further on.
    #[inline(always)]
    #[must_use]
    pub const fn add(self, elements: u32) -> Self {
        Self(self.0.wrapping_add(elements.wrapping_mul(size_of::<T>() as u32)), PhantomData)
    }
}
