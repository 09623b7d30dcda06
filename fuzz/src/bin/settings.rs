//! The fuzz target `settings`; its body is in the crate that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_server::fuzzing::settings::check(data));
