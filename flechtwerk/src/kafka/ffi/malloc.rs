//! The allocator that RocksDB, librdkafka and, unless the program says otherwise, Rust take their memory from. Only that of glibc
//! needs help.

/// Gives pages that are free back to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back() {
    // SAFETY: takes the allocator's own locks, one arena after the other, and touches only what is free.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators do so by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}
