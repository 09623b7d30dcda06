//! Uses the other crate.

use price::{Item, cheapest};

pub fn overview() -> u32 {
    let größen = [Item { cents: 3 }, Item { cents: 4 }];
    let [erste, _] = &größen;
    erste.total(2) + cheapest(&größen)
}
