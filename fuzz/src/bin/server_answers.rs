//! The fuzz target `server_answers`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_lsp::fuzzing::server_answers::check(data));
