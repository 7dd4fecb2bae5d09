//! FlatBuffers: tables, vectors and strings, found by offsets of which each is checked.
//!
//! A table begins with the distance back to its vtable: two sizes, and for each field where in the table it is, or 0. Other tables,
//! vectors and strings are at a distance ahead of the field that names them.
use std::cell::Cell;
use std::ops::Range;

use super::TfliteError;

type Result<T> = std::result::Result<T, TfliteError>;

/// Bytes, and how much may still be taken from them: parts may be named any number of times, so that a small file could stand for
/// a very large one.
#[derive(Debug)]
pub(super) struct Flat<'b> {
    bytes: &'b [u8],
    left: Cell<usize>,
}

/// Elements and tables that may be taken for each byte of a file, and in any case. A file in which nothing is shared has less than one.
const TAKEN_A_BYTE: usize = 4;
const TAKEN_FREE: usize = 1 << 10;

impl<'b> Flat<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, left: Cell::new(bytes.len().saturating_mul(TAKEN_A_BYTE).saturating_add(TAKEN_FREE)) }
    }

    /// The table that the bytes begin with the distance to.
    pub(super) fn root(&'b self) -> Result<Table<'b>> {
        self.table(self.ahead(0, "a root table")?)
    }

    fn array<const N: usize>(&self, at: usize, expected: &'static str) -> Result<[u8; N]> {
        let found = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        found.copied().ok_or(TfliteError::Damaged { at, expected })
    }

    /// The place that is as far ahead of `at` as the number there says.
    fn ahead(&self, at: usize, expected: &'static str) -> Result<usize> {
        let distance = u32::from_le_bytes(self.array(at, expected)?) as usize;
        at.checked_add(distance).ok_or(TfliteError::Damaged { at, expected })
    }

    fn take(&self, at: usize, count: usize) -> Result<()> {
        let left = self.left.get().checked_sub(count);
        self.left.set(left.ok_or(TfliteError::TooMuch { at })?);
        Ok(())
    }

    fn table(&'b self, at: usize) -> Result<Table<'b>> {
        const EXPECTED: &str = "a table with its vtable";
        let back = i32::from_le_bytes(self.array(at, EXPECTED)?);
        let damaged = TfliteError::Damaged { at, expected: EXPECTED };
        let vtable = (at as i64).checked_sub(back.into()).and_then(|vtable| usize::try_from(vtable).ok());
        let vtable = vtable.ok_or(damaged)?;
        let len = u16::from_le_bytes(self.array(vtable, EXPECTED)?).into();
        self.take(at, 1)?;
        Ok(Table { flat: self, at, vtable, len })
    }

    /// The elements of a vector, each of so many bytes.
    fn span(&self, at: usize, size: usize, expected: &'static str) -> Result<Range<usize>> {
        let damaged = TfliteError::Damaged { at, expected };
        let len = u32::from_le_bytes(self.array(at, expected)?) as usize;
        let start = at + 4;
        let end = len.checked_mul(size).and_then(|bytes| start.checked_add(bytes));
        match end.filter(|&end| end <= self.bytes.len()) {
            Some(end) => Ok(start..end),
            None => Err(damaged),
        }
    }
}

/// A table. Fields count from 0, as in the schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'b> {
    flat: &'b Flat<'b>,
    at: usize,
    vtable: usize,
    /// Bytes of the vtable.
    len: usize,
}

impl<'b> Table<'b> {
    /// Where a field is; none where it has its default.
    fn field(&self, field: usize) -> Result<Option<usize>> {
        let entry = 4 + 2 * field;
        if entry + 2 > self.len {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(self.flat.array(self.vtable + entry, "an entry of a vtable")?);
        Ok((offset != 0).then(|| self.at + usize::from(offset)))
    }

    fn number<const N: usize>(&self, field: usize) -> Result<Option<[u8; N]>> {
        self.field(field)?.map(|at| self.flat.array(at, "a field of a table")).transpose()
    }

    pub(super) fn i8(&self, field: usize) -> Result<i8> {
        Ok(self.number(field)?.map_or(0, i8::from_le_bytes))
    }

    pub(super) fn u8(&self, field: usize) -> Result<u8> {
        Ok(self.number(field)?.map_or(0, u8::from_le_bytes))
    }

    pub(super) fn i32(&self, field: usize, default: i32) -> Result<i32> {
        Ok(self.number(field)?.map_or(default, i32::from_le_bytes))
    }

    pub(super) fn u32(&self, field: usize) -> Result<u32> {
        Ok(self.number(field)?.map_or(0, u32::from_le_bytes))
    }

    pub(super) fn u64(&self, field: usize) -> Result<u64> {
        Ok(self.number(field)?.map_or(0, u64::from_le_bytes))
    }

    /// The table that a field names.
    pub(super) fn table(&self, field: usize) -> Result<Option<Table<'b>>> {
        let Some(at) = self.field(field)? else { return Ok(None) };
        self.flat.table(self.flat.ahead(at, "a table")?).map(Some)
    }

    /// The tables of a vector; none where it is missing.
    pub(super) fn tables(&self, field: usize) -> Result<Vec<Table<'b>>> {
        let Some(span) = self.vector(field, 4, "a vector of tables")? else { return Ok(Vec::new()) };
        self.flat.take(span.start, span.len() / 4)?;
        span.step_by(4).map(|at| self.flat.table(self.flat.ahead(at, "a table")?)).collect()
    }

    /// The elements of a vector, from their bytes. None where it is missing.
    pub(super) fn elements<T, const N: usize>(
        &self,
        field: usize,
        convert: impl Fn([u8; N]) -> T,
    ) -> Result<Option<Vec<T>>> {
        let Some(span) = self.vector(field, N, "a vector of numbers")? else { return Ok(None) };
        self.flat.take(span.start, span.len() / N)?;
        Ok(Some(self.flat.bytes[span].as_chunks::<N>().0.iter().map(|bytes| convert(*bytes)).collect()))
    }

    /// A vector of `i32`.
    pub(super) fn i32s(&self, field: usize) -> Result<Option<Vec<i32>>> {
        self.elements(field, i32::from_le_bytes)
    }

    /// Where the bytes of a vector are.
    pub(super) fn bytes(&self, field: usize) -> Result<Option<Range<usize>>> {
        self.vector(field, 1, "a vector of bytes")
    }

    /// A string; empty where it is missing. What is not UTF-8 is replaced.
    pub(super) fn string(&self, field: usize) -> Result<String> {
        let Some(span) = self.vector(field, 1, "a string")? else { return Ok(String::new()) };
        self.flat.take(span.start, span.len())?;
        Ok(String::from_utf8_lossy(&self.flat.bytes[span]).into_owned())
    }

    fn vector(&self, field: usize, size: usize, expected: &'static str) -> Result<Option<Range<usize>>> {
        let Some(at) = self.field(field)? else { return Ok(None) };
        self.flat.span(self.flat.ahead(at, expected)?, size, expected).map(Some)
    }
}
