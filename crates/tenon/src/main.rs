//! The command line: parsing, printing and wiring, no logic.

fn main() {}
