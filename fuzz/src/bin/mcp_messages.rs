//! The fuzz target `mcp_messages`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_server::fuzzing::mcp_messages::check(data));
