//! A shop.

mod broken;
mod übersicht;

pub use übersicht::overview;

pub struct Service(pub u32);

impl price::Priced for Service {
    fn price(&self) -> u32 {
        self.0
    }
}
