//! The fuzz target `rpc_messages`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_lsp::fuzzing::rpc_messages::check(data));
