//! Numbers and columns of numbers in little-endian bytes.

use crate::{Error, ErrorKind, Result};

/// Appends numbers.
pub(super) trait Put {
    fn put_u32(&mut self, number: u32);
    fn put_u64(&mut self, number: u64);
    /// What each row adds to the one before.
    fn put_rise_u32(&mut self, rows: impl Iterator<Item = u32>);
    fn put_rise_u64(&mut self, rows: impl Iterator<Item = u64>);
    /// A length and the bytes.
    fn put_sized(&mut self, bytes: &[u8]) -> Result<()>;
}

impl Put for Vec<u8> {
    fn put_u32(&mut self, number: u32) {
        self.extend(number.to_le_bytes());
    }

    fn put_u64(&mut self, number: u64) {
        self.extend(number.to_le_bytes());
    }

    fn put_rise_u32(&mut self, rows: impl Iterator<Item = u32>) {
        let mut before = 0_u32;
        for row in rows {
            self.put_u32(row.wrapping_sub(before));
            before = row;
        }
    }

    fn put_rise_u64(&mut self, rows: impl Iterator<Item = u64>) {
        let mut before = 0_u64;
        for row in rows {
            self.put_u64(row.wrapping_sub(before));
            before = row;
        }
    }

    fn put_sized(&mut self, bytes: &[u8]) -> Result<()> {
        let length = u32::try_from(bytes.len()).map_err(|_| {
            Error::new(ErrorKind::Limit, "expected at most 4 GiB of members of a chunk")
        })?;
        self.put_u32(length);
        self.extend(bytes);
        Ok(())
    }
}

/// Takes numbers off the front of bytes.
#[derive(Debug)]
pub(super) struct Bytes<'b>(pub(super) &'b [u8]);

impl<'b> Bytes<'b> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| {
            damaged(format_args!("{count} more bytes"), format_args!("{}", self.0.len()))
        })?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn sized(&mut self) -> Result<&'b [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    /// A column of `rows` numbers; takes memory only for bytes that are there.
    pub(super) fn column_u32(&mut self, rows: u32) -> Result<impl Iterator<Item = u32> + use<'b>> {
        let bytes = self.take((rows as usize).saturating_mul(4))?;
        Ok(bytes.chunks_exact(4).map(|of| of.try_into().map_or(0, u32::from_le_bytes)))
    }

    pub(super) fn column_u64(&mut self, rows: u32) -> Result<impl Iterator<Item = u64> + use<'b>> {
        let bytes = self.take((rows as usize).saturating_mul(8))?;
        Ok(bytes.chunks_exact(8).map(|of| of.try_into().map_or(0, u64::from_le_bytes)))
    }

    /// Numbers that rise, or stay.
    pub(super) fn rise_u32(&mut self, rows: u32) -> Result<Vec<u32>> {
        let mut sum = 0_u32;
        let next = |step: u32| {
            sum = sum.checked_add(step)?;
            Some(sum)
        };
        let sums: Option<Vec<u32>> = self.column_u32(rows)?.map(next).collect();
        sums.ok_or_else(|| damaged("sums of 32 bits", "a larger one"))
    }

    pub(super) fn rise_u64(&mut self, rows: u32) -> Result<Vec<u64>> {
        let mut sum = 0_u64;
        let next = |step: u64| {
            sum = sum.checked_add(step)?;
            Some(sum)
        };
        let sums: Option<Vec<u64>> = self.column_u64(rows)?.map(next).collect();
        sums.ok_or_else(|| damaged("sums of 64 bits", "a larger one"))
    }

    /// Checks that nothing is left.
    pub(super) fn end(&self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(damaged("the end", format_args!("{} more bytes", self.0.len())))
    }
}

/// Bytes that pass their checksum and contradict themselves all the same.
pub(super) fn damaged(expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Damaged, format!("expected {expected}, found {found}"))
}
