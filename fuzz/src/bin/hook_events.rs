//! The fuzz target `hook_events`. The command line is not a library, so its two files are compiled here.
#![no_main]

#[expect(dead_code, reason = "the command uses the rest")]
#[path = "../../../crates/tenon/src/commands/hook/event.rs"]
mod event;
#[path = "../../../crates/tenon/src/commands/hook/event_fuzzing.rs"]
mod event_fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| event_fuzzing::check(data));
