//! Items of all kinds.

use std::fmt;

/// The largest size.
pub const MAX: usize = 1 << 10;
static COUNTER: AtomicUsize = AtomicUsize::new(0);
pub type Result<T> = std::result::Result<T, Error>;

/// A point.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Point<T> {
    /// Left to right.
    pub x: T,
    y: T,
}

struct Unit;
struct Tuple(pub u32, String);
union Bits { int: u32, float: f32 }

pub enum Shape {
    Circle(f64),
    Rect { w: f64, h: f64 },
    Empty = 3,
}

pub trait Draw: fmt::Debug + Send + Clone {
    type Output;
    const NAME: &'static str;
    fn draw(&self) -> Self::Output;
    fn twice(&self) {
        self.draw();
    }
}

impl<T> Point<T> {
    pub const ORIGIN: i32 = 0;

    pub fn new(x: T, y: T) -> Self {
        const LOCAL: u8 = 1;
        fn helper() {}
        Self { x, y }
    }

    #[must_use]
    pub async fn length<'a, F>(
        &'a self,
        f: F, // the function
    ) -> f64
    where
        F: Fn(&T) -> f64,
    {
        0.0
    }
}

impl<T: fmt::Debug> Draw for Point<T> {
    type Output = ();
    const NAME: &'static str = "point";
    fn draw(&self) {}
}

impl From<Tuple> for crate::other::Remote {
    fn from(_: Tuple) -> Self { Self }
}

impl<'a> Draw for &'a Shape { fn draw(&self) {} }

macro_rules! square {
    ($x:expr) => { $x * $x };
}

pub mod inner {
    pub(crate) fn deep() {}
    pub mod deeper { pub struct Core; }
}

mod other;

extern "C" {
    fn abs(input: i32) -> i32;
}

#[cfg(unix)]
fn platform() {}
#[cfg(not(unix))]
fn platform() {}

#[cfg(test)]
mod tests {
    #[test]
    fn works() {}

    #[tokio::test]
    async fn waits() {}
}
