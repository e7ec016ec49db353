//! Acknowledges whatever it is given, without the standard library and thereby without an import of WASI.

#![cfg(target_family = "wasm")]
#![no_std]

extern crate alloc;

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::panic::PanicInfo;

use exports::pumphouse::handler::incoming_handler::Guest;
use pumphouse::handler::types::{Message, Outcome};

wit_bindgen::generate!({ path: "../sdk/wit", world: "handler", generate_all });

struct Bare;

impl Guest for Bare {
    fn handle(_message: Message) -> Outcome {
        Outcome::Ack
    }
}

export!(Bare);

/// Where the host puts what it passes; with the standard library the C library brings this itself.
///
/// # Safety
///
/// `old` is null, or a block that an earlier call gave. No alignment of the canonical ABI is above the one
/// that `realloc` keeps.
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(
    old: *mut u8,
    _size_of_old: usize,
    align: usize,
    size: usize,
) -> *mut u8 {
    if size == 0 {
        return core::ptr::without_provenance_mut(align);
    }
    // SAFETY: the caller's promise.
    let block: *mut u8 = unsafe { realloc(old.cast(), size) }.cast();
    if block.is_null() { core::arch::wasm32::unreachable() } else { block }
}

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// The C library's allocator, which the target links anyway and which needs nothing from the host.
struct Libc;

#[link(name = "c")]
unsafe extern "C" {
    fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
}

// SAFETY: `aligned_alloc` returns null or a block of its own of that size and alignment; the size is a multiple
// of the alignment, as C wants it. `free` takes what `aligned_alloc` gave.
unsafe impl GlobalAlloc for Libc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size().next_multiple_of(layout.align());
        // SAFETY: see above.
        unsafe { aligned_alloc(layout.align(), size).cast() }
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: see above.
        unsafe { free(block.cast()) }
    }
}

#[global_allocator]
static ALLOCATOR: Libc = Libc;
