//! How much memory the process holds, as its allocator and the kernel tell.

use peak_alloc::PeakAlloc;

/// Counts what is allocated and freed, at the price of two atomic additions each.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Bytes allocated and not freed yet.
pub(super) fn heap_bytes() -> u64 {
    HEAP.current_usage() as u64
}

/// The most bytes that were resident at once since the process started; 0 where the kernel doesn't tell (`/proc`).
pub(super) fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
