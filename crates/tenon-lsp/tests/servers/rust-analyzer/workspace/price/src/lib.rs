//! Prices, and things that have one.

/// What has a price.
pub trait Priced {
    fn price(&self) -> u32;
}

/// Something for sale.
pub struct Item {
    pub cents: u32,
}

impl Item {
    pub fn total(&self, count: u32) -> u32 {
        self.cents * count
    }
}

impl Priced for Item {
    fn price(&self) -> u32 {
        self.total(1)
    }
}

/// The lowest price.
pub fn cheapest(items: &[Item]) -> u32 {
    let mut lowest = u32::MAX;
    for item in items {
        if item.price() < lowest {
            lowest = item.price();
        }
    }
    lowest
}
