//! The memory of this process, as reported by its allocator and the kernel.

use peak_alloc::PeakAlloc;

/// Counts allocated and freed bytes, with two atomic additions for each call.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The bytes that are allocated now.
pub(crate) fn heap_bytes() -> u64 {
    HEAP.current_usage() as u64
}

/// The highest resident set size since the process started; 0 where `/proc` doesn't report it.
pub(crate) fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
