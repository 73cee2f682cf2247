//! Handing answers to C.
#![allow(unsafe_code)]

use std::ffi::c_char;

use crate::state::{INSUFFICIENT_SIZE, INVALID_ARGUMENT, SUCCESS};

/// A signed figure of the scenario as the driver gives it: -1 is all ones.
pub(crate) const fn bytes(figure: i64) -> u64 {
    figure.cast_unsigned()
}

/// Writes an answer to where the caller wants it.
///
/// # Safety
///
/// `to` is null or points to a `T` of the caller's.
pub(crate) unsafe fn put<T>(to: *mut T, answer: Result<T, u32>) -> u32 {
    match answer {
        Err(code) => code,
        Ok(_) if to.is_null() => INVALID_ARGUMENT,
        Ok(value) => {
            // SAFETY: as promised by the caller, and not null.
            unsafe { to.write(value) };
            SUCCESS
        }
    }
}

/// Writes a text with its NUL.
///
/// # Safety
///
/// `to` is null or points to `length` bytes of the caller's.
pub(crate) unsafe fn put_text(to: *mut c_char, length: u32, text: &str) -> u32 {
    if to.is_null() {
        return INVALID_ARGUMENT;
    }
    if text.len() >= length as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: as promised by the caller; the text and its NUL fit.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        to.add(text.len()).write(0);
    }
    SUCCESS
}

/// A row of any list in words of 8 bytes; the narrower forms are its beginning.
pub(crate) type Row = [u64; 4];

/// Writes the first `width` words of each row into an array whose room the caller tells in `count`,
/// and how many there are.
///
/// # Safety
///
/// `count` is null or points to a number of the caller's; `to` is null or points to so many rows.
pub(crate) unsafe fn put_rows(to: *mut u64, count: *mut u32, width: usize, rows: &[Row]) -> u32 {
    if count.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: as promised by the caller, and not null.
    let room = unsafe { count.replace(rows.len() as u32) } as usize;
    if rows.len() > room || (to.is_null() && !rows.is_empty()) {
        return INSUFFICIENT_SIZE;
    }
    for (n, row) in rows.iter().enumerate() {
        let width = width.min(row.len());
        // SAFETY: as promised by the caller: there is room for that many rows of that width.
        unsafe { to.add(n * width).copy_from_nonoverlapping(row.as_ptr(), width) };
    }
    SUCCESS
}
