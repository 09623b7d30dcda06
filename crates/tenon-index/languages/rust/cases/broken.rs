//! Syntax errors.

fn whole() {}

struct Half {
    a: u32,
    b:
}

impl Half {
    fn method(&self) -> u32 { self.a + }
}

fn after() {}
