//! Developer commands: test, bench, fuzz, schemas.

fn main() {}
