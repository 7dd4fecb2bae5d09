//! The device's memory: where allocations lie, and what is alive.
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::memory::storage::Storage;

/// Lowest device address that is ever handed out.
pub(crate) const FIRST_ADDRESS: u64 = 0x1000_0000_0000;
/// One past the highest device address.
const END_ADDRESS: u64 = 1 << 48;
/// Address space is dealt out in slots of this many bytes, as a power of two: an allocation starts a slot and leaves
/// at least half a slot free behind it, so that an overrun of up to 4 GiB meets nobody else's memory.
pub(crate) const SLOT_SHIFT: u32 = 33;

/// Why the simulated device refused a request for memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The limit on the device's memory would be passed.
    #[error(
        "out of simulated device memory: {requested} bytes requested, {used} of {limit} in use; \
         free buffers or raise `Limits::memory_bytes`"
    )]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Bytes alive.
        used: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The host has no memory for it.
    #[error(
        "the host has no memory for {requested} bytes of simulated device memory; it spends 9 bytes for every 8: \
         use smaller buffers or a larger host"
    )]
    HostMemory {
        /// Bytes asked for.
        requested: u64,
    },
    /// No run of addresses is left that is long enough.
    #[error("no device addresses left for {requested} bytes; create a new `Simulator`")]
    OutOfAddresses {
        /// Bytes asked for.
        requested: u64,
    },
    /// The address was not the start of a live allocation.
    #[error("{address:#x} is not the start of a live allocation; free what `alloc` gave, once")]
    NotAllocated {
        /// The address as given.
        address: u64,
    },
    /// A range is not wholly inside one live allocation.
    #[error(
        "{bytes} bytes at {address:#x} are not inside a live allocation; \
         check the address, the length and whether it was freed"
    )]
    BadRange {
        /// First address of the range.
        address: u64,
        /// Length of the range in bytes.
        bytes: u64,
    },
}

/// A live piece of device memory.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) name: Arc<str>,
    pub(crate) storage: Storage,
    /// Whether something in a stream has written it since the host last waited for the device.
    unsettled: AtomicBool,
}

impl Allocation {
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled.load(Relaxed)
    }
    pub(crate) fn unsettle(&self) {
        // Mostly it is so already, and threads that only read do not disturb each other.
        if !self.is_unsettled() {
            self.unsettled.store(true, Relaxed);
        }
    }
    pub(crate) fn settle(&self) {
        self.unsettled.store(false, Relaxed);
    }
    pub(crate) fn len(&self) -> u64 {
        self.storage.len()
    }
}

/// What was once at an address.
#[derive(Clone, Debug)]
pub(crate) struct Freed {
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) name: Arc<str>,
}

/// The table of allocations.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: u64,
    used: u64,
    created: u64,
    next: u64,
    live: BTreeMap<u64, Arc<Allocation>>,
    freed: BTreeMap<u64, Freed>,
    /// Freed one-slot addresses, longest freed first: taken again only when fresh addresses have run out.
    spare: VecDeque<u64>,
}

impl Memory {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            created: 0,
            next: FIRST_ADDRESS,
            live: BTreeMap::new(),
            freed: BTreeMap::new(),
            spare: VecDeque::new(),
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn alloc(&mut self, bytes: u64, name: Option<&str>) -> Result<u64, MemoryError> {
        if bytes > self.limit - self.used {
            let (used, limit) = (self.used, self.limit);
            return Err(MemoryError::OutOfMemory { requested: bytes, used, limit });
        }
        let storage = Storage::new(bytes).ok_or(MemoryError::HostMemory { requested: bytes })?;
        let base = self.address_for(bytes).ok_or(MemoryError::OutOfAddresses { requested: bytes })?;
        let name = match name {
            Some(name) => Arc::from(name),
            None => Arc::from(format!("buffer {}", self.created)),
        };
        self.created += 1;
        self.used += bytes;
        self.freed.remove(&base);
        self.live
            .insert(base, Arc::new(Allocation { base, name, storage, unsettled: AtomicBool::new(false) }));
        Ok(base)
    }

    fn address_for(&mut self, bytes: u64) -> Option<u64> {
        let slot = 1u64 << SLOT_SHIFT;
        let length = bytes.checked_add(slot / 2)?.checked_next_multiple_of(slot)?;
        if length <= END_ADDRESS - self.next {
            let base = self.next;
            self.next += length;
            return Some(base);
        }
        if length == slot { self.spare.pop_front() } else { None }
    }

    pub(crate) fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let gone = self.live.remove(&address).ok_or(MemoryError::NotAllocated { address })?;
        let len = gone.len();
        self.used -= len;
        if len <= 1 << (SLOT_SHIFT - 1) {
            self.spare.push_back(address);
        }
        self.freed.insert(address, Freed { base: address, len, name: gone.name.clone() });
        Ok(())
    }

    /// The allocation that holds the whole range, and the range's offset in it.
    pub(crate) fn range(&self, address: u64, bytes: u64) -> Result<(&Arc<Allocation>, u64), MemoryError> {
        let bad = MemoryError::BadRange { address, bytes };
        let (base, allocation) = self.live.range(..=address).next_back().ok_or(bad.clone())?;
        let offset = address - base;
        if offset.checked_add(bytes).is_none_or(|end| end > allocation.len()) {
            return Err(bad);
        }
        Ok((allocation, offset))
    }

    /// Everything alive, in the order of addresses.
    pub(crate) fn snapshot(&self) -> Vec<Arc<Allocation>> {
        self.live.values().cloned().collect()
    }

    /// The freed allocation that once held `address`.
    pub(crate) fn freed_at(&self, address: u64) -> Option<Freed> {
        let (_, freed) = self.freed.range(..=address).next_back()?;
        (address - freed.base < freed.len.max(1)).then(|| freed.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_lie_far_apart_and_are_accounted_for() {
        let mut memory = Memory::new(1000);
        let a = memory.alloc(600, None).unwrap();
        assert_eq!(
            memory.alloc(401, None),
            Err(MemoryError::OutOfMemory { requested: 401, used: 600, limit: 1000 })
        );
        let b = memory.alloc(400, Some("b")).unwrap();
        assert!(b - (a + 600) >= 1 << 32 && a.is_multiple_of(256) && b.is_multiple_of(256));
        memory.free(a).unwrap();
        assert_eq!(memory.free(a), Err(MemoryError::NotAllocated { address: a }));
        assert_eq!(memory.used(), 400);
        assert_eq!(memory.freed_at(a + 599).map(|freed| freed.base), Some(a));
        assert!(memory.freed_at(a + 600).is_none());
    }

    #[test]
    fn what_the_host_cannot_hold_is_refused() {
        let mut memory = Memory::new(u64::MAX);
        for requested in [1 << 60, u64::MAX] {
            assert_eq!(memory.alloc(requested, None), Err(MemoryError::HostMemory { requested }));
        }
        assert_eq!((memory.used(), memory.next), (0, FIRST_ADDRESS));
    }

    #[test]
    fn ranges_are_checked() {
        let mut memory = Memory::new(1000);
        let a = memory.alloc(10, None).unwrap();
        assert_eq!(memory.range(a + 10, 0).unwrap().1, 10);
        assert!(memory.range(a + 3, 8).is_err());
        assert!(memory.range(a, u64::MAX).is_err());
        assert!(memory.range(0, 1).is_err());
    }

    #[test]
    fn addresses_come_back_only_when_fresh_ones_have_run_out() {
        let mut memory = Memory::new(u64::MAX);
        let first = memory.alloc(0, None).unwrap();
        memory.free(first).unwrap();
        assert_ne!(memory.alloc(0, None).unwrap(), first);
        memory.next = END_ADDRESS;
        assert_eq!(memory.alloc(0, None).unwrap(), first);
        assert_eq!(memory.alloc(0, None), Err(MemoryError::OutOfAddresses { requested: 0 }));
    }
}
