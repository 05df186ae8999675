//! The recorder: preloaded (`LD_PRELOAD`) into any program, it writes down every call of the malloc
//! family and passes it on. It runs inside another program's process, between any two of its
//! instructions, and so avoids everything that could disturb the program: no allocation, no lock,
//! no stdio, no open descriptor, no change of `errno`.
//!
//! The path of a call: a hook (`hooks/`) passes it on to the next library (`next`), and notes it
//! (`record`) with the thread's state (`state`, found through `local`), whose writer puts it into a
//! chunk (`chunk_space`) of the process's file (`process`, `file`). All that a fork must not
//! inherit lies in memory (`layout`) that the kernel wipes in the child: it finds zeros, and begins
//! a file of its own.
//!
//! docs/TRACES.md describes what is recorded, what it costs, and what it cannot see.

#![no_std]

// Provides the panic handler; nothing else of it is used.
extern crate std;

mod chunk_space;
mod clock;
mod decimal;
mod end;
mod environment;
mod file;
mod hooks;
mod interposers;
mod large;
mod layout;
mod lent;
mod local;
mod metadata;
mod next;
mod process;
mod program_log;
mod record;
mod reentry;
mod signals;
mod state;
mod thread;
mod witness;

/// The function that the dynamic linker calls before `main`, so that a program which has allocated
/// nothing until then is recorded anyway.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// The function that runs after `main` and all functions that it registered, and before the
/// destructors of the libraries that the program is linked to.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn begin() {
    thread::set_up();
    // Libraries initialised earlier may have allocated. A second stream would need stamps.
    if local::state().is_null() {
        thread::begin_thread_of_caller(0);
    }
}

extern "C" fn end() {
    end::end_process_last();
}
